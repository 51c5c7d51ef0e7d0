//! What each service costs.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use candela_model::Labels;
use candela_model::ProfileType;
use candela_model::ProfiledTime;
use candela_model::SERVICE_NAME_LABEL;
use candela_model::WallParts;
use candela_store::Tier;
use candela_store::TimeRange;
use hashbrown::HashMap;
use hashbrown::HashSet;

use crate::budget::Meter;
use crate::engine::Engine;
use crate::engine::Loaded;
use crate::engine::hint_if;
use crate::error::QueryError;
use crate::left_sums::WITHOUT_RARE_STACKS;
use crate::plan::EmptyProfile;
use crate::plan::available_types;
use crate::plan::plan;
use crate::plan::resolve_type;
use crate::plan::series_matches;
use crate::profiled::ProfiledTimes;
use crate::profiled::profiled_times;
use crate::query::Answer;
use crate::query::Query;
use crate::run::Run;
use crate::sources::Source;
use crate::sparkline::SPARKLINE_BUCKETS;
use crate::sparkline::Spread;
use crate::sparkline::bucket_at;
use crate::taken::Taken;

/// A service's cost in a range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceSummary {
    /// Its name.
    pub service: String,
    /// Its cost; of a gauge the mean over each series' profiles, summed over series.
    pub total: i64,
    /// Its cost in the range of the same length before; 0 when there is nothing.
    pub previous_total: i64,
    /// The profile types that it has in the range, sorted.
    pub types: Vec<ProfileType>,
    /// The cost by equal parts of the range, [`SPARKLINE_BUCKETS`] of them: what a part would have come to if it
    /// had been profiled from its beginning to its end.
    pub sparkline: Vec<i64>,
    /// How long its profiles took, what several cover counted once; `None` where none says so.
    pub profiled_ns: Option<i64>,
    /// The same in the range before.
    pub previous_profiled_ns: Option<i64>,
}

/// The services of a range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Services {
    /// Those that have profiles in the range, the most expensive first.
    pub services: Vec<ServiceSummary>,
    /// Start of the earliest profile of any of them; `None` when there is none of the type.
    pub first_ns: Option<i64>,
    /// End of the window that ends last of those in the range; `None` without one.
    pub end_ns: Option<i64>,
    /// The same as `first_ns` in the range before, which tells whether it was covered as the range is.
    pub previous_first_ns: Option<i64>,
    /// How long all profiles took, what several cover counted once; `None` where none says so.
    pub profiled_ns: Option<i64>,
    /// The same in the range before.
    pub previous_profiled_ns: Option<i64>,
}

/// When the services of an answer were profiled.
#[derive(Debug, Default)]
struct TimesOfServices {
    now: ProfiledTimes,
    before: ProfiledTimes,
}

/// Sums of one service, by series for the means of gauges.
#[derive(Debug, Default)]
struct Sums {
    now: HashMap<u32, (i64, u32)>,
    before: HashMap<u32, (i64, u32)>,
    /// Those of gauges, by part of the range.
    levels: Vec<HashMap<u32, (i64, u32)>>,
    /// Those of what happens, spread over the windows of profiles, by part of the range.
    spread: Spread,
    first_ns: Option<i64>,
    previous_first_ns: Option<i64>,
}

