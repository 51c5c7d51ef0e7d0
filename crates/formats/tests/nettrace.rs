//! Traces of .NET: real ones, each version by hand, and damage.

use std::collections::BTreeMap;

use crate::common::dotnet_trace::Bytes;
use crate::common::dotnet_trace::START_NS;
use crate::common::dotnet_trace::all_versions;
use crate::common::dotnet_trace::block;
use crate::common::dotnet_trace::bytes;
use crate::common::dotnet_trace::clock;
use crate::common::dotnet_trace::version_4;
use crate::common::folded_lines;
use crate::common::found_files;
use candela_formats::Format;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::detect;
use candela_formats::inflate;
use candela_formats::read;
use candela_formats::read_nettrace;
use candela_model::LabelValue;
use candela_model::Profile;
use proptest::prelude::*;

fn read_bytes(bytes: &[u8]) -> (Profile, Report) {
    let (profile, report) = read_nettrace(bytes, &ReadOptions::default()).unwrap();
    assert_eq!(profile.validate(), Ok(()));
    (profile, report)
}

fn codes(report: &Report) -> Vec<&str> {
    report.notes.iter().map(|note| note.code).collect()
}

fn check_example(profile: &Profile, report: &Report) {
    assert_eq!(codes(report), [""; 0]);
    let pid = "pid=77 thread_id=9";
    let main = "App.Program.Main";
    let work = "App.Program.Main;App.Worker.Work";
    assert_eq!(
        folded_lines(profile),
        [
            format!(
                "{{}} memory:alloc_space:bytes:space:bytes [object_class=System.String {pid}] {work} 102400"
            ),
            format!(
                "{{}} wall:samples:count:wall:nanoseconds [{pid} thread_state=external] {work} 1"
            ),
            format!(
                "{{}} wall:samples:count:wall:nanoseconds [{pid} thread_state=managed] {main};0x9999 1"
            ),
            format!(
                "{{}} wall:samples:count:wall:nanoseconds [{pid} thread_state=managed] {work} 1"
            ),
            format!(
                "{{}} wall:wall:nanoseconds:wall:nanoseconds [{pid} thread_state=external] {work} 2000000"
            ),
            format!(
                "{{}} wall:wall:nanoseconds:wall:nanoseconds [{pid} thread_state=managed] {main};0x9999 2000000"
            ),
            format!(
                "{{}} wall:wall:nanoseconds:wall:nanoseconds [{pid} thread_state=managed] {work} 2000000"
            ),
        ]
    );
    let series = &profile.series[0];
    assert_eq!(series.period, 2_000_000);
    assert_eq!(series.start_ns, START_NS + 1_000_000);
    assert_eq!(series.duration_ns, 7_000_000);
    assert_eq!(series.samples[1].time_ns, START_NS + 3_000_000);
    let symbols = &profile.symbols;
    let leaf = profile.stacks.get(series.samples[0].stack)[0];
    let mapping = symbols.mapping(symbols.location(leaf).mapping);
    assert_eq!(symbols.strings.get(mapping.file), "/app/app.dll");
    let function = symbols.function(symbols.lines(leaf)[0].function);
    assert_eq!(
        symbols.strings.get(function.system_name),
        "App.Worker.Work(int32)"
    );
}

#[test]
fn all_versions_say_the_same() {
    for file in all_versions() {
        assert_eq!(detect(&file), Some(Format::Nettrace));
        let (profile, report) = read_bytes(&file);
        check_example(&profile, &report);
    }
}

#[test]
fn stacks_are_numbered_anew_after_a_sequence_point() {
    let file = version_4(true);
    // The point in front of the events instead of behind them.
    let is_point = |window: &[u8]| window == b"SPBlock";
    let at = file.windows(7).position(is_point).unwrap();
    let mut moved = file[..file.len() - 1].to_vec();
    let point = moved.split_off(at - 15);
    let events = moved
        .windows(10)
        .rposition(|window| window == b"EventBlock")
        .unwrap()
        - 15;
    // Both stay aligned as they are multiples of four apart, or the reader would say so.
    let tail = moved.split_off(events);
    let moved = bytes().raw(&moved);
    let data = &point[15 + 7 + 1..];
    let length = u32::from_le_bytes(data[..4].try_into().unwrap());
    assert_eq!(length, 12);
    let moved = block(moved, "SPBlock", 5, &[0; 12]);
    let name_end = 15 + 10 + 1;
    let length = u32::from_le_bytes(tail[name_end..name_end + 4].try_into().unwrap()) as usize;
    let content = &tail[tail.len() - 1 - length..tail.len() - 1];
    let moved = block(moved, "EventBlock", 5, content).u8(1).0;
    let (profile, report) = read_bytes(&moved);
    assert_eq!(codes(&report), ["stacks_missing"]);
    assert_eq!(report.count("stacks_missing"), 4);
    assert_eq!(profile.series[0].total(), 3);
}

