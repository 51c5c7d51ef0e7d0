//! Which blocks a query reads: profiles as they came, or sums over ten minutes or an hour.
//!
//! What was compacted is in the sums of each tier as well, so each type of a service is read from
//! one tier of a day only: the coarsest whose buckets are at most a hundredth of the range, and the
//! profiles themselves for what sticks out at both ends. What is not compacted yet is in no sums and
//! always read. Where the profiles are gone the finest sums that are left are read: retention may
//! keep the profiles of one service for longer than those of another.

use std::collections::BTreeMap;
use std::sync::Arc;

use candela_model::SERVICE_NAME_LABEL;
use candela_store::Block;
use candela_store::BlockMeta;
use candela_store::KEPT_LABELS;
use candela_store::Level;
use candela_store::ProfileRow;
use candela_store::ProfileTable;
use candela_store::ServiceMeta;
use candela_store::Snapshot;
use candela_store::Tier;
use candela_store::TimeRange;
use hashbrown::HashMap;

use crate::derived::is_derived_count;
use crate::query::Aggregation;
use crate::query::Query;
use crate::steps::Steps;

const DAY_NS: i64 = 86_400_000_000_000;
/// A range has at least so many buckets.
const BUCKETS_PER_RANGE: i64 = 100;

/// A service and the identifier of a profile type.
type Key<'a> = (&'a str, &'a str);

/// The finest tier that has anything of a key, by number of the UTC day.
#[derive(Debug)]
pub(crate) struct FinestTiers<'a> {
    days: BTreeMap<i64, BTreeMap<Key<'a>, Tier>>,
}

/// What is read of each day.
#[derive(Debug)]
pub(crate) struct Division<'a> {
    range: TimeRange,
    /// By number of the UTC day: a compacted block is of one day.
    days: BTreeMap<i64, BTreeMap<Key<'a>, Choice>>,
}

/// What is read of the compacted blocks of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// All of one tier.
    Whole(Tier),
    /// Sums for the whole buckets of the range, profiles before and behind.
    Split(Tier),
}

/// A range by the buckets of a tier.
#[derive(Clone, Copy, Debug)]
struct Split {
    before: TimeRange,
    inner: TimeRange,
    behind: TimeRange,
}

/// In which the profiles start that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Windows {
    All,
    In([TimeRange; 2]),
}

/// The sums of the values of a day's blocks, by tier.
#[derive(Clone, Copy, Debug, Default)]
struct Totals([Option<i64>; Tier::ALL.len()]);

/// The coarsest sums that give a query the answer that profiles would give: they are over all
/// instances of a service and all labels and links of samples. `names` are labels that are asked for besides
/// those of the selector.
pub(crate) fn coarsest_tier(query: &Query, names: &[&str]) -> Tier {
    let matchers = query.selector.matchers().iter();
    let mut asked = matchers
        .map(|matcher| matcher.name())
        .chain(names.iter().copied());
    let is_additive = matches!(
        query.aggregation,
        None | Some(Aggregation::Sum | Aggregation::Rate)
    );
    let is_kept = is_additive
        && query.filters.keeps_samples()
        && !query.needs_profiles()
        && !is_derived_count(&query.profile_type)
        && asked.all(|name| KEPT_LABELS.contains(&name));
    if !is_kept {
        return Tier::Raw;
    }
    // Of what is rare the sums over an hour only have how much it is in all.
    if query.filters.keeps_stacks() {
        Tier::Hourly
    } else {
        Tier::TenMinutes
    }
}

/// The coarsest tier, not beyond `coarsest`, whose buckets fill these steps.
pub(crate) fn tier_of_steps(coarsest: Tier, steps: Steps) -> Tier {
    let fills = |tier: &Tier| *tier <= coarsest && steps.hold_buckets_of(*tier);
    let filling = Tier::ALL.into_iter().rev().find(fills);
    filling.unwrap_or(Tier::Raw)
}

impl<'a> FinestTiers<'a> {
    /// Those of a snapshot of whole days: a bucket may start in a range in which its profiles do not.
    pub(crate) fn of(snapshot: &'a Snapshot) -> Self {
        let mut days: BTreeMap<i64, BTreeMap<Key<'a>, Tier>> = BTreeMap::new();
        let blocks = snapshot.blocks.iter().chain(&snapshot.rollups);
        for meta in blocks.map(|block| block.meta()).filter(is_compacted) {
            let keys = days.entry(day_of(meta)).or_default();
            for service in &meta.services {
                let finest = keys.entry(key_of(service)).or_insert(meta.tier());
                *finest = meta.tier().min(*finest);
            }
        }
        Self { days }
    }

    fn get(&self, day: i64, key: Key<'_>) -> Option<Tier> {
        self.days.get(&day)?.get(&key).copied()
    }
}

