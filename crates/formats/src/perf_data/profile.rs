//! What was read becomes a profile.

use candela_model::LabelSetId;
use candela_model::Labels;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::Sample;
use candela_model::StackId;
use hashbrown::HashMap;

use crate::options::ReadOptions;
use crate::perf_data::PerfDataOptions;
use crate::perf_data::collector::Collector;
use crate::perf_data::collector::LabelKeys;
use crate::perf_data::events::Events;
use crate::perf_data::features::Features;
use crate::perf_data::places::Places;
use crate::perf_data::session::Session;
use crate::perf_events;
use crate::report::Report;

/// Where hosts are named, as the agent does.
const HOST_LABEL: &str = "host";

/// The profile of all that a session has.
pub(crate) fn build_profile(
    session: Session<'_>,
    perf_options: &PerfDataOptions,
    options: &ReadOptions,
) -> (Profile, Report) {
    let Session {
        events,
        features,
        texts,
        files,
        collector,
        mut losses,
        resolver,
        ..
    } = session;
    let mut report = Report::default();
    texts.note(&mut report);
    report.note_many(
        "stacks_cut",
        "stacks deeper than the limit were cut at the leaf",
        collector.cut_stacks,
    );
    let mut profile = Profile::default();
    profile.symbols.strings = texts.strings;
    let mut places = Places::new(&mut profile.symbols, &files, &features, resolver);
    let regions = collector.regions();
    let locations: Vec<LocationId> = collector
        .places()
        .iter()
        .map(|place| places.location(place, regions))
        .collect();
    losses.files_not_found = places.files_not_found();
    drop(places);
    let stacks = stacks(&collector, &locations, &mut profile);
    let label_sets = label_sets(&collector, &mut profile);
    let times = Times::new(
        &collector,
        &events,
        &features,
        perf_options,
        options,
        &mut report,
    );
    add_series(&mut profile, &collector, &events, |sample| Sample {
        stack: stacks[sample.stack.index()],
        label_set: label_sets[sample.label_set.index()],
        time_ns: times.unix_ns(sample.time_ns),
        ..*sample
    });
    let mut labels = Labels::default();
    if !features.host_name.is_empty() {
        labels.set(HOST_LABEL, features.host_name.as_str());
    }
    let labels = options.series_labels(labels);
    for series in &mut profile.series {
        series.labels = labels.clone();
        series.start_ns = times.start_ns;
        series.duration_ns = times.duration_ns;
        if perf_options.drop_times {
            merge_equal(&mut series.samples);
        }
    }
    if !features.command_line.is_empty() {
        report.comments.push(features.command_line);
    }
    losses.note(&mut report);
    (profile, report)
}

/// One series for each event that has samples. Where none has any, all events have an empty one, so
/// that it can be seen what was recorded.
fn add_series(
    profile: &mut Profile,
    collector: &Collector,
    events: &Events,
    finished: impl Fn(&Sample) -> Sample,
) {
    let mut positions: HashMap<ProfileType, usize> = HashMap::new();
    for (number, event) in events.list().iter().enumerate() {
        let rows = collector.rows(number);
        let name = event.name();
        let is_shown = !rows.is_empty() || collector.is_empty() && !perf_events::is_dummy(&name);
        if !is_shown {
            continue;
        }
        let mut profile_type = perf_events::event_type(&name, true);
        if positions.contains_key(&profile_type) {
            profile_type = perf_events::second_event_type(&name, true);
        }
        let samples: Vec<Sample> = rows.iter().map(&finished).collect();
        // Machines with two kinds of core count each event on both, under one name.
        if let Some(&position) = positions.get(&profile_type) {
            profile.series[position].samples.extend(samples);
            continue;
        }
        positions.insert(profile_type.clone(), profile.series.len());
        let mut series = ProfileSeries::new(Labels::default(), profile_type);
        series.period = common_value(&samples).unwrap_or(0);
        series.samples = samples;
        profile.series.push(series);
    }
}

/// The value that all samples have.
fn common_value(samples: &[Sample]) -> Option<i64> {
    let first = samples.first()?.value;
    samples
        .iter()
        .all(|sample| sample.value == first)
        .then_some(first)
}

fn merge_equal(samples: &mut Vec<Sample>) {
    let mut positions: HashMap<(StackId, LabelSetId), usize> = HashMap::new();
    let mut merged: Vec<Sample> = Vec::new();
    for sample in samples.iter() {
        let key = (sample.stack, sample.label_set);
        let position = *positions.entry(key).or_insert(merged.len());
        match merged.get_mut(position) {
            Some(known) => known.value = known.value.saturating_add(sample.value),
            None => merged.push(*sample),
        }
    }
    *samples = merged;
}

fn stacks(collector: &Collector, locations: &[LocationId], profile: &mut Profile) -> Vec<StackId> {
    let mut leaf_first = Vec::new();
    let stacks = collector.stacks.iter();
    stacks
        .map(|places| {
            leaf_first.clear();
            leaf_first.extend(places.iter().map(|place| locations[place.index()]));
            profile.stacks.intern(&leaf_first)
        })
        .collect()
}

fn label_sets(collector: &Collector, profile: &mut Profile) -> Vec<LabelSetId> {
    let strings = &mut profile.symbols.strings;
    let keys = LabelKeys {
        pid: strings.intern("pid"),
        thread_id: strings.intern("thread_id"),
        thread_name: strings.intern("thread_name"),
        process_name: strings.intern("process_executable_name"),
    };
    let threads = collector.threads().iter();
    threads
        .map(|thread| profile.label_sets.intern(thread.labels(&keys)))
        .collect()
}

/// From the clock of the recording to Unix time.
struct Times {
    offset_ns: i128,
    start_ns: i64,
    duration_ns: i64,
    are_dropped: bool,
}

impl Times {
    fn new(
        collector: &Collector,
        events: &Events,
        features: &Features,
        perf_options: &PerfDataOptions,
        options: &ReadOptions,
        report: &mut Report,
    ) -> Self {
        let numbers = 0..events.list().len();
        let samples = || numbers.clone().flat_map(|event| collector.rows(event));
        let times = || {
            samples()
                .map(|sample| sample.time_ns)
                .filter(|time| *time != 0)
        };
        let first = times().min().unwrap_or(0);
        let last = times().max().unwrap_or(0);
        let offset_ns = features.clock_offset_ns.unwrap_or_else(|| {
            report.note_many(
                "clock_unknown",
                "the recording does not tell the time of day (perf record -k CLOCK_MONOTONIC would): times count from the start of the machine, or of reading",
                u64::from(first != 0),
            );
            match options.now_ns {
                1.. => i128::from(options.now_ns) - i128::from(first),
                _ => 0,
            }
        });
        let mut made = Self {
            offset_ns,
            start_ns: 0,
            duration_ns: last - first,
            are_dropped: perf_options.drop_times,
        };
        made.start_ns = match first {
            0 => options.now_ns.max(0),
            _ => made.shifted(first),
        };
        // The end of the window has to be a time as well.
        made.duration_ns = made.duration_ns.min(i64::MAX - made.start_ns);
        made
    }

    fn unix_ns(&self, time: i64) -> i64 {
        if time == 0 || self.are_dropped {
            return 0;
        }
        self.shifted(time)
    }

    fn shifted(&self, time: i64) -> i64 {
        let shifted = i128::from(time) + self.offset_ns;
        i64::try_from(shifted.max(0)).unwrap_or(i64::MAX)
    }
}
