//! From a query to the runs of samples that answer it.

use std::num::NonZero;
use std::sync::Arc;

use candela_model::Labels;
use candela_model::ProfileType;
use candela_model::Temporality;
use candela_model::TypeResolutionError;
use candela_model::resolve_profile_type;
use candela_model::short_name;
use candela_store::ProfileRow;
use candela_store::TimeRange;
use hashbrown::HashMap;
use hashbrown::HashSet;

use crate::budget::Meter;
use crate::error::Failure;
use crate::error::QueryError;
use crate::matching::SampleTest;
use crate::matching::SeriesMatch;
use crate::matching::match_series;
use crate::matching::matching_sets;
use crate::profile_key::ChosenProfiles;
use crate::query::Aggregation;
use crate::query::Query;
use crate::run::Run;
use crate::sources::Source;

/// The runs of one source, in the order of its rows.
#[derive(Debug)]
pub(crate) struct SourcePlan {
    /// Position among the query's sources.
    pub(crate) source: usize,
    pub(crate) runs: Vec<Run>,
}

/// A profile, or several in one, of which nothing is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EmptyProfile {
    pub(crate) series: u32,
    pub(crate) start_ns: i64,
    pub(crate) merged_profiles: u32,
}

/// All runs of a query.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) profile_type: Option<ProfileType>,
    pub(crate) sources: Vec<SourcePlan>,
    /// The labels of each series.
    pub(crate) series: Vec<Arc<Labels>>,
    /// Of which tenant each series is, a position among `tenants`.
    owners: Vec<u32>,
    /// The tenants of the query.
    tenants: Vec<String>,
    /// How many of them have profiles in it.
    pub(crate) matched_series: usize,
    /// Profiles of these series of which nothing is taken: they count where a mean is over all
    /// profiles, in whichever block they happen to be.
    pub(crate) empty: Vec<EmptyProfile>,
    /// Blocks whose labels could not be read.
    pub(crate) failed: Vec<candela_store::BlockError>,
}

/// A series: its labels, and of which of the query's tenants it is.
type Owned = (u32, Arc<Labels>);

/// The cpu time that every source stores, and the count that is derived from it.
const CPU_TIME: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
const CPU_SAMPLES: &str = "process_cpu:samples:count:cpu:nanoseconds";

/// The types of series that match in the range, those derived from them included.
pub(crate) fn available_types(
    sources: &[Source],
    query: &Query,
    range: TimeRange,
    meter: &Meter,
) -> Result<Vec<ProfileType>, QueryError> {
    let mut found: HashSet<ProfileType> = HashSet::new();
    for source in sources {
        meter.check_time()?;
        let table = &source.profiles;
        let mut is_new = vec![true; table.types.len()];
        let matches = series_matches(source, query);
        for row in &table.rows {
            let is_match = range.contains(row.start_ns)
                && is_new[row.profile_type as usize]
                && matches[row.series as usize].is_possible();
            if is_match {
                is_new[row.profile_type as usize] = false;
                found.insert(ProfileType::clone(&table.types[row.profile_type as usize]));
            }
        }
    }
    Ok(with_derived(found))
}

/// Stored types and those that can be derived of them, sorted.
pub(crate) fn with_derived(mut found: HashSet<ProfileType>) -> Vec<ProfileType> {
    if found.iter().any(|it| it.to_string() == CPU_TIME) {
        found.insert(cpu_samples());
    }
    let mut types: Vec<ProfileType> = found.into_iter().collect();
    types.sort();
    types
}

/// Whether values of a stored type are, or become, those of the wanted one.
pub(crate) fn is_source_of(stored: &ProfileType, wanted: &ProfileType) -> bool {
    stored == wanted || (*wanted == cpu_samples() && stored.to_string() == CPU_TIME)
}

/// The type that a pattern stands for among those available; `None` when it stands for none of
/// them: whether it could be there at another time is not for us to know.
pub(crate) fn resolve_type(
    pattern: &str,
    available: &[ProfileType],
) -> Result<Option<ProfileType>, QueryError> {
    match resolve_profile_type(pattern, available) {
        Ok(profile_type) => Ok(Some(profile_type.clone())),
        Err(TypeResolutionError::NoMatch { .. }) => Ok(None),
        Err(error) => Err(QueryError::BadRequest(error.to_string())),
    }
}

