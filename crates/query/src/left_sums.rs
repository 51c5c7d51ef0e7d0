//! What to say where only sums are left of the profiles that a question is about.
//!
//! Sums of what adds up have lost the labels of samples, all but a few labels of series, and which
//! profile a value was of; all sums have lost traces and spans. What only something lost could tell
//! apart is left out of the answer: nobody knows whether it matches. What is there, but not as
//! profiles would have it, is told.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use candela_model::Labels;
use candela_model::ProfileType;
use candela_model::TagVerdict;
use candela_model::Temporality;
use candela_store::KEPT_LABELS;
use candela_store::ProfileRow;
use candela_store::ProfileTable;
use candela_store::Snapshot;
use candela_store::Tier;
use candela_store::TimeRange;

use crate::derived::is_source_of;
use crate::derived::with_derived;
use crate::engine::Loaded;
use crate::plan::Plan;
use crate::plan::resolve_type;
use crate::plan::series_matches;
use crate::query::Aggregation;
use crate::query::Query;
use crate::sources::Source;

/// What is said where the values of single profiles matter.
pub(crate) const COUNT_AS_ONE: &str = "and each counts as one profile";
/// What is said where the labels of samples matter.
pub(crate) const WITHOUT_SAMPLE_LABELS: &str =
    "without labels of samples and with few of their series";
/// What is said where single stacks matter.
pub(crate) const WITHOUT_RARE_STACKS: &str = "in which rare stacks are cut at an ancestor";

/// The labels of which sums have all that profiles had.
#[derive(Debug)]
pub(crate) struct KeptLabels {
    names: Vec<&'static str>,
}

/// Sums of which nobody can tell whether they match.
#[derive(Debug, Default)]
pub(crate) struct Undecided {
    /// The last day of each type.
    last_days: BTreeMap<ProfileType, String>,
    /// What is asked for and lost.
    lost: BTreeSet<String>,
}

impl KeptLabels {
    /// A label that sums keep of series may be one of samples, too, of which they keep none.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let is_of_samples = |name: &str| {
            let mut blocks = snapshot.blocks.iter();
            blocks.any(|block| block.meta().sample_labels.iter().any(|it| it == name))
        };
        let names = KEPT_LABELS.into_iter();
        Self {
            names: names.filter(|name| !is_of_samples(name)).collect(),
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    /// Whether sums answer what is said about labels.
    pub(crate) fn have_all(&self, query: &Query, names: &[&str]) -> bool {
        let matchers = query.selector.matchers().iter();
        let mut asked = matchers
            .map(|matcher| matcher.name())
            .chain(names.iter().copied());
        asked.all(|name| self.has(name))
    }

    /// Takes out of sums what cannot be told apart any more.
    pub(crate) fn leave_out_undecided(
        &self,
        query: &Query,
        range: TimeRange,
        sources: &mut [Source],
    ) -> Undecided {
        let mut undecided = Undecided {
            last_days: BTreeMap::new(),
            lost: self.lost_of(query),
        };
        if undecided.lost.is_empty() {
            return undecided;
        }
        for source in sources {
            let Some(day) = source.day_of_sums().map(str::to_owned) else {
                continue;
            };
            let table = &source.profiles;
            let series = table.series.iter();
            let series: Vec<bool> = series.map(|it| self.is_undecided(query, it)).collect();
            let adds_up: Vec<bool> = table.types.iter().map(|it| adds_up(it)).collect();
            // Sums of states have labels that others have lost, but links and single profiles no more.
            let is_left_out = |row: &ProfileRow| {
                let is_lost = adds_up[row.profile_type as usize] || query.needs_profiles();
                series[row.series as usize] && is_lost
            };
            let (out, rows): (Vec<ProfileRow>, Vec<ProfileRow>) =
                table.rows.iter().copied().partition(is_left_out);
            let in_range = out.iter().filter(|row| range.contains(row.start_ns));
            let types: BTreeSet<u32> = in_range.map(|row| row.profile_type).collect();
            for profile_type in types {
                undecided.add(&table.types[profile_type as usize], &day);
            }
            if !out.is_empty() {
                source.profiles = Arc::new(ProfileTable {
                    series: table.series.clone(),
                    types: table.types.clone(),
                    rows,
                });
            }
        }
        undecided
    }

    /// Whether only a lost label could tell if sums with these labels match.
    fn is_undecided(&self, query: &Query, labels: &Labels) -> bool {
        let is_lost = |name: &str| labels.get(name).is_none() && !self.has(name);
        let mut is_undecided = query.needs_profiles();
        for matcher in query.selector.matchers() {
            if is_lost(matcher.name()) {
                is_undecided = true;
            } else if !matcher.matches(labels.get(matcher.name()).unwrap_or("")) {
                return false;
            }
        }
        let filters = &query.filters;
        let of_series = filters.tag_matches_of(labels);
        match filters.tag_verdict(of_series) {
            TagVerdict::None => false,
            TagVerdict::All => is_undecided,
            TagVerdict::BySample if filters.tag_keys().any(|key| key.is_none_or(is_lost)) => true,
            TagVerdict::BySample => is_undecided && filters.passes_tags(of_series),
        }
    }

    /// What is asked for and what sums may have lost.
    fn lost_of(&self, query: &Query) -> BTreeSet<String> {
        let matchers = query.selector.matchers().iter();
        let names = matchers.map(|matcher| matcher.name());
        let keys = query.filters.tag_keys();
        let keys = keys.map(|key| key.unwrap_or("labels of samples"));
        let labels = names.chain(keys).filter(|name| !self.has(name));
        let links = (!query.links.is_empty()).then_some("traces and spans");
        let profiles = (!query.profiles.is_empty()).then_some("single profiles");
        let lost = labels.chain(links).chain(profiles);
        lost.map(str::to_owned).collect()
    }
}

