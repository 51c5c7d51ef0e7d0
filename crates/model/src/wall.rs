//! Wall time: the time on a CPU and the time off it, added up.
//!
//! An agent stores the two and not their sum. Whoever asks for the sum gets the union of the two; but
//! some programs and `record` write wall time themselves, and what such a profile covers must not count
//! once more. So a profile of a part is left out where wall time is stored of the same processes, as
//! far as labels tell, and its window starts in that of the stored one. Windows that overlap by halves
//! are told apart by their starts, as ranges are: what is counted twice at one end of a stored profile
//! is left out at the other.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::SERVICE_NAME_LABEL;
use crate::labels::Labels;
use crate::profile::Profile;
use crate::profile::ProfileSeries;
use crate::profile_type::ProfileType;
use crate::profiled_time::merge_windows;
use crate::short_names::resolve_profile_type;

/// Whether a wall time can be made of types, where none is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WallParts {
    has_on_cpu: bool,
    has_off_cpu: bool,
}

/// What stored wall time covers.
#[derive(Clone, Debug, Default)]
pub struct WallCover {
    /// By service and then by labels: a fleet has many series, and each is compared with few.
    services: BTreeMap<String, BTreeMap<Labels, Vec<Range<i64>>>>,
}

// === impl ProfileType ===

impl ProfileType {
    /// Wall time in nanoseconds.
    #[must_use]
    pub fn wall() -> Self {
        Self::new("wall", "wall", "nanoseconds", "wall", "nanoseconds")
    }

    /// Time on a CPU in nanoseconds.
    #[must_use]
    pub fn on_cpu() -> Self {
        Self::new("process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds")
    }

    /// Time off a CPU in nanoseconds.
    #[must_use]
    pub fn off_cpu() -> Self {
        let time = ("off_cpu", "nanoseconds");
        Self::new("off_cpu", time.0, time.1, time.0, time.1)
    }

    /// Whether wall time is made of this type and another.
    #[must_use]
    pub fn is_part_of_wall(&self) -> bool {
        *self == Self::on_cpu() || *self == Self::off_cpu()
    }

    /// Whether a pattern, as [`resolve_profile_type`] takes it, may stand for wall time.
    #[must_use]
    pub fn may_be_wall(pattern: &str) -> bool {
        resolve_profile_type(pattern, &[Self::wall()]).is_ok()
    }
}

// === impl WallParts ===

impl WallParts {
    /// Takes notice of a type.
    pub fn add(&mut self, profile_type: &ProfileType) {
        self.has_on_cpu |= *profile_type == ProfileType::on_cpu();
        self.has_off_cpu |= *profile_type == ProfileType::off_cpu();
    }

    /// Those of some types.
    pub fn of<'a>(types: impl IntoIterator<Item = &'a ProfileType>) -> Self {
        let mut parts = Self::default();
        types.into_iter().for_each(|it| parts.add(it));
        parts
    }

    /// Whether both are there.
    #[must_use]
    pub fn are_whole(self) -> bool {
        self.has_on_cpu && self.has_off_cpu
    }

    /// Whether they may be all there is: who measures time off a CPU measures time on it too, and
    /// what only waited has none of that.
    #[must_use]
    pub fn may_be_whole(self) -> bool {
        self.has_off_cpu
    }
}

// === impl WallCover ===

impl WallCover {
    /// Adds a stored profile of wall time; one without a length covers the moment of its start.
    pub fn add(&mut self, labels: &Labels, start_ns: i64, duration_ns: i64) {
        let window = start_ns..start_ns.saturating_add(duration_ns.max(1));
        let service = labels.get(SERVICE_NAME_LABEL).unwrap_or("");
        let of_service = self.services.entry(service.to_owned()).or_default();
        of_service.entry(labels.clone()).or_default().push(window);
    }

    /// Makes one window of those of a series that touch, so that they need not be gone through again for
    /// every series that is [asked for](Self::windows_of).
    pub fn merge_windows(&mut self) {
        for series in self.services.values_mut() {
            for windows in series.values_mut() {
                merge_windows(windows);
            }
        }
    }

    /// Whether nothing is covered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.services.is_empty()
    }

    /// When the processes with these labels are covered: ascending windows that do not touch. A label
    /// that only one side has says nothing about the other.
    #[must_use]
    pub fn windows_of(&self, labels: &Labels) -> Vec<Range<i64>> {
        let services = self.services.iter();
        let services = services.filter(|(service, _)| {
            let own = labels.get(SERVICE_NAME_LABEL);
            service.is_empty() || own.is_none_or(|own| own == service.as_str())
        });
        let walls = services.flat_map(|(_, series)| series);
        let covering = walls.filter(|(wall, _)| agree(wall, labels));
        let mut windows: Vec<Range<i64>> =
            covering.flat_map(|(_, windows)| windows.clone()).collect();
        merge_windows(&mut windows);
        windows
    }

    /// Whether a start lies in one of these windows.
    #[must_use]
    pub fn has(windows: &[Range<i64>], start_ns: i64) -> bool {
        let behind = windows.partition_point(|window| window.start <= start_ns);
        behind > 0 && windows[behind - 1].contains(&start_ns)
    }
}

