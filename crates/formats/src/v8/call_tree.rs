//! The stacks of a call tree.

use candela_model::LocationId;
use candela_model::StackId;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::named_stacks::NamedStacks;
use crate::options::Limits;
use crate::stack_forest::StackForest;
use crate::v8::call_frame::ScriptFunction;
use crate::v8::node::Node;

/// Nodes and the stacks that end at them, each made once.
#[derive(Debug)]
pub(crate) struct CallTree {
    pub(crate) nodes: Vec<Node>,
    /// Where the node of an id is.
    positions: HashMap<i64, u32>,
    forest: StackForest,
    locations: Vec<Option<LocationId>>,
    /// Of nodes that were found at lines: names may be long and lines many.
    functions: HashMap<u32, ScriptFunction>,
    known: HashMap<(u32, u32), StackId>,
    path: Vec<u32>,
}

impl CallTree {
    pub(crate) fn new(
        nodes: Vec<Node>,
        positions: HashMap<i64, u32>,
        limits: &Limits,
        stacks: &mut NamedStacks<'_>,
    ) -> Self {
        let parents: Vec<Option<u32>> = nodes.iter().map(|node| node.parent).collect();
        let forest = StackForest::new(&parents, limits);
        stacks.report.note_many(
            "nodes_in_circles",
            "nodes that are their own callers were taken as roots",
            forest.broken_nodes,
        );
        Self {
            locations: vec![None; nodes.len()],
            nodes,
            positions,
            forest,
            functions: HashMap::new(),
            known: HashMap::new(),
            path: Vec::new(),
        }
    }

    /// Where the node of an id is.
    pub(crate) fn position(&self, id: i64) -> Option<u32> {
        self.positions.get(&id).copied()
    }

    /// The stack of a node that is at this line, 0 when unknown. The root above all is no frame.
    pub(crate) fn stack(
        &mut self,
        node: u32,
        line: u32,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<StackId, ReadError> {
        if let Some(&known) = self.known.get(&(node, line)) {
            return Ok(known);
        }
        self.forest.path(node, &mut self.path);
        let nodes = &self.nodes;
        let has_root = self.path.len() > 1 && nodes[self.path[0] as usize].call_frame.is_root();
        let mut root_first: Vec<LocationId> = Vec::with_capacity(self.path.len());
        for &at in &self.path[usize::from(has_root)..] {
            let frame = &nodes[at as usize].call_frame;
            let location = if at == node && line != 0 {
                let functions = self.functions.entry(at);
                let function = *functions.or_insert_with(|| frame.function(stacks));
                function.at(line, 0, stacks)
            } else {
                *self.locations[at as usize].get_or_insert_with(|| frame.location(stacks))
            };
            root_first.push(location);
        }
        let stack = stacks.stack(&root_first)?;
        self.known.insert((node, line), stack);
        Ok(stack)
    }
}
