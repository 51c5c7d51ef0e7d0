//! From a call graph to stacks.

use std::collections::BinaryHeap;

use candela_model::FrameKind;
use candela_model::FunctionId;
use candela_model::LabelSetId;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::StringId;
use hashbrown::HashMap;

use crate::callgrind::graph::CALLS;
use crate::callgrind::graph::CostKey;
use crate::callgrind::graph::Function;
use crate::callgrind::graph::Graph;
use crate::callgrind::graph::Place;
use crate::callgrind::order::ByCost;
use crate::callgrind::order::CallGraph;
use crate::callgrind::order::Edge;
use crate::callgrind::order::Order;
use crate::callgrind::units::Meaning;
use crate::count::Count;
use crate::error::ReadError;
use crate::named_stacks::NamedStacks;
use crate::options::Limits;
use crate::thread_labels::ThreadLabels;

/// Lines looked at on the way, and stacks made, over all threads and events. A graph of a thousand
/// functions has more stacks than there are atoms; those that this leaves out are the lightest.
const MAX_VISITS: usize = 40_000_000;
const MAX_STACKS: usize = 1_000_000;

/// A visit is paid for by so many of the bytes that an input may have: by default they pay for all.
const BYTES_OF_A_VISIT: usize = 6;

/// Sums of rounded numbers differ by half a unit each.
const ROUNDING: f64 = 0.5;

/// Makes the stacks of all threads and events.
pub(crate) struct Distribution<'a> {
    graph: Graph,
    kind: FrameKind,
    limits: &'a Limits,
    locations: HashMap<(u32, Place), LocationId>,
    frames_left: usize,
    /// Of each thread and event.
    share: Share,
}

/// What a thread has of an event may take so much.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    visits: usize,
    stacks: usize,
    /// Memory is freed when the next thread or event comes, so that each may have all of it.
    nodes: usize,
}

/// Own cost of a place.
#[derive(Debug)]
struct Row {
    place: Place,
    value: i64,
    /// What of it has a stack.
    given: i64,
}

/// The part of a graph that an event has in a thread.
#[derive(Debug, Default)]
struct Part {
    /// Positions in the whole graph.
    functions: Vec<u32>,
    /// Own costs of each function.
    rows: Vec<Vec<Row>>,
    calls: CallGraph,
}

/// A function in a stack.
#[derive(Clone, Copy, Debug)]
struct Node {
    function: u32,
    /// The node of the caller and the edge from there; `None` for a root.
    caller: Option<(u32, u32)>,
    /// What share of the function this node is.
    share: f64,
}

impl<'a> Distribution<'a> {
    pub(crate) fn new(graph: Graph, kind: FrameKind, limits: &'a Limits) -> Self {
        Self {
            graph,
            kind,
            limits,
            locations: HashMap::new(),
            frames_left: limits.inflated_bytes(),
            share: Share::default(),
        }
    }

    /// Adds all stacks, event by event.
    pub(crate) fn add_all(
        mut self,
        events: &[(String, Meaning)],
        stacks: &mut NamedStacks<'_>,
    ) -> Result<(), ReadError> {
        let threads = std::mem::take(&mut self.graph.threads);
        self.share = Share::new(threads.len().saturating_mul(events.len()), self.limits);
        for (number, costs) in threads {
            let labels = ThreadLabels {
                thread_id: number,
                ..ThreadLabels::default()
            };
            let label_set = labels.intern(&mut stacks.profile);
            let mut costs: Vec<(CostKey, i64)> = costs.into_iter().collect();
            // Equal files make equal profiles, whatever the order of the table was.
            costs.sort_unstable();
            for (event, (_, meaning)) in events.iter().enumerate() {
                let part = Part::of(&costs, event as u32);
                let tolerance = if meaning.is_exact {
                    0.0
                } else {
                    ROUNDING * meaning.factor as f64
                };
                self.add_part(part, event, label_set, tolerance, stacks)?;
            }
        }
        Ok(())
    }

