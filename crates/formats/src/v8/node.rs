//! Nodes of call trees: in lists with ids, or inside of each other.

use hashbrown::HashMap;
use serde::Deserialize;
use serde_json::Number;

use crate::error::ReadError;
use crate::json_cursor::JsonCursor;
use crate::report::Report;
use crate::v8::call_frame::CallFrame;

/// A function as it was called from where it was called.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) id: Option<i64>,
    /// Its position in the list of all nodes.
    pub(crate) parent: Option<u32>,
    pub(crate) call_frame: CallFrame,
    pub(crate) hit_count: Option<i64>,
    pub(crate) position_ticks: Vec<PositionTick>,
    pub(crate) self_size: Option<Number>,
}

/// How many of a node's samples were in a line, counted from 1.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct PositionTick {
    pub(crate) line: i64,
    pub(crate) ticks: i64,
}

/// A node of a list, which names its children or its parent by their ids.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedNode {
    pub(crate) id: i64,
    pub(crate) call_frame: CallFrame,
    #[serde(default)]
    hit_count: Option<i64>,
    #[serde(default)]
    children: Option<Vec<i64>>,
    #[serde(default)]
    pub(crate) parent: Option<i64>,
    #[serde(default)]
    position_ticks: Option<Vec<PositionTick>>,
}

/// Adds listed nodes behind those that are known; chunks of a timeline refer to earlier ones.
pub(crate) fn add_listed(
    nodes: &mut Vec<Node>,
    positions: &mut HashMap<i64, u32>,
    listed: Vec<ListedNode>,
    report: &mut Report,
) {
    let first = nodes.len();
    let mut links: Vec<(i64, u32)> = Vec::new();
    let mut child_links: Vec<(u32, i64)> = Vec::new();
    for node in listed {
        let position = nodes.len() as u32;
        if positions.insert(node.id, position).is_some() {
            report.note(
                "nodes_repeated",
                "of nodes with the same id the last was taken",
            );
        }
        links.extend(node.parent.map(|parent| (parent, position)));
        let children = node.children.into_iter().flatten();
        child_links.extend(children.map(|child| (position, child)));
        nodes.push(Node {
            id: Some(node.id),
            parent: None,
            call_frame: node.call_frame,
            hit_count: node.hit_count,
            position_ticks: node.position_ticks.unwrap_or_default(),
            self_size: None,
        });
    }
    let mut missing = 0;
    for (parent, position) in links {
        match positions.get(&parent) {
            Some(&parent) => nodes[position as usize].parent = Some(parent),
            None => missing += 1,
        }
    }
    for (parent, child) in child_links {
        match positions.get(&child) {
            Some(&child) if child as usize >= first => nodes[child as usize].parent = Some(parent),
            Some(_) => {}
            None => missing += 1,
        }
    }
    report.note_many(
        "nodes_missing",
        "nodes that others refer to are not in the file",
        missing,
    );
}

/// Reads a node with the nodes inside of it, parents first. They may be as deep as they like.
pub(crate) fn read_nested(cursor: &mut JsonCursor<'_>) -> Result<Vec<Node>, ReadError> {
    let mut nodes: Vec<Node> = Vec::new();
    // The nodes that are open, each with whether its next member would be the first.
    let mut open: Vec<(u32, bool)> = Vec::new();
    cursor.expect(b'{')?;
    nodes.push(Node::default());
    open.push((0, true));
    while let Some((position, is_first)) = open.last_mut() {
        let position = *position;
        let Some(key) = cursor.next_key(is_first)? else {
            open.pop();
            // Behind a node comes the next one of its parent, or the parent's other members.
            if !open.is_empty() {
                next_child(cursor, &mut false, &mut nodes, &mut open)?;
            }
            continue;
        };
        if key == "children" && cursor.take(b'[') {
            next_child(cursor, &mut true, &mut nodes, &mut open)?;
            continue;
        }
        let node = &mut nodes[position as usize];
        match key.as_str() {
            "callFrame" => node.call_frame = cursor.parse()?,
            "functionName" => node.call_frame.function_name = cursor.parse()?,
            "url" => node.call_frame.url = cursor.parse()?,
            "lineNumber" => node.call_frame.line_number = cursor.parse()?,
            "columnNumber" => node.call_frame.column_number = cursor.parse()?,
            "id" => node.id = cursor.parse()?,
            "hitCount" => node.hit_count = cursor.parse()?,
            "selfSize" => node.self_size = cursor.parse()?,
            "positionTicks" => {
                let ticks: Option<Vec<PositionTick>> = cursor.parse()?;
                node.position_ticks = ticks.unwrap_or_default();
            }
            _ => {
                cursor.value()?;
            }
        }
    }
    Ok(nodes)
}

/// Opens the next child of the innermost open node, if there is one.
fn next_child(
    cursor: &mut JsonCursor<'_>,
    is_first: &mut bool,
    nodes: &mut Vec<Node>,
    open: &mut Vec<(u32, bool)>,
) -> Result<(), ReadError> {
    if !cursor.has_element(is_first)? {
        return Ok(());
    }
    cursor.expect(b'{')?;
    let parent = open.last().map(|&(parent, _)| parent);
    open.push((nodes.len() as u32, true));
    nodes.push(Node {
        parent,
        ..Node::default()
    });
    Ok(())
}