impl Engine {
    /// The services that have profiles in the range, the most expensive first.
    ///
    /// # Errors
    /// When the type is ambiguous or unknown, or the range is none.
    pub fn services(&self, query: &Query) -> Result<Answer<Services>, QueryError> {
        let previous = previous_range(query.range);
        let both = TimeRange {
            from_ns: previous.from_ns,
            to_ns: query.range.to_ns,
        };
        let mut loaded = self.load(query, both, Tier::Raw)?;
        let (sources, meter) = (&loaded.sources, &loaded.meter);
        let available = available_types(sources, query, both, meter)?;
        let profile_type = resolve_type(&query.profile_type, &available)?;
        loaded.tell_undecided(query, profile_type.as_ref());
        let mut types = types_by_service(query, &loaded.sources, &loaded.meter)?;
        let mut sums: BTreeMap<String, Sums> = BTreeMap::new();
        let mut answer: Answer<()> = Answer::default();
        let mut is_gauge = false;
        let mut times = TimesOfServices::default();
        let mut end_ns: Option<i64> = None;
        if let Some(profile_type) = &profile_type {
            let (sources, meter) = (&loaded.sources, &loaded.meter);
            let planned = plan(sources, query, profile_type, both, meter);
            let planned = self.or_leave_out(planned, &mut loaded.left_out)?;
            let mut planned = planned.unwrap_or_default();
            loaded.tell_of_covering_sums(&planned);
            self.keep_linked(query, &mut planned, &mut loaded)?;
            self.take_counting_stacks(query, &mut planned, &mut loaded)?;
            is_gauge = planned.is_gauge();
            if !is_gauge {
                times = TimesOfServices::of(&loaded, query, profile_type, previous)?;
            }
            let mut taken = Taken::default();
            let mut series_now: HashSet<u32> = HashSet::new();
            self.for_each_source(&planned, &mut loaded, |source, part, meter| {
                // The range before is asked apart: its samples are not those of the answer.
                let is_now = |run: &Run| query.range.contains(run.row.start_ns);
                let (now, before): (Vec<Run>, Vec<Run>) =
                    part.runs.iter().cloned().partition(is_now);
                let (mut totals, of_source) = self.totals_of_runs(source, &now, meter)?;
                totals.extend(self.totals_of_runs(source, &before, meter)?.0);
                taken.add_all(of_source);
                series_now.extend(now.iter().map(|run| run.series));
                let ends = now
                    .iter()
                    .map(|run| run.row.start_ns.saturating_add(run.row.duration_ns));
                end_ns = end_ns.max(ends.max());
                for (run, value) in now.iter().chain(&before).zip(totals) {
                    let labels = &planned.series[run.series as usize];
                    let service = labels.get(SERVICE_NAME_LABEL).unwrap_or("");
                    let sums = sums.entry(service.to_owned()).or_default();
                    sums.add(query.range, run, value, is_gauge);
                }
                Ok(())
            })?;
            for empty in &planned.empty {
                let labels = &planned.series[empty.series as usize];
                let service = labels.get(SERVICE_NAME_LABEL).unwrap_or("");
                let sums = sums.entry(service.to_owned()).or_default();
                sums.add_empty(query.range, empty, is_gauge);
            }
            answer.matched_series = planned.count_series(series_now.into_iter());
            answer.samples = taken.events;
            if !query.filters.counts_every_stack() {
                loaded.tell_of_sums(&planned, Tier::Hourly, WITHOUT_RARE_STACKS);
            }
        }
        for service in sums.keys() {
            types.entry(service.clone()).or_default();
        }
        let first_ns = sums.values().filter_map(|sums| sums.first_ns).min();
        let previous_first_ns = sums.values().filter_map(|sums| sums.previous_first_ns);
        let previous_first_ns = previous_first_ns.min();
        let mut services: Vec<ServiceSummary> = types
            .into_iter()
            .filter(|(_, types)| !types.is_empty())
            .map(|(service, types)| {
                let sums = sums.remove(&service).unwrap_or_default();
                sums.summary(service, types, query.range, &times, is_gauge)
            })
            .collect();
        services.sort_by(|left, right| {
            let by_total = right.total.cmp(&left.total);
            by_total.then_with(|| left.service.cmp(&right.service))
        });
        answer.profile_type = profile_type;
        answer.partial = loaded.partial();
        answer.hint = hint_if(services.is_empty(), query, &loaded)?;
        Ok(answer.with(Services {
            services,
            first_ns,
            end_ns,
            previous_first_ns,
            profiled_ns: length_of_all(&times.now),
            previous_profiled_ns: length_of_all(&times.before),
        }))
    }
}

impl TimesOfServices {
    fn of(
        loaded: &Loaded,
        query: &Query,
        profile_type: &ProfileType,
        previous: TimeRange,
    ) -> Result<Self, QueryError> {
        let by_service = |range| {
            let (sources, meter) = (&loaded.sources, &loaded.meter);
            let labels = [SERVICE_NAME_LABEL];
            profiled_times(sources, query, profile_type, range, &labels, meter)
        };
        Ok(Self {
            now: by_service(query.range)?,
            before: by_service(previous)?,
        })
    }
}

impl Sums {
    fn add(&mut self, range: TimeRange, run: &Run, value: i64, is_gauge: bool) {
        let row = &run.row;
        if !range.contains(row.start_ns) {
            add_to(&mut self.before, run.series, value, row.merged_profiles);
            keep_earlier(&mut self.previous_first_ns, row.start_ns);
            return;
        }
        add_to(&mut self.now, run.series, value, row.merged_profiles);
        keep_earlier(&mut self.first_ns, row.start_ns);
        if is_gauge {
            self.add_level(
                range,
                row.start_ns,
                (run.series, value, row.merged_profiles),
            );
        } else {
            self.spread.add(range, row, value);
        }
    }

