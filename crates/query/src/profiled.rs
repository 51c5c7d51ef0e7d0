//! When the profiles of an answer were taken, which is what its rates are averages over.
//!
//! An agent watches all of its host: a service of which a window has no sample was idle in it, and its
//! rate is lower for that. So what one service of an agent was profiled for is what its host was.
//! Whoever pushes profiles of one program says nothing of the time between them.

use std::collections::BTreeMap;
use std::sync::Arc;

use candela_model::Labels;
use candela_model::ProfileType;
use candela_model::ProfiledTime;
use candela_model::SERVICE_NAME_LABEL;
use candela_store::ProfileRow;
use candela_store::TimeRange;
use hashbrown::HashMap;
use hashbrown::HashSet;

use crate::budget::Meter;
use crate::derived::Origin;
use crate::engine::Loaded;
use crate::error::QueryError;
use crate::matching::SeriesMatch;
use crate::plan::Plan;
use crate::plan::series_matches;
use crate::profile_key::ChosenProfiles;
use crate::query::Aggregation;
use crate::query::Query;
use crate::sources::Source;

/// The label that an agent puts on everything of its host.
const HOST_LABEL: &str = "host";
/// The label that tells its series from those of whoever else names a host.
const EXECUTABLE_LABEL: &str = "process_executable_name";
/// The service of an agent that has no executable.
const KERNEL_SERVICE: &str = "kernel";
/// Bytes of a window.
const WINDOW_BYTES: usize = 16;
/// Clocks of profilers may be ahead. What is said to last for longer than this from now on has not happened.
const LONGEST_AHEAD_NS: i64 = 3_600_000_000_000;
/// Bytes of a group with its labels.
const GROUP_BYTES: usize = 128;

/// By the labels that tell groups apart.
pub(crate) type ProfiledTimes = BTreeMap<Labels, Arc<ProfiledTime>>;

/// Times in the making.
#[derive(Debug, Default)]
struct Collected<'a> {
    /// No window that starts before ends behind it.
    latest_ns: i64,
    /// The numbers of groups.
    groups: HashMap<Labels, usize>,
    /// What is of no agent, by group.
    pushed: Vec<ProfiledTime>,
    /// By tenant and host: all that agents have of it.
    hosts: HashMap<(u32, &'a str), ProfiledTime>,
    /// Which groups are seen on which hosts.
    seen: HashSet<(usize, u32, &'a str)>,
}

/// What a series has to do with the answer.
#[derive(Clone, Copy, Debug)]
struct SeriesPlace<'a> {
    /// `None` when it is not in it.
    group: Option<usize>,
    /// The host, if an agent watches it.
    host: Option<&'a str>,
}

/// The time of the profiles of a type that start in a range, by the values of labels of their series.
pub(crate) fn profiled_times(
    sources: &[Source],
    query: &Query,
    wanted: &ProfileType,
    range: TimeRange,
    group_by: &[&str],
    meter: &Meter,
) -> Result<ProfiledTimes, QueryError> {
    let mut collected = Collected {
        latest_ns: meter.now_ns().saturating_add(LONGEST_AHEAD_NS),
        ..Collected::default()
    };
    let mut memory = meter.hold(0)?;
    let chosen = ChosenProfiles::of(query);
    let matches: Vec<Vec<SeriesMatch>> = sources
        .iter()
        .map(|source| series_matches(source, query))
        .collect();
    let selected = selected_series(sources, &matches);
    for (source, matches) in sources.iter().zip(&matches) {
        meter.check_time()?;
        let table = &source.profiles;
        let types = table.types.iter();
        let origins: Vec<Option<Origin>> = types.map(|stored| Origin::of(stored, wanted)).collect();
        if origins.iter().all(Option::is_none) {
            continue;
        }
        let is_selected = |labels: &Labels, matches: &SeriesMatch| {
            matches.is_possible() || selected.contains(&(source.owner, labels))
        };
        let series = source.profiles.series.iter().zip(matches);
        let places: Vec<SeriesPlace<'_>> = series
            .map(|(labels, matches)| SeriesPlace {
                group: is_selected(labels, matches).then(|| collected.group_of(labels, group_by)),
                // A question for single profiles is not one for their hosts.
                host: watched_host(labels).filter(|_| query.profiles.is_empty()),
            })
            .collect();
        for row in &table.rows {
            let Some(origin) = origins[row.profile_type as usize] else {
                continue;
            };
            let is_uncounted = origin == Origin::Period && row.period <= 0;
            if is_uncounted || !range.contains(row.start_ns) {
                continue;
            }
            let series = row.series as usize;
            let stored_type = &table.types[row.profile_type as usize];
            if chosen.have(
                source.owner,
                &table.series[series],
                stored_type,
                row.start_ns,
            ) {
                collected.add(source.owner, places[series], row);
            }
        }
        memory.resize(collected.bytes())?;
    }
    drop(memory);
    collected.by_group(meter)
}

