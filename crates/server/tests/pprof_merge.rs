//! Profiles merged here are what `go tool pprof` makes of the same files.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use candela_model::FrameKind;
use candela_model::LabelValue;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::SampleLabel;

use crate::support::START_NS;
use crate::support::TestServer;
use crate::support::cpu_type;
use crate::support::pprof_bytes;

/// Two binaries, an inlined function, an address without a name, a thread and a number of bytes.
/// `factor` tells the profiles apart, and each has a stack that the other lacks.
fn profile(factor: i64) -> Profile {
    let mut profile = Profile::default();
    let mut mapping = |file: &str, build_id: &str, start: u64| {
        let symbols = &mut profile.symbols;
        let mapping = Mapping {
            memory_start: start,
            memory_limit: start + 0x1000,
            file_offset: 0x100,
            file: symbols.strings.intern(file),
            build_id: symbols.strings.intern(build_id),
        };
        symbols.intern_mapping(mapping)
    };
    let (program, library) = (
        mapping("/usr/bin/demo", "c0ffee", 0x1000),
        mapping("/usr/lib/libdemo.so", "bead", 0x8000),
    );
    let symbols = &mut profile.symbols;
    let main = symbols.intern_function("main", "_Z4mainv", "main.c", 10);
    let inner = symbols.intern_function("inner", "inner", "main.c", 30);
    let outer = symbols.intern_function("outer", "outer", "main.c", 20);
    let place = |address: u64| Location::new(FrameKind::Unknown, address);
    let main = symbols.intern_location(&place(0x1010).in_mapping(program), &[(main, 12, 0)]);
    let inlined = symbols.intern_location(
        &place(0x1020).in_mapping(program),
        &[(inner, 31, 0), (outer, 22, 0)],
    );
    let bare = symbols.intern_location(&place(0x8040).in_mapping(library), &[]);
    let strings = &mut symbols.strings;
    let thread = SampleLabel::text(strings.intern("thread"), strings.intern("worker"));
    let bytes = SampleLabel {
        key: strings.intern("allocation"),
        value: LabelValue::Number {
            value: 512 * factor,
            unit: strings.intern("bytes"),
        },
    };
    let labels =
        [Vec::new(), vec![thread], vec![thread, bytes]].map(|set| profile.label_sets.intern(set));
    let own = if factor == 1 {
        vec![inlined, main]
    } else {
        vec![bare, inlined, main]
    };
    let stacks = [vec![main], own, vec![bare, main]].map(|stack| profile.stacks.intern(&stack));
    let mut series = ProfileSeries {
        start_ns: START_NS + factor,
        duration_ns: 1_000_000_000,
        period: 10,
        ..ProfileSeries::new(Labels::default(), cpu_type())
    };
    for (position, &stack) in stacks.iter().enumerate() {
        for (number, &label_set) in labels.iter().enumerate() {
            let value = factor * 100 + (position * 3 + number) as i64 * 10;
            series.samples.push(Sample {
                label_set,
                ..Sample::new(stack, value)
            });
        }
    }
    profile.series.push(series);
    profile
}

/// What `go tool pprof -raw` says of files, with everything that is numbered written out.
fn raw(files: &[&Path]) -> (BTreeMap<String, i64>, Vec<String>) {
    let output = Command::new("go")
        .args(["tool", "pprof", "-symbolize=none", "-raw"])
        .args(files)
        .output()
        .expect("go runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let (samples, rest) = text.split_once("\nLocations\n").expect("locations");
    let (locations, mappings) = rest.split_once("\nMappings\n").expect("mappings");
    let mut places: BTreeMap<&str, String> = BTreeMap::new();
    let mut current = "";
    for line in locations.lines() {
        let first = line.trim_start();
        let numbered = first
            .split_once(": 0x")
            .filter(|(number, _)| number.chars().all(|digit| digit.is_ascii_digit()));
        if let Some((number, _)) = numbered {
            current = number;
        }
        let text = numbered.map_or(first, |(_, text)| text);
        let words: Vec<&str> = text.split_whitespace().collect();
        let place = places.entry(current).or_default();
        // The numbers of mappings are those of a file as well.
        let words = words.iter().filter(|word| !word.starts_with("M="));
        place.push_str(&words.copied().collect::<Vec<_>>().join(" "));
        place.push('/');
    }
    let (_, samples) = samples.split_once("Samples:\n").expect("samples");
    let mut found: Vec<(i64, String)> = Vec::new();
    for line in samples.lines().skip(1) {
        let value = line.trim_start().split_once(": ");
        let value = value.and_then(|(value, ids)| Some((value.parse().ok()?, ids)));
        match (value, found.last_mut()) {
            (Some((value, ids)), _) => {
                let stack = ids.split_whitespace().map(|id| places[id].as_str());
                found.push((value, stack.collect::<Vec<_>>().join(" < ")));
            }
            // Labels stand below their sample.
            (None, Some((_, stack))) => {
                let mut labels: Vec<&str> = line.split_whitespace().collect();
                labels.sort_unstable();
                stack.push_str(&format!(" {labels:?}"));
            }
            (None, None) => {}
        }
    }
    let mut sums = BTreeMap::new();
    for (value, stack) in found {
        *sums.entry(stack).or_default() += value;
    }
    let mut mappings: Vec<String> = mappings
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(_, text)| text.split(" [").next().unwrap_or(text).trim().to_owned())
        .collect();
    mappings.sort();
    (sums, mappings)
}

mod host {
    use super::*;

    #[test]
    fn a_merged_profile_is_what_pprof_merges() {
        if Command::new("go").arg("version").output().is_err() {
            println!("skipped: there is no go");
            return;
        }
        let server = TestServer::start();
        let folder = tempfile::tempdir().expect("a temporary directory");
        let mut files = Vec::new();
        for factor in [1, 3] {
            let body = pprof_bytes(&profile(factor));
            let file = folder.path().join(format!("{factor}.pb.gz"));
            std::fs::write(&file, &body).expect("the folder is there");
            let answer = server.post("/api/v1/ingest?service=demo", &body);
            assert_eq!(answer.status, 200, "{}", answer.text());
            files.push(file);
            // One in a block, the other in the head.
            if factor == 1 {
                let flushed = server.runtime.block_on(server.store.flush());
                flushed.expect("flushes");
            }
        }
        let merged = server.get("/api/v1/pprof");
        let file = folder.path().join("merged.pb.gz");
        std::fs::write(&file, &merged.body).expect("the folder is there");
        let (ours, our_mappings) = raw(&[&file]);
        let (theirs, their_mappings) = raw(&[&files[0], &files[1]]);
        assert!(theirs.len() >= 12, "{theirs:#?}");
        assert_eq!(ours, theirs);
        assert_eq!(our_mappings, their_mappings);

        for filter in [
            "tagfocus=thread=worker",
            "tagignore=allocation=1kb:",
            "tagfocus=allocation=512b",
        ] {
            let (name, value) = filter.split_once('=').expect("a filter");
            let value: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
            let total = &server.json(&format!("/api/v1/top?{name}={value}"))["total"];
            let output = Command::new("go")
                .args(["tool", "pprof", "-symbolize=none", "-top", "-unit=ns"])
                .arg(format!("-{filter}"))
                .args(&files)
                .output()
                .expect("go runs");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let shown = text.split("Showing nodes accounting for ").nth(1);
            let shown = shown.and_then(|rest| rest.split("ns").next());
            assert_eq!(shown, Some(total.to_string().as_str()), "{filter}: {text}");
        }
    }
}
