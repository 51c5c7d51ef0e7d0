//! Which profiles are independent of which: instances of a service, hosts, or windows of time.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use candela_model::Labels;
use candela_model::instance_labels;
use hashbrown::HashSet;

use crate::plan::Plan;
use crate::run::Run;

/// With more instances several are one cluster: that they are independent stays true, and more tell
/// hardly more.
const MOST_CLUSTERS: usize = 32;
/// Windows of time, where there is one instance.
const MOST_WINDOWS: usize = 30;
/// Fewer say nothing of how windows differ.
const FEWEST_WINDOWS: usize = 4;

/// What clusters are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterKind {
    /// Instances or hosts, or groups of them.
    Instances,
    /// Windows of time of one instance: what instances differ by is not in them.
    Windows,
    /// Everything of a side is one.
    #[default]
    One,
}

/// The clusters of two plans.
#[derive(Debug)]
pub(crate) struct Clusters {
    pub(crate) kind: ClusterKind,
    /// Whether they are the same instances, numbered alike.
    pub(crate) is_paired: bool,
    pub(crate) sides: [SideClusters; 2],
}

/// The clusters of one of them.
#[derive(Debug)]
pub(crate) struct SideClusters {
    pub(crate) count: usize,
    /// For how long each was looked at, nanoseconds.
    pub(crate) exposure_ns: Vec<f64>,
    by: Numbers,
}

#[derive(Debug)]
enum Numbers {
    /// By series of the plan.
    Series(Vec<usize>),
    /// By time.
    Windows(Windows),
}

/// Windows of one length.
#[derive(Clone, Copy, Debug)]
struct Windows {
    first_ns: i64,
    /// From the first start to the last one.
    span_ns: i64,
    count: usize,
}

/// A tenant and the values of the labels that name an instance.
type Instance = (String, Vec<Option<String>>);

/// From the first to the last nanosecond of which an instance has profiles.
#[derive(Clone, Copy, Debug)]
struct Span {
    from_ns: i64,
    to_ns: i64,
}

impl Clusters {
    pub(crate) fn of(plans: [&Plan; 2]) -> Self {
        let names = instance_labels(plans.map(|plan| plan.series.iter().map(|labels| &**labels)));
        let instances = plans.map(|plan| instances_of_series(plan, names));
        let distinct = [0, 1].map(|side: usize| instances[side].iter().collect::<BTreeSet<_>>());
        let spans = [0, 1].map(|side: usize| spans_of(plans[side], &instances[side]));
        if distinct.iter().all(|instances| instances.len() > 1) {
            let sides = [0, 1].map(|side: usize| {
                SideClusters::of_instances(&instances[side], &distinct[side], &spans[side])
            });
            return Self {
                kind: ClusterKind::Instances,
                is_paired: distinct[0] == distinct[1],
                sides,
            };
        }
        let exposures = spans.map(|spans| spans.values().copied().map(Span::length_ns).sum());
        let windows = plans.map(Windows::of);
        let has_windows = windows
            .iter()
            .all(|windows| windows.count >= FEWEST_WINDOWS);
        let sides = [0, 1].map(|side: usize| {
            let windows = if has_windows {
                windows[side]
            } else {
                Windows::one()
            };
            SideClusters {
                count: windows.count,
                exposure_ns: windows.exposure_ns(plans[side], exposures[side]),
                by: Numbers::Windows(windows),
            }
        });
        Self {
            kind: if has_windows {
                ClusterKind::Windows
            } else {
                ClusterKind::One
            },
            is_paired: false,
            sides,
        }
    }
}

impl SideClusters {
    fn of_instances(
        of_series: &[Instance],
        distinct: &BTreeSet<&Instance>,
        spans: &BTreeMap<&Instance, Span>,
    ) -> Self {
        // By rank, so that the same instances have the same numbers on both sides.
        let numbers: BTreeMap<&Instance, usize> = distinct
            .iter()
            .enumerate()
            .map(|(rank, &instance)| (instance, rank % MOST_CLUSTERS))
            .collect();
        let count = distinct.len().min(MOST_CLUSTERS);
        let mut exposure_ns = vec![0.0; count];
        for (instance, span) in spans {
            exposure_ns[numbers[instance]] += span.length_ns();
        }
        Self {
            count,
            exposure_ns,
            by: Numbers::Series(of_series.iter().map(|it| numbers[it]).collect()),
        }
    }

