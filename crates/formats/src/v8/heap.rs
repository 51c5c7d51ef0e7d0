//! `.heapprofile` to a profile.

use std::io::BufRead;

use candela_model::LabelSetId;
use candela_model::LocationId;
use candela_model::Profile;
use hashbrown::HashMap;
use serde::Deserialize;
use serde_json::Number;

use crate::count::Count;
use crate::error::ReadError;
use crate::json_cursor::JsonCursor;
use crate::json_input::read_json;
use crate::named_stacks::NamedStacks;
use crate::naming;
use crate::options::ReadOptions;
use crate::report::Report;
use crate::stack_forest::StackForest;
use crate::v8::HEAP_NAME;
use crate::v8::node::Node;
use crate::v8::node::read_nested;

/// A sampled allocation that was still there.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeapSample {
    size: Number,
    node_id: i64,
}

/// Reads a sampled heap profile of V8: the bytes that were in use where they were allocated
/// (`selfSize`). Where no node has any, the list of samples is added up.
///
/// # Errors
/// When the input cannot be read, is no such JSON, exceeds a limit, or a size is beyond 64 bits.
pub fn read_heapprofile(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut stacks = NamedStacks::new(&options.limits);
    let bytes = read_json(input, &options.limits, &mut stacks.report)?;
    let (nodes, samples) = read_file(&bytes)?;
    drop(bytes);
    let sizes = sizes(&nodes, &samples, &mut stacks.report)?;
    let parents: Vec<Option<u32>> = nodes.iter().map(|node| node.parent).collect();
    let forest = StackForest::new(&parents, &options.limits);
    let mut locations: Vec<Option<LocationId>> = vec![None; nodes.len()];
    let (mut path, mut root_first) = (Vec::new(), Vec::new());
    for (position, size) in sizes.into_iter().enumerate() {
        if size == Count::default() {
            continue;
        }
        forest.path(position as u32, &mut path);
        root_first.clear();
        let has_root = path.len() > 1 && nodes[path[0] as usize].call_frame.is_root();
        for &node in &path[usize::from(has_root)..] {
            let node = node as usize;
            let frame = &nodes[node].call_frame;
            let location = *locations[node].get_or_insert_with(|| frame.location(&mut stacks));
            root_first.push(location);
        }
        stacks.add(0, &root_first, LabelSetId(0), size)?;
    }
    let profile_type = naming::profile_type(("inuse_space", "bytes"), ("space", "bytes"), None);
    Ok(stacks.finish(vec![profile_type], options))
}

fn read_file(bytes: &[u8]) -> Result<(Vec<Node>, Vec<HeapSample>), ReadError> {
    let mut cursor = JsonCursor::new(HEAP_NAME, bytes);
    let (mut nodes, mut samples) = (None, None);
    let mut is_first = true;
    cursor.expect(b'{')?;
    while let Some(key) = cursor.next_key(&mut is_first)? {
        match key.as_str() {
            "head" => nodes = Some(read_nested(&mut cursor)?),
            "samples" => samples = cursor.parse::<Option<Vec<HeapSample>>>()?,
            _ => {
                cursor.value()?;
            }
        }
    }
    let nodes = nodes.ok_or_else(|| cursor.corrupt("the file has no `head`".to_owned()))?;
    Ok((nodes, samples.unwrap_or_default()))
}

/// The bytes of each node itself.
fn sizes(
    nodes: &[Node],
    samples: &[HeapSample],
    report: &mut Report,
) -> Result<Vec<Count>, ReadError> {
    let mut sizes = vec![Count::default(); nodes.len()];
    let mut has_sizes = false;
    for (node, size) in nodes.iter().zip(&mut sizes) {
        if let Some(self_size) = &node.self_size {
            *size = bytes_of(self_size)?;
            has_sizes |= *size != Count::default();
        }
    }
    if has_sizes {
        return Ok(sizes);
    }
    let positions = nodes.iter().enumerate();
    let positions: HashMap<i64, usize> = positions
        .filter_map(|(position, node)| Some((node.id?, position)))
        .collect();
    for sample in samples {
        let size = bytes_of(&sample.size)?;
        match positions.get(&sample.node_id) {
            Some(&position) => sizes[position].add(size),
            None => report.note(
                "samples_without_node",
                "samples of nodes that are not in the file were left out",
            ),
        }
    }
    Ok(sizes)
}

fn bytes_of(size: &Number) -> Result<Count, ReadError> {
    Count::scaled(size, 1).ok_or_else(|| ReadError::Invalid {
        format: HEAP_NAME,
        problem: format!("the size {size} does not fit into 64 bits"),
    })
}
