//! The report as JSON: a list of cost centres, and the tree of their calls with ticks and bytes.

use std::io::BufRead;

use candela_model::LocationId;
use candela_model::Profile;
use hashbrown::HashMap;
use serde::Deserialize;

use crate::ctime::parse_ctime;
use crate::error::ReadError;
use crate::ghc::ALLOCATED;
use crate::ghc::ENTRIES;
use crate::ghc::NAME;
use crate::ghc::TIME;
use crate::ghc::Totals;
use crate::ghc::finish;
use crate::ghc::frame_text;
use crate::indented_tree::IndentedTree;
use crate::json_cursor::JsonCursor;
use crate::json_cursor::leading_keys;
use crate::json_input::read_json;
use crate::named_stacks::NamedStacks;
use crate::options::ReadOptions;
use crate::report::Report;

#[derive(Debug, Deserialize)]
struct CostCentre {
    id: u64,
    #[serde(default)]
    label: String,
    #[serde(default)]
    module: String,
    #[serde(default)]
    src_loc: String,
}

/// A cost centre as it was called from where it was called.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    cost_centre: u64,
    /// How many nodes it is inside of.
    depth: usize,
    entries: i64,
    bytes: i64,
    ticks: i64,
}

#[derive(Debug, Default)]
struct File {
    totals: Totals,
    cost_centres: Vec<CostCentre>,
    /// Each before those inside of it.
    nodes: Vec<Node>,
}

pub(crate) fn read_json_report(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut stacks = NamedStacks::new(&options.limits);
    let bytes = read_json(input, &options.limits, &mut stacks.report)?;
    let file = read_file(&bytes)?;
    drop(bytes);
    let cost_centres: HashMap<u64, &CostCentre> = file
        .cost_centres
        .iter()
        .map(|cost_centre| (cost_centre.id, cost_centre))
        .collect();
    let mut locations: HashMap<u64, LocationId> = HashMap::new();
    let mut tree = IndentedTree::new(false, options.limits.max_stack_depth);
    for node in &file.nodes {
        let location = match locations.get(&node.cost_centre) {
            Some(&location) => location,
            None => {
                let cost_centre = cost_centres
                    .get(&node.cost_centre)
                    .ok_or_else(|| missing(node.cost_centre, cost_centres.len()))?;
                let CostCentre {
                    label,
                    module,
                    src_loc,
                    ..
                } = cost_centre;
                let location = stacks.frame_of(&frame_text(label, module, src_loc))?;
                locations.insert(node.cost_centre, location);
                location
            }
        };
        tree.enter((node.depth, location), TIME, 0, Some(0), &mut stacks)?;
        let time_ns = node.ticks.saturating_mul(file.totals.tick_ns);
        tree.add(TIME, time_ns, &mut stacks)?;
        tree.add(ALLOCATED, node.bytes, &mut stacks)?;
        tree.add(ENTRIES, node.entries, &mut stacks)?;
    }
    Ok(finish(stacks, &file.totals, options))
}

/// Whether the start of some input looks like it.
pub(crate) fn looks_like_json(prefix: &[u8]) -> bool {
    let keys = leading_keys(prefix);
    let has = |key: &str| keys.iter().any(|known| known == key);
    has("tick_interval") && has("cost_centres")
}

fn read_file(bytes: &[u8]) -> Result<File, ReadError> {
    let mut cursor = JsonCursor::new(NAME, bytes);
    let mut file = File::default();
    let mut is_first = true;
    cursor.expect(b'{')?;
    while let Some(key) = cursor.next_key(&mut is_first)? {
        match key.as_str() {
            "end_time" => file.totals.written_ns = parse_ctime(&cursor.parse::<String>()?),
            // Microseconds.
            "tick_interval" => file.totals.tick_ns = number(&mut cursor)?.saturating_mul(1_000),
            "cost_centres" => file.cost_centres = cursor.parse()?,
            "profile" => file.nodes = read_nodes(&mut cursor)?,
            _ => {
                cursor.value()?;
            }
        }
    }
    match file.nodes.is_empty() {
        true => Err(cursor.corrupt("the file has no `profile`".to_owned())),
        false => Ok(file),
    }
}

