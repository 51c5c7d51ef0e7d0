//! Samples of stacks beside the events: what Hermes writes.

use hashbrown::HashMap;
use serde_json::Number;

use crate::chrome_trace::event::Event;
use crate::chrome_trace::threads::Threads;
use crate::error::ReadError;
use crate::json_cursor::JsonCursor;
use crate::named_stacks::NamedStacks;
use crate::options::Limits;
use crate::v8::CallFrame;
use crate::v8::CallTree;
use crate::v8::Hit;
use crate::v8::Node;
use crate::v8::Timeline;

/// Samples by thread and the frames that they name.
#[derive(Debug, Default)]
pub(crate) struct StackSamples {
    /// Numbers for the names of frames, which may be any text.
    ids: HashMap<String, i64>,
    nodes: Vec<Node>,
    node_of_id: HashMap<i64, u32>,
    parents: Vec<(u32, i64)>,
    hits: HashMap<usize, Vec<Hit>>,
}

#[derive(Debug, Default)]
struct StackFrame {
    name: Option<String>,
    /// Its identifier, which may be a number or a text.
    parent: Option<String>,
}

impl StackFrame {
    /// Piece by piece: what stands in the place of a parent may be a hundred times as large in memory.
    fn read(cursor: &mut JsonCursor<'_>) -> Result<Self, ReadError> {
        let mut frame = Self::default();
        let mut is_first = true;
        cursor.expect(b'{')?;
        while let Some(key) = cursor.next_key(&mut is_first)? {
            match (key.as_str(), cursor.peek()) {
                ("name", _) => frame.name = cursor.parse()?,
                ("parent", Some(b'"')) => frame.parent = Some(cursor.parse()?),
                ("parent", Some(b'-' | b'0'..=b'9')) => {
                    frame.parent = Some(cursor.parse::<Number>()?.to_string());
                }
                _ => {
                    cursor.value()?;
                }
            }
        }
        Ok(frame)
    }
}

impl StackSamples {
    pub(crate) fn is_empty(&self) -> bool {
        self.hits.is_empty()
    }

    /// Reads the list `samples`.
    pub(crate) fn read_samples(
        &mut self,
        cursor: &mut JsonCursor<'_>,
        threads: &mut Threads,
    ) -> Result<(), ReadError> {
        let mut is_first = true;
        cursor.expect(b'[')?;
        while cursor.has_element(&mut is_first)? {
            let sample = Event::read(cursor)?;
            let Some(time_ns) = sample.time_ns else {
                continue;
            };
            let thread = threads.position(sample.pid, sample.tid)?;
            let hit = Hit {
                node: self.id(sample.stack_frame),
                time_ns,
                line: 0,
            };
            self.hits.entry(thread).or_default().push(hit);
        }
        Ok(())
    }

    /// Reads the object `stackFrames`.
    pub(crate) fn read_frames(
        &mut self,
        cursor: &mut JsonCursor<'_>,
        limits: &Limits,
    ) -> Result<(), ReadError> {
        let mut is_first = true;
        cursor.expect(b'{')?;
        while let Some(key) = cursor.next_key(&mut is_first)? {
            let frame = StackFrame::read(cursor)?;
            let id = self.id(&key);
            let position = self.nodes.len() as u32;
            self.node_of_id.insert(id, position);
            if let Some(parent) = frame.parent {
                let parent = self.id(&parent);
                self.parents.push((position, parent));
            }
            self.nodes.push(Node {
                call_frame: call_frame(&frame.name.unwrap_or_default()),
                ..Node::default()
            });
            if self.nodes.len() > limits.max_samples {
                return Err(ReadError::TooLarge {
                    what: "the number of stack frames",
                    limit: limits.max_samples,
                });
            }
        }
        Ok(())
    }

    /// The frames of all threads, and the samples of each.
    pub(crate) fn finish(
        mut self,
        limits: &Limits,
        stacks: &mut NamedStacks<'_>,
    ) -> (CallTree, Vec<(usize, Timeline)>) {
        for (node, parent) in std::mem::take(&mut self.parents) {
            match self.node_of_id.get(&parent) {
                Some(&parent) => self.nodes[node as usize].parent = Some(parent),
                None => stacks.report.note(
                    "nodes_missing",
                    "nodes that others refer to are not in the file",
                ),
            }
        }
        let tree = CallTree::new(self.nodes, self.node_of_id, limits, stacks);
        let mut threads: Vec<(usize, Vec<Hit>)> = self.hits.into_iter().collect();
        threads.sort_by_key(|(thread, _)| *thread);
        let timelines = threads.into_iter().map(|(thread, hits)| {
            let mut timeline = Timeline { hits, end_ns: None };
            timeline.sort(stacks);
            (thread, timeline)
        });
        let timelines = timelines.collect();
        (tree, timelines)
    }

    fn id(&mut self, text: &str) -> i64 {
        if let Some(&known) = self.ids.get(text) {
            return known;
        }
        let id = self.ids.len() as i64;
        self.ids.insert(text.to_owned(), id);
        id
    }
}

/// Names may hold their place, as `name(url:line:column)`, counted from 1.
fn call_frame(name: &str) -> CallFrame {
    let (function_name, place) = match placed(name) {
        Some((name, url, line, column)) => (name, Some((url, line, column))),
        None => (name, None),
    };
    CallFrame {
        function_name: Some(function_name.to_owned()),
        url: place.map(|(url, ..)| url.to_owned()),
        line_number: place.map(|(_, line, _)| f64::from(line) - 1.0),
        column_number: place.map(|(.., column)| f64::from(column) - 1.0),
    }
}

fn placed(text: &str) -> Option<(&str, &str, u32, u32)> {
    let (name, place) = text.strip_suffix(')')?.split_once('(')?;
    let (place, column) = place.rsplit_once(':')?;
    let (url, line) = place.rsplit_once(':')?;
    Some((name, url, line.parse().ok()?, column.parse().ok()?))
}
