//! The same answers by the most obvious means.

pub(crate) mod filters;
pub(crate) mod parts;
pub(crate) mod rates;

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::Labels;
use candela_model::Link;
use candela_model::Location;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::SampleLabel;
use candela_model::StackId;
use candela_model::Temporality;
use candela_query::Aggregation;
use candela_query::ProfileKey;
use candela_query::Query;
use candela_query::SeriesOptions;
use candela_store::TimeRange;
use filters::PlainFilter;
use proptest::prelude::*;

/// An hour before a midnight, so that some profiles are of the next day.
pub(crate) const START_NS: i64 = 1_732_143_600_000_000_000;
pub(crate) const STEP_NS: i64 = 100_000_000_000;
pub(crate) const TYPES: [&str; 3] = [
    "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
    "process_cpu:samples:count:cpu:nanoseconds",
    "memory:inuse_space:bytes:space:bytes",
];
const CPU: &str = TYPES[0];
const SAMPLES: &str = TYPES[1];

/// The names of a stack's frames, root first.
pub(crate) type StackText = Vec<String>;

/// A profile as a test chooses it.
#[derive(Clone, Debug)]
pub(crate) struct Plain {
    series: Vec<PlainSeries>,
}

#[derive(Clone, Debug)]
struct PlainSeries {
    service: usize,
    pod: Option<usize>,
    profile_type: usize,
    step: i64,
    period: i64,
    /// Functions from the leaf up, thread, link, value.
    samples: Vec<(Vec<usize>, Option<usize>, usize, i64)>,
}

const SERVICES: [&str; 3] = ["api", "web", "db"];
const PODS: [&str; 3] = ["p-1", "p-2", "worker"];
const THREADS: [&str; 3] = ["worker", "main", "7"];
/// Of nothing, of a span without a trace, and of two traces, one with two spans.
pub(crate) const LINKS: [Link; 5] = [link(0, 0), link(0, 1), link(1, 1), link(1, 2), link(2, 3)];

const fn link(trace: u8, span: u8) -> Link {
    Link {
        trace_id: [trace; 16],
        span_id: [span; 8],
    }
}

pub(crate) fn plain_profile() -> impl Strategy<Value = Plain> {
    let sample = (
        prop::collection::vec(0_usize..9, 0..6),
        prop::option::weighted(0.3, 0..THREADS.len()),
        prop_oneof![3 => Just(0), 2 => 0..LINKS.len()],
        prop_oneof![9 => -50_i64..1000, 1 => Just(0)],
    );
    let series = (
        0..SERVICES.len(),
        prop::option::of(0..PODS.len()),
        0..TYPES.len(),
        0_i64..60,
        prop_oneof![Just(0_i64), Just(10), Just(7)],
        prop::collection::vec(sample, 0..12),
    );
    let series =
        series.prop_map(
            |(service, pod, profile_type, step, period, samples)| PlainSeries {
                service,
                pod,
                profile_type,
                step,
                period,
                samples,
            },
        );
    prop::collection::vec(series, 1..4).prop_map(|series| Plain { series })
}

impl Plain {
    pub(crate) fn profile(&self) -> Profile {
        let mut profile = Profile::default();
        for plain in &self.series {
            let mut labels = Labels::from_pairs([("service_name", SERVICES[plain.service])]);
            if let Some(pod) = plain.pod {
                labels.set("pod", PODS[pod]);
            }
            let profile_type = TYPES[plain.profile_type].parse().expect("a type");
            let mut series = ProfileSeries::new(labels, profile_type);
            series.start_ns = START_NS + plain.step * STEP_NS;
            series.duration_ns = STEP_NS;
            series.period = plain.period;
            for (functions, thread, link, value) in &plain.samples {
                let stack: Vec<_> = functions
                    .iter()
                    .map(|&function| location(&mut profile, function))
                    .collect();
                let stack = profile.stacks.intern(&stack);
                let label_set = thread.map_or(LabelSetId(0), |thread| {
                    let key = profile.symbols.strings.intern("thread_name");
                    let value = profile.symbols.strings.intern(THREADS[thread]);
                    let label = SampleLabel::text(key, value);
                    profile.label_sets.intern(vec![label])
                });
                let link = profile.intern_link(LINKS[*link]);
                series.samples.push(Sample {
                    label_set,
                    link,
                    ..Sample::new(stack, *value)
                });
            }
            profile.series.push(series);
        }
        profile
    }
}

