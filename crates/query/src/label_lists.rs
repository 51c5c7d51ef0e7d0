//! Which combinations of labels series have.

use std::collections::BTreeSet;

use candela_model::Labels;
use candela_model::ProfileType;
use candela_model::SERVICE_NAME_LABEL;
use candela_model::WallParts;
use candela_store::Block;
use candela_store::KEPT_LABELS;
use candela_store::Tier;
use hashbrown::HashMap;
use hashbrown::HashSet;

use crate::budget::Meter;
use crate::derived::with_derived;
use crate::engine::Engine;
use crate::engine::hint_if;
use crate::error::QueryError;
use crate::matching::SeriesMatch;
use crate::matching::match_series;
use crate::plan::series_matches;
use crate::query::Answer;
use crate::query::Query;

/// A profile type as labels, in the names that clients of Pyroscope know.
pub const TYPE_LABELS: [&str; 6] = [
    "__profile_type__",
    "__name__",
    "__type__",
    "__unit__",
    "__period_type__",
    "__period_unit__",
];
/// Bytes of a set besides its texts: where it is kept, and for each label two texts.
const SET_BYTES: usize = 64;
const LABEL_BYTES: usize = 2 * size_of::<String>();

/// The sets that are found.
struct Sets<'a> {
    /// The labels that are asked for; all of series when empty.
    names: &'a [&'a str],
    meter: &'a Meter,
    found: BTreeSet<Labels>,
    /// The labels of each type that was seen, by what is asked for.
    types: HashMap<ProfileType, Vec<Labels>>,
    /// Which parts of wall time there are of these labels.
    parts: HashMap<Labels, WallParts>,
}

impl Engine {
    /// The distinct values that matching series have of these labels together, sorted; those of
    /// whole series, with `__profile_type__`, when no names are given. [`TYPE_LABELS`] stand for
    /// parts of the profile type, and a type that can be derived is one of them. A label that a
    /// series lacks is left out of its set. Labels of samples choose series, but are in no set: see
    /// [`Engine::label_values`].
    ///
    /// Services and types of whole blocks stand in their manifests: no file is read for them.
    ///
    /// # Errors
    /// When the range is none, or the budget is spent.
    pub fn label_sets(
        &self,
        query: &Query,
        names: &[&str],
    ) -> Result<Answer<Vec<Labels>>, QueryError> {
        let query = &query.of_names();
        let found = if is_in_manifests(query, names) {
            self.sets_of_manifests(query, names)?
        } else {
            None
        };
        if let Some(found) = found.filter(|found| !found.is_empty()) {
            return Ok(Answer {
                value: found,
                ..Answer::default()
            });
        }
        let mut loaded = self.load_by(query, query.range, Tier::Raw, names)?;
        loaded.tell_all_undecided();
        let is_kept = |name: &&str| KEPT_LABELS.contains(name) || TYPE_LABELS.contains(name);
        if names.is_empty() || !names.iter().all(is_kept) {
            loaded.tell_of_all_sums(query, "with few labels of their series");
        }
        let mut sets = Sets::new(names, &loaded.meter);
        for source in &loaded.sources {
            loaded.meter.check_time()?;
            let matches = series_matches(source, query);
            let table = &source.profiles;
            let mut seen: HashSet<(u32, u32)> = HashSet::new();
            for row in &table.rows {
                let is_new = query.range.contains(row.start_ns)
                    && matches[row.series as usize].is_possible()
                    && seen.insert((row.series, row.profile_type));
                if is_new {
                    let labels = &table.series[row.series as usize];
                    sets.add(labels, &table.types[row.profile_type as usize])?;
                }
            }
        }
        let found: Vec<Labels> = sets.found.into_iter().collect();
        Ok(Answer {
            hint: hint_if(found.is_empty(), query, &loaded)?,
            partial: loaded.partial(),
            value: found,
            ..Answer::default()
        })
    }

    /// The same out of manifests; `None` where something has to be told or read from files that
    /// cannot be read.
    fn sets_of_manifests(
        &self,
        query: &Query,
        names: &[&str],
    ) -> Result<Option<Vec<Labels>>, QueryError> {
        let meter = Meter::start(query, self.shelf.clock());
        let mut sets = Sets::new(names, &meter);
        for tenant in query.distinct_tenants() {
            let snapshot = self.shelf.snapshot(tenant, query.range)?;
            if !snapshot.quarantined.is_empty() {
                return Ok(None);
            }
            for block in snapshot.blocks.iter().chain(&snapshot.rollups) {
                meter.check_time()?;
                if !sets.add_block(query, block)? {
                    return Ok(None);
                }
            }
            for profile in snapshot.heads.iter().flat_map(|head| &head.profiles) {
                if match_series(query, &profile.labels, &[]) == SeriesMatch::All {
                    sets.add(&profile.labels, &profile.profile_type)?;
                }
            }
        }
        Ok(Some(sets.found.into_iter().collect()))
    }
}