/// Series of which some source may have samples in the answer. In others nothing of them has the labels
/// of samples that are asked for.
fn selected_series<'a>(
    sources: &'a [Source],
    matches: &[Vec<SeriesMatch>],
) -> HashSet<(u32, &'a Labels)> {
    let is_doubtful = |matches: &SeriesMatch| *matches == SeriesMatch::NoneHere;
    if !matches.iter().flatten().any(is_doubtful) {
        return HashSet::new();
    }
    let sources = sources.iter().zip(matches);
    let series = sources.flat_map(|(source, matches)| {
        let series = source.profiles.series.iter().zip(matches);
        let selected = series.filter(|(_, matches)| matches.is_possible());
        selected.map(|(labels, _)| (source.owner, &**labels))
    });
    series.collect()
}

/// The time of all profiles of an answer; nothing where values are not sums over time.
pub(crate) fn profiled_time(
    query: &Query,
    plan: &Plan,
    loaded: &Loaded,
) -> Result<ProfiledTime, QueryError> {
    let times = profiled_lines(query, plan, loaded, &[])?;
    let time = times.into_values().next();
    Ok(time.map_or_else(ProfiledTime::default, Arc::unwrap_or_clone))
}

/// The same by the labels of lines. Those that samples have are not among them: such a line has the time
/// of all.
pub(crate) fn profiled_lines(
    query: &Query,
    plan: &Plan,
    loaded: &Loaded,
    group_by: &[&str],
) -> Result<ProfiledTimes, QueryError> {
    let aggregation = plan.aggregation(query);
    let are_sums = !plan.is_gauge() && matches!(aggregation, Aggregation::Sum | Aggregation::Rate);
    let Some(profile_type) = plan.profile_type.as_ref().filter(|_| are_sums) else {
        return Ok(ProfiledTimes::default());
    };
    let (sources, range) = (&loaded.sources, query.range);
    profiled_times(sources, query, profile_type, range, group_by, &loaded.meter)
}

/// The host of a series that an agent wrote.
fn watched_host(labels: &Labels) -> Option<&str> {
    let host = labels.get(HOST_LABEL)?;
    let is_of_agent = labels.get(EXECUTABLE_LABEL).is_some()
        || labels.get(SERVICE_NAME_LABEL) == Some(KERNEL_SERVICE);
    is_of_agent.then_some(host)
}

impl<'a> Collected<'a> {
    fn group_of(&mut self, labels: &Labels, group_by: &[&str]) -> usize {
        let names = group_by.iter();
        let values = names.filter_map(|name| Some((*name, labels.get(name)?)));
        let next = self.groups.len();
        let group = self.groups.entry(Labels::from_pairs(values));
        let group = *group.or_insert(next);
        self.pushed
            .resize_with(self.groups.len(), ProfiledTime::default);
        group
    }

    fn add(&mut self, owner: u32, place: SeriesPlace<'a>, row: &ProfileRow) {
        let duration_ns = if row.start_ns < self.latest_ns {
            row.duration_ns
                .min(self.latest_ns.saturating_sub(row.start_ns))
        } else {
            row.duration_ns
        };
        if let Some(host) = place.host {
            let of_host = self.hosts.entry((owner, host)).or_default();
            of_host.add(row.start_ns, duration_ns);
            self.seen
                .extend(place.group.map(|group| (group, owner, host)));
        } else if let Some(group) = place.group {
            self.pushed[group].add(row.start_ns, duration_ns);
        }
    }

    /// Estimated bytes in memory.
    fn bytes(&self) -> usize {
        let times = self.pushed.iter().chain(self.hosts.values());
        let windows: usize = times.map(ProfiledTime::window_count).sum();
        windows * WINDOW_BYTES
            + self.seen.len() * size_of::<(usize, u32, &str)>()
            + self.groups.len() * GROUP_BYTES
    }

    /// The time of a host is shared by the groups that are seen on it alone.
    fn by_group(self, meter: &Meter) -> Result<ProfiledTimes, QueryError> {
        let mut hosts: HashMap<(u32, &str), Arc<ProfiledTime>> = HashMap::new();
        for (host, mut time) in self.hosts {
            time.put_together();
            meter.allocate(time.window_count() * WINDOW_BYTES)?;
            hosts.insert(host, Arc::new(time));
        }
        let mut seen_on: Vec<Vec<(u32, &str)>> = vec![Vec::new(); self.pushed.len()];
        for (group, owner, host) in self.seen {
            seen_on[group].push((owner, host));
        }
        let mut groups = ProfiledTimes::new();
        let mut pushed = self.pushed;
        for (labels, group) in self.groups {
            meter.check_time()?;
            let mut time = std::mem::take(&mut pushed[group]);
            let time = match seen_on[group][..] {
                [host] if time.window_count() == 0 => Arc::clone(&hosts[&host]),
                _ => {
                    for host in &seen_on[group] {
                        time.add_all(&hosts[host]);
                    }
                    time.put_together();
                    meter.allocate(time.window_count() * WINDOW_BYTES)?;
                    Arc::new(time)
                }
            };
            groups.insert(labels, time);
        }
        Ok(groups)
    }
}
