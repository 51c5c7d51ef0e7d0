//! Which blocks are to be merged, and in which portions.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::block::Block;
use crate::block::BlockMeta;
use crate::block::Level;
use crate::snapshot::TimeRange;

const SECOND_NS: i64 = 1_000_000_000;
const HOUR_NS: i64 = 3600 * SECOND_NS;
const DAY_NS: i64 = 24 * HOUR_NS;
/// What comes late mostly comes this soon after its hour.
const HOUR_GRACE_NS: i64 = 600 * SECOND_NS;
/// The last hour of a day is merged before the day is.
const DAY_GRACE_NS: i64 = HOUR_NS;
/// Profiles of long ago come in many flushes, when somebody imports them: they are collected this
/// long, so that not each flush becomes blocks of its own.
const LATE_COLLECT_NS: i64 = 600 * SECOND_NS;
/// But not for ever, while flush follows flush.
const LATE_LIMIT_NS: i64 = HOUR_NS;
/// Files that are open at once.
const MAX_INPUTS: usize = 128;

/// Blocks of one tenant and day that are merged into the next level.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) tenant: String,
    pub(crate) date: String,
    /// Of what is made.
    pub(crate) level: Level,
    /// By their earliest profile.
    pub(crate) inputs: Vec<Arc<Block>>,
}

/// What is merged at a time, so that memory has a bound: some services, or a while of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Sorted.
    pub(crate) services: Vec<String>,
    pub(crate) range: TimeRange,
}

/// The most that a part has; a single service in a single moment may exceed it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartLimits {
    pub(crate) rows: u64,
    pub(crate) profiles: u64,
}

/// When jobs are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Those whose hour or day is over at this time, nanoseconds since the Unix epoch.
    At(i64),
    /// All.
    Now,
}

/// The jobs on a tenant's blocks. After a job of hours its day may have another.
pub(crate) fn due_jobs(tenant: &str, blocks: &[Arc<Block>], due: Due) -> Vec<Job> {
    // A block tells up to where the log of one writer is in blocks, so those of two stay apart.
    let mut groups: BTreeMap<(Level, &str, i64, &str), Vec<&Arc<Block>>> = BTreeMap::new();
    for block in blocks {
        let meta = block.meta();
        let Some(level) = Level::from_number(meta.level) else {
            continue;
        };
        if level.is_lasting() {
            continue;
        }
        let hour = match level {
            Level::Flushed => meta.min_time_ns.div_euclid(HOUR_NS),
            _ => 0,
        };
        let key = (level, &*meta.date, hour, &*meta.writer_id);
        groups.entry(key).or_default().push(block);
    }
    let mut jobs = Vec::new();
    for ((level, date, _, _), blocks) in groups {
        let metas: Vec<&BlockMeta> = blocks.iter().map(|block| block.meta()).collect();
        let is_due = match level {
            Level::Flushed => is_hour_due(&metas, due),
            _ => blocks.len() > 1 && is_day_due(&metas, due),
        };
        if !is_due {
            continue;
        }
        jobs.extend(blocks.chunks(MAX_INPUTS).map(|inputs| Job {
            tenant: tenant.to_owned(),
            date: date.to_owned(),
            level: level.next(),
            inputs: inputs.iter().map(|&block| Arc::clone(block)).collect(),
        }));
    }
    jobs
}

fn is_hour_due(metas: &[&BlockMeta], due: Due) -> bool {
    let Due::At(now_ns) = due else {
        return true;
    };
    let starts = metas.iter().map(|meta| meta.min_time_ns);
    let hour = starts.min().unwrap_or(0).div_euclid(HOUR_NS);
    let hour_end_ns = hour.saturating_add(1).saturating_mul(HOUR_NS);
    if now_ns < hour_end_ns.saturating_add(HOUR_GRACE_NS) {
        return false;
    }
    let made = || metas.iter().map(|meta| meta.created_at_ns);
    let (oldest, newest) = (made().min().unwrap_or(0), made().max().unwrap_or(0));
    let is_quiet = now_ns.saturating_sub(newest) >= LATE_COLLECT_NS;
    is_quiet || now_ns.saturating_sub(oldest) >= LATE_LIMIT_NS
}

