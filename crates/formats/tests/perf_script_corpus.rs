//! The text of `perf script`, against what two other programs make of real files.
#![expect(clippy::print_stderr, reason = "a test says what it skips")]

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::found_files;
use crate::common::perf_text::read;
use crate::common::perf_text::types;
use crate::common::perf_text::written;
use candela_formats::Format;
use candela_formats::detect;
use candela_model::FrameKind;
use candela_model::LabelValue;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;

/// How other programs fold: what they put behind and before names.
#[derive(Clone, Copy, Default)]
struct Folding {
    marks_kernel: bool,
    marks_jit: bool,
    with_addresses: bool,
    with_pid: bool,
    with_tid: bool,
}

/// The stacks of a series as other programs fold them.
fn folded(profile: &Profile, series: &ProfileSeries, folding: Folding) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    for sample in &series.samples {
        let mut line = thread(profile, sample, folding);
        let is_java = line == "java";
        for &location in profile.stacks.get(sample.stack).iter().rev() {
            for name in names(profile, location, is_java, folding) {
                line.push(';');
                line.push_str(&name);
            }
        }
        *sums.entry(line).or_default() += sample.value;
    }
    sums
}

fn thread(profile: &Profile, sample: &Sample, folding: Folding) -> String {
    let text = |id| profile.symbols.strings.get(id);
    let mut labels: BTreeMap<&str, String> = BTreeMap::new();
    for label in profile.label_sets.get(sample.label_set) {
        let value = match label.value {
            LabelValue::Text(value) => text(value).replace(' ', "_"),
            LabelValue::Number { value, .. } => value.to_string(),
        };
        labels.insert(text(label.key), value);
    }
    let label = |name: &str| labels.get(name).map_or("?", String::as_str);
    let comm = label("thread_name");
    if folding.with_tid {
        return format!("{comm}-{}/{}", label("pid"), label("thread_id"));
    }
    if folding.with_pid {
        return format!("{comm}-{}", label("pid"));
    }
    comm.to_owned()
}

/// Of one location, outermost first.
fn names(profile: &Profile, location: LocationId, is_java: bool, folding: Folding) -> Vec<String> {
    let symbols = &profile.symbols;
    let text = |id| symbols.strings.get(id);
    let place = symbols.location(location);
    let file = text(symbols.mapping(place.mapping).file);
    // BPF programs run in the kernel and the vDSO does not, whatever others mark.
    let is_kernel = match file {
        "[vdso]" => true,
        file => place.kind == FrameKind::Kernel && !file.starts_with("bpf_prog"),
    };
    let mut mark = "";
    if folding.marks_kernel && is_kernel {
        mark = "_[k]";
    }
    if folding.marks_jit && (file.starts_with("/tmp/perf-") || file.contains("/jitted-")) {
        mark = "_[j]";
    }
    let lines = symbols.lines(location);
    if lines.is_empty() {
        let name = match file.rsplit('/').next() {
            None | Some("") => "unknown",
            Some(name) => name,
        };
        let address = match folding.with_addresses {
            true => format!(" <{:x}>", place.address),
            false => String::new(),
        };
        return vec![format!("[{name}{address}]{mark}")];
    }
    let outermost_first = lines.iter().rev().enumerate();
    let names = outermost_first.map(|(position, line)| {
        let name = tidy(text(symbols.function(line.function).name), is_java);
        // They mark what Java's agent tells, and not what perf tells.
        let is_inlined = position > 0 && file.starts_with("/tmp/perf-");
        format!("{name}{}", if is_inlined { "_[i]" } else { mark })
    });
    names.collect()
}

