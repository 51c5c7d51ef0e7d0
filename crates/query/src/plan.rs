//! From a query to the runs of samples that answer it.

use std::num::NonZero;
use std::sync::Arc;

use candela_model::Labels;
use candela_model::ProfileType;
use candela_model::Temporality;
use candela_model::TypeResolutionError;
use candela_model::WallCover;
use candela_model::WallParts;
use candela_model::resolve_profile_type;
use candela_model::short_name;
use candela_store::ProfileRow;
use candela_store::TimeRange;
use hashbrown::HashMap;
use hashbrown::HashSet;

use crate::budget::Meter;
use crate::derived::AvailableTypes;
use crate::derived::CoveredWindows;
use crate::derived::Origin;
use crate::derived::StoredItself;
use crate::derived::Windows;
use crate::derived::with_derived;
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
    /// The labels of each series. Parts that a type is made of are series of their own here.
    pub(crate) series: Vec<Arc<Labels>>,
    /// Whether a series may have several numbers, one for each part of the type.
    has_parts: bool,
    /// Of which tenant each series is, a position among `tenants`.
    owners: Vec<u32>,
    /// The tenants of the query.
    tenants: Vec<String>,
    /// How many of them have profiles in it.
    pub(crate) matched_series: usize,
    /// Profiles of these series of which nothing is taken: they count where a mean is over all
    /// profiles, in whichever block they happen to be.
    pub(crate) empty: Vec<EmptyProfile>,
    /// The last day of sums whose wall time covers parts: it does so for whole buckets.
    pub(crate) covering_sums: Option<String>,
    /// Blocks whose labels could not be read.
    pub(crate) failed: Vec<candela_store::BlockError>,
}

/// A series, or one part of it where a type is made of several: of which of the query's tenants it is,
/// its labels, and the number of the part.
type Owned = (u32, Arc<Labels>, usize);

