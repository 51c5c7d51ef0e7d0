//! What several tests share: the corpus, an independent pprof decoder, and profiles as plain text.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::allow_attributes,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "every test binary uses its own part of this module, and says what it skips"
)]

pub mod any_profile;
pub mod browser;
pub mod callgrind_costs;
pub mod dotnet_trace;
pub mod firefox_files;
pub mod jfr_recording;
pub mod offline_page;
pub mod otlp_request;
pub mod perf_data_sums;
pub mod perf_recording;
pub mod perf_text;
pub mod perfetto_packets;
pub mod perfetto_profile;
pub mod perfetto_python;
pub mod pprof_proto;
pub mod pprof_string;

use std::collections::BTreeMap;
use std::path::Path;

use candela_model::FlameTree;
use candela_model::FlameTreeBuilder;
use candela_model::FrameKind;
use candela_model::LabelValue;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::Sample;

/// A profile that a real program wrote.
pub struct RealFile {
    /// Its path inside of the folder of its kind.
    pub name: String,
    /// `ok`, `lenient` or what else the manifest expects.
    pub expected: String,
    pub bytes: Vec<u8>,
}

/// The real files of one kind. Never none: a test over nothing would pass.
pub fn real_files(folder: &str) -> Vec<RealFile> {
    let files = found_files(folder);
    assert!(!files.is_empty(), "no real files in {folder}");
    files
}

/// The files of one kind: those of the project, and those of a larger corpus where it lies beside
/// the checkout.
pub fn found_files(folder: &str) -> Vec<RealFile> {
    let manifest_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: BTreeMap<String, RealFile> = BTreeMap::new();
    for root in ["tests/data", "../../../shared/corpus"] {
        let root = manifest_dir.join(root);
        let Ok(manifest) = std::fs::read_to_string(root.join("MANIFEST.tsv")) else {
            eprintln!("skipped: no corpus at {}", root.display());
            continue;
        };
        for line in manifest.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let name = fields[0]
                .strip_prefix(folder)
                .and_then(|rest| rest.strip_prefix('/'));
            let (Some(name), "input") = (name, fields[5]) else {
                continue;
            };
            let file = RealFile {
                name: name.to_owned(),
                expected: (*fields.last().expect("fields")).to_owned(),
                bytes: std::fs::read(root.join(fields[0])).expect("what the manifest names"),
            };
            files.entry(name.to_owned()).or_insert(file);
        }
    }
    files.into_values().collect()
}

/// A file of the corpus that is the expected result of another one; `None` where there is no corpus.
pub fn corpus_file(path: &str) -> Option<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    std::fs::read(root.join(path)).ok()
}

/// Says that a test did not run, and why.
pub fn say_skipped(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// Compares with a file of `tests/golden`, or writes it when `UPDATE_GOLDEN` is set.
pub fn assert_golden(name: &str, found: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let path = folder.join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(&path, found).expect("writes");
        return;
    }
    let expected = std::fs::read(&path).unwrap_or_default();
    if expected != found {
        let found = String::from_utf8_lossy(found);
        panic!("tests/golden/{name} differs: run with UPDATE_GOLDEN=1\n{found}");
    }
}

/// The stacks of all series as folded lines, with what tells samples apart in front.
pub fn folded_lines(profile: &Profile) -> Vec<String> {
    let symbols = &profile.symbols;
    let text = |id| symbols.strings.get(id);
    let mut lines = Vec::new();
    for series in &profile.series {
        for sample in &series.samples {
            let mut labels: Vec<String> = profile
                .label_sets
                .get(sample.label_set)
                .iter()
                .map(|label| match label.value {
                    LabelValue::Text(value) => format!("{}={}", text(label.key), text(value)),
                    LabelValue::Number { value, .. } => format!("{}={value}", text(label.key)),
                })
                .collect();
            labels.sort();
            let stack = profile.stacks.get(sample.stack).iter().rev();
            let names: Vec<String> = stack
                .map(|&location| location_name(profile, location))
                .collect();
            lines.push(format!(
                "{} {} [{}] {} {}",
                series.labels,
                series.profile_type,
                labels.join(" "),
                names.join(";"),
                sample.value
            ));
        }
    }
    lines.sort();
    lines
}

/// Labels, stack, value and, where there is one, the time of each sample, without the series in front.
pub fn stack_lines(profile: &Profile) -> Vec<String> {
    let symbols = &profile.symbols;
    let mut lines = Vec::new();
    for sample in profile.series.iter().flat_map(|series| &series.samples) {
        let mut labels: Vec<String> = profile
            .label_sets
            .get(sample.label_set)
            .iter()
            .map(|label| {
                let key = symbols.strings.get(label.key);
                match label.value {
                    LabelValue::Text(value) => format!("{key}={}", symbols.strings.get(value)),
                    LabelValue::Number { value, .. } => format!("{key}={value}"),
                }
            })
            .collect();
        labels.sort();
        let names: Vec<String> = profile
            .stacks
            .get(sample.stack)
            .iter()
            .rev()
            .map(|&location| location_name(profile, location))
            .collect();
        let time = match sample.time_ns {
            0 => String::new(),
            time => format!(" @{time}"),
        };
        let (labels, names) = (labels.join(" "), names.join(";"));
        lines.push(format!("[{labels}] {names} {}{time}", sample.value));
    }
    lines.sort();
    lines
}

/// The values of a series by the function of their leaf.
pub fn self_values(profile: &Profile, series: usize) -> BTreeMap<String, i64> {
    let mut values = BTreeMap::new();
    for sample in &profile.series[series].samples {
        let leaf = profile.stacks.get(sample.stack).first();
        let name = leaf.map_or(String::new(), |&leaf| location_name(profile, leaf));
        *values.entry(name).or_default() += sample.value;
    }
    values
}

fn location_name(profile: &Profile, location: LocationId) -> String {
    let symbols = &profile.symbols;
    match symbols.lines(location).first() {
        Some(line) => symbols
            .strings
            .get(symbols.function(line.function).name)
            .to_owned(),
        None => symbols.address_name(location),
    }
}

/// A tree of stacks as `name` or `name@kind` separated by `;`, with values.
pub fn tree(stacks: &[(&str, i64)]) -> FlameTree {
    let mut builder = FlameTreeBuilder::new();
    for (stack, value) in stacks {
        let frames: Vec<_> = stack
            .split(';')
            .map(|frame| {
                let (name, kind) = frame.split_once('@').unwrap_or((frame, ""));
                builder
                    .frames
                    .intern(name, "", "", FrameKind::from_name(kind), 0)
            })
            .collect();
        builder.add_stack(frames, *value);
    }
    builder.finish()
}

/// One of the project's own real files.
pub fn real_file(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    std::fs::read(path).expect("a file of the project")
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