/// Whether services and types tell enough.
fn is_in_manifests(query: &Query, names: &[&str]) -> bool {
    let is_told = |name: &&str| *name == SERVICE_NAME_LABEL || TYPE_LABELS.contains(name);
    let mut matchers = query.selector.matchers().iter();
    !names.is_empty()
        && names.iter().all(is_told)
        && matchers.all(|matcher| matcher.name() == SERVICE_NAME_LABEL)
        && query.filters.keeps_samples()
        && query.range.from_ns <= query.range.to_ns
}

impl<'a> Sets<'a> {
    fn new(names: &'a [&'a str], meter: &'a Meter) -> Self {
        Self {
            names,
            meter,
            found: BTreeSet::new(),
            types: HashMap::new(),
            parts: HashMap::new(),
        }
    }

    /// Adds what the manifest of a block tells; `false` where it does not tell enough. Sums have
    /// the services and types of their profiles.
    fn add_block(&mut self, query: &Query, block: &Block) -> Result<bool, QueryError> {
        let meta = block.meta();
        let is_whole =
            query.range.contains(meta.min_time_ns) && query.range.contains(meta.max_time_ns);
        if !is_whole || meta.sample_labels.iter().any(|it| it == SERVICE_NAME_LABEL) {
            return Ok(false);
        }
        for service in &meta.services {
            let Ok(profile_type) = service.profile_type.parse() else {
                return Ok(false);
            };
            let name = (SERVICE_NAME_LABEL, service.service.as_str());
            let labels = Labels::from_pairs((!service.service.is_empty()).then_some(name));
            if match_series(query, &labels, &[]) == SeriesMatch::All {
                self.add(&labels, &profile_type)?;
            }
        }
        Ok(true)
    }

    fn add(&mut self, labels: &Labels, profile_type: &ProfileType) -> Result<(), QueryError> {
        if !self.types.contains_key(profile_type) {
            let types = with_derived(HashSet::from_iter([profile_type.clone()]));
            let sets = types.types.iter();
            let sets = sets.map(|it| labels_of_type(it, self.names));
            let sets: BTreeSet<Labels> = sets.collect();
            let sets = sets.into_iter().collect();
            self.types.insert(profile_type.clone(), sets);
        }
        let of_series = labels.iter();
        let of_series =
            of_series.filter(|(name, _)| self.names.is_empty() || self.names.contains(name));
        let of_series = Labels::from_pairs(of_series);
        for of_type in &self.types[profile_type] {
            let set = Labels::from_pairs(of_type.iter().chain(of_series.iter()));
            let bytes = bytes_of(&set);
            if self.found.insert(set) {
                self.meter.allocate(bytes)?;
            }
        }
        if profile_type.is_part_of_wall() {
            self.add_part(&of_series, profile_type)?;
        }
        Ok(())
    }

    /// Wall time is a type of what has both parts of it, in whichever profiles.
    fn add_part(&mut self, of_series: &Labels, part: &ProfileType) -> Result<(), QueryError> {
        if !self.parts.contains_key(of_series) {
            self.meter.allocate(bytes_of(of_series))?;
        }
        let parts = self.parts.entry(of_series.clone()).or_default();
        let were_whole = parts.are_whole();
        parts.add(part);
        if were_whole || !parts.are_whole() {
            return Ok(());
        }
        self.add(of_series, &ProfileType::wall())
    }
}

fn bytes_of(set: &Labels) -> usize {
    let of_label = |(name, value): (&str, &str)| LABEL_BYTES + name.len() + value.len();
    SET_BYTES + set.iter().map(of_label).sum::<usize>()
}

/// What is asked for of a type.
fn labels_of_type(profile_type: &ProfileType, names: &[&str]) -> Labels {
    let id = profile_type.to_string();
    let values = [
        id.as_str(),
        &profile_type.name,
        &profile_type.sample_type,
        &profile_type.sample_unit,
        &profile_type.period_type,
        &profile_type.period_unit,
    ];
    let pairs = TYPE_LABELS.into_iter().zip(values);
    Labels::from_pairs(
        pairs.filter(|(name, _)| {
            names.contains(name) || (names.is_empty() && *name == TYPE_LABELS[0])
        }),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use candela_store::ManualClock;

    use super::*;

    #[test]
    fn sets_count_as_long_as_they_are() {
        let long = "x".repeat(2048);
        let labels = Labels::from_pairs((0..30).map(|label| (format!("l{label}"), long.clone())));
        let mut query = Query::new("t");
        let add = |query: &Query| {
            let meter = Meter::start(query, Arc::new(ManualClock::at(0)));
            let mut sets = Sets::new(&[], &meter);
            sets.add(&labels, &ProfileType::new("a", "b", "c", "d", "e"))
        };
        query.budget.max_memory = 30 * 2048;
        assert!(add(&query).is_err(), "its texts alone are that long");
        query.budget.max_memory = 70_000;
        assert!(add(&query).is_ok());
    }
}
