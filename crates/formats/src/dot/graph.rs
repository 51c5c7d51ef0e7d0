//! Which functions and calls are drawn, with their values.

use std::cmp::Reverse;

use candela_model::FlameTree;
use hashbrown::HashMap;

use crate::dot::DotOptions;

/// A function that is drawn.
#[derive(Clone, Debug)]
pub(crate) struct FunctionNode<'a> {
    pub(crate) name: &'a str,
    pub(crate) total: i64,
    pub(crate) self_value: i64,
}

/// Calls from one drawn function to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) value: i64,
    /// Whether no function between them is left out.
    pub(crate) is_direct: bool,
}

/// The drawn part of a graph.
#[derive(Debug)]
pub(crate) struct Graph<'a> {
    /// The largest totals first.
    pub(crate) nodes: Vec<FunctionNode<'a>>,
    /// In the order of the functions.
    pub(crate) edges: Vec<Edge>,
    pub(crate) total: i64,
    pub(crate) nodes_left_out: usize,
    pub(crate) edges_left_out: usize,
}

/// A function while the graph is made: its values, and how many times it is on the path.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    total: i64,
    self_value: i64,
    on_path: u32,
}

/// The same of calls.
#[derive(Clone, Copy, Debug)]
struct EdgeSums {
    value: i64,
    on_path: u32,
    is_direct: bool,
}

impl<'a> Graph<'a> {
    pub(crate) fn of(tree: &'a FlameTree, options: &DotOptions) -> Self {
        let (function_of_frame, names) = functions(tree);
        let sums = sum_functions(tree, &function_of_frame, names.len());
        let total = tree.root_total();
        let smallest = options.min_node_share * total.unsigned_abs() as f64;
        let is_used = |sum: &Sums| sum.total != 0 || sum.self_value != 0;
        let mut order: Vec<usize> = (0..names.len())
            .filter(|&function| is_used(&sums[function]))
            .collect();
        let count = order.len();
        order.retain(|&function| sums[function].total.unsigned_abs() as f64 >= smallest);
        order.sort_unstable_by_key(|&function| {
            let sum = &sums[function];
            let weight = (sum.total.unsigned_abs(), sum.self_value.unsigned_abs());
            (Reverse(weight), names[function])
        });
        if options.max_nodes != 0 {
            order.truncate(options.max_nodes);
        }
        let mut drawn_at: Vec<Option<usize>> = vec![None; names.len()];
        for (position, &function) in order.iter().enumerate() {
            drawn_at[function] = Some(position);
        }
        let drawn_frames: Vec<Option<usize>> = function_of_frame
            .iter()
            .map(|&function| drawn_at[function])
            .collect();
        let mut edges = edges(tree, &drawn_frames);
        let edge_count = edges.len();
        let smallest = options.min_edge_share * total.unsigned_abs() as f64;
        edges.retain(|edge| edge.value.unsigned_abs() as f64 >= smallest);
        let nodes: Vec<FunctionNode<'a>> = order
            .iter()
            .map(|&function| FunctionNode {
                name: names[function],
                total: sums[function].total,
                self_value: sums[function].self_value,
            })
            .collect();
        Self {
            nodes_left_out: count - nodes.len(),
            edges_left_out: edge_count - edges.len(),
            nodes,
            edges,
            total,
        }
    }
}

/// The function of each frame, and the names of functions: one for all frames of a name, whatever
/// file they are from.
fn functions(tree: &FlameTree) -> (Vec<usize>, Vec<&str>) {
    let mut names: Vec<&str> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    let frames = tree.frames.frames().iter().map(|frame| {
        let name = tree.frames.strings.get(frame.name);
        *known.entry(name).or_insert_with(|| {
            names.push(name);
            names.len() - 1
        })
    });
    let functions = frames.collect();
    (functions, names)
}

/// Totals count a function once a stack, however often it recurs.
fn sum_functions(tree: &FlameTree, function_of_frame: &[usize], count: usize) -> Vec<Sums> {
    let mut sums = vec![Sums::default(); count];
    let mut path: Vec<(usize, usize)> = Vec::new();
    for node in 1..tree.len() {
        while let Some((_, function)) = path.pop_if(|(end, _)| *end <= node) {
            sums[function].on_path -= 1;
        }
        let function = function_of_frame[tree.frame[node].index()];
        let sum = &mut sums[function];
        sum.self_value = sum.self_value.saturating_add(tree.self_value[node]);
        if sum.on_path == 0 {
            sum.total = sum.total.saturating_add(tree.total[node]);
        }
        sum.on_path += 1;
        path.push((tree.subtree_end[node] as usize, function));
    }
    sums
}

