//! Profile types and how their values add up over time.

use std::fmt;
use std::str::FromStr;

/// What the values of a series are: `name:sample_type:sample_unit:period_type:period_unit`, the
/// identifier that Pyroscope, Parca and the contract use.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProfileType {
    /// The profile's name: `process_cpu`, `memory`, `mutex` …
    pub name: String,
    /// What is counted: `cpu`, `alloc_space`, `delay` …
    pub sample_type: String,
    /// Its unit: `nanoseconds`, `bytes`, `count` …
    pub sample_unit: String,
    /// What a sample is taken of.
    pub period_type: String,
    /// The unit of the period.
    pub period_unit: String,
}

/// How values of one series at several times combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Temporality {
    /// Each profile holds what happened in its window: values are summed.
    Delta,
    /// Each profile holds the state at one moment: values are averaged.
    Gauge,
}

/// A profile type that is not five parts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "profile type {given:?} is not name:sample_type:sample_unit:period_type:period_unit, for example process_cpu:cpu:nanoseconds:cpu:nanoseconds"
)]
pub struct ProfileTypeError {
    given: String,
}

impl ProfileType {
    /// A type from its five parts.
    #[must_use]
    pub fn new(
        name: &str,
        sample_type: &str,
        sample_unit: &str,
        period_type: &str,
        period_unit: &str,
    ) -> Self {
        Self {
            name: name.to_owned(),
            sample_type: sample_type.to_owned(),
            sample_unit: sample_unit.to_owned(),
            period_type: period_type.to_owned(),
            period_unit: period_unit.to_owned(),
        }
    }

    /// Whether the identifier reads back as this type: with a name and a sample type, and without a
    /// colon inside any part.
    #[must_use]
    pub fn has_identifier(&self) -> bool {
        let parts = [
            &self.name,
            &self.sample_type,
            &self.sample_unit,
            &self.period_type,
            &self.period_unit,
        ];
        let is_named = !self.name.is_empty() && !self.sample_type.is_empty();
        is_named && !parts.iter().any(|part| part.contains(':'))
    }

    /// Whether values are events of a window or a state at a moment. Live heap and goroutine
    /// counts are states; everything else that profilers write counts events.
    #[must_use]
    pub fn temporality(&self) -> Temporality {
        let is_state = self.sample_type.starts_with("inuse_")
            // `goroutine`, `goroutines`, and those that leaked.
            || self.sample_type.starts_with("goroutine")
            || self.name.starts_with("goroutine")
            // What async-profiler finds alive.
            || (self.name == "memory" && self.sample_type == "live");
        if is_state {
            return Temporality::Gauge;
        }
        Temporality::Delta
    }
}

impl Temporality {
    /// `delta` or `gauge`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delta => "delta",
            Self::Gauge => "gauge",
        }
    }
}

impl fmt::Display for ProfileType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}:{}:{}:{}:{}",
            self.name, self.sample_type, self.sample_unit, self.period_type, self.period_unit
        )
    }
}

impl FromStr for ProfileType {
    type Err = ProfileTypeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split(':').collect();
        let [name, sample_type, sample_unit, period_type, period_unit] = parts[..] else {
            return Err(ProfileTypeError {
                given: text.to_owned(),
            });
        };
        if name.is_empty() || sample_type.is_empty() {
            return Err(ProfileTypeError {
                given: text.to_owned(),
            });
        }
        Ok(Self::new(
            name,
            sample_type,
            sample_unit,
            period_type,
            period_unit,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_round_trip() {
        let id = "memory:inuse_space:bytes:space:bytes";
        let profile_type: ProfileType = id.parse().expect("a valid id");
        assert_eq!(profile_type.to_string(), id);
        assert_eq!(profile_type.temporality(), Temporality::Gauge);
    }

    #[test]
    fn what_is_alive_is_a_state() {
        for id in [
            "memory:live:count:objects:count",
            "memory:inuse_objects:count:space:bytes",
            "goroutines:goroutine:count:goroutine:count",
        ] {
            let profile_type: ProfileType = id.parse().expect("a valid id");
            assert_eq!(profile_type.temporality(), Temporality::Gauge, "{id}");
        }
        let events: ProfileType = "memory:alloc_objects:count:space:bytes"
            .parse()
            .expect("a valid id");
        assert_eq!(events.temporality(), Temporality::Delta);
    }

    #[test]
    fn four_parts_are_refused_with_an_example() {
        let error = "process_cpu:cpu:nanoseconds:cpu"
            .parse::<ProfileType>()
            .expect_err("four parts");
        assert!(
            error
                .to_string()
                .contains("process_cpu:cpu:nanoseconds:cpu:nanoseconds")
        );
    }
}