    fn add_part(
        &mut self,
        mut part: Part,
        series: usize,
        label_set: LabelSetId,
        tolerance: f64,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<(), ReadError> {
        let order = Order::of(&part.calls, tolerance);
        let mut nodes: Vec<Node> = Vec::new();
        let mut waiting: BinaryHeap<ByCost> = BinaryHeap::new();
        for (function, &share) in order.root_share.iter().enumerate() {
            let node = Node {
                function: function as u32,
                caller: None,
                share,
            };
            push(node, &order, &mut nodes, &mut waiting);
        }
        let mut shares_given = vec![0.0; part.functions.len()];
        let mut left = self.share;
        let mut callers: Vec<LocationId> = Vec::new();
        while let Some(ByCost { item, .. }) = waiting.pop() {
            let node = nodes[item as usize];
            let function = node.function as usize;
            self.callers_of(node, &nodes, &part, &mut callers, stacks)?;
            let visits = part.rows[function].len() + order.calls[function].len() + callers.len();
            let is_left = left.visits >= visits && left.stacks >= part.rows[function].len();
            if !is_left || nodes.len() > left.nodes {
                stacks.report.note(
                    "stacks_joined",
                    "a call graph has too many stacks: the lightest were joined to others of the same function",
                );
                break;
            }
            left.visits -= visits;
            let before = shares_given[function];
            let given = (before + node.share).min(1.0);
            shares_given[function] = given;
            for row in 0..part.rows[function].len() {
                let Row { place, value, .. } = part.rows[function][row];
                // Rounding the sums and not the parts leaves nothing over.
                let sum = rounded_share(value, given);
                let addition = sum - part.rows[function][row].given;
                if addition != 0 {
                    part.rows[function][row].given = sum;
                    left.stacks -= 1;
                    let leaf = self.location(part.functions[function], place, stacks);
                    self.add(series, label_set, &mut callers, leaf, addition, stacks)?;
                }
            }
            for edge in order.calls[function].clone() {
                let child = Node {
                    function: part.calls.edges[edge].callee,
                    caller: Some((item, edge as u32)),
                    share: node.share * order.share[edge],
                };
                push(child, &order, &mut nodes, &mut waiting);
            }
        }
        self.add_rest(&part, &order, series, label_set, stacks)
    }

    /// What is left goes to the heaviest stack of its function.
    fn add_rest(
        &mut self,
        part: &Part,
        order: &Order,
        series: usize,
        label_set: LabelSetId,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<(), ReadError> {
        let mut callers: Vec<LocationId> = Vec::new();
        for (function, rows) in part.rows.iter().enumerate() {
            if rows.iter().all(|row| row.given == row.value) {
                continue;
            }
            callers.clear();
            let mut parent = order.parent[function];
            while let Some(edge) = parent {
                let Edge { caller, place, .. } = part.calls.edges[edge as usize];
                self.count_frame()?;
                callers.push(self.location(part.functions[caller as usize], place, stacks));
                parent = order.parent[caller as usize];
            }
            callers.reverse();
            for row in rows.iter().filter(|row| row.given != row.value) {
                let leaf = self.location(part.functions[function], row.place, stacks);
                let rest = row.value.saturating_sub(row.given);
                self.add(series, label_set, &mut callers, leaf, rest, stacks)?;
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        series: usize,
        label_set: LabelSetId,
        callers: &mut Vec<LocationId>,
        leaf: LocationId,
        value: i64,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<(), ReadError> {
        callers.push(leaf);
        let added = stacks.add(series, callers, label_set, Count::whole(value));
        callers.pop();
        added
    }

    /// The stack that a node is called from, root first.
    fn callers_of(
        &mut self,
        node: Node,
        nodes: &[Node],
        part: &Part,
        callers: &mut Vec<LocationId>,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<(), ReadError> {
        callers.clear();
        let mut next = node.caller;
        while let Some((caller, edge)) = next {
            self.count_frame()?;
            let caller = nodes[caller as usize];
            let place = part.calls.edges[edge as usize].place;
            let function = part.functions[caller.function as usize];
            callers.push(self.location(function, place, stacks));
            next = caller.caller;
        }
        callers.reverse();
        Ok(())
    }

    fn count_frame(&mut self) -> Result<(), ReadError> {
        self.frames_left = self.frames_left.checked_sub(1).ok_or(ReadError::TooLarge {
            what: "the number of frames of all stacks",
            limit: self.limits.inflated_bytes(),
        })?;
        Ok(())
    }

    fn location(
        &mut self,
        function: u32,
        place: Place,
        stacks: &mut NamedStacks<'_>,
    ) -> LocationId {
        if let Some(&known) = self.locations.get(&(function, place)) {
            return known;
        }
        let Function { object, file, name } = self.graph.functions[function as usize];
        let symbols = &mut stacks.profile.symbols;
        let mut in_file = |file: StringId| -> FunctionId {
            symbols.intern_function_ids(candela_model::Function {
                name,
                system_name: StringId(0),
                file,
                start_line: 0,
            })
        };
        let function_id = in_file(file);
        // Code of another file is inlined. The name of what is inlined is not known, so that it goes by
        // the name of the function that it is part of, as callgrind_annotate does.
        let lines = if place.file == file {
            vec![(function_id, place.line, 0)]
        } else {
            vec![(in_file(place.file), place.line, 0), (function_id, 0, 0)]
        };
        let mapping = symbols.intern_mapping(Mapping {
            file: object,
            ..Mapping::default()
        });
        let location = Location::new(self.kind, place.address).in_mapping(mapping);
        let id = symbols.intern_location(&location, &lines);
        self.locations.insert((function, place), id);
        id
    }
}

impl Share {
    fn new(parts: usize, limits: &Limits) -> Self {
        let parts = parts.max(1);
        let visits = MAX_VISITS.min(limits.inflated_bytes() / BYTES_OF_A_VISIT);
        let stacks = MAX_STACKS.min(limits.max_samples / 2);
        Self {
            visits: visits / parts,
            stacks: stacks / parts,
            nodes: limits.inflated_bytes() / size_of::<(Node, ByCost)>(),
        }
    }
}

impl Part {
    fn of(costs: &[(CostKey, i64)], event: u32) -> Self {
        let costs = || {
            costs.iter().filter(|(key, _)| {
                key.event == event || (key.event == CALLS && key.callee.is_some())
            })
        };
        let mut functions: Vec<u32> = costs()
            .flat_map(|(key, _)| [Some(key.function), key.callee])
            .flatten()
            .collect();
        functions.sort_unstable();
        functions.dedup();
        let numbers: HashMap<u32, u32> = functions.iter().copied().zip(0..).collect();
        let number = |function: u32| numbers.get(&function).copied().unwrap_or(0);
        let mut part = Self {
            rows: functions.iter().map(|_| Vec::new()).collect(),
            ..Self::default()
        };
        part.calls.own = vec![0.0; functions.len()];
        let mut heaviest = 0.0;
        for &(key, value) in costs() {
            let caller = number(key.function);
            let Some(callee) = key.callee.map(number) else {
                part.calls.own[caller as usize] += value.unsigned_abs() as f64;
                let place = key.place;
                part.rows[caller as usize].push(Row {
                    place,
                    value,
                    given: 0,
                });
                continue;
            };
            let edges = &mut part.calls.edges;
            let is_known = edges
                .last()
                .is_some_and(|edge| (edge.caller, edge.callee) == (caller, callee));
            if !is_known {
                heaviest = 0.0;
                edges.push(Edge {
                    caller,
                    callee,
                    cost: 0.0,
                    calls: 0.0,
                    place: key.place,
                });
            }
            let Some(edge) = edges.last_mut() else {
                continue;
            };
            let value = value.max(0) as f64;
            if key.event == CALLS {
                edge.calls += value;
                continue;
            }
            edge.cost += value;
            if value > heaviest {
                heaviest = value;
                edge.place = key.place;
            }
        }
        part.functions = functions;
        part
    }
}

/// Nodes without a share have nothing below them.
fn push(node: Node, order: &Order, nodes: &mut Vec<Node>, waiting: &mut BinaryHeap<ByCost>) {
    let cost = node.share * order.inclusive[node.function as usize];
    if cost > 0.0 && nodes.len() < u32::MAX as usize {
        let item = nodes.len() as u32;
        nodes.push(node);
        waiting.push(ByCost { cost, item });
    }
}

/// Never more than the value, whichever sign it has.
fn rounded_share(value: i64, share: f64) -> i64 {
    if share >= 1.0 {
        return value;
    }
    let part = (value as f64 * share).round() as i64;
    part.clamp(value.min(0), value.max(0))
}