impl Undecided {
    /// Those of another tenant.
    pub(crate) fn add_all(&mut self, other: Self) {
        for (profile_type, day) in &other.last_days {
            self.add(profile_type, day);
        }
        // What a tenant has nothing of is nothing that it lacks.
        if !other.last_days.is_empty() {
            self.lost.extend(other.lost);
        }
    }

    fn add(&mut self, profile_type: &ProfileType, day: &str) {
        let last = self.last_days.entry(profile_type.clone()).or_default();
        if last.as_str() < day {
            day.clone_into(last);
        }
    }

    /// What is to be said about those of the wanted type.
    fn remark(&self, is_wanted: impl Fn(&ProfileType) -> bool) -> Option<String> {
        let wanted = self.last_days.iter().filter(|(it, _)| is_wanted(it));
        let day = wanted.map(|(_, day)| day).max()?;
        let lost: Vec<&str> = self.lost.iter().map(String::as_str).collect();
        let lost = lost.join(", ");
        Some(format!(
            "up to {day} only sums without {lost} are left: those that this leaves undecided are not in the answer"
        ))
    }
}

impl Loaded {
    /// Says what is left out of a type; of the one that the pattern would stand for where there is
    /// nothing else.
    pub(crate) fn tell_undecided(&mut self, query: &Query, found: Option<&ProfileType>) {
        let wanted = found.cloned().or_else(|| {
            let types = self.undecided.last_days.keys().cloned();
            let types = with_derived(types.collect());
            resolve_type(&query.profile_type, &types).ok().flatten()
        });
        let remark = self.undecided.remark(|it| {
            wanted
                .as_ref()
                .is_some_and(|wanted| is_source_of(it, wanted))
        });
        self.remarks.extend(remark);
    }

    /// Says what is left out of all types.
    pub(crate) fn tell_all_undecided(&mut self) {
        self.remarks.extend(self.undecided.remark(|_| true));
    }

    /// Says of a plan that stored wall time took more than its own time out of it.
    pub(crate) fn tell_of_covering_sums(&mut self, plan: &Plan) {
        let remark = plan.covering_sums.as_ref().map(|day| {
            format!(
                "up to {day} only sums are left, in which stored wall time covers whole buckets"
            )
        });
        self.remarks.extend(remark);
    }

    /// Says something about the sums of a plan, of this tier or a coarser one.
    pub(crate) fn tell_of_sums(&mut self, plan: &Plan, finest: Tier, what: &str) {
        self.remarks.extend(self.remark(plan, finest, what));
    }

    /// Says something about all sums that match and add up.
    pub(crate) fn tell_of_all_sums(&mut self, query: &Query, what: &str) {
        let matching = |source: &&Source| {
            let matches = series_matches(source, query);
            let table = &source.profiles;
            let mut rows = table.rows.iter();
            source.day_of_sums().is_some()
                && rows.any(|row| {
                    query.range.contains(row.start_ns)
                        && matches[row.series as usize].is_possible()
                        && adds_up(&table.types[row.profile_type as usize])
                })
        };
        let sums = self.sources.iter().filter(matching);
        let remark = remark_on(sums, what);
        self.remarks.extend(remark);
    }

    /// Why the answer to a query is not complete, as far as nobody said more.
    pub(crate) fn partial_of(&self, query: &Query, plan: &Plan) -> Option<String> {
        let needs_profiles = match query.aggregation {
            Some(Aggregation::Minimum | Aggregation::Maximum | Aggregation::Last) => true,
            Some(Aggregation::Average) => !plan.is_gauge(),
            Some(Aggregation::Sum | Aggregation::Rate) | None => false,
        };
        let of_values = needs_profiles.then(|| self.remark(plan, Tier::TenMinutes, COUNT_AS_ONE));
        let of_stacks = (!query.filters.keeps_stacks())
            .then(|| self.remark(plan, Tier::Hourly, WITHOUT_RARE_STACKS));
        self.partial_with(of_values.into_iter().chain(of_stacks).flatten())
    }

    /// Why the answer is not complete.
    pub(crate) fn partial(&self) -> Option<String> {
        self.partial_with(std::iter::empty())
    }

    fn partial_with(&self, more: impl Iterator<Item = String>) -> Option<String> {
        let unreadable = (!self.left_out.is_empty()).then(|| {
            format!(
                "{} of the data cannot be read and is left out: {}",
                if self.left_out.len() == 1 {
                    "a block"
                } else {
                    "some blocks"
                },
                self.left_out.join("; ")
            )
        });
        let reasons = unreadable.into_iter();
        let reasons = reasons.chain(self.remarks.iter().cloned()).chain(more);
        let mut told: Vec<String> = Vec::new();
        for reason in reasons {
            if !told.contains(&reason) {
                told.push(reason);
            }
        }
        (!told.is_empty()).then(|| told.join("; "))
    }

    fn remark(&self, plan: &Plan, finest: Tier, what: &str) -> Option<String> {
        let sources = plan.sources.iter().map(|part| &self.sources[part.source]);
        remark_on(sources.filter(|source| source.tier() >= finest), what)
    }
}

/// Nothing to say where there are no sums.
fn remark_on<'a>(sources: impl Iterator<Item = &'a Source>, what: &str) -> Option<String> {
    let day = sources.filter_map(Source::day_of_sums).max()?;
    Some(format!("up to {day} only sums are left, {what}"))
}

fn adds_up(profile_type: &ProfileType) -> bool {
    profile_type.temporality() == Temporality::Delta
}
