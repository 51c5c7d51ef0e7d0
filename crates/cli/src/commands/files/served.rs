//! The statistics of a comparison of two selections, as a server tells them: it knows which instances
//! samples are of.

use std::collections::HashMap;

use candela_formats::DiffOptions;
use candela_formats::DiffStatistics;
use candela_insight::Change;
use candela_insight::ChangeClass;
use candela_insight::Confirmation;
use candela_insight::FunctionChange;
use candela_model::FlameDiff;
use candela_model::FrameId;
use candela_model::FrameTable;
use candela_model::ProfileType;
use serde::Deserialize;

use super::side::Selection;
use crate::args::GlobalArgs;
use crate::args::files::DiffArgs;
use crate::commands::client::Client;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;

/// What is read of an answer.
#[derive(Debug, Deserialize)]
struct Answer {
    statistics: Statistics,
    functions: Vec<Function>,
    #[serde(default)]
    tree: Tree,
}

/// Nodes in pre-order. A server that tests none has only the frames.
#[derive(Debug, Default, Deserialize)]
struct Tree {
    frames: Vec<Frame>,
    frame: Vec<u32>,
    depth: Vec<u16>,
    #[serde(default)]
    q: Vec<Option<f64>>,
    #[serde(default)]
    is_significant: Vec<Option<bool>>,
}

#[derive(Clone, Debug, Deserialize)]
struct Frame {
    name: String,
    file: String,
    mapping: String,
}

#[derive(Debug, Deserialize)]
struct Statistics {
    #[serde(default)]
    clusters_are: String,
    clusters_before: usize,
    clusters_after: usize,
    is_paired: bool,
    size_factor: f64,
    tested: usize,
    #[serde(default)]
    arrangements: usize,
    #[serde(default)]
    tested_nodes: usize,
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Function {
    name: String,
    file: String,
    mapping: String,
    change: ChangeOfServer,
    total_change: ChangeOfServer,
}

#[derive(Debug, Deserialize)]
struct ChangeOfServer {
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    p: Option<f64>,
    q: Option<f64>,
    is_significant: Option<bool>,
    permutation_p: Option<f64>,
    confirmation: Option<String>,
    class: String,
}

/// What a server found out.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) statistics: DiffStatistics,
    /// By name, file and binary. Kinds do not survive every format.
    functions: HashMap<[String; 3], FunctionChange>,
    /// By node of the union of both trees.
    pub(super) nodes: HashMap<u32, Change>,
}