/// Without arguments, quotes and what would separate frames.
fn tidy(name: &str, is_java: bool) -> String {
    let name = name.replace(';', ":");
    let mut depth = 0;
    let arguments = name.char_indices().find(|&(position, character)| {
        match character {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        let is_name = name[position..].starts_with("(anonymous namespace)");
        let is_go = name.contains(".(") && name.contains(").");
        character == '(' && depth <= 0 && !is_name && !is_go
    });
    let end = arguments.map_or(name.len(), |(position, _)| position);
    let name = name[..end].replace(['"', '\''], "");
    match name.strip_prefix('L') {
        Some(class) if is_java && class.contains('/') => class.to_owned(),
        _ => name,
    }
}

/// Name of the input, name of the expected file, and its stacks.
fn expected_files() -> Vec<(String, String, BTreeMap<String, i64>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let Ok(manifest) = std::fs::read_to_string(root.join("MANIFEST.tsv")) else {
        eprintln!("skipped: no corpus at {}", root.display());
        return Vec::new();
    };
    let mut files = Vec::new();
    for line in manifest.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let Some(input) = fields[6].strip_prefix("perf-script/") else {
            continue;
        };
        let text = std::fs::read_to_string(root.join(fields[0])).unwrap();
        let stacks = text.lines().map(|line| {
            let (stack, value) = line.rsplit_once(' ').unwrap();
            (stack.to_owned(), value.parse().unwrap())
        });
        files.push((input.to_owned(), fields[0].to_owned(), stacks.collect()));
    }
    files
}

#[test]
fn real_files_fold_as_other_programs_fold_them() {
    let files = found_files("perf-script");
    let expected_files = expected_files();
    for (input, expected, stacks) in &expected_files {
        let file = files.iter().find(|file| file.name == *input).unwrap();
        // FlameGraph's own script loses a last sample without a blank line behind it.
        let is_scripts = !input.starts_with("inferno.");
        let end = file.bytes.windows(2).rposition(|pair| pair == b"\n\n");
        let end = end.filter(|_| is_scripts).unwrap_or(file.bytes.len());
        let (profile, _) = read(&file.bytes[..end]);
        let folding = Folding {
            marks_kernel: expected.contains("-all") || expected.contains("-kernel"),
            marks_jit: expected.contains("-all") || expected.contains("-jit"),
            with_addresses: expected.contains("-addrs"),
            with_pid: expected.contains("-pid."),
            with_tid: expected.contains("-tid."),
        };
        let mut sums = folded(&profile, &profile.series[0], folding);
        // They show the first event only, unless the event stands on the line of the stack.
        if input.contains("single-line") {
            sums.extend(folded(&profile, &profile.series[1], folding));
        }
        for (stack, value) in stacks {
            assert_eq!(sums.get(stack), Some(value), "{expected}: {stack}");
        }
        let added = sums.keys().find(|stack| !stacks.contains_key(*stack));
        assert_eq!(added, None, "{expected}");
    }
    eprintln!("{} expected files", expected_files.len());
}

/// Number and sum of periods by event: every line that is not indented is a header, ends with the
/// event, and has the period before it.
fn plain_sums(text: &str) -> BTreeMap<&str, (usize, i64)> {
    let mut sums: BTreeMap<&str, (usize, i64)> = BTreeMap::new();
    for line in text.lines() {
        if line.is_empty() || line.starts_with(['#', '\t', ' ']) {
            continue;
        }
        let mut words = line.split_whitespace().rev();
        let event = words.next().unwrap();
        let before = words.next().unwrap();
        let has_time = line.contains(": ");
        let period = before
            .parse()
            .ok()
            .filter(|_| has_time && words.count() > 1);
        let sum = sums.entry(event.strip_suffix(':').unwrap()).or_default();
        sum.0 += 1;
        sum.1 += period.unwrap_or(1);
    }
    sums
}