#[test]
fn recordings_of_a_machine_have_samples_of_processors() {
    let block =
        |file: Bytes, kind: u32, data: &[u8]| file.u32(data.len() as u32 | kind << 24).raw(data);
    let threads = [(1, 70, 71), (2, 80, 81)]
        .iter()
        .fold(bytes(), |data, (index, pid, tid)| {
            let row = bytes()
                .varuint(*index)
                .u8(2)
                .varuint(*pid)
                .u8(3)
                .varuint(*tid)
                .u8(1)
                .utf8("loop");
            data.u16(row.0.len() as u16).raw(&row.0)
        });
    let kinds = [
        (1, "Universal.Events", 0, "cpu"),
        (2, "Universal.System", 3, ""),
        (3, "Universal.System", 4, ""),
    ];
    let rows = kinds
        .iter()
        .fold(bytes().u16(0), |data, (number, provider, event, name)| {
            let row = bytes()
                .varuint(*number)
                .utf8(provider)
                .varuint(*event)
                .utf8(name)
                .u16(0)
                .u16(0);
            data.u16(row.0.len() as u16).raw(&row.0)
        });
    let text = |bytes: Bytes, text: &str| bytes.u16(text.len() as u16).raw(text.as_bytes());
    let mapping = |name: &str| {
        text(
            bytes()
                .varuint(1)
                .varuint(0x1000)
                .varuint(0x3000)
                .varuint(0),
            name,
        )
        .varuint(0)
        .0
    };
    let symbol = |name: &str| {
        text(
            bytes()
                .varuint(1)
                .varuint(1)
                .varuint(0x2000)
                .varuint(0x2100),
            name,
        )
        .0
    };
    let mut events = bytes().u16(20).u16(1).u64(0).u64(0);
    let list: [(u64, u64, u64, Vec<u8>); 6] = [
        (1, 1, 1, bytes().varuint(1).0),
        (1, 2, 1, bytes().varuint(1).0),
        (2, 1, 0, mapping("/bin/one")),
        (3, 1, 0, symbol("one_work")),
        (2, 2, 0, mapping("/bin/two")),
        (3, 2, 0, symbol("two_work")),
    ];
    for (number, thread, stack, payload) in list {
        events = events
            .u8(1 | 4 | 8 | 128)
            .varuint(number)
            .varuint(thread)
            .varuint(stack)
            .varuint(1)
            .varuint(payload.len() as u64)
            .raw(&payload);
    }
    let stacks = bytes().u32(1).u32(1).u32(16).u64(0x2010).u64(0x1010);
    let file = bytes().raw(b"Nettrace").u32(0).u32(6).u32(0);
    let file = block(file, 1, &clock().u32(0).0);
    let file = block(file, 6, &threads.0);
    let file = block(file, 3, &rows.0);
    let file = block(file, 5, &stacks.0);
    let file = block(file, 2, &events.0);
    let (profile, report) = read_bytes(&block(file, 0, &[]).0);
    assert_eq!(codes(&report), [""; 0]);
    assert_eq!(
        folded_lines(&profile),
        [
            "{} process_cpu:samples:count:cpu:nanoseconds [pid=70 thread_id=71 thread_name=loop] one+0x100f;one_work 1",
            "{} process_cpu:samples:count:cpu:nanoseconds [pid=80 thread_id=81 thread_name=loop] two+0x100f;two_work 1",
        ]
    );
}

