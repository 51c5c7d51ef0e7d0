//! What statistics of a comparison of files take: their samples by function and instance.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use candela_formats::DiffClusters;
use candela_formats::DiffSamples;
use candela_formats::SampledFunction;
use candela_formats::SampledNodes;
use candela_insight::Counts;
use candela_insight::Pair;
use candela_insight::Side;
use candela_model::FlameTree;
use candela_model::FlameTreeBuilder;
use candela_model::FrameId;
use candela_model::FrameTable;
use candela_model::Labels;
use candela_model::NodePlaces;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::Temporality;
use candela_model::instance_labels;

/// With more instances several are one cluster, as on a server.
const MOST_CLUSTERS: usize = 32;
/// What the square of the heaviest sample becomes: whole numbers are added up exactly, and a million of
/// these fit.
const HEAVIEST_SQUARE: f64 = (1_u64 << 40) as f64;

/// The values of the labels that name an instance.
type Instance<'a> = Vec<Option<&'a str>>;

/// Samples of one file by function, in the frames of both.
#[derive(Default)]
struct FileSamples {
    all: Counts,
    exposure: Vec<f64>,
    own: BTreeMap<FrameId, Counts>,
    total: BTreeMap<FrameId, Counts>,
    /// By place that is asked for, what is below it too.
    nodes: Vec<Counts>,
}

/// The samples of two profiles of one type each, by function and by place in the union of their trees, of
/// which there may be none.
pub(super) fn samples_of(
    before: (&Profile, &ProfileType),
    after: (&Profile, &ProfileType),
    places: &NodePlaces,
) -> DiffSamples {
    let (_, profile_type) = after;
    if profile_type.temporality() == Temporality::Gauge {
        return DiffSamples {
            unsampled: Some(format!(
                "values of {profile_type} are states and no samples"
            )),
            ..DiffSamples::default()
        };
    }
    let sides = [before, after];
    let labels = sides.map(|(profile, profile_type)| {
        let series = profile.series.iter();
        let series = series.filter(|series| series.profile_type == *profile_type);
        series.map(|series| &series.labels).collect::<Vec<_>>()
    });
    let names = instance_labels(labels.iter().map(|side| side.iter().copied()));
    let instances = [0, 1].map(|side: usize| {
        let instances = labels[side].iter();
        instances
            .map(|labels| instance_of(labels, names))
            .collect::<BTreeSet<_>>()
    });
    let has_instances = instances.iter().all(|instances| instances.len() > 1);
    let mut frames = places.frames.clone();
    let [before, after] = [0, 1].map(|side: usize| {
        // By rank, so that the same instances have the same numbers on both sides.
        let ranks = instances[side].iter().enumerate();
        let numbers: BTreeMap<&Instance<'_>, usize> = ranks
            .map(|(rank, instance)| (instance, rank % MOST_CLUSTERS))
            .collect();
        let cluster_of = |labels: &Labels| {
            let number = numbers.get(&instance_of(labels, names));
            number.copied().filter(|_| has_instances).unwrap_or(0)
        };
        let clusters = if has_instances {
            numbers.len().min(MOST_CLUSTERS)
        } else {
            1
        };
        let mut samples = FileSamples {
            all: nothing(clusters),
            nodes: vec![nothing(clusters); places.len()],
            ..FileSamples::default()
        };
        let (profile, profile_type) = sides[side];
        samples.add(profile, profile_type, cluster_of, places, &mut frames);
        samples
    });
    let (nodes_before, nodes_after) = (before.nodes.iter(), after.nodes.iter());
    let nodes = nodes_before.cloned().zip(nodes_after.cloned());
    let nodes = SampledNodes {
        nodes: places.nodes().to_vec(),
        depths: places.depths().to_vec(),
        totals: nodes
            .map(|(before, after)| Pair { before, after })
            .collect(),
    };
    DiffSamples {
        clusters: if has_instances {
            DiffClusters::Instances
        } else {
            DiffClusters::One
        },
        is_paired: has_instances && instances[0] == instances[1],
        unsampled: None,
        functions: functions_of(&before, &after),
        nodes,
        before: before.side(),
        after: after.side(),
        frames,
    }
}

fn instance_of<'a>(labels: &'a Labels, names: &[&str]) -> Instance<'a> {
    names.iter().map(|name| labels.get(name)).collect()
}

fn functions_of(before: &FileSamples, after: &FileSamples) -> Vec<SampledFunction> {
    let functions = before.total.keys().chain(after.total.keys());
    let functions: BTreeSet<FrameId> = functions.copied().collect();
    let counts =
        |known: &BTreeMap<FrameId, Counts>, frame| known.get(&frame).cloned().unwrap_or_default();
    let functions = functions.into_iter().map(|frame| SampledFunction {
        frame,
        own: Pair {
            before: counts(&before.own, frame),
            after: counts(&after.own, frame),
        },
        total: Pair {
            before: counts(&before.total, frame),
            after: counts(&after.total, frame),
        },
    });
    functions.collect()
}

