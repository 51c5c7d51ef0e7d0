//! The engine: one handle for all questions.

use std::collections::BTreeMap;
use std::sync::Arc;

use candela_store::BlockError;
use candela_store::Clock;
use candela_store::LooseProfiles;
use candela_store::Snapshot;
use candela_store::Store;
use candela_store::Tier;
use candela_store::TimeRange;

use crate::budget::Meter;
use crate::cut_profiles::CutRange;
use crate::derived::has_covered_wall;
use crate::error::Failure;
use crate::error::QueryError;
use crate::hint::hint;
use crate::kept::CacheStatus;
use crate::kept::Kept;
use crate::left_sums::KeptLabels;
use crate::left_sums::Undecided;
use crate::plan::Plan;
use crate::plan::SourcePlan;
use crate::plan::available_types;
use crate::plan::plan;
use crate::plan::resolve_type;
use crate::profile_key::range_of_profiles;
use crate::query::Aggregation;
use crate::query::Answer;
use crate::query::Query;
use crate::shelf::Shelf;
use crate::sources::Source;
use crate::sources::sources;
use crate::stack_filter::counting_stacks;
use crate::taken::Taken;
use crate::tiers::FinestTiers;
use crate::tiers::whole_days;

/// Answers queries over a store, or over profiles in memory. Calls block for as long as they compute, so an async caller puts
/// them on a thread for blocking work.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) shelf: Shelf,
    pub(crate) kept: Arc<Kept>,
}

/// What a query reads: its sources, and what is wrong with the rest.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) sources: Vec<Source>,
    pub(crate) meter: Meter,
    /// Why blocks are left out.
    pub(crate) left_out: Vec<String>,
    /// Sums that are left out.
    pub(crate) undecided: Undecided,
    /// What else the answer is not.
    pub(crate) remarks: Vec<String>,
}

/// One of a query's tenants, by name and position.
#[derive(Clone, Copy, Debug)]
struct Tenant<'a> {
    name: &'a str,
    owner: u32,
}