// === impl Profile ===

impl Profile {
    /// Adds wall time made of the time on and off CPUs, except of what stored wall time covers. Without
    /// any time off CPUs nothing is added.
    pub fn add_wall(&mut self) {
        let types = self.series.iter().map(|series| &series.profile_type);
        if !WallParts::of(types).may_be_whole() {
            return;
        }
        let mut cover = WallCover::default();
        let wall = ProfileType::wall();
        for series in self.series.iter().filter(|it| it.profile_type == wall) {
            cover.add(&series.labels, series.start_ns, series.duration_ns);
        }
        let is_uncovered = |series: &&ProfileSeries| {
            series.profile_type.is_part_of_wall()
                && !WallCover::has(&cover.windows_of(&series.labels), series.start_ns)
        };
        let parts = self.series.iter().filter(is_uncovered);
        let walls = parts.map(|part| ProfileSeries {
            profile_type: wall.clone(),
            ..part.clone()
        });
        let walls: Vec<ProfileSeries> = walls.collect();
        self.series.extend(walls);
    }
}

/// Whether two series may be of the same processes: every label that both have is the same.
fn agree(left: &Labels, right: &Labels) -> bool {
    left.iter()
        .all(|(name, value)| right.get(name).is_none_or(|other| other == value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::StackId;
    use crate::profile::Sample;

    fn labels(host: &str) -> Labels {
        Labels::from_pairs([("service_name", "shop"), ("host", host)])
    }

    fn series(profile_type: ProfileType, host: &str, start_ns: i64, value: i64) -> ProfileSeries {
        ProfileSeries {
            start_ns,
            duration_ns: 10,
            samples: vec![Sample::new(StackId::default(), value)],
            ..ProfileSeries::new(labels(host), profile_type)
        }
    }

    fn wall_of(series: Vec<ProfileSeries>) -> i64 {
        let mut profile = Profile::default();
        profile.series = series;
        profile.add_wall();
        let walls = profile.series.iter();
        let walls = walls.filter(|series| series.profile_type == ProfileType::wall());
        walls
            .flat_map(|series| &series.samples)
            .map(|it| it.value)
            .sum()
    }

    #[test]
    fn what_is_stored_is_not_counted_again() {
        let [on, off] = [ProfileType::on_cpu(), ProfileType::off_cpu()];
        let parts = vec![
            series(on.clone(), "a", 100, 1),
            series(off.clone(), "a", 105, 2),
            series(on.clone(), "a", 110, 4),
            series(off, "b", 105, 8),
        ];
        assert_eq!(wall_of(parts.clone()), 15);
        let stored = series(ProfileType::wall(), "a", 100, 16);
        assert_eq!(wall_of([parts, vec![stored]].concat()), 4 + 8 + 16);
        assert_eq!(wall_of(vec![series(on, "a", 100, 1)]), 0, "nothing off CPU");
    }

    #[test]
    fn labels_of_one_side_say_nothing_about_the_other() {
        let mut cover = WallCover::default();
        assert!(cover.is_empty());
        cover.add(&Labels::from_pairs([("service_name", "shop")]), 100, 0);
        cover.add(&labels("a"), 101, 9);
        cover.add(&labels("a"), 200, 10);
        assert_eq!(cover.windows_of(&labels("a")), [100..110, 200..210]);
        let moment = 100..101;
        assert_eq!(cover.windows_of(&labels("b")), [moment]);
        let other = Labels::from_pairs([("service_name", "till"), ("host", "a")]);
        assert_eq!(cover.windows_of(&other), []);
        cover.merge_windows();
        let windows = cover.windows_of(&labels("a"));
        assert_eq!(windows, [100..110, 200..210]);
        let starts = [99, 100, 109, 110, 199, 200, 209, 210];
        let covered = starts.map(|start_ns| WallCover::has(&windows, start_ns));
        assert_eq!(
            covered,
            [false, true, true, false, false, true, true, false]
        );
    }

    #[test]
    fn patterns_of_wall_time() {
        for pattern in ["wall", "wall:wall", &ProfileType::wall().to_string()] {
            assert!(ProfileType::may_be_wall(pattern), "{pattern}");
        }
        for pattern in ["cpu", "wal", "wall:samples"] {
            assert!(!ProfileType::may_be_wall(pattern), "{pattern}");
        }
    }
}