/// Reads a node with the nodes inside of it. They may be as deep as they like.
fn read_nodes(cursor: &mut JsonCursor<'_>) -> Result<Vec<Node>, ReadError> {
    let mut nodes: Vec<Node> = Vec::new();
    // The nodes that are open, each with whether its next member would be the first.
    let mut open: Vec<(usize, bool)> = Vec::new();
    open_node(cursor, &mut nodes, &mut open)?;
    while let Some((position, is_first)) = open.last_mut() {
        let position = *position;
        let Some(key) = cursor.next_key(is_first)? else {
            open.pop();
            // Behind a node comes the next one of its parent, or the parent's other members.
            if !open.is_empty() && cursor.has_element(&mut false)? {
                open_node(cursor, &mut nodes, &mut open)?;
            }
            continue;
        };
        if key == "children" {
            cursor.expect(b'[')?;
            if cursor.has_element(&mut true)? {
                open_node(cursor, &mut nodes, &mut open)?;
            }
            continue;
        }
        let node = &mut nodes[position];
        match key.as_str() {
            "id" => node.cost_centre = cursor.parse()?,
            "entries" => node.entries = number(cursor)?,
            "alloc" => node.bytes = number(cursor)?,
            "ticks" => node.ticks = number(cursor)?,
            _ => {
                cursor.value()?;
            }
        }
    }
    Ok(nodes)
}

fn open_node(
    cursor: &mut JsonCursor<'_>,
    nodes: &mut Vec<Node>,
    open: &mut Vec<(usize, bool)>,
) -> Result<(), ReadError> {
    cursor.expect(b'{')?;
    let depth = open.len();
    open.push((nodes.len(), true));
    nodes.push(Node {
        depth,
        ..Node::default()
    });
    Ok(())
}

/// GHC counts in 64 bits without a sign.
fn number(cursor: &mut JsonCursor<'_>) -> Result<i64, ReadError> {
    let number: u64 = cursor.parse()?;
    Ok(i64::try_from(number).unwrap_or(i64::MAX))
}

fn missing(id: u64, count: usize) -> ReadError {
    ReadError::Invalid {
        format: NAME,
        problem: format!("cost centre {id} does not exist, the file has {count}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;
    use crate::format::detect;
    use crate::ghc::read_ghc_prof;
    use crate::inflate::tests::gzip;

    fn report(profile: &str) -> String {
        format!(
            r#"{{
"program": "trees", "arguments": ["trees", "a, {{b"], "rts_arguments": ["-pj"],
"end_time": "Thu Oct 25 10:51 2018", "initial_capabilities": 0, "total_time":        0.80,
"total_ticks": 7, "tick_interval": 1000, "total_alloc":648,
"cost_centres": [
{{"id": 144, "label": "MAIN", "module": "MAIN", "src_loc": "<built-in>", "is_caf": false}},
{{"id": 150, "label": "make", "module": "Main", "src_loc": "Main.hs:(8,5)-(11,46)", "is_caf": false}}],
"profile": {profile}}}"#
        )
    }

    #[test]
    fn ticks_and_bytes_are_those_of_the_tree() {
        let text = report(
            r#"{"id": 144, "entries": 0, "alloc": 600, "ticks": 0, "children": [
                {"id": 150, "entries": 3, "alloc": 40, "ticks": 5, "children": [
                    {"id": 150, "entries": 2, "alloc": 8, "ticks": 1, "children": []}]},
                {"id": 150, "children": [], "ticks": 1}]}"#,
        );
        for bytes in [text.as_bytes().to_vec(), gzip(text.as_bytes())] {
            assert_eq!(detect(&bytes), Some(Format::GhcProf));
            let (profile, report) =
                read_ghc_prof(&bytes[..], &ReadOptions::default()).expect("a report");
            assert_eq!(report.notes, []);
            assert_eq!(profile.validate(), Ok(()));
            let totals: Vec<i64> = profile.series.iter().map(|series| series.total()).collect();
            assert_eq!(totals, [7_000_000, 648, 5]);
            let time = &profile.series[TIME];
            assert_eq!(
                (time.period, time.start_ns),
                (1_000_000, 1_540_464_660_000_000_000)
            );
            let depths: Vec<(usize, i64)> = time
                .samples
                .iter()
                .map(|sample| (profile.stacks.get(sample.stack).len(), sample.value))
                .collect();
            assert_eq!(depths, [(2, 6_000_000), (3, 1_000_000)]);
        }
    }

    #[test]
    fn trees_may_be_deep_and_broken_ones_are_refused() {
        let read = |text: &str| read_ghc_prof(text.as_bytes(), &ReadOptions::default());
        let start = r#"{"id": 150, "alloc": 1, "children": ["#;
        let deep = report(&format!("{}{}", start.repeat(1000), "]}".repeat(1000)));
        let (profile, _) = read(&deep).expect("a report");
        assert_eq!(profile.series[ALLOCATED].total(), 1000);
        let error = |text: &str| read(text).expect_err("broken").to_string();
        let unknown = error(&report(r#"{"id": 7, "children": []}"#));
        assert!(
            unknown.contains("cost centre 7 does not exist, the file has 2"),
            "{unknown}"
        );
        let text = report("{}");
        let without = text.replace("\"profile\"", "\"other\"");
        assert!(error(&without).contains("has no `profile`"));
        assert!(read(&deep[..deep.len() / 2]).is_err());
    }
}