impl<'a> Division<'a> {
    /// What is read of these blocks for a range. No sums coarser than `coarsest` stand for
    /// profiles that are there.
    pub(crate) fn new(
        range: TimeRange,
        coarsest: Tier,
        blocks: &'a [Arc<Block>],
        finest: &FinestTiers<'_>,
    ) -> Self {
        let length_ns = length_with_data(range, blocks);
        let is_fine_enough = |tier: &Tier| {
            *tier <= coarsest && tier.bucket_ns().saturating_mul(BUCKETS_PER_RANGE) <= length_ns
        };
        let wanted = Tier::ALL.into_iter().rev().find(is_fine_enough);
        let wanted = wanted.unwrap_or(Tier::Raw);
        let mut totals: BTreeMap<i64, BTreeMap<Key<'a>, Totals>> = BTreeMap::new();
        for meta in blocks.iter().map(|block| block.meta()).filter(is_compacted) {
            let of_day = totals.entry(day_of(meta)).or_default();
            for service in &meta.services {
                let of_key = of_day.entry(key_of(service)).or_default();
                of_key.add(meta.tier(), service.total);
            }
        }
        let days = totals.into_iter().map(|(day, of_day)| {
            let choices = of_day.into_iter().map(|(key, totals)| {
                let finest = finest.get(day, key).unwrap_or_else(|| totals.finest());
                (key, totals.choice(wanted, finest))
            });
            (day, choices.collect())
        });
        Self {
            range,
            days: days.collect(),
        }
    }

    /// Whether anything of a block may be read.
    pub(crate) fn may_take(&self, meta: &BlockMeta) -> bool {
        let mut services = meta.services.iter();
        !is_compacted(&meta)
            || services.any(|service| {
                let windows = self.windows(meta, key_of(service));
                windows.overlap(meta.min_time_ns, meta.max_time_ns)
            })
    }

    /// The profiles of a block that are read.
    pub(crate) fn rows_taken(
        &self,
        meta: &BlockMeta,
        table: Arc<ProfileTable>,
    ) -> Arc<ProfileTable> {
        let mut services = meta.services.iter();
        let is_whole = !is_compacted(&meta)
            || services.all(|service| self.windows(meta, key_of(service)) == Windows::All);
        if is_whole {
            return table;
        }
        let types: Vec<String> = table.types.iter().map(ToString::to_string).collect();
        let mut known: HashMap<(u32, u32), Windows> = HashMap::new();
        let is_taken = |row: &&ProfileRow| {
            let (series, profile_type) = (row.series, row.profile_type);
            let windows = known.entry((series, profile_type)).or_insert_with(|| {
                let service = table.series[series as usize].get(SERVICE_NAME_LABEL);
                let key = (service.unwrap_or(""), &*types[profile_type as usize]);
                self.windows(meta, key)
            });
            windows.contain(row.start_ns)
        };
        Arc::new(ProfileTable {
            series: table.series.clone(),
            types: table.types.clone(),
            rows: table.rows.iter().filter(is_taken).copied().collect(),
        })
    }

    /// In which the profiles of a key start that are read of a compacted block.
    fn windows(&self, meta: &BlockMeta, key: Key<'_>) -> Windows {
        let day = day_of(meta);
        let choice = self.days.get(&day).and_then(|keys| keys.get(&key));
        match choice.copied().unwrap_or(Choice::Whole(Tier::Raw)) {
            Choice::Whole(tier) if tier == meta.tier() => Windows::All,
            Choice::Whole(_) => Windows::NONE,
            Choice::Split(tier) => {
                let split = Split::new(tier, of_day(self.range, day));
                match meta.tier() {
                    Tier::Raw => Windows::In([split.before, split.behind]),
                    of_block if of_block == tier => Windows::In([split.inner, Windows::NEVER]),
                    _ => Windows::NONE,
                }
            }
        }
    }
}

impl Windows {
    const NEVER: TimeRange = TimeRange {
        from_ns: 0,
        to_ns: 0,
    };
    const NONE: Self = Self::In([Self::NEVER; 2]);

    fn contain(&self, time_ns: i64) -> bool {
        match self {
            Self::All => true,
            Self::In(windows) => windows.iter().any(|window| window.contains(time_ns)),
        }
    }

    fn overlap(&self, first_ns: i64, last_ns: i64) -> bool {
        match self {
            Self::All => true,
            // An empty range overlaps what it lies in.
            Self::In(windows) => windows
                .iter()
                .any(|window| window.from_ns < window.to_ns && window.overlaps(first_ns, last_ns)),
        }
    }
}

impl Totals {
    fn add(&mut self, tier: Tier, value: i64) {
        let total = self.0[tier as usize].get_or_insert(0);
        *total = total.saturating_add(value);
    }

    fn finest(&self) -> Tier {
        let mut tiers = Tier::ALL.into_iter();
        let finest = tiers.find(|&tier| self.0[tier as usize].is_some());
        finest.unwrap_or(Tier::Raw)
    }

    fn choice(&self, wanted: Tier, finest: Tier) -> Choice {
        if finest != Tier::Raw {
            return Choice::Whole(finest);
        }
        if wanted == Tier::Raw || !self.is_all_in(wanted) {
            return Choice::Whole(Tier::Raw);
        }
        Choice::Split(wanted)
    }

    /// Whether the sums of a tier have everything that the profiles have: they may have been made
    /// for a part of the day only.
    fn is_all_in(&self, tier: Tier) -> bool {
        let (Some(total), Some(sum)) = (self.0[Tier::Raw as usize], self.0[tier as usize]) else {
            return false;
        };
        // Old profiles go before their sums, so these may have more.
        sum == total || (total >= 0 && sum > total)
    }
}