/// Types as people write them.
pub(crate) fn type_names(types: &[ProfileType]) -> String {
    let mut names: Vec<String> = types
        .iter()
        .map(|it| short_name(it).map_or_else(|| it.to_string(), str::to_owned))
        .collect();
    names.dedup();
    names.join(", ")
}

/// The runs of one type.
pub(crate) fn plan(
    sources: &[Source],
    query: &Query,
    profile_type: &ProfileType,
    range: TimeRange,
    meter: &Meter,
) -> Result<Plan, Failure> {
    let mut plan = Plan {
        profile_type: Some(profile_type.clone()),
        tenants: query
            .distinct_tenants()
            .into_iter()
            .map(str::to_owned)
            .collect(),
        ..Plan::default()
    };
    let mut numbers: HashMap<Owned, u32> = HashMap::new();
    let mut empty: Vec<(Owned, &ProfileRow)> = Vec::new();
    let counted = series_with_own_samples(sources, profile_type, range);
    let is_counted = |source: &Source, labels: &Arc<Labels>| {
        counted.contains(&(source.owner, Arc::clone(labels)))
    };
    let chosen = ChosenProfiles::of(query);
    for (position, source) in sources.iter().enumerate() {
        let matches = series_matches(source, query);
        let sets = match sets_of_matches(source, query, &matches) {
            Ok(sets) => sets,
            Err(Failure::Block(error)) => {
                plan.failed.push(error);
                continue;
            }
            Err(error) => return Err(error),
        };
        let table = &source.profiles;
        let divisors = divisors(&table.types, profile_type);
        let mut known: Vec<Option<u32>> = vec![None; table.series.len()];
        let mut runs = Vec::new();
        for row in &table.rows {
            let series = row.series as usize;
            let Some(kind) = divisors[row.profile_type as usize] else {
                continue;
            };
            if !range.contains(row.start_ns) || matches[series] == SeriesMatch::No {
                continue;
            }
            let labels = &table.series[series];
            let stored_type = &table.types[row.profile_type as usize];
            if !chosen.have(source.owner, labels, stored_type, row.start_ns) {
                continue;
            }
            let divisor = match kind {
                Divisor::One => 1,
                Divisor::Period if row.period > 0 && !is_counted(source, labels) => row.period,
                Divisor::Period => continue,
            };
            if matches[series] == SeriesMatch::NoneHere {
                empty.push(((source.owner, Arc::clone(labels)), row));
                continue;
            }
            let number = *known[series].get_or_insert_with(|| {
                let owned = (source.owner, Arc::clone(labels));
                *numbers.entry(owned).or_insert_with(|| {
                    plan.series.push(Arc::clone(labels));
                    plan.owners.push(source.owner);
                    plan.series.len() as u32 - 1
                })
            });
            runs.push(Run {
                row: *row,
                series: number,
                divisor,
                event_value: event_value(stored_type, row.period),
                sets: sets[series].clone(),
                stacks: None,
                samples: None,
            });
        }
        meter.check_time()?;
        meter.allocate(runs.len() * size_of::<Run>())?;
        if !runs.is_empty() {
            plan.sources.push(SourcePlan {
                source: position,
                runs,
            });
        }
    }
    plan.matched_series = plan.series.len();
    plan.empty = empty
        .into_iter()
        .filter_map(|(owned, row)| {
            Some(EmptyProfile {
                series: *numbers.get(&owned)?,
                start_ns: row.start_ns,
                merged_profiles: row.merged_profiles,
            })
        })
        .collect();
    Ok(plan)
}

impl Plan {
    /// The tenant that a series is of.
    pub(crate) fn tenant_of(&self, series: u32) -> &str {
        let owner = self.owners[series as usize];
        &self.tenants[owner as usize]
    }

    /// Whether values are states.
    pub(crate) fn is_gauge(&self) -> bool {
        let temporality = self.profile_type.as_ref().map(ProfileType::temporality);
        temporality == Some(Temporality::Gauge)
    }

    /// How profiles of a series combine: as asked for, else what happened is summed and states are
    /// averaged.
    pub(crate) fn aggregation(&self, query: &Query) -> Aggregation {
        let default = if self.is_gauge() {
            Aggregation::Average
        } else {
            Aggregation::Sum
        };
        query.aggregation.unwrap_or(default)
    }

