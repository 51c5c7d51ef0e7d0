//! What several tests share: the corpus, an independent pprof decoder, and profiles as plain text.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::allow_attributes,
    clippy::print_stderr,
    reason = "every test binary uses its own part of this module, and says what it skips"
)]

pub mod otlp_request;
pub mod pprof_proto;

use std::collections::BTreeMap;
use std::path::PathBuf;

use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::Sample;

/// A folder of the corpus of real files, which is not part of the project.
pub fn corpus(folder: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/corpus")
        .join(folder);
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("skipped: no corpus at {}", path.display());
    None
}

/// Names of the files in a folder of the corpus with what the manifest expects of them.
pub fn manifest(folder: &str) -> Vec<(String, String)> {
    let Some(path) = corpus(folder) else {
        return Vec::new();
    };
    let text = std::fs::read_to_string(path.join("../MANIFEST.tsv")).expect("a manifest");
    let prefix = format!("{folder}/");
    text.lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let name = fields[0].strip_prefix(&prefix)?;
            let is_input = fields[5] == "input";
            is_input.then(|| {
                (
                    name.to_owned(),
                    (*fields.last().expect("fields")).to_owned(),
                )
            })
        })
        .collect()
}

/// Compares two contents and shows the first difference only: whole profiles fill screens.
pub fn assert_same_content(found: &Profile, expected: &Profile, name: &str) {
    let (found, expected) = (content(found), content(expected));
    for (key, value) in &expected {
        assert_eq!(found.get(key), Some(value), "{name}: {key}");
    }
    let added = found.keys().find(|key| !expected.contains_key(*key));
    assert_eq!(added, None, "{name}");
}

/// The summed value of everything that tells samples apart, as text.
pub fn content(profile: &Profile) -> BTreeMap<String, i64> {
    let mut content = BTreeMap::new();
    for series in &profile.series {
        for sample in &series.samples {
            let key = format!(
                "{} {} [{}+{} /{}] {}",
                series.labels,
                series.profile_type,
                series.start_ns,
                series.duration_ns,
                series.period,
                describe(profile, sample)
            );
            *content.entry(key).or_default() += sample.value;
        }
    }
    content
}

/// Stack, labels, link and time of a sample as text.
pub fn describe(profile: &Profile, sample: &Sample) -> String {
    let symbols = &profile.symbols;
    let text = |id| symbols.strings.get(id);
    let mut parts = Vec::new();
    for &id in profile.stacks.get(sample.stack) {
        let location = symbols.location(id);
        let mapping = symbols.mapping(location.mapping);
        let lines: Vec<String> = symbols
            .lines(id)
            .iter()
            .map(|line| {
                let function = symbols.function(line.function);
                format!(
                    "{}|{}|{}|{}@{}:{}",
                    text(function.name),
                    text(function.system_name),
                    text(function.file),
                    function.start_line,
                    line.line,
                    line.column
                )
            })
            .collect();
        parts.push(format!(
            "{:#x}/{}/{}/{}-{}+{}/{:?}",
            location.address,
            text(mapping.file),
            text(mapping.build_id),
            mapping.memory_start,
            mapping.memory_limit,
            mapping.file_offset,
            lines
        ));
    }
    let mut labels: Vec<String> = profile
        .label_sets
        .get(sample.label_set)
        .iter()
        .map(|label| match label.value {
            LabelValue::Text(value) => format!("{}={:?}", text(label.key), text(value)),
            LabelValue::Number { value, unit } => {
                format!("{}={value} {}", text(label.key), text(unit))
            }
        })
        .collect();
    labels.sort();
    let link = profile.links[sample.link.index()];
    format!("{parts:?} {labels:?} {link:?} {}", sample.time_ns)
}