/// A node on the path while edges are added up.
struct Step {
    end: usize,
    /// The nearest drawn function here or above.
    nearest: Option<usize>,
    /// Whether that is not this node's own.
    is_hidden: bool,
    /// The edge that ends here.
    edge: Option<(usize, usize)>,
}

fn edges(tree: &FlameTree, drawn_at: &[Option<usize>]) -> Vec<Edge> {
    let mut sums: HashMap<(usize, usize), EdgeSums> = HashMap::new();
    let mut path: Vec<Step> = Vec::new();
    for node in 1..tree.len() {
        while let Some(step) = path.pop_if(|step| step.end <= node) {
            if let Some(sum) = step.edge.and_then(|edge| sums.get_mut(&edge)) {
                sum.on_path -= 1;
            }
        }
        let above = path.last();
        let nearest = above.and_then(|step| step.nearest);
        let is_indirect = above.is_some_and(|step| step.is_hidden);
        let here = drawn_at[tree.frame[node].index()];
        let edge = nearest.zip(here);
        if let Some(edge) = edge {
            let sum = sums.entry(edge).or_insert(EdgeSums {
                value: 0,
                on_path: 0,
                is_direct: false,
            });
            if sum.on_path == 0 {
                sum.value = sum.value.saturating_add(tree.total[node]);
            }
            sum.on_path += 1;
            sum.is_direct |= !is_indirect;
        }
        path.push(Step {
            end: tree.subtree_end[node] as usize,
            nearest: here.or(nearest),
            is_hidden: here.is_none(),
            edge,
        });
    }
    let mut edges: Vec<Edge> = sums
        .into_iter()
        .map(|((from, to), sum)| Edge {
            from,
            to,
            value: sum.value,
            is_direct: sum.is_direct,
        })
        .collect();
    edges.sort_unstable_by_key(|edge| (edge.from, edge.to));
    edges
}

#[cfg(test)]
mod tests {
    use candela_model::FlameTreeBuilder;
    use candela_model::FrameKind;

    use super::*;

    fn tree(stacks: &[(&str, i64)]) -> FlameTree {
        let mut builder = FlameTreeBuilder::new();
        for (names, value) in stacks {
            let frames: Vec<_> = names
                .split(';')
                .map(|name| builder.frames.intern(name, "", "", FrameKind::Go, 0))
                .collect();
            builder.add_stack(frames, *value);
        }
        builder.finish()
    }

    fn lines(graph: &Graph<'_>) -> Vec<String> {
        let nodes = graph
            .nodes
            .iter()
            .map(|node| format!("{} {}/{}", node.name, node.total, node.self_value));
        let edges = graph.edges.iter().map(|edge| {
            let name = |node: usize| graph.nodes[node].name;
            let arrow = if edge.is_direct { "->" } else { "..>" };
            format!(
                "{} {arrow} {} {}",
                name(edge.from),
                name(edge.to),
                edge.value
            )
        });
        nodes.chain(edges).collect()
    }

    #[test]
    fn recursion_counts_once() {
        let tree = tree(&[("main;walk;walk;walk", 5), ("main;walk;leaf;walk", 2)]);
        let graph = Graph::of(&tree, &DotOptions::default());
        assert_eq!(
            lines(&graph),
            [
                "walk 7/7",
                "main 7/0",
                "leaf 2/0",
                "walk -> walk 5",
                "walk -> leaf 2",
                "main -> walk 7",
                "leaf -> walk 2",
            ]
        );
    }

    #[test]
    fn what_is_not_drawn_is_counted_and_bridged() {
        let tree = tree(&[("main;thin;heavy", 60), ("main;thin", 1), ("main", 40)]);
        let options = DotOptions {
            max_nodes: 2,
            ..DotOptions::default()
        };
        let graph = Graph::of(&tree, &options);
        assert_eq!(
            lines(&graph),
            ["main 101/40", "thin 61/1", "main -> thin 61"]
        );
        assert_eq!(graph.nodes_left_out, 1);
        let tree = self::tree(&[("main;thin;heavy", 60), ("main;heavy;x", 1), ("heavy", 9)]);
        let graph = Graph::of(&tree, &options);
        assert_eq!(
            lines(&graph),
            ["heavy 70/69", "main 61/0", "main -> heavy 61"]
        );
        assert_eq!(graph.nodes_left_out, 2);
    }
}
