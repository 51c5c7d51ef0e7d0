//! What one tenant may send.

/// The most that there may be of something; 0 stands for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bound(u64);

/// What one tenant may send. The names of the fields are those of the configuration,
/// `server.limits.NAME`, of refusals and of `/api/v1/status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantLimits {
    /// Bytes a second of accepted profiles, decompressed and with their labels.
    pub ingest_rate: Bound,
    /// Bytes that may come at once after a pause. Here 0 is none: only the rate counts.
    pub ingest_burst: Bound,
    /// Series with profiles in the last hour: different label sets and profile types.
    pub series: Bound,
    /// Labels of one series.
    pub labels_per_series: Bound,
    /// Bytes of a label's name.
    pub label_name_length: Bound,
    /// Bytes of a label's value.
    pub label_value_length: Bound,
    /// Bytes of one profile, decompressed.
    pub profile_size: Bound,
    /// Samples of one profile.
    pub samples_per_profile: Bound,
    /// Labels of one sample.
    pub labels_per_sample: Bound,
    /// Frames of a stack; what is deeper is cut at the leaf, and counted.
    pub stack_depth: Bound,
    /// Bytes of the name of a function or file; what is longer is cut at its end, and counted.
    pub string_length: Bound,
    /// Bytes of one request, as sent. One of many profiles may have as many decompressed.
    pub body_size: Bound,
    /// Profiles of one request that has many, each in a file of its own.
    pub profiles_per_request: Bound,
    /// Profiles that are kept to be looked at.
    pub adhoc_profiles: Bound,
    /// Bytes of them together, as sent.
    pub adhoc_size: Bound,
    /// Turns of its queries for one of a tenant that has 1 here, when both wait. Here 0 is 1.
    pub query_weight: Bound,
}

impl Bound {
    /// At most so many; 0 is no limit.
    #[must_use]
    pub const fn new(most: u64) -> Self {
        Self(most)
    }

    /// The number as it is configured: 0 is no limit.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number to compare with.
    #[must_use]
    pub fn most(self) -> usize {
        match self.0 {
            0 => usize::MAX,
            most => usize::try_from(most).unwrap_or(usize::MAX),
        }
    }
}

impl Default for TenantLimits {
    /// The contract's.
    fn default() -> Self {
        Self {
            ingest_rate: Bound::new(4 << 20),
            ingest_burst: Bound::new(2 << 20),
            series: Bound::new(5000),
            labels_per_series: Bound::new(30),
            label_name_length: Bound::new(1024),
            label_value_length: Bound::new(2048),
            profile_size: Bound::new(64 << 20),
            samples_per_profile: Bound::new(1_000_000),
            labels_per_sample: Bound::new(100),
            stack_depth: Bound::new(1000),
            string_length: Bound::new(65_535),
            body_size: Bound::new(256 << 20),
            profiles_per_request: Bound::new(10_000),
            adhoc_profiles: Bound::new(1000),
            adhoc_size: Bound::new(1 << 30),
            query_weight: Bound::new(1),
        }
    }
}

impl TenantLimits {
    /// Every limit with its name.
    #[must_use]
    pub fn entries(&self) -> [(&'static str, Bound); 16] {
        [
            ("ingest_rate", self.ingest_rate),
            ("ingest_burst", self.ingest_burst),
            ("series", self.series),
            ("labels_per_series", self.labels_per_series),
            ("label_name_length", self.label_name_length),
            ("label_value_length", self.label_value_length),
            ("profile_size", self.profile_size),
            ("samples_per_profile", self.samples_per_profile),
            ("labels_per_sample", self.labels_per_sample),
            ("stack_depth", self.stack_depth),
            ("string_length", self.string_length),
            ("body_size", self.body_size),
            ("profiles_per_request", self.profiles_per_request),
            ("adhoc_profiles", self.adhoc_profiles),
            ("adhoc_size", self.adhoc_size),
            ("query_weight", self.query_weight),
        ]
    }

    /// Sets a limit by its name. False when there is none of that name.
    #[must_use]
    pub fn set(&mut self, name: &str, bound: Bound) -> bool {
        let field = match name {
            "ingest_rate" => &mut self.ingest_rate,
            "ingest_burst" => &mut self.ingest_burst,
            "series" => &mut self.series,
            "labels_per_series" => &mut self.labels_per_series,
            "label_name_length" => &mut self.label_name_length,
            "label_value_length" => &mut self.label_value_length,
            "profile_size" => &mut self.profile_size,
            "samples_per_profile" => &mut self.samples_per_profile,
            "labels_per_sample" => &mut self.labels_per_sample,
            "stack_depth" => &mut self.stack_depth,
            "string_length" => &mut self.string_length,
            "body_size" => &mut self.body_size,
            "profiles_per_request" => &mut self.profiles_per_request,
            "adhoc_profiles" => &mut self.adhoc_profiles,
            "adhoc_size" => &mut self.adhoc_size,
            "query_weight" => &mut self.query_weight,
            _ => return false,
        };
        *field = bound;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_set_by_the_name_it_is_listed_with() {
        let names = TenantLimits::default().entries().map(|(name, _)| name);
        for (index, name) in names.into_iter().enumerate() {
            let mut limits = TenantLimits::default();
            assert!(limits.set(name, Bound::new(7)), "{name}");
            let (_, bound) = limits.entries()[index];
            assert_eq!(bound, Bound::new(7), "{name}");
        }
        assert!(!TenantLimits::default().set("sereis", Bound::new(7)));
    }

    #[test]
    fn nothing_is_beyond_no_limit() {
        assert_eq!(Bound::new(0).most(), usize::MAX);
        assert_eq!(Bound::new(3).most(), 3);
    }
}
