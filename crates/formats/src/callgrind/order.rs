//! Which calls are followed from the roots, and what share of a function each caller has.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::callgrind::graph::Place;

/// The calls of one function by another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) caller: u32,
    pub(crate) callee: u32,
    /// Inclusive cost; never negative, as some events are.
    pub(crate) cost: f64,
    pub(crate) calls: f64,
    /// Where most of it is called from.
    pub(crate) place: Place,
}

/// A call graph of one event. Functions are numbers from 0.
#[derive(Debug, Default)]
pub(crate) struct CallGraph {
    /// Own cost of each function, without sign.
    pub(crate) own: Vec<f64>,
    /// Sorted by caller.
    pub(crate) edges: Vec<Edge>,
}

/// How the cost of each function is divided.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// For each edge, what share of its callee it has; 0 for one that is not followed. The shares of a
    /// function's callers and its own as a root add up to 1.
    pub(crate) share: Vec<f64>,
    /// For each function, its share without a caller.
    pub(crate) root_share: Vec<f64>,
    /// For each function, the edge that its heaviest stack comes by; `None` for a root.
    pub(crate) parent: Vec<Option<u32>>,
    /// For each function, what it costs with all that is called from it.
    pub(crate) inclusive: Vec<f64>,
    /// The edges of each caller.
    pub(crate) calls: Vec<Range<usize>>,
}

/// An edge that waits to be followed, the heaviest first and of equal ones the first.
#[derive(PartialEq)]
pub(crate) struct ByCost {
    pub(crate) cost: f64,
    pub(crate) item: u32,
}

/// Not followed yet.
const UNSEEN: u32 = u32::MAX;

impl Eq for ByCost {}

impl PartialOrd for ByCost {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByCost {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_cost = self.cost.total_cmp(&other.cost);
        by_cost.then_with(|| other.item.cmp(&self.item))
    }
}

impl Order {
    /// `tolerance` is by how much sums differ that mean the same, for each number in them.
    pub(crate) fn of(graph: &CallGraph, tolerance: f64) -> Self {
        let count = graph.own.len();
        let calls = call_ranges(graph);
        let components = components(graph, &calls);
        let mut order = Self {
            share: vec![0.0; graph.edges.len()],
            root_share: vec![0.0; count],
            parent: vec![None; count],
            inclusive: vec![0.0; count],
            calls,
        };
        let seen = order.discover(graph, &components);
        let is_followed = |edge: &Edge| {
            let (caller, callee) = (edge.caller as usize, edge.callee as usize);
            components[caller] != components[callee] || seen[caller] < seen[callee]
        };
        order.divide(graph, &components, tolerance, is_followed);
        let mut callees_first: Vec<u32> = (0..count as u32).collect();
        callees_first.sort_by_key(|&function| {
            let function = function as usize;
            (components[function], u32::MAX - seen[function])
        });
        for function in callees_first {
            let function = function as usize;
            let calls = order.calls[function].clone();
            let called = calls.map(|edge| {
                let callee = graph.edges[edge].callee as usize;
                order.share[edge] * order.inclusive[callee]
            });
            order.inclusive[function] = graph.own[function] + called.sum::<f64>();
        }
        order
    }

