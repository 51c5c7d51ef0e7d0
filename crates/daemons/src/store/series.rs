//! A dump or a snapshot as series that a store keeps apart from what the agent always samples.

use std::collections::BTreeMap;
use std::collections::HashMap;

use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::SERVICE_NAME_LABEL;
use candela_model::SampleLabel;

/// Whose samples they are where nothing says so.
const NOBODY: &str = "unknown";

/// Whose series these are.
#[derive(Clone, Debug)]
pub(super) struct Origin<'names> {
    /// `dump` or `snapshot`.
    pub(super) what: &'names str,
    pub(super) node: &'names str,
    pub(super) daemon: &'names str,
}

/// A series for each process, called `WHAT:PROCESS`.
///
/// Not by the service's own name: the agent has sampled the same seconds at its own rate, and a sum of both is of
/// nothing. Of `samples` that are in an earlier snapshot of the same ring only those after `since_ns` are left.
pub(super) fn by_process(mut profile: Profile, origin: &Origin<'_>, since_ns: i64) -> Profile {
    let names = process_names(&profile);
    let all = std::mem::take(&mut profile.series);
    for series in all {
        let mut parts: BTreeMap<&str, ProfileSeries> = BTreeMap::new();
        for sample in &series.samples {
            if sample.time_ns != 0 && sample.time_ns <= since_ns {
                continue;
            }
            let name = names.get(&sample.label_set).map_or(NOBODY, String::as_str);
            let part = parts.entry(name).or_insert_with(|| ProfileSeries {
                samples: Vec::new(),
                ..series.clone()
            });
            part.samples.push(*sample);
        }
        for (name, mut part) in parts {
            part.labels
                .set(SERVICE_NAME_LABEL, format!("{}:{name}", origin.what));
            part.labels.set("node", origin.node);
            part.labels.set("daemon", origin.daemon);
            narrow(&mut part, since_ns);
            profile.series.push(part);
        }
    }
    profile
}

/// When the last sample was taken; 0 when none has a time.
pub(super) fn last_ns(profile: &Profile) -> i64 {
    let samples = profile.series.iter().flat_map(|series| &series.samples);
    samples
        .map(|sample| sample.time_ns)
        .max()
        .unwrap_or_default()
}

/// The window begins where the samples do that are left.
fn narrow(series: &mut ProfileSeries, since_ns: i64) {
    let end_ns = series.start_ns.saturating_add(series.duration_ns);
    if since_ns > series.start_ns && since_ns < end_ns {
        series.start_ns = since_ns;
        series.duration_ns = end_ns - since_ns;
    }
}

/// The name of the process by the labels of samples: as traces say it, else that of its first thread, whose number is
/// the process's, else that of any thread.
fn process_names(profile: &Profile) -> HashMap<LabelSetId, String> {
    let mut first_threads: HashMap<i64, String> = HashMap::new();
    let samples = profile.series.iter().flat_map(|series| &series.samples);
    let mut tasks: HashMap<LabelSetId, Task> = HashMap::new();
    for sample in samples {
        let task = tasks
            .entry(sample.label_set)
            .or_insert_with(|| Task::of(profile, profile.label_sets.get(sample.label_set)));
        if let (Some(pid), Some(tid)) = (task.pid, task.tid)
            && pid == tid
            && !task.thread.is_empty()
        {
            first_threads
                .entry(pid)
                .or_insert_with(|| task.thread.clone());
        }
    }
    let mut any_threads: BTreeMap<i64, String> = BTreeMap::new();
    for task in tasks.values() {
        if let Some(pid) = task.pid.filter(|_| !task.thread.is_empty()) {
            // The least of all, so that it does not depend on the order of a hash.
            let name = any_threads
                .entry(pid)
                .or_insert_with(|| task.thread.clone());
            if task.thread < *name {
                name.clone_from(&task.thread);
            }
        }
    }
    let named = tasks.into_iter().map(|(labels, task)| {
        let of_first = task.pid.and_then(|pid| first_threads.get(&pid));
        let of_any = task.pid.and_then(|pid| any_threads.get(&pid));
        let candidates = [Some(&task.process), of_first, of_any, Some(&task.thread)];
        let name = candidates
            .into_iter()
            .flatten()
            .find(|name| !name.is_empty());
        (labels, name.map_or(NOBODY, String::as_str).to_owned())
    });
    named.collect()
}

/// What a sample says of its thread.
#[derive(Debug, Default)]
struct Task {
    pid: Option<i64>,
    tid: Option<i64>,
    process: String,
    thread: String,
}

impl Task {
    fn of(profile: &Profile, labels: &[SampleLabel]) -> Self {
        let text = |id| profile.symbols.strings.get(id);
        let mut task = Self::default();
        for label in labels {
            match (text(label.key), label.value) {
                ("pid", LabelValue::Number { value, .. }) => task.pid = Some(value),
                ("thread_id", LabelValue::Number { value, .. }) => task.tid = Some(value),
                ("thread_name", LabelValue::Text(name)) => text(name).clone_into(&mut task.thread),
                ("process_executable_name", LabelValue::Text(name)) => {
                    // Command lines begin with a path.
                    let name = text(name).split_whitespace().next().unwrap_or_default();
                    let name = name.rsplit('/').next().unwrap_or_default();
                    name.clone_into(&mut task.process);
                }
                _ => {}
            }
        }
        task
    }
}

#[cfg(test)]
mod tests {
    use candela_formats::ReadOptions;

    use super::*;

    const DUMP: &str = "main  7/7 [000]  1700000001.000000:   10000000 cpu-clock: \n\t10 f (x)\n\n\
        worker  7/8 [000]  1700000002.000000:   10000000 cpu-clock: \n\t10 g (x)\n\n\
        late  9/10 [000]  1700000003.000000:   10000000 cpu-clock: \n\t10 h (x)\n\n";

    fn read(text: &str) -> Profile {
        let read = candela_formats::read_perf_script(text.as_bytes(), &ReadOptions::default());
        read.expect("the text of perf script").0
    }

    fn services(profile: &Profile) -> Vec<(String, usize)> {
        let series = profile.series.iter();
        let name =
            |series: &ProfileSeries| series.labels.get(SERVICE_NAME_LABEL).map(str::to_owned);
        series
            .map(|it| (name(it).unwrap_or_default(), it.samples.len()))
            .collect()
    }

    #[test]
    fn each_process_has_a_series_that_tells_where_it_is_from() {
        let origin = Origin {
            what: "dump",
            node: "node-1",
            daemon: "perf-collector-1",
        };
        let profile = by_process(read(DUMP), &origin, 0);
        assert!(profile.validate().is_ok());
        let expected = [("dump:late".to_owned(), 1), ("dump:main".to_owned(), 2)];
        assert_eq!(services(&profile), expected);
        for series in &profile.series {
            assert_eq!(series.labels.get("node"), Some("node-1"));
            assert_eq!(series.labels.get("daemon"), Some("perf-collector-1"));
        }
    }

    #[test]
    fn what_an_earlier_snapshot_had_is_left_out() {
        let origin = Origin {
            what: "snapshot",
            node: "node-1",
            daemon: "perfetto-1",
        };
        let whole = read(DUMP);
        assert_eq!(last_ns(&whole), 1_700_000_003_000_000_000);
        let later = by_process(whole, &origin, 1_700_000_002_000_000_000);
        assert_eq!(services(&later), [("snapshot:late".to_owned(), 1)]);
    }
}