/// The types of series that match in the range, those derived from them included.
pub(crate) fn available_types(
    sources: &[Source],
    query: &Query,
    range: TimeRange,
    meter: &Meter,
) -> Result<AvailableTypes, QueryError> {
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

/// The type that a pattern stands for among those available; `None` when it stands for none of
/// them: whether it could be there at another time is not for us to know.
pub(crate) fn resolve_type(
    pattern: &str,
    available: &AvailableTypes,
) -> Result<Option<ProfileType>, QueryError> {
    let types = &available.types;
    // Nothing lists wall time of what only waited, but it has some.
    let is_derived_wall = ProfileType::may_be_wall(pattern)
        && !available.has_stored_wall
        && WallParts::of(types).may_be_whole();
    // What is stored goes before what is derived, if it is a time.
    let wall = ProfileType::wall();
    let is_candidate =
        |it: &&ProfileType| !is_derived_wall || (**it != wall && it.sample_unit == "nanoseconds");
    match resolve_profile_type(pattern, types.iter().filter(is_candidate)) {
        Ok(profile_type) => Ok(Some(profile_type.clone())),
        Err(TypeResolutionError::NoMatch { .. }) => Ok(is_derived_wall.then(ProfileType::wall)),
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
        has_parts: *profile_type == ProfileType::wall(),
        tenants: query
            .distinct_tenants()
            .into_iter()
            .map(str::to_owned)
            .collect(),
        ..Plan::default()
    };
    let mut numbers: HashMap<Owned, u32> = HashMap::new();
    let mut empty: Vec<(Owned, &ProfileRow)> = Vec::new();
    let (stored_itself, _memory) = StoredItself::of(sources, query, profile_type, range, meter)?;
    let mut covers = CoveredWindows::by(&stored_itself);
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
        let types = table.types.iter();
        let origins: Vec<Option<Origin>> = types
            .map(|stored| Origin::of(stored, profile_type))
            .collect();
        let mut known: Vec<[Option<u32>; Origin::NUMBERS]> =
            vec![Default::default(); table.series.len()];
        let mut covered: Vec<Option<Windows>> = vec![None; table.series.len()];
        let mut runs = Vec::new();
        for row in &table.rows {
            let series = row.series as usize;
            let Some(origin) = origins[row.profile_type as usize] else {
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
            let divisor = match origin {
                Origin::Itself => 1,
                Origin::Period if row.period <= 0 => continue,
                Origin::Period if stored_itself.counts(source.owner, labels) => continue,
                Origin::Period => row.period,
                Origin::Part(_) => {
                    if covered[series].is_none() {
                        covered[series] = Some(covers.of_series(source.owner, labels, meter)?);
                    }
                    let windows = covered[series].as_deref();
                    if windows.is_some_and(|windows| WallCover::has(windows, row.start_ns)) {
                        if plan.covering_sums.is_none() {
                            let day = stored_itself.day_of_sums_at(row.start_ns);
                            plan.covering_sums = day.map(str::to_owned);
                        }
                        continue;
                    }
                    1
                }
            };
            let part = origin.number();
            let owned = || (source.owner, Arc::clone(labels), part);
            if matches[series] == SeriesMatch::NoneHere {
                empty.push((owned(), row));
                continue;
            }
            let number = *known[series][part].get_or_insert_with(|| {
                *numbers.entry(owned()).or_insert_with(|| {
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
                samples: source.cut.samples_of(row),
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
    plan.matched_series = plan.count_series(0..plan.series.len() as u32);
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

    /// Whether all series are of one tenant, so that nothing tells any by theirs.
    pub(crate) const fn is_of_one_tenant(&self) -> bool {
        self.tenants.len() == 1
    }

    /// How many series there are among these numbers, each of which is there once.
    pub(crate) fn count_series(&self, numbers: impl ExactSizeIterator<Item = u32>) -> usize {
        if !self.has_parts {
            return numbers.len();
        }
        let numbers = numbers.map(|number| number as usize);
        let series: HashSet<(u32, &Labels)> = numbers
            .map(|number| (self.owners[number], &*self.series[number]))
            .collect();
        series.len()
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
    let is_cpu_time = *profile_type == ProfileType::on_cpu();
    NonZero::new(period).filter(|period| is_cpu_time && period.get() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
    const OFF_CPU: &str = "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds";
    const WALL: &str = "wall:wall:nanoseconds:wall:nanoseconds";
    const OTHER_WALL: &str = "wall:wall:nanoseconds:cpu:nanoseconds";
    const WALL_COUNT: &str = "wall:samples:count:wall:nanoseconds";

    fn resolved(pattern: &str, stored: &[&str]) -> Result<Option<String>, QueryError> {
        let stored = stored
            .iter()
            .map(|id| id.parse::<ProfileType>().expect("five parts"));
        let found = resolve_type(pattern, &with_derived(stored.collect()))?;
        Ok(found.map(|it| it.to_string()))
    }

    #[test]
    fn stored_times_go_before_derived_wall_time() {
        let cases: [(&[&str], Option<&str>); 8] = [
            (&[CPU, OFF_CPU], Some(WALL)),
            (&[OFF_CPU], Some(WALL)),
            (&[CPU], None),
            (&[CPU, OFF_CPU, OTHER_WALL], Some(OTHER_WALL)),
            (&[CPU, OFF_CPU, WALL_COUNT], Some(WALL)),
            (&[OFF_CPU, WALL_COUNT], Some(WALL)),
            (&[CPU, WALL_COUNT], Some(WALL_COUNT)),
            (&[CPU, OFF_CPU, WALL, WALL_COUNT], Some(WALL)),
        ];
        for (stored, wanted) in cases {
            let found = resolved("wall", stored).expect("is one");
            assert_eq!(found.as_deref(), wanted, "{stored:?}");
        }
        let exact = resolved(WALL, &[CPU, OFF_CPU, OTHER_WALL]).expect("is one");
        assert_eq!(exact.as_deref(), Some(WALL));
        let stored_twice = resolved("wall", &[CPU, OFF_CPU, WALL, OTHER_WALL]);
        assert!(stored_twice.is_err(), "{stored_twice:?}");
    }
}
