//! Call trees that are printed with a line per node, each deeper one indented by more.

use candela_model::LabelSetId;
use candela_model::LocationId;

use crate::count::Count;
use crate::error::ReadError;
use crate::named_stacks::NamedStacks;

/// The nodes from the root to the line that is read.
#[derive(Debug)]
pub(crate) struct IndentedTree {
    /// Whether the tree begins with the leaves and callers stand below what they called.
    is_inverted: bool,
    max_depth: usize,
    open: Vec<OpenNode>,
    root_first: Vec<LocationId>,
}

#[derive(Clone, Copy, Debug)]
struct OpenNode {
    indent: usize,
    location: LocationId,
    series: usize,
    /// What the children that came so far leave of the node's total; `None` when its own value is
    /// known.
    rest: Option<i64>,
}

impl IndentedTree {
    pub(crate) fn new(is_inverted: bool, max_depth: usize) -> Self {
        Self {
            is_inverted,
            max_depth,
            open: Vec::new(),
            root_first: Vec::new(),
        }
    }

    /// Takes the next line: a node with its children. Without an own value it is what the children
    /// do not have.
    pub(crate) fn enter(
        &mut self,
        (indent, location): (usize, LocationId),
        series: usize,
        total: i64,
        own: Option<i64>,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<(), ReadError> {
        self.close_from(indent, stacks)?;
        if let Some(rest) = self.open.last_mut().and_then(|parent| parent.rest.as_mut()) {
            *rest = rest.saturating_sub(total);
        }
        self.open.push(OpenNode {
            indent,
            location,
            series,
            rest: own.is_none().then_some(total),
        });
        match own {
            Some(own) => self.add(series, own, stacks),
            None => Ok(()),
        }
    }

    /// Adds a value to the stack of the last line.
    pub(crate) fn add(
        &mut self,
        series: usize,
        value: i64,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<(), ReadError> {
        if value == 0 {
            return Ok(());
        }
        // One more than may be, so that the cut is seen where stacks are cut.
        let most = self.max_depth.saturating_add(1);
        self.root_first.clear();
        let locations = self.open.iter().map(|node| node.location);
        match self.is_inverted {
            true => self.root_first.extend(locations.rev().take(most)),
            false => self.root_first.extend(locations.take(most)),
        }
        let value = Count::whole(value);
        stacks.add(series, &self.root_first, LabelSetId(0), value)
    }

    /// The line that the next one stands below, if it is a child.
    pub(crate) fn parent(&self, indent: usize) -> Option<LocationId> {
        let parent = self.open.iter().rfind(|node| node.indent < indent);
        parent.map(|node| node.location)
    }

    /// Ends the tree.
    pub(crate) fn close(&mut self, stacks: &mut NamedStacks<'_>) -> Result<(), ReadError> {
        self.close_from(0, stacks)
    }

    fn close_from(&mut self, indent: usize, stacks: &mut NamedStacks<'_>) -> Result<(), ReadError> {
        while let Some(&node) = self.open.last().filter(|node| node.indent >= indent) {
            let rest = node.rest.unwrap_or(0);
            if rest < 0 {
                stacks.report.note(
                    "children_exceed_parent",
                    "nodes whose children have more than they, which keep what they have",
                );
            }
            self.add(node.series, rest.max(0), stacks)?;
            self.open.pop();
        }
        Ok(())
    }
}
