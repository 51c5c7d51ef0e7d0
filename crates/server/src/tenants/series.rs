//! Which series of a tenant are active.

use std::collections::HashSet;
use std::hash::Hash;
use std::hash::Hasher;
use std::time::Duration;

use candela_model::ProfileSeries;
use twox_hash::XxHash3_64;

/// A series is active for this long after its last profile. A little less when it comes early in a
/// half of it: only halves are told apart.
pub(crate) const ACTIVE_FOR_NS: i64 = 3_600_000_000_000;

const HALF_NS: i64 = ACTIVE_FOR_NS / 2;

/// The labels and the type of a series, as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SeriesKey(u64);

/// The series of the last hour: those of this half hour, and those of the one before that have not
/// come again. Two sets instead of a time for each series, because then forgetting costs nothing.
#[derive(Debug, Default)]
pub(crate) struct ActiveSeries {
    recent: HashSet<SeriesKey>,
    earlier: HashSet<SeriesKey>,
    half_started_ns: i64,
}

impl SeriesKey {
    pub(crate) fn of(series: &ProfileSeries) -> Self {
        let mut hasher = XxHash3_64::new();
        series.labels.hash(&mut hasher);
        series.profile_type.hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl ActiveSeries {
    /// Takes note of the series of one profile: of all, or, when that would be more than `most`, of
    /// none. Then how long until series may have been forgotten.
    pub(crate) fn admit(
        &mut self,
        keys: &[SeriesKey],
        most: usize,
        now_ns: i64,
    ) -> Result<(), Duration> {
        self.forget(now_ns);
        let mut new: Vec<SeriesKey> = keys.iter().copied().filter(|key| !self.has(*key)).collect();
        new.sort_unstable_by_key(|key| key.0);
        new.dedup();
        if !new.is_empty() && self.len() + new.len() > most {
            let next_ns = self.half_started_ns.saturating_add(HALF_NS);
            let left_ns = u64::try_from(next_ns.saturating_sub(now_ns)).unwrap_or(0);
            return Err(Duration::from_nanos(left_ns));
        }
        for key in keys {
            self.earlier.remove(key);
            self.recent.insert(*key);
        }
        Ok(())
    }

    /// How many there are.
    pub(crate) fn count(&mut self, now_ns: i64) -> usize {
        self.forget(now_ns);
        self.len()
    }

    fn len(&self) -> usize {
        self.recent.len() + self.earlier.len()
    }

    fn has(&self, key: SeriesKey) -> bool {
        self.recent.contains(&key) || self.earlier.contains(&key)
    }

    fn forget(&mut self, now_ns: i64) {
        let halves = now_ns.saturating_sub(self.half_started_ns) / HALF_NS;
        if halves <= 0 {
            return;
        }
        self.earlier = std::mem::take(&mut self.recent);
        if halves > 1 {
            self.earlier.clear();
        }
        self.half_started_ns += halves * HALF_NS;
    }
}

#[cfg(test)]
mod tests {
    use candela_model::Labels;
    use candela_model::ProfileType;

    use super::*;

    fn keys(range: std::ops::Range<u64>) -> Vec<SeriesKey> {
        range.map(SeriesKey).collect()
    }

    #[test]
    fn new_series_beyond_the_limit_are_refused_and_known_ones_go_on() {
        let mut active = ActiveSeries::default();
        assert_eq!(active.admit(&keys(0..3), 5, 0), Ok(()));
        assert!(active.admit(&keys(3..6), 5, 1).is_err());
        assert_eq!(active.count(1), 3, "of a refused profile nothing is noted");
        assert_eq!(active.admit(&keys(1..5), 5, 2), Ok(()));
        assert_eq!(active.admit(&keys(0..5), 5, 3), Ok(()));
        let left = active.admit(&keys(9..10), 5, HALF_NS - 1_000_000_000);
        assert_eq!(left, Err(Duration::from_secs(1)));
    }

    #[test]
    fn what_comes_twice_in_a_profile_is_one_series() {
        let mut active = ActiveSeries::default();
        let twice = [SeriesKey(7), SeriesKey(7)];
        assert_eq!(active.admit(&twice, 1, 0), Ok(()));
        assert_eq!(active.count(0), 1);
    }

    #[test]
    fn silent_series_make_room() {
        let mut active = ActiveSeries::default();
        active.admit(&keys(0..2), 2, 0).expect("room");
        active.admit(&keys(1..2), 2, HALF_NS).expect("known");
        assert!(active.admit(&keys(5..6), 2, ACTIVE_FOR_NS - 1).is_err());
        active
            .admit(&keys(5..6), 2, ACTIVE_FOR_NS)
            .expect("0 is silent");
        assert_eq!(active.count(ACTIVE_FOR_NS), 2);
        assert_eq!(active.count(4 * ACTIVE_FOR_NS), 0);
    }

    #[test]
    fn labels_and_type_make_a_series() {
        let cpu = ProfileType::new("process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds");
        let of = |labels: &[(&str, &str)], profile_type: &ProfileType| {
            let labels = Labels::from_pairs(labels.iter().copied());
            SeriesKey::of(&ProfileSeries::new(labels, profile_type.clone()))
        };
        let one = of(&[("a", "b")], &cpu);
        assert_eq!(one, of(&[("a", "b")], &cpu));
        assert_ne!(one, of(&[("ab", "")], &cpu));
        assert_ne!(one, of(&[("a", "b"), ("c", "d")], &cpu));
        let other = ProfileType::new("process_cpu", "samples", "count", "cpu", "nanoseconds");
        assert_ne!(one, of(&[("a", "b")], &other));
    }
}