impl FileSamples {
    fn add(
        &mut self,
        profile: &Profile,
        profile_type: &ProfileType,
        cluster_of: impl Fn(&Labels) -> usize,
        places: &NodePlaces,
        frames: &mut FrameTable,
    ) {
        let mut spans: Vec<Option<(i64, i64)>> = vec![None; self.all.by_cluster.len()];
        let squared = squared(profile, profile_type);
        for (position, series) in profile.series.iter().enumerate() {
            if series.profile_type != *profile_type {
                continue;
            }
            let cluster = cluster_of(&series.labels);
            let end_ns = series.start_ns.saturating_add(series.duration_ns);
            let (from_ns, to_ns) = spans[cluster].unwrap_or((series.start_ns, end_ns));
            spans[cluster] = Some((from_ns.min(series.start_ns), to_ns.max(end_ns)));
            self.add_values(&tree_of(profile, position), cluster, places, frames);
            if let Some(squared) = &squared {
                self.add_squares(squared, position, places, frames);
            }
        }
        // Many threads and processes are one instance, which was looked at once.
        let exposure = spans
            .into_iter()
            .map(|span| span.map_or(0.0, |(from_ns, to_ns)| to_ns.saturating_sub(from_ns) as f64));
        self.exposure = exposure.collect();
    }

    fn side(self) -> Side {
        Side {
            all: self.all,
            exposure: self.exposure,
        }
    }

    fn add_values(
        &mut self,
        tree: &FlameTree,
        cluster: usize,
        places: &NodePlaces,
        frames: &mut FrameTable,
    ) {
        let clusters = self.all.by_cluster.len();
        self.all.by_cluster[cluster] += tree.root_total() as f64;
        for row in tree.function_table() {
            let frame = frames.intern_from(&tree.frames, row.frame);
            let own = self.own.entry(frame).or_insert_with(|| nothing(clusters));
            own.by_cluster[cluster] += row.self_value as f64;
            let total = self.total.entry(frame).or_insert_with(|| nothing(clusters));
            total.by_cluster[cluster] += row.total as f64;
        }
        for (node, place) in places_of(tree, places, frames) {
            self.nodes[place].by_cluster[cluster] += tree.total[node] as f64;
        }
    }

    /// The squares of what samples weigh, added up as values are.
    fn add_squares(
        &mut self,
        squared: &Squared,
        position: usize,
        places: &NodePlaces,
        frames: &mut FrameTable,
    ) {
        let tree = tree_of(&squared.profile, position);
        self.all.squares += tree.root_total() as f64 / squared.scale;
        for row in tree.function_table() {
            let frame = frames.intern_from(&tree.frames, row.frame);
            if let Some(own) = self.own.get_mut(&frame) {
                own.squares += row.self_value as f64 / squared.scale;
            }
            if let Some(total) = self.total.get_mut(&frame) {
                total.squares += row.total as f64 / squared.scale;
            }
        }
        for (node, place) in places_of(&tree, places, frames) {
            self.nodes[place].squares += tree.total[node] as f64 / squared.scale;
        }
    }
}

fn tree_of(profile: &Profile, position: usize) -> FlameTree {
    let mut builder = FlameTreeBuilder::new();
    builder.add_series(profile, position);
    builder.finish()
}

/// The nodes of a tree that have a place in the union, and which.
fn places_of(
    tree: &FlameTree,
    places: &NodePlaces,
    frames: &mut FrameTable,
) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    if places.is_empty() {
        return found;
    }
    // Of the nodes above, each with its place.
    let mut path: Vec<Option<u32>> = Vec::new();
    for node in 0..tree.frame.len() {
        path.truncate(usize::from(tree.depth[node]));
        let place = match path.last() {
            None => Some(NodePlaces::ROOT),
            Some(parent) => parent.and_then(|parent| {
                let frame = frames.intern_from(&tree.frames, tree.frame[node]);
                places.child(parent, frame)
            }),
        };
        found.extend(place.map(|place| (node, place as usize)));
        path.push(place);
    }
    found
}

/// A profile whose values are the squares of what its samples weigh.
struct Squared {
    profile: Profile,
    /// What the squares are multiplied by.
    scale: f64,
}

/// `None` where there is nothing.
fn squared(profile: &Profile, profile_type: &ProfileType) -> Option<Squared> {
    let is_of_type = |series: &&ProfileSeries| series.profile_type == *profile_type;
    let heaviest = profile
        .series
        .iter()
        .filter(is_of_type)
        .flat_map(|series| {
            let samples = series.samples.iter();
            samples.map(|sample| square(&series.profile_type, series.period, sample.value))
        })
        .fold(0.0, f64::max);
    if heaviest <= 0.0 {
        return None;
    }
    let scale = HEAVIEST_SQUARE / heaviest;
    let mut squared = profile.clone();
    for series in &mut squared.series {
        for sample in &mut series.samples {
            let of_sample = square(&series.profile_type, series.period, sample.value);
            sample.value = (of_sample * scale).round() as i64;
        }
    }
    Some(Squared {
        profile: squared,
        scale,
    })
}

