//! Lists over profile files, in the words of a server that has them.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use candela_formats::type_json;
use candela_model::FilterKind;
use candela_model::Filters;
use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::ProfiledTime;
use candela_model::Sample;
use candela_model::WallParts;
use serde_json::Value;
use serde_json::json;

use crate::args::GlobalArgs;
use crate::args::files::ReadingArgs;
use crate::args::query::SeriesArgs;
use crate::args::query::TagArgs;
use crate::commands::files::input::FileProfile;
use crate::commands::files::input::Input;
use crate::commands::profiles::add_wall_if_asked;
use crate::commands::profiles::resolve;
use crate::commands::profiles::tell_choice;
use crate::errors::CliError;

/// Steps of a series when none is given: as many as a terminal has lines.
const USUAL_STEPS: i64 = 30;
const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

/// Points that the window of one profile may have.
const MOST_POINTS: i64 = 1_000_000;

/// What a line has in a step.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    sum: i64,
    /// What profiles have in it whose samples have no time.
    spread: f64,
}

/// Files that are asked for a list.
pub(super) struct AskedFiles<'a> {
    pub(super) global: &'a GlobalArgs,
    pub(super) reading: &'a ReadingArgs,
    pub(super) files: &'a [String],
}

impl AskedFiles<'_> {
    pub(super) fn types(&self, tags: &TagArgs) -> Result<Value, CliError> {
        let profile = self.tagged(tags)?;
        let mut types: BTreeSet<&ProfileType> = profile
            .series
            .iter()
            .filter(|series| !series.samples.is_empty())
            .map(|series| &series.profile_type)
            .collect();
        let wall = ProfileType::wall();
        if WallParts::of(types.iter().copied()).are_whole() {
            types.insert(&wall);
        }
        let types: Vec<Value> = types.into_iter().map(type_json).collect();
        Ok(json!({"schema": "candela/types/v1", "types": types}))
    }

    pub(super) fn labels(&self, tags: &TagArgs) -> Result<Value, CliError> {
        let labels = labels_of(&self.tagged(tags)?);
        let names: Vec<&String> = labels.keys().collect();
        Ok(json!({"schema": "candela/labels/v1", "labels": names}))
    }

    pub(super) fn label_values(&self, tags: &TagArgs, label: &str) -> Result<Value, CliError> {
        let mut labels = labels_of(&self.tagged(tags)?);
        let values = labels.remove(label).unwrap_or_default();
        Ok(json!({"schema": "candela/label-values/v1", "label": label, "values": values}))
    }

    /// Sums over steps of time: of samples that have one, else of the start of their profile.
    pub(super) fn series(&self, arguments: &SeriesArgs) -> Result<Value, CliError> {
        let is_rate = match arguments.aggregation.as_deref() {
            None | Some("sum") => false,
            Some("rate") => true,
            Some(other) => {
                return Err(CliError::usage(format!(
                    "--aggregation {other} asks a server; files have sum and rate"
                )));
            }
        };
        let filters = arguments.filters.filters()?;
        let mut read = self.read()?;
        add_wall_if_asked(&mut read.profile, arguments.profile_type.as_deref());
        filters.apply_to_profile(&mut read.profile);
        let choice = read.choice(arguments.profile_type.as_deref());
        let wanted = resolve(&read.profile, choice)?;
        if !self.global.quiet {
            tell_choice(&read.profile, choice);
        }
        let profile = &read.profile;
        let series = profile.series.iter();
        let series: Vec<&ProfileSeries> = series
            .filter(|series| series.profile_type == wanted)
            .collect();
        let step_ns = match arguments.step {
            Some(seconds) => i64::try_from(seconds)
                .unwrap_or(i64::MAX)
                .saturating_mul(NANOSECONDS_PER_SECOND),
            None => usual_step(&series, is_rate),
        };
        let step_ns = step_ns.max(1);
        let profiled = ProfiledTime::of(series.iter().copied());
        let mut lines: BTreeMap<Vec<(String, String)>, BTreeMap<i64, Point>> = BTreeMap::new();
        for series in &series {
            if is_rate && series.duration_ns / step_ns > MOST_POINTS {
                return Err(CliError::usage(format!(
                    "a profile of {} s has more than {MOST_POINTS} steps; give a longer --step",
                    series.duration_ns / NANOSECONDS_PER_SECOND
                )));
            }
            let mut untimed: BTreeMap<Vec<(String, String)>, i64> = BTreeMap::new();
            for sample in &series.samples {
                let group = arguments.group_by.iter().map(|label| {
                    let value = value_of(profile, series, sample, label);
                    (label.clone(), value.unwrap_or_default())
                });
                let group: Vec<(String, String)> = group.collect();
                let has_window = sample.time_ns == 0 && series.duration_ns > 0;
                if is_rate && has_window {
                    let sum: &mut i64 = untimed.entry(group).or_default();
                    *sum = sum.saturating_add(sample.value);
                } else {
                    let step = time_of(series, sample).div_euclid(step_ns);
                    let points = lines.entry(group).or_default();
                    points.entry(step).or_default().add(sample.value);
                }
            }
            for (group, sum) in untimed {
                let points = lines.entry(group).or_default();
                for (step, part) in parts_of_window(series, step_ns) {
                    points.entry(step).or_default().spread += part * sum as f64;
                }
            }
        }
        let answer = lines.into_iter().map(|(labels, points)| {
            let points = points.into_iter().map(|(step, point)| {
                let start_ns = step.saturating_mul(step_ns);
                let milliseconds = start_ns / 1_000_000;
                if is_rate {
                    let inside = start_ns..start_ns.saturating_add(step_ns);
                    json!([
                        milliseconds,
                        point.rate(profiled.length_within(inside), step_ns)
                    ])
                } else {
                    json!([milliseconds, point.sum])
                }
            });
            let points: Vec<Value> = points.collect();
            let labels: BTreeMap<String, String> = labels.into_iter().collect();
            json!({"labels": labels, "points": points})
        });
        let answer: Vec<Value> = answer.collect();
        Ok(json!({
            "schema": "candela/series/v1",
            "type": wanted.to_string(),
            "unit": wanted.sample_unit,
            "step": step_ns / NANOSECONDS_PER_SECOND,
            "series": answer,
        }))
    }

    fn read(&self) -> Result<FileProfile, CliError> {
        Input::new(self.global, self.reading).read_all(self.files)
    }

    fn tagged(&self, tags: &TagArgs) -> Result<Profile, CliError> {
        let focus = tags.tagfocus.iter();
        let focus = focus.map(|text| (FilterKind::TagFocus, text.as_str()));
        let ignore = tags.tagignore.iter();
        let ignore = ignore.map(|text| (FilterKind::TagIgnore, text.as_str()));
        let given: Vec<(FilterKind, &str)> = focus.chain(ignore).collect();
        let filters = Filters::parse(&given).map_err(|error| CliError::usage(error.to_string()))?;
        let mut profile = self.read()?.profile;
        filters.apply_to_profile(&mut profile);
        Ok(profile)
    }
}

