//! Which blocks a query reads: profiles as they came, or sums over ten minutes or an hour.
//!
//! What was compacted is in the sums of each tier as well, so a day is read from one tier only:
//! the coarsest whose buckets are at most a hundredth of the range, and the profiles themselves for
//! what sticks out at both ends. What is not compacted yet is in no sums and always read. A day of
//! which the profiles are gone is read from the finest sums that are left.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use candela_store::Block;
use candela_store::BlockMeta;
use candela_store::KEPT_LABELS;
use candela_store::Level;
use candela_store::ProfileRow;
use candela_store::ProfileTable;
use candela_store::Tier;
use candela_store::TimeRange;

use crate::plan::is_derived_count;
use crate::query::Aggregation;
use crate::query::Query;

const DAY_NS: i64 = 86_400_000_000_000;
/// A range has at least so many buckets.
const BUCKETS_PER_RANGE: i64 = 100;

/// What is read of each day.
#[derive(Debug)]
pub(crate) struct Division {
    /// By number of the UTC day: a compacted block is of one day.
    days: BTreeMap<i64, Choice>,
}

/// What is read of the compacted blocks of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// All of one tier.
    Whole(Tier),
    /// Sums for `inner`, profiles before and behind.
    Split {
        tier: Tier,
        before: TimeRange,
        inner: TimeRange,
        behind: TimeRange,
    },
}

/// The sums of the values of a day's blocks, by service and type.
#[derive(Debug, Default)]
struct Day<'a> {
    totals: BTreeMap<Tier, BTreeMap<(&'a str, &'a str), i64>>,
}

/// The coarsest sums that give a query the answer that profiles would give: they are over all
/// instances of a service and all labels of samples. `names` are labels that are asked for besides
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

/// The coarsest tier, not beyond `coarsest`, whose buckets fill steps of this length.
pub(crate) fn tier_of_step(coarsest: Tier, step_ns: i64) -> Tier {
    let fills = |tier: &Tier| {
        let bucket_ns = tier.bucket_ns();
        *tier <= coarsest && (bucket_ns == 0 || (step_ns > 0 && step_ns % bucket_ns == 0))
    };
    let filling = Tier::ALL.into_iter().rev().find(fills);
    filling.unwrap_or(Tier::Raw)
}

impl Division {
    /// What is read of these blocks for a range. No sums coarser than `coarsest` stand for
    /// profiles that are there.
    /// `days_with_profiles` are those of which any are left, in the range or not: a bucket may start
    /// in a range in which its profiles do not.
    pub(crate) fn new(
        range: TimeRange,
        coarsest: Tier,
        blocks: &[Arc<Block>],
        days_with_profiles: &BTreeSet<i64>,
    ) -> Self {
        let length_ns = length_with_data(range, blocks);
        let is_fine_enough = |tier: &Tier| {
            *tier <= coarsest && tier.bucket_ns().saturating_mul(BUCKETS_PER_RANGE) <= length_ns
        };
        let wanted = Tier::ALL.into_iter().rev().find(is_fine_enough);
        let mut days: BTreeMap<i64, Day<'_>> = BTreeMap::new();
        for block in blocks.iter().filter(|block| is_compacted(block.meta())) {
            let day = days.entry(day_of(block.meta())).or_default();
            day.add(block.meta());
        }
        let wanted = wanted.unwrap_or(Tier::Raw);
        let days = days.into_iter();
        Self {
            days: days
                .map(|(number, day)| {
                    let has_profiles = days_with_profiles.contains(&number);
                    let choice = day.choice(wanted, of_day(range, number), has_profiles);
                    (number, choice)
                })
                .collect(),
        }
    }

    /// Whether anything of a block may be read.
    pub(crate) fn may_take(&self, meta: &BlockMeta) -> bool {
        let windows = self.windows(meta);
        windows.is_none_or(|windows| {
            let mut windows = windows.iter();
            windows.any(|window| window.overlaps(meta.min_time_ns, meta.max_time_ns))
        })
    }