#[test]
fn real_files_keep_every_sample_and_survive_the_way_back() {
    for file in found_files("perf-script") {
        let name = &file.name;
        let start = &file.bytes[..file.bytes.len().min(4096)];
        assert_eq!(detect(start), Some(Format::PerfScript), "{name}");
        let (profile, report) = read(&file.bytes);
        eprintln!("{name}: {:?} {:?}", types(&profile), report.notes);
        if file.expected == "ok" {
            assert_eq!(report.notes, [], "{name}");
        }
        let is_headers_alone = file.expected == "ok" && !name.contains("single-line");
        if is_headers_alone {
            let text = std::str::from_utf8(&file.bytes).unwrap();
            let expected = plain_sums(text);
            let counts = profile.series.iter().map(|series| series.samples.len());
            let totals = profile.series.iter().map(ProfileSeries::total);
            let mut found: Vec<(usize, i64)> = counts.zip(totals).collect();
            let mut expected: Vec<(usize, i64)> = expected.into_values().collect();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{name}");
        }
        let (again, report) = read(&written(&profile));
        assert_eq!(report.notes, [], "{name}");
        let total = |profile: &Profile| -> Vec<i64> {
            profile.series.iter().map(ProfileSeries::total).collect()
        };
        assert_eq!(total(&again), total(&profile), "{name}");
        let folding = Folding::default();
        for (series, before) in again.series.iter().zip(&profile.series) {
            assert_eq!(series.profile_type, before.profile_type, "{name}");
            let found = folded(&again, series, folding);
            assert_eq!(found, folded(&profile, before, folding), "{name}");
        }
    }
}

#[test]
fn corner_cases_of_real_files_have_one_reading() {
    let files = found_files("perf-script");
    let read_file = |name: &str| {
        let file = files.iter().find(|file| file.name == name)?;
        Some(read(&file.bytes))
    };
    let Some((profile, report)) = read_file("inferno.empty-line.txt") else {
        return;
    };
    // The blank line between header and frame is a slip.
    assert_eq!(profile.series[0].total(), 500_000);
    assert_eq!(report.notes, []);
    let sums = folded(&profile, &profile.series[0], Folding::default());
    assert_eq!(sums["inline-counter;main"], 500_000);

    let (profile, report) = read_file("inferno.weird-stack-line.txt").unwrap();
    assert_eq!(report.count("lines_not_understood"), 1);
    assert_eq!(profile.series[0].total(), 500_000);

    let (profile, _) = read_file("perfview.corner_case_process_names.txt").unwrap();
    let sums = folded(&profile, &profile.series[0], Folding::default());
    let comms: Vec<&str> = sums
        .keys()
        .map(|line| line.split(';').next().unwrap())
        .collect();
    assert_eq!(comms, ["6", "77", "?", "k/2", "k/[2]", "k:2"]);
    assert_eq!(sums["6;main;symbol2;symbol"], 1);

    let (profile, _) = read_file("perfview.space_sep_command.txt").unwrap();
    let sums = folded(&profile, &profile.series[0], Folding::default());
    let comm = "comm_and3_another_part_to_the_command_line5_part3_part1";
    assert_eq!(sums[&format!("{comm};symbol")], 1);

    let (profile, _) = read_file("perfview.ms_stack.txt").unwrap();
    let symbols = &profile.symbols;
    let name = symbols.functions().first().unwrap().name;
    assert_eq!(
        symbols.strings.get(name),
        "type1 type2 [module] symbol(param[])"
    );

    let (profile, report) = read_file("perfview.mixed_switches.txt").unwrap();
    assert_eq!(
        types(&profile),
        [
            "sched_sched_switch:sched_sched_switch:count:sched_sched_switch:count",
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
        ]
    );
    assert_eq!(report.count("event_fields_left_out"), 4);

    let (profile, report) = read_file("perf-cycles-instructions-01.txt").unwrap();
    assert_eq!(
        types(&profile),
        [
            "instructions:samples:count:instructions:count",
            "cycles:samples:count:cycles:count"
        ]
    );
    let series = &profile.series[0];
    assert_eq!(series.labels.to_string(), "{host=\"bgregg-lgud2\"}");
    assert!(report.comments[0].starts_with("/usr/bin/perf record -e cycles"));
    // 2017-08-17 14:14:43, when the file was written.
    let end_ns = series.start_ns + series.duration_ns;
    assert_eq!(end_ns, 1_502_979_283_000_000_000);
}
