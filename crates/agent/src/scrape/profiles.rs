//! Which profiles a program offers, and where.

/// How the answers of a place relate to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileReading {
    /// It is asked for so many seconds (`seconds=14`), which its answer covers.
    Window,
    /// Totals since the program started, next to states: `alloc_*`, `contentions` and `delay` become
    /// what was added since the scrape before, `inuse_*` stay.
    Cumulative,
    /// What was added since it was asked before.
    SinceLast,
    /// A state at a moment.
    Moment,
}

/// One kind of profile that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrapedProfile {
    /// What it is called in the configuration: `godeltaprof_memory`.
    pub kind: String,
    /// The first part of its profile types: `memory`.
    pub name: String,
    /// Where it is, below the path prefix.
    pub path: String,
    /// How it is read.
    pub reading: ProfileReading,
    /// Whether it is asked for where nobody says.
    pub default_enabled: bool,
    /// What somebody said.
    pub enabled: Option<bool>,
}

/// A kind of godeltaprof shows the same as the plain kind of this name without the prefix.
const DELTA_PREFIX: &str = "godeltaprof_";

// === impl ScrapedProfile ===

impl ScrapedProfile {
    fn known(kind: &str, path: &str, reading: ProfileReading, default_enabled: bool) -> Self {
        Self {
            kind: kind.to_owned(),
            name: kind.strip_prefix(DELTA_PREFIX).unwrap_or(kind).to_owned(),
            path: path.to_owned(),
            reading,
            default_enabled,
            enabled: None,
        }
    }

    /// A kind that a configuration names itself. `has_window` where the place takes `seconds=`.
    #[must_use]
    pub fn custom(name: &str, path: &str, has_window: bool) -> Self {
        let reading = match has_window {
            true => ProfileReading::Window,
            false => ProfileReading::Moment,
        };
        Self {
            name: name.to_owned(),
            enabled: Some(true),
            ..Self::known(name, path, reading, false)
        }
    }
}

/// The kinds and paths that Go programs have, as `pyroscope.scrape` of Alloy asks for them.
#[must_use]
pub fn default_profiles() -> Vec<ScrapedProfile> {
    use ProfileReading::Cumulative;
    use ProfileReading::Moment;
    use ProfileReading::SinceLast;
    use ProfileReading::Window;
    let kinds = [
        ("memory", "/debug/pprof/allocs", Cumulative, true),
        ("block", "/debug/pprof/block", Cumulative, true),
        ("mutex", "/debug/pprof/mutex", Cumulative, true),
        ("goroutine", "/debug/pprof/goroutine", Moment, true),
        ("process_cpu", "/debug/pprof/profile", Window, true),
        ("fgprof", "/debug/fgprof", Window, false),
        (
            "godeltaprof_memory",
            "/debug/pprof/delta_heap",
            SinceLast,
            false,
        ),
        (
            "godeltaprof_mutex",
            "/debug/pprof/delta_mutex",
            SinceLast,
            false,
        ),
        (
            "godeltaprof_block",
            "/debug/pprof/delta_block",
            SinceLast,
            false,
        ),
    ];
    kinds
        .map(|(kind, path, reading, is_on)| ScrapedProfile::known(kind, path, reading, is_on))
        .to_vec()
}

/// Which of `profiles` are asked for; `said` tells what a target's own labels say of a kind, which
/// wins. A plain kind is off where that of godeltaprof is on, unless somebody wants both: together
/// they count everything twice.
pub(crate) fn enabled(
    profiles: &[ScrapedProfile],
    said: impl Fn(&str) -> Option<bool>,
) -> Vec<&ScrapedProfile> {
    let explicit = |profile: &ScrapedProfile| said(&profile.kind).or(profile.enabled);
    let has_twin = |kind: &str| {
        let twin = format!("{DELTA_PREFIX}{kind}");
        profiles
            .iter()
            .any(|other| other.kind == twin && explicit(other) == Some(true))
    };
    let is_on = |profile: &&ScrapedProfile| {
        explicit(profile).unwrap_or_else(|| profile.default_enabled && !has_twin(&profile.kind))
    };
    profiles.iter().filter(is_on).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(profiles: &[ScrapedProfile], said: impl Fn(&str) -> Option<bool>) -> Vec<&str> {
        let on = enabled(profiles, said).into_iter();
        on.map(|profile| profile.kind.as_str()).collect()
    }

    #[test]
    fn kf_14_defaults() {
        let profiles = default_profiles();
        let expected = ["memory", "block", "mutex", "goroutine", "process_cpu"];
        assert_eq!(kinds(&profiles, |_| None), expected);
        let heap = &profiles[6];
        assert_eq!(
            (heap.kind.as_str(), heap.name.as_str()),
            ("godeltaprof_memory", "memory")
        );
    }

    #[test]
    fn kf_15_nothing_is_counted_twice_unless_wanted() {
        let mut profiles = default_profiles();
        let heap = 6;
        profiles[heap].enabled = Some(true);
        let expected = [
            "block",
            "mutex",
            "goroutine",
            "process_cpu",
            "godeltaprof_memory",
        ];
        assert_eq!(kinds(&profiles, |_| None), expected);
        let both = kinds(&profiles, |kind| (kind == "memory").then_some(true));
        assert!(both.contains(&"memory") && both.contains(&"godeltaprof_memory"));
        let neither = kinds(&profiles, |kind| {
            (kind == "godeltaprof_memory").then_some(false)
        });
        assert!(neither.contains(&"memory") && !neither.contains(&"godeltaprof_memory"));
    }
}