/// The days of a range as a whole.
pub(crate) fn whole_days(range: TimeRange) -> TimeRange {
    let start_of = |time_ns: i64| time_ns.div_euclid(DAY_NS).saturating_mul(DAY_NS);
    TimeRange {
        from_ns: start_of(range.from_ns),
        to_ns: start_of(range.to_ns).saturating_add(DAY_NS),
    }
}

impl Split {
    /// The whole buckets of a range, and what sticks out.
    fn new(tier: Tier, range: TimeRange) -> Self {
        let bucket_ns = tier.bucket_ns();
        let start_of = |time_ns: i64| time_ns.div_euclid(bucket_ns) * bucket_ns;
        let first_ns = start_of(range.from_ns);
        let from_ns = if first_ns < range.from_ns {
            first_ns + bucket_ns
        } else {
            first_ns
        };
        let to_ns = start_of(range.to_ns).max(from_ns);
        let between = |from_ns: i64, to_ns: i64| TimeRange { from_ns, to_ns };
        Self {
            before: between(range.from_ns, from_ns.min(range.to_ns)),
            inner: between(from_ns, to_ns),
            behind: between(to_ns, range.to_ns),
        }
    }
}

fn key_of(service: &ServiceMeta) -> Key<'_> {
    (&service.service, &service.profile_type)
}

fn is_compacted(meta: &&BlockMeta) -> bool {
    meta.level != Level::Flushed.number()
}

fn day_of(meta: &BlockMeta) -> i64 {
    meta.min_time_ns.div_euclid(DAY_NS)
}

fn of_day(range: TimeRange, day: i64) -> TimeRange {
    let start_ns = day * DAY_NS;
    TimeRange {
        from_ns: range.from_ns.max(start_ns),
        to_ns: range.to_ns.min(start_ns.saturating_add(DAY_NS)),
    }
}

/// Nanoseconds of the range between the first and the last profile in blocks.
fn length_with_data(range: TimeRange, blocks: &[Arc<Block>]) -> i64 {
    let spans = blocks
        .iter()
        .map(|block| (block.meta().min_time_ns, block.meta().max_time_ns));
    let whole = spans.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
    let Some((first_ns, last_ns)) = whole else {
        return 0;
    };
    let from_ns = range.from_ns.max(first_ns);
    range.to_ns.min(last_ns).saturating_sub(from_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_NS: i64 = 60_000_000_000;

    fn range(from_ns: i64, to_ns: i64) -> TimeRange {
        TimeRange { from_ns, to_ns }
    }

    #[test]
    fn whole_buckets_are_read_from_sums_and_each_moment_once() {
        let bounds = [0, 1, 9, 10, 11, 25, 30, 31, 60];
        for from in bounds {
            for to in bounds.into_iter().filter(|&to| to >= from) {
                let asked = range(from * MINUTE_NS, to * MINUTE_NS);
                let Split {
                    before,
                    inner,
                    behind,
                } = Split::new(Tier::TenMinutes, asked);
                for minute in 0..70 {
                    let time_ns = minute * MINUTE_NS;
                    let parts = [before, inner, behind];
                    let times = parts.iter().filter(|part| part.contains(time_ns)).count();
                    let expected = usize::from(asked.contains(time_ns));
                    assert_eq!(times, expected, "{from}..{to} at {minute}");
                }
                for bound in [inner.from_ns, inner.to_ns] {
                    assert_eq!(bound % (10 * MINUTE_NS), 0, "{from}..{to}");
                }
            }
        }
    }

    #[test]
    fn sums_answer_what_they_have_kept() {
        let mut query = Query::new("t");
        assert_eq!(coarsest_tier(&query, &[]), Tier::Hourly);
        assert_eq!(coarsest_tier(&query, &["service_name"]), Tier::Hourly);
        assert_eq!(coarsest_tier(&query, &["pod"]), Tier::Raw);
        query.selector = r#"{pod="a"}"#.parse().expect("a selector");
        assert_eq!(coarsest_tier(&query, &[]), Tier::Raw);
        let mut samples = Query::new("t");
        samples.profile_type = "process_cpu:samples".to_owned();
        assert_eq!(coarsest_tier(&samples, &[]), Tier::Raw);
        let mut linked = Query::new("t");
        linked.links.span_ids.push([1; 8]);
        assert_eq!(coarsest_tier(&linked, &[]), Tier::Raw);
        let mut latest = Query::new("t");
        latest.aggregation = Some(Aggregation::Last);
        assert_eq!(coarsest_tier(&latest, &[]), Tier::Raw);
        let tier_of = |step_ns| tier_of_steps(Tier::Hourly, Steps::new(step_ns, None));
        assert_eq!(tier_of(3600 * 1_000_000_000), Tier::Hourly);
        assert_eq!(tier_of(20 * MINUTE_NS), Tier::TenMinutes);
        assert_eq!(tier_of(15 * MINUTE_NS), Tier::Raw);
    }
}