    /// Counts a profile in which the service has nothing.
    fn add_empty(&mut self, range: TimeRange, empty: &EmptyProfile, is_gauge: bool) {
        let (series, start_ns, profiles) = (empty.series, empty.start_ns, empty.merged_profiles);
        if !range.contains(start_ns) {
            add_to(&mut self.before, series, 0, profiles);
            keep_earlier(&mut self.previous_first_ns, start_ns);
            return;
        }
        add_to(&mut self.now, series, 0, profiles);
        keep_earlier(&mut self.first_ns, start_ns);
        if is_gauge {
            self.add_level(range, start_ns, (series, 0, profiles));
        }
    }

    fn add_level(&mut self, range: TimeRange, start_ns: i64, level: (u32, i64, u32)) {
        let (series, value, profiles) = level;
        self.levels.resize_with(SPARKLINE_BUCKETS, HashMap::new);
        let bucket = &mut self.levels[bucket_at(range, start_ns)];
        add_to(bucket, series, value, profiles);
    }

    fn summary(
        self,
        service: String,
        types: BTreeSet<ProfileType>,
        range: TimeRange,
        times: &TimesOfServices,
        is_gauge: bool,
    ) -> ServiceSummary {
        let combined = |sums: &HashMap<u32, (i64, u32)>| {
            if is_gauge {
                let means = sums
                    .values()
                    .map(|&(sum, count)| sum as f64 / f64::from(count));
                return means.sum::<f64>().round() as i64;
            }
            sums.values()
                .fold(0, |total: i64, &(sum, _)| total.saturating_add(sum))
        };
        let labels = Labels::from_pairs([(SERVICE_NAME_LABEL, service.as_str())]);
        let [now, before] =
            [&times.now, &times.before].map(|times| times.get(&labels).map(Arc::as_ref));
        let mut sparkline: Vec<i64> = if is_gauge {
            self.levels.iter().map(combined).collect()
        } else {
            self.spread.as_if_whole(range, now)
        };
        sparkline.resize(SPARKLINE_BUCKETS, 0);
        ServiceSummary {
            total: combined(&self.now),
            previous_total: combined(&self.before),
            types: types.into_iter().collect(),
            sparkline,
            profiled_ns: now.and_then(ProfiledTime::known_length_ns),
            previous_profiled_ns: before.and_then(ProfiledTime::known_length_ns),
            service,
        }
    }
}

fn length_of_all(times: &ProfiledTimes) -> Option<i64> {
    let mut all = ProfiledTime::default();
    for time in times.values() {
        all.add_all(time);
    }
    all.put_together();
    all.known_length_ns()
}

fn keep_earlier(first_ns: &mut Option<i64>, start_ns: i64) {
    *first_ns = Some(first_ns.map_or(start_ns, |known| known.min(start_ns)));
}

fn add_to(sums: &mut HashMap<u32, (i64, u32)>, series: u32, value: i64, profiles: u32) {
    let (sum, count) = sums.entry(series).or_default();
    *sum = sum.saturating_add(value);
    *count += profiles;
}

/// The range of the same length that ends where this one starts.
fn previous_range(range: TimeRange) -> TimeRange {
    let length = range.to_ns.saturating_sub(range.from_ns);
    TimeRange {
        from_ns: range.from_ns.saturating_sub(length),
        to_ns: range.from_ns,
    }
}

fn types_by_service(
    query: &Query,
    sources: &[Source],
    meter: &Meter,
) -> Result<BTreeMap<String, BTreeSet<ProfileType>>, QueryError> {
    let mut types: BTreeMap<String, BTreeSet<ProfileType>> = BTreeMap::new();
    for source in sources {
        meter.check_time()?;
        let table = &source.profiles;
        let matches = series_matches(source, query);
        let mut seen: BTreeSet<(u32, u32)> = BTreeSet::new();
        for row in &table.rows {
            let is_new = query.range.contains(row.start_ns)
                && matches[row.series as usize].is_possible()
                && seen.insert((row.series, row.profile_type));
            if !is_new {
                continue;
            }
            let labels = &table.series[row.series as usize];
            let service = labels.get(SERVICE_NAME_LABEL).unwrap_or("");
            let of_service = types.entry(service.to_owned()).or_default();
            of_service.insert(ProfileType::clone(&table.types[row.profile_type as usize]));
        }
    }
    for of_service in types.values_mut() {
        if WallParts::of(of_service.iter()).are_whole() {
            of_service.insert(ProfileType::wall());
        }
    }
    Ok(types)
}
