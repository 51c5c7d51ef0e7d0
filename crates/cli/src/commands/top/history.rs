//! The last seconds of what an agent of this process has sampled.

use std::collections::BTreeMap;
use std::collections::VecDeque;

use candela_model::Profile;
use candela_model::SERVICE_NAME_LABEL;

use super::kind::Kind;
use super::snapshot::Group;
use super::snapshot::Snapshot;
use crate::commands::process_counts::pids_of;

/// How long after the end of a window its profiles may still come: samples are gathered, stacks are named.
const LATENESS_NS: i64 = 2_000_000_000;

/// The profiles of the last windows. Times are nanoseconds since the epoch.
#[derive(Debug)]
pub(crate) struct History {
    length_ns: i64,
    start_ns: i64,
    windows: VecDeque<Window>,
}

#[derive(Debug)]
struct Window {
    start_ns: i64,
    end_ns: i64,
    profile: Profile,
}

// === impl History ===

impl History {
    /// An empty history of so many nanoseconds, in which nothing was before `start_ns`.
    pub(crate) fn new(length_ns: i64, start_ns: i64) -> Self {
        Self {
            length_ns,
            start_ns,
            windows: VecDeque::new(),
        }
    }

    /// Takes the profile of one kind and window. A window in which nothing was sampled gives none.
    pub(crate) fn add(&mut self, profile: Profile) {
        let Some(first) = profile.series.first() else {
            return;
        };
        self.windows.push_back(Window {
            start_ns: first.start_ns,
            end_ns: first.start_ns.saturating_add(first.duration_ns),
            profile,
        });
    }

    /// What was sampled in the last seconds; with a process id the trees are of this process alone.
    pub(crate) fn snapshot(&mut self, now_ns: i64, pid: Option<&str>) -> Snapshot {
        let latest_ns = self.windows.iter().map(|window| window.end_ns).max();
        // Without a profile for so long nothing ran, which is part of the picture.
        let end_ns = latest_ns.unwrap_or(0).max(now_ns - LATENESS_NS);
        let begin_ns = (end_ns - self.length_ns).max(self.start_ns);
        self.windows.retain(|window| window.end_ns > begin_ns);
        let first_ns = self.windows.iter().map(|window| window.start_ns).min();
        // A window counts whole, so what is shown may begin a little earlier.
        let begin_ns = first_ns.unwrap_or(begin_ns).min(begin_ns);
        let mut profile = Profile::default();
        for window in &self.windows {
            profile.absorb(&window.profile);
        }
        let pids = pids_of(&profile);
        let groups = groups_of(&profile, &pids);
        if let Some(pid) = pid {
            keep_process(&mut profile, &pids, pid);
        }
        let seconds = (end_ns - begin_ns).max(0) as f64 / 1e9;
        Snapshot::new(profile, seconds, groups)
    }
}

fn groups_of(profile: &Profile, pids: &[Option<i64>]) -> Vec<Group> {
    let mut groups: BTreeMap<i64, Group> = BTreeMap::new();
    for series in &profile.series {
        let Some(kind) = Kind::of(&series.profile_type) else {
            continue;
        };
        let name = series.labels.get(SERVICE_NAME_LABEL).unwrap_or_default();
        for sample in &series.samples {
            let pid = pids[sample.label_set.index()].unwrap_or(0);
            let group = groups.entry(pid).or_insert_with(|| Group {
                key: pid.to_string(),
                name: name.to_owned(),
                values: [0; 2],
            });
            let value = &mut group.values[kind.index()];
            *value = value.saturating_add(sample.value);
        }
    }
    groups.into_values().collect()
}

fn keep_process(profile: &mut Profile, pids: &[Option<i64>], pid: &str) {
    let is_wanted: Vec<bool> = pids
        .iter()
        .map(|found| found.is_some_and(|found| found.to_string() == pid))
        .collect();
    for series in &mut profile.series {
        series
            .samples
            .retain(|sample| is_wanted[sample.label_set.index()]);
    }
    profile.series.retain(|series| !series.samples.is_empty());
}

#[cfg(test)]
mod tests {
    use candela_model::FrameKind;
    use candela_model::LabelValue;
    use candela_model::Labels;
    use candela_model::Location;
    use candela_model::ProfileSeries;
    use candela_model::Sample;
    use candela_model::SampleLabel;
    use candela_model::StringId;

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// One second of a process with this much CPU time.
    fn window(start: i64, pid: i64, value: i64) -> Profile {
        let mut profile = Profile::default();
        let function = profile.symbols.intern_function("burn", "", "burn.c", 1);
        let location = Location::new(FrameKind::Native, 1);
        let location = profile
            .symbols
            .intern_location(&location, &[(function, 2, 0)]);
        let stack = profile.stacks.intern(&[location]);
        let key = profile.symbols.strings.intern("pid");
        let unit = StringId::default();
        let value_of_label = LabelValue::Number { value: pid, unit };
        let label_set = profile.label_sets.intern(vec![SampleLabel {
            key,
            value: value_of_label,
        }]);
        let labels = Labels::from_pairs([(SERVICE_NAME_LABEL, "burner")]);
        let mut series = ProfileSeries::new(labels, Kind::Cpu.profile_type());
        series.start_ns = start * SECOND;
        series.duration_ns = SECOND;
        series.samples.push(Sample {
            label_set,
            ..Sample::new(stack, value)
        });
        profile.series.push(series);
        profile
    }

    #[test]
    fn what_is_older_than_the_window_is_gone() {
        let mut history = History::new(3 * SECOND, 100 * SECOND);
        for second in 100..110 {
            history.add(window(second, 7, SECOND));
        }
        let snapshot = history.snapshot(110 * SECOND, None);
        assert_eq!(snapshot.seconds, 3.0);
        assert_eq!(snapshot.tree(Kind::Cpu).root_total(), 3 * SECOND);
        assert_eq!(snapshot.per_second(3 * SECOND), 1e9);
        let nothing_for_long = history.snapshot(120 * SECOND, None);
        assert_eq!(nothing_for_long.seconds, 3.0);
        assert_eq!(nothing_for_long.tree(Kind::Cpu).root_total(), 0);
    }

    #[test]
    fn seconds_without_samples_count() {
        let mut history = History::new(10 * SECOND, 100 * SECOND);
        history.add(window(104, 7, SECOND));
        let snapshot = history.snapshot(105 * SECOND, None);
        assert_eq!(snapshot.seconds, 5.0);
        assert_eq!(snapshot.per_second(SECOND), 2e8);
    }

    #[test]
    fn processes_are_told_apart_and_one_can_be_chosen() {
        let mut history = History::new(10 * SECOND, 100 * SECOND);
        history.add(window(100, 7, 30));
        history.add(window(100, 8, 50));
        history.add(window(101, 7, 1));
        let snapshot = history.snapshot(102 * SECOND, Some("7"));
        let groups: Vec<(&str, &str, i64)> = snapshot
            .groups_by(Kind::Cpu)
            .iter()
            .map(|group| (group.key.as_str(), group.name.as_str(), group.values[0]))
            .collect();
        assert_eq!(groups, [("8", "burner", 50), ("7", "burner", 31)]);
        assert_eq!(snapshot.tree(Kind::Cpu).root_total(), 31);
    }
}