/// Plain functions, one with another inlined into it, and an address without symbols.
fn location(profile: &mut Profile, number: usize) -> candela_model::LocationId {
    let symbols = &mut profile.symbols;
    let file = symbols.strings.intern("/usr/lib/libdemo.so");
    let build_id = symbols.strings.intern("ab12");
    let mapping = symbols.intern_mapping(Mapping {
        memory_start: 0x1000,
        memory_limit: 0x9000,
        file_offset: 0,
        file,
        build_id,
    });
    let place = Location::new(FrameKind::Native, 0x1000 + number as u64).in_mapping(mapping);
    match number {
        8 => symbols.intern_location(&place, &[]),
        7 => {
            let inner = symbols.intern_function("inner", "", "demo.c", 3);
            let outer = symbols.intern_function("outer", "", "demo.c", 30);
            symbols.intern_location(&place, &[(inner, 4, 0), (outer, 33, 0)])
        }
        _ => {
            let name = format!("function_{number}");
            let function = symbols.intern_function(&name, "", "demo.c", number as u32 * 10);
            symbols.intern_location(&place, &[(function, number as u32 * 10 + 1, 2)])
        }
    }
}

pub(crate) fn stack_text(profile: &Profile, stack: StackId) -> StackText {
    let mut names = Vec::new();
    for &location in profile.stacks.get(stack).iter().rev() {
        let lines = profile.symbols.lines(location);
        if lines.is_empty() {
            names.push(profile.symbols.address_name(location));
        }
        for line in lines.iter().rev() {
            let function = profile.symbols.function(line.function);
            names.push(profile.symbols.strings.get(function.name).to_owned());
        }
    }
    names
}

/// A sample with everything that a query may ask about it.
#[derive(Clone, Debug)]
struct FlatSample {
    profile: usize,
    stack: StackText,
    labels: Labels,
    link: Link,
    value: i64,
}

#[derive(Clone, Debug)]
struct FlatProfile {
    tenant: String,
    labels: Labels,
    profile_type: String,
    start_ns: i64,
    period: i64,
}

/// Whose it is, and its labels.
type Series<'a> = (&'a str, &'a Labels);

impl FlatProfile {
    fn series(&self) -> Series<'_> {
        (&self.tenant, &self.labels)
    }

    fn is_of(&self, query: &Query) -> bool {
        query.tenants.contains(&self.tenant)
    }

    fn key(&self) -> ProfileKey {
        let profile_type = self.profile_type.parse().expect("a type");
        ProfileKey::new(&self.tenant, &self.labels, &profile_type, self.start_ns)
    }
}