fn nothing(clusters: usize) -> Counts {
    Counts {
        by_cluster: vec![0.0; clusters],
        squares: 0.0,
    }
}

/// What a stored value adds to the sum of squares: where it tells how many samples it is of, that of
/// each of them, else its own.
fn square(profile_type: &ProfileType, period: i64, value: i64) -> f64 {
    let value = value as f64;
    match profile_type.value_of_sample(period) {
        Some(of_sample) => value.abs() * of_sample as f64,
        None => value * value,
    }
}

#[cfg(test)]
mod tests {
    use candela_model::FlameDiff;
    use candela_model::FrameKind;
    use candela_model::Location;
    use candela_model::Sample;

    use super::*;

    fn profile(hosts: &[(&str, i64)], profile_type: &ProfileType) -> Profile {
        let mut profile = Profile::default();
        let function = profile.symbols.intern_function("work", "", "", 0);
        let place = Location::new(FrameKind::Native, 0);
        let location = profile.symbols.intern_location(&place, &[(function, 1, 0)]);
        let stack = profile.stacks.intern(&[location]);
        for (host, value) in hosts {
            let labels = Labels::from_pairs([("host", *host)]);
            let mut series = ProfileSeries::new(labels, profile_type.clone());
            series.period = 10;
            series.samples.push(Sample::new(stack, *value));
            series.samples.push(Sample::new(stack, *value));
            profile.series.push(series);
        }
        profile
    }

    fn nowhere() -> NodePlaces {
        NodePlaces::default()
    }

    #[test]
    fn nodes_have_what_is_in_them() {
        let cpu = ProfileType::on_cpu();
        let file = profile(&[("a", 100), ("b", 200)], &cpu);
        let trees = [0, 1].map(|position| tree_of(&file, position));
        let union = FlameDiff::new(&trees[0], &trees[1], 0);
        let places = NodePlaces::of(&union, 10);
        let samples = samples_of((&file, &cpu), (&file, &cpu), &places);
        assert_eq!(samples.nodes.depths, [0, 1]);
        for node in &samples.nodes.totals {
            assert_eq!(node.after.by_cluster, [200.0, 400.0]);
            assert!((node.before.samples() - 60.0).abs() < 0.01, "{node:?}");
        }
    }

    #[test]
    fn series_are_clusters_and_their_samples_are_counted() {
        let cpu = ProfileType::on_cpu();
        let before = profile(&[("a", 100), ("b", 200)], &cpu);
        let after = profile(&[("b", 300), ("a", 50)], &cpu);
        let samples = samples_of((&before, &cpu), (&after, &cpu), &nowhere());
        assert_eq!(samples.clusters, DiffClusters::Instances);
        assert!(samples.is_paired);
        assert_eq!(samples.after.all.by_cluster, [100.0, 600.0]);
        let [function] = &samples.functions[..] else {
            panic!("one function: {samples:?}");
        };
        assert_eq!(function.own.before.by_cluster, [200.0, 400.0]);
        // 600 nanoseconds are 60 samples of 10.
        assert!((function.own.before.samples() - 60.0).abs() < 0.01);
        assert!((samples.before.all.samples() - 60.0).abs() < 0.01);
    }

    /// A recording of a host has a series for each process.
    #[test]
    fn processes_of_a_host_are_no_instances_and_looked_at_once() {
        let cpu = ProfileType::on_cpu();
        let recording = |processes: &[&str]| {
            let mut recording = profile(&vec![("a", 100); processes.len()], &cpu);
            for (series, process) in recording.series.iter_mut().zip(processes) {
                series.labels = Labels::from_pairs([("host", "a"), ("service_name", process)]);
                series.start_ns = 5_000;
                series.duration_ns = 1_000;
            }
            recording
        };
        let (before, after) = (recording(&["web", "db", "cron"]), recording(&["web", "db"]));
        let samples = samples_of((&before, &cpu), (&after, &cpu), &nowhere());
        assert_eq!(samples.clusters, DiffClusters::One);
        assert_eq!(samples.before.exposure, [1000.0]);
        assert_eq!(samples.after.exposure, [1000.0]);
    }

    #[test]
    fn what_weighs_differently_is_few_samples() {
        let bytes: ProfileType = "memory:alloc_space:bytes:space:bytes"
            .parse()
            .expect("five parts");
        let file = profile(&[("a", 100)], &bytes);
        let samples = samples_of((&file, &bytes), (&file, &bytes), &nowhere());
        assert_eq!(samples.clusters, DiffClusters::One);
        assert!((samples.before.all.samples() - 2.0).abs() < 1e-6);
        let state: ProfileType = "memory:inuse_space:bytes:space:bytes"
            .parse()
            .expect("five parts");
        let file = profile(&[("a", 100)], &state);
        assert!(
            samples_of((&file, &state), (&file, &state), &nowhere())
                .unsampled
                .is_some()
        );
    }
}