/// The values of each label, of series and of samples.
fn labels_of(profile: &Profile) -> BTreeMap<String, BTreeSet<String>> {
    let mut labels: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for series in &profile.series {
        for (name, value) in series.labels.iter() {
            let values = labels.entry(name.to_owned()).or_default();
            values.insert(value.to_owned());
        }
    }
    let strings = &profile.symbols.strings;
    let mut is_used = vec![false; profile.label_sets.len()];
    for sample in profile.series.iter().flat_map(|series| &series.samples) {
        if std::mem::replace(&mut is_used[sample.label_set.index()], true) {
            continue;
        }
        for label in profile.label_sets.get(sample.label_set) {
            let values = labels.entry(strings.get(label.key).to_owned()).or_default();
            values.insert(text_of(profile, label.value));
        }
    }
    labels
}

fn value_of(
    profile: &Profile,
    series: &ProfileSeries,
    sample: &Sample,
    wanted: &str,
) -> Option<String> {
    let strings = &profile.symbols.strings;
    let own = profile.label_sets.get(sample.label_set).iter();
    let own = own.clone().find(|label| strings.get(label.key) == wanted);
    let own = own.map(|label| text_of(profile, label.value));
    own.or_else(|| series.labels.get(wanted).map(str::to_owned))
}

fn text_of(profile: &Profile, value: LabelValue) -> String {
    match value {
        LabelValue::Text(text) => profile.symbols.strings.get(text).to_owned(),
        LabelValue::Number { value, .. } => value.to_string(),
    }
}

fn time_of(series: &ProfileSeries, sample: &Sample) -> i64 {
    if sample.time_ns != 0 {
        sample.time_ns
    } else {
        series.start_ns
    }
}

impl Point {
    fn add(&mut self, value: i64) {
        self.sum = self.sum.saturating_add(value);
    }

    /// By second of the time that was profiled in its step, or of the whole step where that is not known.
    fn rate(self, profiled_ns: i64, step_ns: i64) -> f64 {
        let length_ns = if profiled_ns == 0 {
            step_ns
        } else {
            profiled_ns
        };
        let seconds = length_ns as f64 / NANOSECONDS_PER_SECOND as f64;
        (self.sum as f64 + self.spread) / seconds
    }
}

/// The steps that the window of a profile reaches, with the part of it in each: what has no time of its own is spread
/// evenly over it.
fn parts_of_window(series: &ProfileSeries, step_ns: i64) -> impl Iterator<Item = (i64, f64)> {
    let window = series.start_ns..series.start_ns.saturating_add(series.duration_ns);
    let steps = window.start.div_euclid(step_ns)..=(window.end - 1).div_euclid(step_ns);
    steps.map(move |step| {
        let start_ns = step.saturating_mul(step_ns);
        let end_ns = window.end.min(start_ns.saturating_add(step_ns));
        let inside_ns = end_ns.saturating_sub(window.start.max(start_ns));
        (step, inside_ns as f64 / (window.end - window.start) as f64)
    })
}

/// Whole seconds, so that all of it is about as many steps as a terminal shows.
fn usual_step(series: &[&ProfileSeries], is_rate: bool) -> i64 {
    let times = || {
        series.iter().flat_map(|series| {
            let samples = series.samples.iter();
            // In rates a profile reaches to its end.
            let end_ns = series.start_ns.saturating_add(series.duration_ns);
            let end_ns = is_rate.then_some(end_ns);
            samples.map(|sample| time_of(series, sample)).chain(end_ns)
        })
    };
    let (first, last) = (times().min(), times().max());
    let length = last
        .unwrap_or_default()
        .saturating_sub(first.unwrap_or_default());
    let seconds = length / NANOSECONDS_PER_SECOND / USUAL_STEPS;
    seconds.max(1) * NANOSECONDS_PER_SECOND
}