/// Hexadecimal digits; none of what is nothing but zeros.
fn digits(id: &[u8]) -> String {
    if id.iter().all(|&byte| byte == 0) {
        return String::new();
    }
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The span of one of [`LINKS`] as a selector has it.
pub(crate) fn span_text(number: usize) -> String {
    digits(&LINKS[number].span_id)
}

#[derive(Debug, Default)]
pub(crate) struct Naive {
    profiles: Vec<FlatProfile>,
    samples: Vec<FlatSample>,
    /// Those of the query at hand.
    pub(crate) filters: Vec<PlainFilter>,
}

impl Naive {
    pub(crate) fn add(&mut self, tenant: &str, profile: &Profile) {
        for series in &profile.series {
            let number = self.profiles.len();
            self.profiles.push(FlatProfile {
                tenant: tenant.to_owned(),
                labels: series.labels.clone(),
                profile_type: series.profile_type.to_string(),
                start_ns: series.start_ns,
                period: series.period,
            });
            // Equal samples of a profile are one sample.
            let mut merged: BTreeMap<(StackText, Labels, usize), i64> = BTreeMap::new();
            for sample in &series.samples {
                let mut labels = series.labels.clone();
                for label in profile.label_sets.get(sample.label_set) {
                    let LabelValue::Text(value) = label.value else {
                        continue;
                    };
                    let strings = &profile.symbols.strings;
                    labels.set_default(strings.get(label.key), strings.get(value));
                }
                let link = profile.links[sample.link.index()];
                let link = LINKS
                    .iter()
                    .position(|it| *it == link)
                    .expect("one of them");
                let key = (stack_text(profile, sample.stack), labels, link);
                *merged.entry(key).or_default() += sample.value;
            }
            for ((stack, labels, link), value) in merged {
                self.samples.push(FlatSample {
                    profile: number,
                    stack,
                    labels,
                    link: LINKS[link],
                    value,
                });
            }
        }
    }

    /// Divisors of the profiles that are of the query's type and time: the selector aside.
    fn of_type(&self, query: &Query, range: TimeRange) -> BTreeMap<usize, i64> {
        let own: BTreeSet<Series<'_>> = self
            .profiles
            .iter()
            .filter(|profile| profile.profile_type == SAMPLES && range.contains(profile.start_ns))
            .map(FlatProfile::series)
            .collect();
        let mut found = BTreeMap::new();
        for (number, profile) in self.profiles.iter().enumerate() {
            let is_chosen = query.profiles.is_empty() || query.profiles.contains(&profile.key());
            if !range.contains(profile.start_ns) || !profile.is_of(query) || !is_chosen {
                continue;
            }
            if profile.profile_type == query.profile_type {
                found.insert(number, 1);
            }
            let is_derived = query.profile_type == SAMPLES
                && profile.profile_type == CPU
                && profile.period > 0
                && !own.contains(&profile.series());
            if is_derived {
                found.insert(number, profile.period);
            }
        }
        found
    }

    fn aggregation(query: &Query) -> Aggregation {
        let profile_type: candela_model::ProfileType = query.profile_type.parse().expect("a type");
        let default = match profile_type.temporality() {
            Temporality::Gauge => Aggregation::Average,
            Temporality::Delta => Aggregation::Sum,
        };
        query.aggregation.unwrap_or(default)
    }

    pub(crate) fn is_mean(&self, query: &Query) -> bool {
        Self::aggregation(query) == Aggregation::Average
    }

    pub(crate) fn sample_count(&self) -> usize {
        self.samples.len()
    }

    /// Whether a sample is of the traces and spans of a query.
    fn is_linked(query: &Query, link: &Link) -> bool {
        let (traces, spans) = (&query.links.trace_ids, &query.links.span_ids);
        let mut conditions = query.links.conditions.iter();
        (traces.is_empty() || traces.contains(&link.trace_id))
            && (spans.is_empty() || spans.contains(&link.span_id))
            && conditions.all(|matcher| match matcher.name() {
                "trace_id" => matcher.matches(&digits(&link.trace_id)),
                _ => matcher.matches(&digits(&link.span_id)),
            })
    }

    /// The keys of every third profile of a type.
    pub(crate) fn some_keys(&self, profile_type: &str) -> Vec<ProfileKey> {
        let of_type = self
            .profiles
            .iter()
            .filter(|it| it.profile_type == profile_type);
        of_type.step_by(3).map(FlatProfile::key).collect()
    }

    /// Whether the selector and the filters of tags let samples with these labels pass.
    fn selects(&self, query: &Query, labels: &Labels) -> bool {
        let is_selected = query
            .selector
            .matches(|name| labels.get(name).unwrap_or(""));
        is_selected && filters::passes(&self.filters, labels)
    }

    /// The samples that match, with divided values, and the divisors of the profiles.
    fn matching(&self, query: &Query) -> Vec<(&FlatSample, i64)> {
        let profiles = self.of_type(query, query.range);
        let samples = self.samples.iter();
        samples
            .filter(|sample| self.selects(query, &sample.labels))
            .filter(|sample| Self::is_linked(query, &sample.link))
            .filter_map(|sample| {
                let divisor = *profiles.get(&sample.profile)?;
                Some((sample, rounded(sample.value, divisor)))
            })
            .collect()
    }

    /// Profiles whose series might match, by series: what a mean is over.
    fn counts(&self, query: &Query, step_ns: Option<i64>) -> BTreeMap<(i64, Series<'_>), i64> {
        let mut counts = BTreeMap::new();
        for number in self.of_type(query, query.range).into_keys() {
            let profile = &self.profiles[number];
            let step = step_ns.map_or(0, |step| profile.start_ns.div_euclid(step) * step);
            *counts.entry((step, profile.series())).or_default() += 1;
        }
        counts
    }

    pub(crate) fn stacks(&self, query: &Query) -> BTreeMap<StackText, f64> {
        let counts = self.counts(query, None);
        let mut last: BTreeMap<Series<'_>, i64> = BTreeMap::new();
        for number in self.of_type(query, query.range).into_keys() {
            let profile = &self.profiles[number];
            let known = last.entry(profile.series()).or_insert(profile.start_ns);
            *known = profile.start_ns.max(*known);
        }
        let mut sums: BTreeMap<StackText, f64> = BTreeMap::new();
        for (sample, value) in self.matching(query) {
            let profile = &self.profiles[sample.profile];
            let count = match Self::aggregation(query) {
                Aggregation::Average => counts[&(0, profile.series())],
                Aggregation::Last if profile.start_ns < last[&profile.series()] => continue,
                _ => 1,
            };
            let Some(stack) = filters::shown(&self.filters, &sample.stack) else {
                continue;
            };
            *sums.entry(stack).or_default() += value as f64 / count as f64;
        }
        sums
    }

    pub(crate) fn series(
        &self,
        query: &Query,
        options: &SeriesOptions,
    ) -> BTreeMap<(Labels, i64), f64> {
        if Self::aggregation(query) == Aggregation::Rate {
            let of_states = Query {
                aggregation: Some(Aggregation::Average),
                ..query.clone()
            };
            return match query.profile_type.contains(":inuse_space:") {
                true => self.series(&of_states, options),
                false => self.rates(query, options),
            };
        }
        let step_of = |profile: &FlatProfile| step_of(profile, options);
        // By line, step and series: the value of each profile.
        let mut values: BTreeMap<(Labels, i64, Series<'_>), BTreeMap<usize, i64>> = BTreeMap::new();
        for (sample, value) in self.matching(query) {
            if filters::shown(&self.filters, &sample.stack).is_none() {
                continue;
            }
            let profile = &self.profiles[sample.profile];
            let line = line_of(sample, options);
            let key = (line, step_of(profile), profile.series());
            let of_line = values.entry(key).or_default();
            *of_line.entry(sample.profile).or_default() += value;
        }
        let mut sums: BTreeMap<(Labels, i64), f64> = BTreeMap::new();
        let profiles = self.of_type(query, query.range);
        for ((line, step, series), mut of_line) in values {
            for &number in profiles.keys() {
                let profile = &self.profiles[number];
                if profile.series() == series && step_of(profile) == step {
                    of_line.entry(number).or_default();
                }
            }
            let start_of = |number: &usize| self.profiles[*number].start_ns;
            let last = of_line.keys().map(start_of).max();
            let sum = || of_line.values().sum::<i64>() as f64;
            let value = match Self::aggregation(query) {
                Aggregation::Sum => sum(),
                Aggregation::Average => sum() / of_line.len() as f64,
                Aggregation::Minimum => of_line.values().copied().min().unwrap_or(0) as f64,
                Aggregation::Maximum => of_line.values().copied().max().unwrap_or(0) as f64,
                Aggregation::Rate => unreachable!("rates are not of steps alone"),
                Aggregation::Last => {
                    let of_last = of_line
                        .iter()
                        .filter(|(number, _)| Some(start_of(number)) == last);
                    of_last.map(|(_, value)| value).sum::<i64>() as f64
                }
            };
            *sums.entry((line, step)).or_default() += value;
        }
        sums
    }

    /// The totals of a service in the range and in the one before, which is as long.
    pub(crate) fn service_totals(&self, query: &Query, service: &str) -> (f64, f64) {
        let length = query.range.to_ns - query.range.from_ns;
        let before = TimeRange {
            from_ns: query.range.from_ns - length,
            to_ns: query.range.from_ns,
        };
        let both = TimeRange {
            from_ns: before.from_ns,
            to_ns: query.range.to_ns,
        };
        // Which series derive their count is decided over all that is read.
        let divisors = self.of_type(query, both);
        let total = |range: TimeRange| -> f64 {
            let counts_query = Query {
                range,
                ..query.clone()
            };
            let counts = self.counts(&counts_query, None);
            let samples = self.samples.iter().filter(|sample| {
                let profile = &self.profiles[sample.profile];
                range.contains(profile.start_ns)
                    && profile.labels.get("service_name") == Some(service)
                    && self.selects(query, &sample.labels)
                    && Self::is_linked(query, &sample.link)
                    && filters::shown(&self.filters, &sample.stack).is_some()
            });
            let values = samples.filter_map(|sample| {
                let divisor = *divisors.get(&sample.profile)?;
                let series = self.profiles[sample.profile].series();
                let count = if Self::aggregation(query) == Aggregation::Average {
                    counts[&(0, series)]
                } else {
                    1
                };
                Some(rounded(sample.value, divisor) as f64 / count as f64)
            });
            values.sum()
        };
        (total(query.range), total(before))
    }

    /// The labels of what matches, of whatever type, with their values. A profile without samples is
    /// like a sample without labels.
    pub(crate) fn labels(&self, query: &Query) -> BTreeMap<String, BTreeSet<String>> {
        let stored = || self.samples.iter().filter(|sample| sample.value != 0);
        let with_samples: BTreeSet<usize> = stored().map(|sample| sample.profile).collect();
        let profiles = self.profiles.iter().enumerate();
        let without = profiles.filter(|(number, _)| !with_samples.contains(number));
        let all = stored()
            .map(|sample| (sample.profile, &sample.labels))
            .chain(without.map(|(number, profile)| (number, &profile.labels)));
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (profile, labels) in all {
            let is_match = query.range.contains(self.profiles[profile].start_ns)
                && self.profiles[profile].is_of(query)
                && self.selects(query, labels);
            if !is_match {
                continue;
            }
            for (name, value) in labels.iter() {
                let values = found.entry(name.to_owned()).or_default();
                values.insert(value.to_owned());
            }
        }
        found
    }
}

/// The point that a profile counts to.
fn step_of(profile: &FlatProfile, options: &SeriesOptions) -> i64 {
    let step_ns = options.step_ns.expect("a step");
    match options.origin_ns {
        None => profile.start_ns.div_euclid(step_ns) * step_ns,
        // Far enough before all profiles to count up from.
        Some(origin_ns) => {
            let mut point = origin_ns - 1000 * step_ns;
            while point < profile.start_ns {
                point += step_ns;
            }
            point
        }
    }
}

fn line_of(sample: &FlatSample, options: &SeriesOptions) -> Labels {
    let group = options
        .group_by
        .iter()
        .filter_map(|name| Some((name.as_str(), sample.labels.get(name)?)));
    Labels::from_pairs(group)
}

fn rounded(value: i64, divisor: i64) -> i64 {
    (value as f64 / divisor as f64).round() as i64
}