    /// The number of the cluster that a run is in.
    pub(crate) fn of(&self, run: &Run) -> usize {
        match &self.by {
            Numbers::Series(numbers) => numbers[run.series as usize],
            Numbers::Windows(windows) => windows.position(run.row.start_ns),
        }
    }
}

impl Windows {
    const fn one() -> Self {
        Self {
            first_ns: 0,
            span_ns: 0,
            count: 1,
        }
    }

    /// As many as there are starts of profiles, up to a number that tells enough.
    fn of(plan: &Plan) -> Self {
        let starts: HashSet<i64> = runs_of(plan).map(|run| run.row.start_ns).collect();
        let (Some(&first_ns), Some(&last_ns)) = (starts.iter().min(), starts.iter().max()) else {
            return Self::one();
        };
        Self {
            first_ns,
            span_ns: last_ns.saturating_sub(first_ns),
            count: starts.len().min(MOST_WINDOWS),
        }
    }

    /// The window that a profile with this start is in.
    fn position(self, start_ns: i64) -> usize {
        let since = i128::from(start_ns) - i128::from(self.first_ns);
        let window = since * self.count as i128 / (i128::from(self.span_ns) + 1);
        usize::try_from(window).unwrap_or(0).min(self.count - 1)
    }

    /// What there is in all, in equal parts for those that have any profile.
    fn exposure_ns(self, plan: &Plan, all_ns: f64) -> Vec<f64> {
        let mut is_used = vec![false; self.count];
        for run in runs_of(plan) {
            is_used[self.position(run.row.start_ns)] = true;
        }
        let used = is_used.iter().filter(|&&it| it).count().max(1) as f64;
        let part = |it: bool| if it { all_ns / used } else { 0.0 };
        is_used.into_iter().map(part).collect()
    }
}

impl Span {
    fn length_ns(self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns).max(0) as f64
    }

    fn with(self, other: Self) -> Self {
        Self {
            from_ns: self.from_ns.min(other.from_ns),
            to_ns: self.to_ns.max(other.to_ns),
        }
    }
}

fn instances_of_series(plan: &Plan, names: &[&str]) -> Vec<Instance> {
    let value = |labels: &Labels, name: &&str| labels.get(name).map(str::to_owned);
    let series = (0..).zip(&plan.series);
    // The sides of a comparison of files have a tenant each, and may have the same instances.
    let has_one_tenant = plan.is_of_one_tenant();
    let instances = series.map(|(number, labels)| {
        let values = names.iter().map(|name| value(labels, name));
        let tenant = if has_one_tenant {
            ""
        } else {
            plan.tenant_of(number)
        };
        (tenant.to_owned(), values.collect())
    });
    instances.collect()
}

fn spans_of<'a>(plan: &Plan, of_series: &'a [Instance]) -> BTreeMap<&'a Instance, Span> {
    // By series first: there are few of those, and many runs.
    let mut by_series: Vec<Option<Span>> = vec![None; of_series.len()];
    for run in runs_of(plan) {
        let of_run = Span {
            from_ns: run.row.start_ns,
            to_ns: run.row.start_ns.saturating_add(run.row.duration_ns),
        };
        let span = &mut by_series[run.series as usize];
        *span = Some(span.map_or(of_run, |span| span.with(of_run)));
    }
    let mut spans: BTreeMap<&Instance, Span> = BTreeMap::new();
    for (instance, span) in of_series.iter().zip(by_series) {
        let Some(span) = span else { continue };
        let of_instance = spans.entry(instance).or_insert(span);
        *of_instance = of_instance.with(span);
    }
    spans
}

fn runs_of(plan: &Plan) -> impl Iterator<Item = &Run> {
    plan.sources.iter().flat_map(|part| &part.runs)
}