    /// Follows the heaviest edges first, from roots; the order in which functions are met makes a circle
    /// a chain. Of a circle that nothing leads into, the function with the most cost is the root.
    fn discover(&mut self, graph: &CallGraph, components: &[u32]) -> Vec<u32> {
        let count = graph.own.len();
        let mut is_entered = vec![false; count];
        for edge in &graph.edges {
            let component = components[edge.callee as usize];
            if components[edge.caller as usize] != component {
                is_entered[component as usize] = true;
            }
        }
        let mut roots: Vec<Option<(f64, u32)>> = vec![None; count];
        for (function, &component) in components.iter().enumerate() {
            let component = component as usize;
            let called = self.calls[function].clone();
            let called: f64 = called.map(|edge| graph.edges[edge].cost).sum();
            let cost = graph.own[function] + called;
            if !is_entered[component] && roots[component].is_none_or(|known| known.0 < cost) {
                roots[component] = Some((cost, function as u32));
            }
        }
        let mut seen = vec![UNSEEN; count];
        let mut next = 0;
        let mut waiting: BinaryHeap<ByCost> = BinaryHeap::new();
        let mut meet = |function: u32, seen: &mut Vec<u32>, waiting: &mut BinaryHeap<ByCost>| {
            seen[function as usize] = next;
            next += 1;
            for edge in self.calls[function as usize].clone() {
                let cost = graph.edges[edge].cost;
                let item = edge as u32;
                waiting.push(ByCost { cost, item });
            }
        };
        for (_, root) in roots.into_iter().flatten() {
            meet(root, &mut seen, &mut waiting);
        }
        while let Some(ByCost { item, .. }) = waiting.pop() {
            let callee = graph.edges[item as usize].callee;
            if seen[callee as usize] == UNSEEN {
                self.parent[callee as usize] = Some(item);
                meet(callee, &mut seen, &mut waiting);
            }
        }
        seen
    }

    fn divide(
        &mut self,
        graph: &CallGraph,
        components: &[u32],
        tolerance: f64,
        is_followed: impl Fn(&Edge) -> bool,
    ) {
        let count = graph.own.len();
        let mut size = vec![0_u32; count];
        for &component in components {
            size[component as usize] += 1;
        }
        // Of the edges into each function: their cost, their calls, their number.
        let mut into = vec![(0.0, 0.0, 0.0); count];
        let mut claimed = graph.own.clone();
        let mut numbers = vec![1.0; count];
        for edge in graph.edges.iter().filter(|edge| is_followed(edge)) {
            let sums = &mut into[edge.callee as usize];
            *sums = (sums.0 + edge.cost, sums.1 + edge.calls, sums.2 + 1.0);
            claimed[edge.caller as usize] += edge.cost;
            numbers[edge.caller as usize] += 1.0;
        }
        let mut root_cost = vec![0.0; count];
        for function in 0..count {
            let (cost, _, number) = into[function];
            // Inside of a circle a call's cost holds the cost of others, so that sums mean nothing.
            let is_alone = size[components[function] as usize] == 1;
            let excess = claimed[function] - cost;
            if is_alone && excess > tolerance * (numbers[function] + number) {
                root_cost[function] = excess;
            }
            self.root_share[function] = match () {
                () if number == 0.0 => 1.0,
                () if cost + root_cost[function] > 0.0 => {
                    root_cost[function] / (cost + root_cost[function])
                }
                () => 0.0,
            };
        }
        for (position, edge) in graph.edges.iter().enumerate() {
            if !is_followed(edge) {
                continue;
            }
            let callee = edge.callee as usize;
            let (cost, calls, number) = into[callee];
            let all = cost + root_cost[callee];
            self.share[position] = if all > 0.0 {
                edge.cost / all
            } else if calls > 0.0 {
                edge.calls / calls
            } else {
                1.0 / number
            };
        }
    }
}

fn call_ranges(graph: &CallGraph) -> Vec<Range<usize>> {
    let mut ranges = Vec::with_capacity(graph.own.len());
    let mut start = 0;
    for function in 0..graph.own.len() {
        let rest = &graph.edges[start..];
        let length = rest
            .iter()
            .take_while(|edge| edge.caller as usize == function)
            .count();
        ranges.push(start..start + length);
        start += length;
    }
    ranges
}