fn is_day_due(metas: &[&BlockMeta], due: Due) -> bool {
    let Due::At(now_ns) = due else {
        return true;
    };
    let starts = metas.iter().map(|meta| meta.min_time_ns);
    let day = starts.min().unwrap_or(0).div_euclid(DAY_NS);
    let day_end_ns = day.saturating_add(1).saturating_mul(DAY_NS);
    let newest = metas.iter().map(|meta| meta.created_at_ns).max();
    let is_quiet = now_ns.saturating_sub(newest.unwrap_or(0)) >= LATE_COLLECT_NS;
    is_quiet && now_ns >= day_end_ns.saturating_add(DAY_GRACE_NS)
}

/// Portions of a job that have all its profiles, each once.
pub(crate) fn parts(inputs: &[Arc<Block>], limits: PartLimits) -> Vec<Part> {
    let mut sizes: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for service in inputs.iter().flat_map(|block| &block.meta().services) {
        let size = sizes.entry(&service.service).or_default();
        size.0 += service.rows;
        size.1 += service.profiles;
    }
    let starts = inputs.iter().map(|block| block.meta().min_time_ns);
    let ends = inputs.iter().map(|block| block.meta().max_time_ns);
    let (Some(start_ns), Some(last_ns)) = (starts.min(), ends.max()) else {
        return Vec::new();
    };
    let mut parts: Vec<Part> = Vec::new();
    let mut open = (Vec::new(), 0, 0);
    for (service, (rows, profiles)) in sizes {
        let (services, open_rows, open_profiles) = &mut open;
        let is_full =
            *open_rows + rows > limits.rows || *open_profiles + profiles > limits.profiles;
        if is_full && !services.is_empty() {
            parts.push(Part::of(std::mem::take(services), TimeRange::ALL));
            (*open_rows, *open_profiles) = (0, 0);
        }
        let slices = rows
            .div_ceil(limits.rows.max(1))
            .max(profiles.div_ceil(limits.profiles.max(1)));
        if slices > 1 {
            let ranges = slices_of(start_ns, last_ns, slices);
            parts.extend(ranges.map(|range| Part::of(vec![service.to_owned()], range)));
            continue;
        }
        services.push(service.to_owned());
        *open_rows += rows;
        *open_profiles += profiles;
    }
    if !open.0.is_empty() {
        parts.push(Part::of(open.0, TimeRange::ALL));
    }
    parts
}

/// Ranges of one length that have all of time together, the first and the last open.
fn slices_of(start_ns: i64, last_ns: i64, count: u64) -> impl Iterator<Item = TimeRange> {
    let length = i128::from(last_ns) - i128::from(start_ns) + 1;
    let border = move |index: u64| {
        let offset = length * i128::from(index) / i128::from(count);
        i64::try_from(i128::from(start_ns) + offset).unwrap_or(i64::MAX)
    };
    (0..count).map(move |index| TimeRange {
        from_ns: if index == 0 { i64::MIN } else { border(index) },
        to_ns: if index + 1 == count {
            i64::MAX
        } else {
            border(index + 1)
        },
    })
}

impl Part {
    fn of(services: Vec<String>, range: TimeRange) -> Self {
        Self { services, range }
    }

    pub(crate) fn has(&self, service: &str, start_ns: i64) -> bool {
        let mut services = self.services.iter();
        // i64::MAX is a possible time and in no half-open range.
        let is_in_range =
            self.range.contains(start_ns) || (start_ns == i64::MAX && self.range.to_ns == i64::MAX);
        is_in_range && services.any(|own| own == service)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_have_every_moment_once() {
        let slices: Vec<TimeRange> = slices_of(10, 20, 3).collect();
        for time_ns in [i64::MIN, 9, 10, 13, 14, 17, 20, 21, i64::MAX - 1] {
            let having = slices.iter().filter(|range| range.contains(time_ns));
            assert_eq!(having.count(), 1, "{time_ns} in {slices:?}");
        }
        let extremes: Vec<TimeRange> = slices_of(i64::MIN, i64::MAX, 4).collect();
        assert_eq!(extremes.len(), 4);
        assert!(extremes.iter().all(|range| range.from_ns < range.to_ns));
    }
}