impl Served {
    /// Asks for the comparison of two selections of this type, and for the nodes of the union of their
    /// trees, which may be left out.
    pub(super) fn ask(
        global: &GlobalArgs,
        arguments: &DiffArgs,
        [base, new]: [&Selection<'_>; 2],
        (profile_type, options, union): (&ProfileType, &DiffOptions, &FlameDiff),
    ) -> Result<Self, CliError> {
        let (profile_type, fdr) = (profile_type.to_string(), options.fdr.to_string());
        let mut parameters = vec![
            ("query", new.selector),
            ("from", new.from),
            ("to", new.to),
            ("base_query", base.selector),
            ("base_from", base.from),
            ("base_to", base.to),
            ("type", &profile_type),
            ("normalization", options.normalization.name()),
            ("fdr", &fdr),
            ("limit", "0"),
            // The trees are there, so only the table is wanted, or as many nodes as a server tests.
            ("max_nodes", if union.is_empty() { "1" } else { "20000" }),
        ];
        parameters.extend(arguments.filters.parameters());
        let bytes = Client::new(global)?.get("/api/v1/diff", &parameters)?;
        let answer: Answer =
            serde_json::from_slice(&bytes).or_exit(ExitStatus::Failed, "answer of the server")?;
        Ok(Self::of(answer, options, union))
    }

    fn of(answer: Answer, options: &DiffOptions, union: &FlameDiff) -> Self {
        let told = answer.statistics;
        let functions = answer.functions.into_iter().map(|function| {
            let change = FunctionChange {
                own: function.change.into(),
                total: function.total_change.into(),
            };
            ([function.name, function.file, function.mapping], change)
        });
        Self {
            statistics: DiffStatistics {
                normalization: options.normalization,
                fdr: options.fdr,
                clusters: told.clusters_are,
                clusters_before: told.clusters_before,
                clusters_after: told.clusters_after,
                is_paired: told.is_paired,
                size_factor: told.size_factor,
                tested: told.tested,
                arrangements: told.arrangements,
                tested_nodes: told.tested_nodes,
                reason: told.reason,
            },
            functions: functions.collect(),
            nodes: answer.tree.changes_in(union),
        }
    }

    /// What became of a function.
    pub(super) fn change(&self, frames: &FrameTable, frame: FrameId) -> Option<FunctionChange> {
        let frame = frames.get(frame);
        let texts = [frame.name, frame.file, frame.mapping];
        let texts = texts.map(|id| frames.strings.get(id).to_owned());
        self.functions.get(&texts).copied()
    }
}

impl Tree {
    /// What is known of the nodes of a tree of the same stacks: by node what is the same from the root down.
    /// Siblings that differ only in what texts do not tell (a start line, a kind) are not told apart, and
    /// nothing is known of them: their function's own verdict stands.
    fn changes_in(&self, union: &FlameDiff) -> HashMap<u32, Change> {
        let mut changes = HashMap::new();
        if union.is_empty() || self.q.len() != self.frame.len() {
            return changes;
        }
        let frames = &union.frames;
        let mut children: HashMap<(usize, [&str; 3]), Option<usize>> = HashMap::new();
        let mut path: Vec<usize> = Vec::new();
        for node in 0..union.len() {
            path.truncate(usize::from(union.depth[node]));
            if let Some(&parent) = path.last() {
                let frame = frames.get(union.frame[node]);
                let texts = [frame.name, frame.file, frame.mapping];
                let texts = texts.map(|id| frames.strings.get(id));
                children
                    .entry((parent, texts))
                    .and_modify(|place| *place = None)
                    .or_insert(Some(node));
            }
            path.push(node);
        }
        let mut places: Vec<Option<usize>> = Vec::new();
        let mut reached = vec![false; union.len()];
        let nodes = self.frame.iter().zip(&self.depth);
        let verdicts = self.q.iter().zip(&self.is_significant);
        for ((&frame, &depth), (&q, &is_significant)) in nodes.zip(verdicts) {
            places.truncate(usize::from(depth));
            let place = match places.last() {
                None => Some(0),
                Some(parent) => parent.and_then(|parent| {
                    let frame = self.frames.get(frame as usize)?;
                    let texts = [&frame.name, &frame.file, &frame.mapping];
                    let way = (parent, texts.map(String::as_str));
                    children.get(&way).copied().flatten()
                }),
            };
            places.push(place);
            let Some(place) = place else { continue };
            if std::mem::replace(&mut reached[place], true) {
                changes.remove(&(place as u32));
                continue;
            }
            if let Some(is_significant) = is_significant {
                let change = Change {
                    q,
                    is_significant,
                    ..Change::default()
                };
                changes.insert(place as u32, change);
            }
        }
        changes
    }
}

impl From<ChangeOfServer> for Change {
    fn from(told: ChangeOfServer) -> Self {
        let classes = [ChangeClass::New, ChangeClass::Gone, ChangeClass::Changed];
        let class = classes.into_iter().find(|class| class.name() == told.class);
        let confirmation = told.confirmation.as_deref();
        Self {
            ratio: told.ratio,
            low: told.low,
            high: told.high,
            p: told.p,
            q: told.q,
            is_significant: told.is_significant.unwrap_or(false),
            permutation_p: told.permutation_p,
            confirmation: confirmation.and_then(Confirmation::from_name),
            class: class.unwrap_or(ChangeClass::Same),
        }
    }
}

#[cfg(test)]
mod tests {
    use candela_model::FlameTreeBuilder;
    use candela_model::FrameKind;

    use super::*;