/// For each function the number of its strongly connected component (Tarjan's algorithm, with an own
/// stack as calls may be deep). Components that are called have lower numbers.
fn components(graph: &CallGraph, calls: &[Range<usize>]) -> Vec<u32> {
    let count = graph.own.len();
    let mut component = vec![UNSEEN; count];
    let mut index = vec![UNSEEN; count];
    let mut low = vec![0_u32; count];
    let mut open: Vec<u32> = Vec::new();
    let mut path: Vec<(u32, usize)> = Vec::new();
    let mut next_index = 0;
    let mut next_component = 0;
    for start in 0..count as u32 {
        if index[start as usize] != UNSEEN {
            continue;
        }
        path.push((start, calls[start as usize].start));
        while let Some((function, position)) = path.last_mut() {
            let this = *function as usize;
            if index[this] == UNSEEN {
                index[this] = next_index;
                low[this] = next_index;
                next_index += 1;
                open.push(*function);
            }
            if *position < calls[this].end {
                let callee = graph.edges[*position].callee;
                *position += 1;
                if index[callee as usize] == UNSEEN {
                    path.push((callee, calls[callee as usize].start));
                } else if component[callee as usize] == UNSEEN {
                    low[this] = low[this].min(index[callee as usize]);
                }
                continue;
            }
            path.pop();
            if let Some((caller, _)) = path.last() {
                let caller = *caller as usize;
                low[caller] = low[caller].min(low[this]);
            }
            if low[this] == index[this] {
                while let Some(member) = open.pop() {
                    component[member as usize] = next_component;
                    if member as usize == this {
                        break;
                    }
                }
                next_component += 1;
            }
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(own: &[f64], edges: &[(u32, u32, f64)]) -> CallGraph {
        let edges = edges.iter().map(|&(caller, callee, cost)| Edge {
            caller,
            callee,
            cost,
            calls: 1.0,
            place: Place::default(),
        });
        CallGraph {
            own: own.to_vec(),
            edges: edges.collect(),
        }
    }

    #[test]
    fn a_function_is_divided_as_its_calls_cost() {
        let graph = graph(
            &[20.0, 100.0, 700.0],
            &[(0, 1, 400.0), (0, 2, 400.0), (1, 2, 300.0)],
        );
        let order = Order::of(&graph, 0.0);
        assert_eq!(order.root_share, [1.0, 0.0, 0.0]);
        assert_eq!(order.share, [1.0, 400.0 / 700.0, 300.0 / 700.0]);
        assert_eq!(order.inclusive, [820.0, 400.0, 700.0]);
        assert_eq!(order.parent, [None, Some(0), Some(1)]);
    }

    #[test]
    fn circles_are_cut_where_they_lead_back() {
        // main calls even, even and odd call each other, nested calls counted again and again.
        let graph = graph(
            &[10.0, 50.0, 40.0],
            &[(0, 1, 90.0), (1, 2, 300.0), (2, 1, 280.0), (2, 2, 5.0)],
        );
        let order = Order::of(&graph, 0.0);
        assert_eq!(order.share, [1.0, 1.0, 0.0, 0.0]);
        assert_eq!(order.root_share, [1.0, 0.0, 0.0]);
        assert_eq!(order.inclusive, [100.0, 90.0, 40.0]);
    }

    #[test]
    fn a_circle_without_entry_has_a_root() {
        let graph = graph(&[1.0, 5.0], &[(0, 1, 6.0), (1, 0, 2.0)]);
        let order = Order::of(&graph, 0.0);
        assert_eq!(order.root_share.iter().sum::<f64>(), 1.0);
        assert_eq!(order.share.iter().sum::<f64>(), 1.0);
    }

    #[test]
    fn what_callers_do_not_account_for_is_a_root() {
        let graph = graph(&[0.0, 10.0], &[(0, 1, 4.0)]);
        let order = Order::of(&graph, 0.0);
        assert_eq!(order.root_share, [1.0, 0.6]);
        assert_eq!(order.share, [0.4]);
        let rounded = Order::of(&graph, 3.0);
        assert_eq!(rounded.root_share, [1.0, 0.0]);
    }
}