    /// The profiles of a block that are read.
    pub(crate) fn rows_taken(
        &self,
        meta: &BlockMeta,
        table: Arc<ProfileTable>,
    ) -> Arc<ProfileTable> {
        let Some(windows) = self.windows(meta) else {
            return table;
        };
        let is_taken =
            |row: &&ProfileRow| windows.iter().any(|window| window.contains(row.start_ns));
        Arc::new(ProfileTable {
            series: table.series.clone(),
            types: table.types.clone(),
            rows: table.rows.iter().filter(is_taken).copied().collect(),
        })
    }

    /// In which the profiles of a block start that are read; `None` for all of them.
    fn windows(&self, meta: &BlockMeta) -> Option<Vec<TimeRange>> {
        if !is_compacted(meta) {
            return None;
        }
        match *self.days.get(&day_of(meta))? {
            Choice::Whole(tier) if tier == meta.tier() => None,
            Choice::Whole(_) => Some(Vec::new()),
            Choice::Split {
                tier,
                before,
                inner,
                behind,
            } => {
                let windows = match meta.tier() {
                    Tier::Raw => vec![before, behind],
                    of_block if of_block == tier => vec![inner],
                    _ => Vec::new(),
                };
                // An empty range overlaps what it lies in.
                let windows = windows.into_iter();
                Some(windows.filter(|it| it.from_ns < it.to_ns).collect())
            }
        }
    }
}

impl<'a> Day<'a> {
    fn add(&mut self, meta: &'a BlockMeta) {
        let of_tier = self.totals.entry(meta.tier()).or_default();
        for service in &meta.services {
            let key = (service.service.as_str(), service.profile_type.as_str());
            let total = of_tier.entry(key).or_default();
            *total = total.saturating_add(service.total);
        }
    }

    fn choice(&self, wanted: Tier, range: TimeRange, has_profiles: bool) -> Choice {
        if !has_profiles {
            let finest = self.totals.keys().next();
            return Choice::Whole(finest.copied().unwrap_or(Tier::Raw));
        }
        if wanted == Tier::Raw || !self.is_all_in(wanted) {
            return Choice::Whole(Tier::Raw);
        }
        split(wanted, range)
    }

    /// Whether the sums of a tier have everything that the profiles have: they may have been made
    /// for a part of the day only.
    fn is_all_in(&self, tier: Tier) -> bool {
        let (Some(profiles), Some(sums)) = (self.totals.get(&Tier::Raw), self.totals.get(&tier))
        else {
            return false;
        };
        profiles.iter().all(|(key, &total)| {
            let sum = sums.get(key).copied();
            // Old profiles go before their sums, so these may have more.
            sum.is_some_and(|sum| sum == total || (total >= 0 && sum > total))
        })
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

/// The days of which compacted blocks have profiles.
pub(crate) fn days_with_profiles(blocks: &[Arc<Block>]) -> BTreeSet<i64> {
    let metas = blocks.iter().map(|block| block.meta());
    let of_profiles = metas.filter(|meta| is_compacted(meta) && meta.tier() == Tier::Raw);
    of_profiles.map(day_of).collect()
}

/// The whole buckets of a range, and what sticks out.
fn split(tier: Tier, range: TimeRange) -> Choice {
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
    Choice::Split {
        tier,
        before: between(range.from_ns, from_ns.min(range.to_ns)),
        inner: between(from_ns, to_ns),
        behind: between(to_ns, range.to_ns),
    }
}

fn is_compacted(meta: &BlockMeta) -> bool {
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
                let Choice::Split {
                    before,
                    inner,
                    behind,
                    ..
                } = split(Tier::TenMinutes, asked)
                else {
                    panic!("no split");
                };
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
        let mut latest = Query::new("t");
        latest.aggregation = Some(Aggregation::Last);
        assert_eq!(coarsest_tier(&latest, &[]), Tier::Raw);
        assert_eq!(
            tier_of_step(Tier::Hourly, 3600 * 1_000_000_000),
            Tier::Hourly
        );
        assert_eq!(tier_of_step(Tier::Hourly, 20 * MINUTE_NS), Tier::TenMinutes);
        assert_eq!(tier_of_step(Tier::Hourly, 15 * MINUTE_NS), Tier::Raw);
    }
}