    #[test]
    fn functions_are_found_by_their_texts() {
        let change = r#"{"ratio": 1.5, "low": 1.2, "high": null, "p": 0.01, "q": 0.02,
            "is_significant": true, "permutation_p": 0.12, "confirmation": "doubtful", "class": "changed"}"#;
        let unknown = r#"{"ratio": null, "low": null, "high": null, "p": null, "q": null,
            "is_significant": null, "class": "new"}"#;
        let text = format!(
            r#"{{"statistics": {{"clusters_are": "instances", "clusters_before": 3, "clusters_after": 4,
            "is_paired": false, "size_factor": 1.25, "tested": 1, "reason": null}},
            "functions": [{{"name": "f", "file": "f.c", "mapping": "/bin/f", "kind": "native",
            "change": {change}, "total_change": {unknown}}}]}}"#
        );
        let answer: Answer = serde_json::from_str(&text).expect("an answer");
        let served = Served::of(answer, &DiffOptions::default(), &FlameDiff::default());
        assert_eq!(served.statistics.clusters_after, 4);
        let mut frames = FrameTable::default();
        let known = frames.intern("f", "f.c", "/bin/f", FrameKind::Unknown, 7);
        let other = frames.intern("f", "g.c", "/bin/f", FrameKind::Unknown, 7);
        let change = served.change(&frames, known).expect("it is there");
        assert!(change.own.is_significant && change.own.ratio == Some(1.5));
        assert_eq!(change.own.confirmation, Some(Confirmation::Doubtful));
        assert_eq!(change.total.class, ChangeClass::New);
        assert_eq!(served.change(&frames, other), None);
    }

    #[test]
    fn nodes_are_found_by_the_way_to_them() {
        let tree = r#"{"frames": [{"name": "total", "file": "", "mapping": ""}, {"name": "f", "file": "", "mapping": ""},
            {"name": "g", "file": "", "mapping": ""}], "frame": [0, 2, 1, 1], "depth": [0, 1, 2, 1],
            "q": [null, 0.5, null, 0.01], "is_significant": [null, false, null, true]}"#;
        let told: Tree = serde_json::from_str(tree).expect("a tree");
        let mut builder = FlameTreeBuilder::new();
        let [f, g] = ["f", "g"].map(|name| builder.frames.intern(name, "", "", FrameKind::Go, 0));
        builder.add_stack([f], 30);
        builder.add_stack([g, f], 10);
        let here = builder.finish();
        let union = FlameDiff::new(&here, &here, 0);
        let changes = told.changes_in(&union);
        let verdicts: Vec<(&str, Option<bool>)> = (0..union.len())
            .map(|node| {
                let verdict = changes.get(&(node as u32)).map(|it| it.is_significant);
                (union.frames.name(union.frame[node]), verdict)
            })
            .collect();
        let expected = [
            ("total", None),
            ("f", Some(true)),
            ("g", Some(false)),
            ("f", None),
        ];
        assert_eq!(verdicts, expected);
    }
    #[test]
    fn siblings_of_equal_texts_have_no_verdict_of_their_own() {
        let tree = r#"{"frames": [{"name": "total", "file": "", "mapping": ""}, {"name": "f", "file": "", "mapping": ""},
            {"name": "f", "file": "", "mapping": ""}], "frame": [0, 1, 2], "depth": [0, 1, 1],
            "q": [null, 0.5, 0.01], "is_significant": [null, false, true]}"#;
        let told: Tree = serde_json::from_str(tree).expect("a tree");
        let union_of = |lines: &[u32]| {
            let mut builder = FlameTreeBuilder::new();
            for &line in lines {
                let frame = builder.frames.intern("f", "", "", FrameKind::Go, line);
                builder.add_stack([frame], i64::from(line));
            }
            let here = builder.finish();
            FlameDiff::new(&here, &here, 0)
        };
        for lines in [&[10, 20][..], &[10][..]] {
            let changes = told.changes_in(&union_of(lines));
            assert_eq!(changes, HashMap::new(), "{lines:?}");
        }
    }
}