/// Sums of a series by `thread_state`.
fn by_state(profile: &Profile, position: usize) -> BTreeMap<String, i64> {
    let strings = &profile.symbols.strings;
    let mut sums = BTreeMap::new();
    for sample in &profile.series[position].samples {
        let labels = profile.label_sets.get(sample.label_set);
        let state = labels.iter().find_map(|label| match label.value {
            LabelValue::Text(text) if strings.get(label.key) == "thread_state" => {
                Some(strings.get(text).to_owned())
            }
            _ => None,
        });
        *sums.entry(state.unwrap_or_default()).or_default() += sample.value;
    }
    sums
}

#[test]
fn real_traces_have_the_samples_that_they_have() {
    // Counted with a few lines of Python from the description of the format.
    let expected: [(&str, &[(&str, i64)]); 2] = [
        ("only_managed_samples.nettrace.zip", &[("managed", 7423)]),
        (
            "mixed_managed_external_samples.nettrace.zip",
            &[("external", 2427), ("managed", 3904)],
        ),
    ];
    for file in found_files("nettrace") {
        assert_eq!(detect(&file.bytes), Some(Format::Nettrace), "{}", file.name);
        let plain = inflate(&file.bytes, 1 << 30).unwrap();
        assert_eq!(
            detect(&plain[..4096.min(plain.len())]),
            Some(Format::Nettrace)
        );
        let result = read(Format::Nettrace, &file.bytes[..], &ReadOptions::default());
        let Some((_, states)) = expected.iter().find(|known| known.0 == file.name) else {
            let error = result.unwrap_err().to_string();
            assert_eq!(file.expected, "lenient");
            assert!(
                error.contains("no stack sample and no tick of allocation"),
                "{error}"
            );
            continue;
        };
        let (profile, report) = result.unwrap();
        assert_eq!(profile.validate(), Ok(()));
        println!("{}: {:?}", file.name, report.notes);
        for line in folded_lines(&profile).iter().rev().step_by(900) {
            println!("{line}");
        }
        assert_eq!(codes(&report), [""; 0]);
        let counts: BTreeMap<String, i64> = states
            .iter()
            .map(|(state, count)| ((*state).to_owned(), *count))
            .collect();
        assert_eq!(by_state(&profile, 0), counts);
        let total: i64 = counts.values().sum();
        assert_eq!(
            profile.series[1].profile_type.to_string(),
            "wall:wall:nanoseconds:wall:nanoseconds"
        );
        assert_eq!(profile.series[1].total(), total * 1_000_000);
        let symbols = &profile.symbols;
        let mut named = 0;
        for sample in &profile.series[0].samples {
            let stack = profile.stacks.get(sample.stack);
            named += i64::from(
                stack
                    .iter()
                    .all(|location| !symbols.lines(*location).is_empty()),
            );
        }
        assert!(
            named * 100 >= total * 99,
            "{named} of {total} stacks have all names"
        );
    }
}

#[test]
fn damage_is_noted_and_nothing_is_an_error() {
    for file in all_versions() {
        for length in 0..file.len() {
            if let Ok((profile, report)) = read_nettrace(&file[..length], &ReadOptions::default()) {
                assert_eq!(profile.validate(), Ok(()));
                assert!(
                    !report.notes.is_empty() || length + 4 >= file.len(),
                    "cut at {length}"
                );
            }
        }
    }
    for (bytes, message) in [
        (&b""[..], "does not begin as a trace does"),
        (
            &b"Nettrace\0\0\0\0\x07\0\0\0\0\0\0\0"[..],
            "version 7 are not read, those of 3 to 6 are",
        ),
        (
            &b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0\0\0\0\0"[..],
            "no trace block",
        ),
        (
            &b"\x14\0\0\0!FastSerialization.1\x04\x04\x01\x02\0\0\0\0\0\0\0\x26\0\0\0\
                Microsoft.DotNet.Runtime.EventPipeFile\x06\xe1\x07"[..],
            "version 2 are not read, those of 3 to 6 are",
        ),
        (
            &b"\x14\0\0\0!FastSerialization.1\x01"[..],
            "no object `Trace`",
        ),
    ] {
        let error = read_nettrace(bytes, &ReadOptions::default()).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
}

proptest! {
    #[test]
    fn any_mutation_is_survived(
        version in 0_usize..5, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
    ) {
        let mut file = all_versions()[version].clone();
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Ok((profile, _)) = read_nettrace(&file[..], &ReadOptions::default()) {
            prop_assert_eq!(profile.validate(), Ok(()));
        }
    }
}