impl Engine {
    /// An engine over this store that computes everything anew.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self::with_cache(store, 0)
    }

    /// An engine that keeps so many bytes of sums of blocks for later queries. Answers are the
    /// same: blocks never change, and what is not in blocks yet is always added up anew.
    #[must_use]
    pub fn with_cache(store: Store, max_bytes: u64) -> Self {
        Self {
            shelf: Shelf::Store(store),
            kept: Arc::new(Kept::new(max_bytes)),
        }
    }

    /// An engine over profiles that nothing stores, each by the name that a query calls its tenant.
    #[must_use]
    pub fn of_loose(profiles: BTreeMap<String, LooseProfiles>, clock: Arc<dyn Clock>) -> Self {
        Self {
            shelf: Shelf::Loose {
                profiles: Arc::new(profiles),
                clock,
            },
            // Sums of blocks are kept, and here are none.
            kept: Arc::new(Kept::new(0)),
        }
    }

    /// What the cache of sums has done so far.
    #[must_use]
    pub fn cache_status(&self) -> CacheStatus {
        self.kept.forget_gone();
        self.kept.status()
    }

    /// The sources of a range, and a meter that has started to run. No sums coarser than `coarsest`
    /// answer where something finer can.
    pub(crate) fn load(
        &self,
        query: &Query,
        range: TimeRange,
        coarsest: Tier,
    ) -> Result<Loaded, QueryError> {
        self.load_by(query, range, coarsest, &[])
    }

    /// The same for a question that asks for labels of these names besides those of the selector.
    pub(crate) fn load_by(
        &self,
        query: &Query,
        range: TimeRange,
        coarsest: Tier,
        names: &[&str],
    ) -> Result<Loaded, QueryError> {
        let cut = CutRange::of(query, range, &self.shelf);
        self.load_cut(query, range, coarsest, names, cut)
    }

    /// The same, with every profile as a whole: whoever names single profiles needs their starts.
    pub(crate) fn load_whole_profiles(
        &self,
        query: &Query,
        names: &[&str],
    ) -> Result<Loaded, QueryError> {
        self.load_cut(query, query.range, Tier::Raw, names, None)
    }

    fn load_cut(
        &self,
        query: &Query,
        range: TimeRange,
        coarsest: Tier,
        names: &[&str],
        cut: Option<CutRange>,
    ) -> Result<Loaded, QueryError> {
        check_range(query.range)?;
        let meter = Meter::start(query, self.shelf.clock());
        meter.check_cancelled()?;
        let mut loaded = Loaded {
            sources: Vec::new(),
            meter,
            left_out: Vec::new(),
            undecided: Undecided::default(),
            remarks: Vec::new(),
        };
        let range = range_of_profiles(query, range);
        let range = cut.map_or(range, |cut| cut.loaded);
        for (owner, tenant) in (0..).zip(query.distinct_tenants()) {
            let tenant = Tenant {
                name: tenant,
                owner,
            };
            self.load_tenant(&mut loaded, query, tenant, range, coarsest, names)?;
        }
        if let Some(cut) = cut {
            self.cut_profiles(cut, &mut loaded)?;
        }
        Ok(loaded)
    }

    /// Adds the sources of one tenant. Which sums answer for it depends on its profiles alone, so
    /// that it adds to an answer what it would be asked for alone.
    fn load_tenant(
        &self,
        loaded: &mut Loaded,
        query: &Query,
        tenant: Tenant<'_>,
        range: TimeRange,
        coarsest: Tier,
        names: &[&str],
    ) -> Result<(), QueryError> {
        let snapshot: Snapshot = self.shelf.snapshot(tenant.name, range)?;
        let quarantined = snapshot.quarantined.iter();
        let quarantined =
            quarantined.map(|block| format!("block {}: {}", block.block_id, block.reason));
        loaded.left_out.extend(quarantined);
        let kept = KeptLabels::of(&snapshot);
        let coarsest = if kept.have_all(query, names) && !has_covered_wall(query, &snapshot) {
            coarsest
        } else {
            Tier::Raw
        };
        let around = if snapshot.rollups.is_empty() {
            Snapshot::default()
        } else {
            self.shelf.snapshot(tenant.name, whole_days(range))?
        };
        let finest = FinestTiers::of(&around);
        let (mut sources, failed) = sources(
            snapshot,
            tenant.owner,
            range,
            coarsest,
            &finest,
            &loaded.meter,
        )?;
        let undecided = kept.leave_out_undecided(query, range, &mut sources);
        loaded.undecided.add_all(undecided);
        loaded.sources.append(&mut sources);
        for error in &failed {
            self.leave_out(&mut loaded.left_out, error);
        }
        Ok(())
    }

    /// The runs of the type that the query's pattern stands for.
    pub(crate) fn plan(&self, query: &Query, loaded: &mut Loaded) -> Result<Plan, QueryError> {
        let (sources, meter) = (&loaded.sources, &loaded.meter);
        let available = available_types(sources, query, query.range, meter)?;
        let profile_type = resolve_type(&query.profile_type, &available)?;
        loaded.tell_undecided(query, profile_type.as_ref());
        let Some(profile_type) = profile_type else {
            return Ok(Plan::default());
        };
        let (sources, meter) = (&loaded.sources, &loaded.meter);
        let planned = plan(sources, query, &profile_type, query.range, meter);
        let plan = self.or_leave_out(planned, &mut loaded.left_out)?;
        let mut plan = plan.unwrap_or_default();
        for error in &plan.failed {
            self.leave_out(&mut loaded.left_out, error);
        }
        loaded.tell_of_covering_sums(&plan);
        self.keep_linked(query, &mut plan, loaded)?;
        Ok(plan)
    }

    /// The plan of a query for one value a stack.
    pub(crate) fn plan_of_stacks(
        &self,
        query: &Query,
        loaded: &mut Loaded,
    ) -> Result<Plan, QueryError> {
        let mut plan = self.plan(query, loaded)?;
        match plan.aggregation(query) {
            Aggregation::Sum | Aggregation::Average => {}
            Aggregation::Last => plan.keep_last(),
            other => {
                return Err(QueryError::BadRequest(format!(
                    "aggregation {} is one of lines over time; ask for sum, avg or last",
                    other.name()
                )));
            }
        }
        Ok(plan)
    }

    /// The plan of a query for values of profiles: filters of frames choose samples by their stacks.
    pub(crate) fn plan_of_values(
        &self,
        query: &Query,
        loaded: &mut Loaded,
    ) -> Result<Plan, QueryError> {
        let mut plan = self.plan(query, loaded)?;
        self.take_counting_stacks(query, &mut plan, loaded)?;
        Ok(plan)
    }

    /// Leaves the stacks that pass the filters of frames.
    pub(crate) fn take_counting_stacks(
        &self,
        query: &Query,
        plan: &mut Plan,
        loaded: &mut Loaded,
    ) -> Result<(), QueryError> {
        if query.filters.counts_every_stack() {
            return Ok(());
        }
        let mut readable = Vec::with_capacity(plan.sources.len());
        for mut part in std::mem::take(&mut plan.sources) {
            let source = &loaded.sources[part.source];
            let stacks = counting_stacks(source, &query.filters, &loaded.meter);
            let Some(stacks) = self.or_leave_out(stacks, &mut loaded.left_out)? else {
                continue;
            };
            loaded.meter.allocate(stacks.len())?;
            let stacks = Arc::new(stacks);
            for run in &mut part.runs {
                run.stacks = Some(Arc::clone(&stacks));
            }
            readable.push(part);
        }
        plan.sources = readable;
        Ok(())
    }

    /// Does `work` for each source of a plan; blocks that cannot be read are left out.
    pub(crate) fn for_each_source(
        &self,
        plan: &Plan,
        loaded: &mut Loaded,
        mut work: impl FnMut(&Source, &SourcePlan, &Meter) -> Result<(), Failure>,
    ) -> Result<(), QueryError> {
        for part in &plan.sources {
            let source = &loaded.sources[part.source];
            let done = work(source, part, &loaded.meter);
            self.or_leave_out(done, &mut loaded.left_out)?;
        }
        Ok(())
    }

    /// The answer with what is to be said beside the value.
    pub(crate) fn answer<T>(
        &self,
        query: &Query,
        loaded: &Loaded,
        plan: &Plan,
        taken: Taken,
        value: T,
    ) -> Result<Answer<T>, QueryError> {
        Ok(Answer {
            value,
            profile_type: plan.profile_type.clone(),
            matched_series: plan.matched_series,
            samples: taken.events,
            profiled_ns: None,
            partial: loaded.partial_of(query, plan),
            hint: hint_if(taken.rows == 0, query, loaded)?,
        })
    }

    /// `None` when a block failed.
    pub(crate) fn or_leave_out<T>(
        &self,
        result: Result<T, Failure>,
        left_out: &mut Vec<String>,
    ) -> Result<Option<T>, QueryError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Failure::Query(error)) => Err(error),
            Err(Failure::Block(error)) => {
                self.leave_out(left_out, &error);
                Ok(None)
            }
        }
    }

    fn leave_out(&self, left_out: &mut Vec<String>, error: &BlockError) {
        if let Err(error) = self.shelf.report(error) {
            tracing::error!(%error, "a quarantined block could not be noted in the catalog");
        }
        left_out.push(error.to_string());
    }
}

/// What is near, when there is nothing.
pub(crate) fn hint_if(
    is_empty: bool,
    query: &Query,
    loaded: &Loaded,
) -> Result<Option<String>, QueryError> {
    if !is_empty {
        return Ok(None);
    }
    hint(query, &loaded.sources, &loaded.meter).map(Some)
}

fn check_range(range: TimeRange) -> Result<(), QueryError> {
    if range.from_ns <= range.to_ns {
        return Ok(());
    }
    Err(QueryError::BadRequest(format!(
        "from ({} ms) is after to ({} ms); exchange them",
        range.from_ns / 1_000_000,
        range.to_ns / 1_000_000
    )))
}
