//! What other programs write for the agent, and what rules make of it.

use candela_agent::RelabelAction;
use candela_agent::RelabelRule;
use candela_agent::RelabelSpec;
use candela_agent::parse_target_file;
use candela_agent::relabel;
use candela_model::Labels;

/// What was read can be relabelled, and a rule that keeps nothing keeps nothing.
pub(crate) fn target_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(groups) = parse_target_file(text) else {
        return;
    };
    for group in &groups {
        let labels = group.labels.clone();
        let Ok(Some(mapped)) = relabel(labels, &rules()) else {
            continue;
        };
        assert!(mapped.iter().all(|(name, _)| name.starts_with("kept_")));
    }
}

pub(crate) fn target_file_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "- targets: ['a:6060', b:6060]\n  labels:\n    env: prod\n    shard: 7\n- targets: []\n",
        "[{\"targets\": [\"a:1\"], \"labels\": {\"x\": \"y\", \"z\": \"\u{e9}\"}}]",
        "# nothing\n- &a {targets: [x:1], labels: {b: c}}\n- *a\n",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}

/// A rule of any pattern and replacement, on some labels: the first line is the action, the second
/// the pattern, the third the replacement, the fourth the target.
pub(crate) fn relabelling(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.split('\n');
    let mut next = || lines.next().unwrap_or_default().to_owned();
    let Some(action) = RelabelAction::of_name(&next()) else {
        return;
    };
    let spec = RelabelSpec {
        source_labels: vec!["a".to_owned(), "b".to_owned()],
        action,
        regex: next(),
        replacement: next(),
        target_label: next(),
        modulus: 7,
        ..RelabelSpec::default()
    };
    let Ok(rule) = RelabelRule::new(spec) else {
        return;
    };
    let labels = Labels::from_pairs([("a", "10.0.0.1:80"), ("b", "web"), ("__meta_x", "y")]);
    let Ok(Some(changed)) = relabel(labels, &[rule]) else {
        return;
    };
    assert!(
        changed
            .iter()
            .all(|(name, value)| !name.is_empty() && !value.is_empty())
    );
}

pub(crate) fn relabelling_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "replace\n(.+?)(?::\\d+)?;(.*)\n$1:${2}$$\n__address__",
        "labelmap\n__meta_(.+)\n$1\n",
        "hashmod\n.*\n\nshard",
        "keep\n10.*;web\n\n",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}

fn rules() -> Vec<RelabelRule> {
    let rule = |action, regex: &str, replacement: &str| {
        let spec = RelabelSpec {
            action,
            regex: regex.to_owned(),
            replacement: replacement.to_owned(),
            ..RelabelSpec::default()
        };
        RelabelRule::new(spec).expect("a sound rule")
    };
    vec![
        rule(RelabelAction::LabelMap, "(.*)", "kept_$1"),
        rule(RelabelAction::LabelKeep, "kept_.*", ""),
    ]
}