    /// Leaves the latest profile of each series; of profiles that start together all.
    pub(crate) fn keep_last(&mut self) {
        let mut last = vec![i64::MIN; self.series.len()];
        let runs = self.sources.iter().flat_map(|source| &source.runs);
        let starts = runs.map(|run| (run.series, run.row.start_ns));
        let empty = self.empty.iter().map(|it| (it.series, it.start_ns));
        for (series, start_ns) in starts.chain(empty) {
            let last = &mut last[series as usize];
            *last = start_ns.max(*last);
        }
        for source in &mut self.sources {
            let is_last = |run: &Run| run.row.start_ns == last[run.series as usize];
            source.runs.retain(is_last);
        }
        self.sources.retain(|source| !source.runs.is_empty());
    }

    /// For each series the number of its profiles.
    pub(crate) fn profile_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.series.len()];
        for run in self.sources.iter().flat_map(|source| &source.runs) {
            counts[run.series as usize] += run.row.merged_profiles;
        }
        for empty in &self.empty {
            counts[empty.series as usize] += empty.merged_profiles;
        }
        counts
    }
}

/// How values of a stored type become those of the wanted one.
#[derive(Clone, Copy, Debug)]
enum Divisor {
    One,
    Period,
}

fn divisors(types: &[Arc<ProfileType>], wanted: &ProfileType) -> Vec<Option<Divisor>> {
    types
        .iter()
        .map(|stored| {
            if **stored == *wanted {
                return Some(Divisor::One);
            }
            is_source_of(stored, wanted).then_some(Divisor::Period)
        })
        .collect()
}

/// Series that store the count which would else be derived.
fn series_with_own_samples(
    sources: &[Source],
    wanted: &ProfileType,
    range: TimeRange,
) -> HashSet<Owned> {
    let mut counted = HashSet::new();
    if *wanted != cpu_samples() {
        return counted;
    }
    for source in sources {
        let table = &source.profiles;
        for row in table.rows.iter().filter(|row| range.contains(row.start_ns)) {
            if *table.types[row.profile_type as usize] == *wanted {
                let labels = Arc::clone(&table.series[row.series as usize]);
                counted.insert((source.owner, labels));
            }
        }
    }
    counted
}

pub(crate) fn series_matches(source: &Source, query: &Query) -> Vec<SeriesMatch> {
    let series = source.profiles.series.iter();
    series
        .map(|labels| match_series(query, labels, &source.sample_labels))
        .collect()
}

/// For each series the label sets whose samples are taken.
pub(crate) fn sets_of_matches(
    source: &Source,
    query: &Query,
    matches: &[SeriesMatch],
) -> Result<Vec<Option<Arc<Vec<bool>>>>, Failure> {
    let mut known: HashMap<&SampleTest, Arc<Vec<bool>>> = HashMap::new();
    let mut all = Vec::with_capacity(matches.len());
    for series in matches {
        let SeriesMatch::BySample(test) = series else {
            all.push(None);
            continue;
        };
        if !known.contains_key(test) {
            let sets = source.with_sample_labels(|labels| matching_sets(query, test, labels))?;
            known.insert(test, Arc::new(sets));
        }
        all.push(known.get(test).cloned());
    }
    Ok(all)
}

/// A profile of cpu time is a number of samples, each of which stands for its period; a profile of
/// `samples` is that number. Of other types the values were measured or estimated, and how many
/// samples there were is not in them.
fn event_value(profile_type: &ProfileType, period: i64) -> Option<NonZero<i64>> {
    let is_count = profile_type.sample_type == "samples" && profile_type.sample_unit == "count";
    if is_count {
        return NonZero::new(1);
    }
    let is_cpu_time = profile_type.to_string() == CPU_TIME;
    NonZero::new(period).filter(|period| is_cpu_time && period.get() > 0)
}

/// Whether a pattern asks for the count that may be derived: it is rounded sample by sample.
pub(crate) fn is_derived_count(pattern: &str) -> bool {
    let cpu_time = CPU_TIME.parse().expect("five parts");
    let found = resolve_profile_type(pattern, &[cpu_time, cpu_samples()]).cloned();
    found.is_ok_and(|found| found == cpu_samples())
}

fn cpu_samples() -> ProfileType {
    CPU_SAMPLES.parse().expect("five parts")
}
