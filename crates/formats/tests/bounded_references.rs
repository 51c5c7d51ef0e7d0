//! What is written down once and referred to often costs no more than the limits say, whatever
//! the format.

use crate::common::dotnet_trace::Bytes;
use crate::common::dotnet_trace::RUNTIME;
use crate::common::dotnet_trace::bytes;
use crate::common::dotnet_trace::clock;
use crate::common::perfetto_packets::Msg;
use crate::common::perfetto_packets::msg;
use crate::common::perfetto_packets::text;
use crate::common::perfetto_packets::trace;
use candela_formats::Format;
use candela_formats::Limits;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::read;
use candela_model::Profile;
use serde_json::Value;
use serde_json::json;

const WORK: &str = "the work that references within the input make";

fn read_within(format: Format, bytes: &[u8], limits: Limits) -> Result<(Profile, Report), String> {
    let options = ReadOptions {
        limits,
        ..ReadOptions::default()
    };
    read(format, bytes, &options).map_err(|error| error.to_string())
}

fn of_bytes(max_inflated_bytes: usize) -> Limits {
    Limits {
        max_inflated_bytes,
        ..Limits::default()
    }
}

/// The input passes with the usual limits and is too much with these.
#[track_caller]
fn assert_bounded(format: Format, bytes: &[u8], limits: Limits, what: &str) {
    assert!(bytes.len() < limits.max_inflated_bytes, "{}", bytes.len());
    read_within(format, bytes, Limits::default()).unwrap();
    let error = read_within(format, bytes, limits).unwrap_err();
    assert!(error.starts_with(what), "{error}");
}

/// A packet of sequence 1 that begins it with these data.
fn start(interned: &Msg) -> Msg {
    msg().n(10, 1).n(13, 1).m(12, interned)
}

fn sample(thread: u64, callstack: u64) -> Msg {
    let sample = msg().n(2, 7).n(3, thread).n(4, callstack);
    msg().n(8, 1).n(10, 1).n(13, 2).m(66, &sample)
}

/// Frames 1 to `count` of mapping 1, and stack 1 of all of them.
fn frames(mut interned: Msg, count: u64, address: impl Fn(u64) -> u64) -> Msg {
    let mut stack = msg().n(1, 1);
    for frame in 1..=count {
        let place = msg().n(1, frame).n(3, 1).n(4, address(frame));
        interned = interned.m(6, &place);
        stack = stack.n(2, frame);
    }
    interned.m(7, &stack)
}

#[test]
fn paths_of_perfetto_are_paid_for_by_each_frame() {
    let path = msg().n(1, 1).b(7, &[9; 1000]);
    let many = frames(msg().m(19, &path), 100, |frame| frame);
    let bytes = trace(&[start(&many), sample(8, 1)]);
    assert_bounded(Format::Perfetto, &bytes, of_bytes(50_000), WORK);
}

#[test]
fn a_frame_of_perfetto_is_made_once_for_many_stacks() {
    let path = msg().n(1, 1).b(7, &[9; 1000]);
    let mut interned = frames(msg().m(19, &path), 1, |frame| frame);
    for stack in 2..100 {
        interned = interned.m(7, &msg().n(1, stack).n(2, 1));
    }
    let mut packets = vec![start(&interned)];
    packets.extend((1..100).map(|stack| sample(8, stack)));
    let (profile, _) = read_within(Format::Perfetto, &trace(&packets), of_bytes(9_000)).unwrap();
    assert_eq!(profile.series[0].total(), 99);
}

#[test]
fn symbols_of_perfetto_are_paid_for_by_each_frame() {
    let build_id = msg().n(1, 1).b(2, &[0xab]);
    let mapping = msg().n(1, 1).n(2, 1);
    // Frames differ in their function, which symbols are better than.
    let interned = frames(msg().m(16, &build_id).m(19, &mapping), 100, |_| 0x10);
    let lines = (0..1000).fold(msg().n(1, 0x10), |lines, _| lines.m(2, &msg()));
    let symbols = msg().n(10, 1).m(61, &msg().b(2, &[0xab]).m(3, &lines));
    let bytes = trace(&[start(&interned), symbols, sample(8, 1)]);
    assert_bounded(Format::Perfetto, &bytes, of_bytes(50_000), WORK);
}

#[test]
fn sequences_and_threads_of_perfetto_are_counted() {
    let mut packets: Vec<Msg> = (2..202).map(|sequence| msg().n(10, sequence)).collect();
    packets.extend([start(&msg().m(7, &msg().n(1, 1))), sample(8, 1)]);
    let few = |max_messages| Limits {
        max_messages,
        ..Limits::default()
    };
    let what = "the number of interned entries";
    assert_bounded(Format::Perfetto, &trace(&packets), few(1000), what);
    let threads = (0..100).fold(msg(), |tree, thread| tree.m(2, &msg().n(1, thread)));
    let bytes = trace(&[msg().m(2, &threads), start(&msg()), sample(8, 0)]);
    assert_bounded(Format::Perfetto, &bytes, few(50), what);
    let entries = (0..100).fold(msg(), |entries, iid| entries.m(5, &text(iid, "f")));
    let bytes = trace(&[start(&entries), sample(8, 0)]);
    assert_bounded(Format::Perfetto, &bytes, few(50), what);
    let heap = (0..100).fold(msg().n(1, 7), |heap, _| heap.m(2, &msg().n(2, 8)));
    let dump = msg().n(10, 1).n(13, 1).m(37, &msg().m(5, &heap));
    assert_bounded(Format::Perfetto, &trace(&[dump]), few(80), what);
}

#[test]
fn names_of_processes_are_paid_for_by_each_thread_of_perfetto() {
    let process = msg().n(1, 7).s(3, &"p".repeat(1000));
    let mut packets = vec![msg().m(2, &msg().m(1, &process)), start(&msg())];
    packets.extend((100..200).map(|thread| sample(thread, 0)));
    assert_bounded(Format::Perfetto, &trace(&packets), of_bytes(50_000), WORK);
}

#[test]
fn counters_of_a_sample_of_perfetto_are_bounded() {
    let counter = msg().n(1, 1).s(2, "cycles");
    let many = [1; 1500];
    let counted = msg().b(13, &many).b(14, &many);
    let packet = msg().n(8, 1).n(10, 1).n(13, 2).m(135, &counted);
    let bytes = trace(&[start(&msg().m(50, &counter)), packet]);
    let (profile, report) = read_within(Format::Perfetto, &bytes, Limits::default()).unwrap();
    assert_eq!(report.count("followers_left_out"), 1500 - 1024);
    assert_eq!(profile.series[1].total(), 1024);
}

fn nettrace_block(file: Bytes, kind: u32, data: &[u8]) -> Bytes {
    file.u32(data.len() as u32 | kind << 24).raw(data)
}

/// A trace with events of a kind: thread, stack and payload.
fn nettrace(
    (provider, event, name): (&str, u64, &str),
    threads: &[Bytes],
    stack: &[u8],
    events: &[(u64, u64, Vec<u8>)],
) -> Vec<u8> {
    let threads = threads.iter().fold(bytes(), |data, row| {
        data.u16(row.0.len() as u16).raw(&row.0)
    });
    let kind = bytes()
        .varuint(1)
        .utf8(provider)
        .varuint(event)
        .utf8(name)
        .u16(0)
        .u16(0);
    let kinds = bytes().u16(0).u16(kind.0.len() as u16).raw(&kind.0);
    let stacks = bytes().u32(1).u32(1).u32(stack.len() as u32).raw(stack);
    let mut list = bytes().u16(20).u16(1).u64(0).u64(0);
    for (thread, stack, payload) in events {
        list = list
            .u8(1 | 4 | 8 | 128)
            .varuint(1)
            .varuint(*thread)
            .varuint(*stack)
            .varuint(1)
            .varuint(payload.len() as u64)
            .raw(payload);
    }
    let file = bytes().raw(b"Nettrace").u32(0).u32(6).u32(0);
    let file = nettrace_block(file, 1, &clock().u32(0).0);
    let file = nettrace_block(file, 6, &threads.0);
    let file = nettrace_block(file, 3, &kinds.0);
    let file = nettrace_block(file, 5, &stacks.0);
    let file = nettrace_block(file, 2, &list.0);
    nettrace_block(file, 0, &[]).0
}

#[test]
fn addresses_of_nettrace_are_paid_for_by_each_process() {
    let thread = |number| bytes().varuint(number).u8(2).varuint(number);
    let threads: Vec<Bytes> = (1..=50).map(thread).collect();
    let stack = (1..=100).fold(bytes(), |stack, address| stack.u64(address * 16));
    let events: Vec<_> = (1..=50).map(|thread| (thread, 1, vec![0])).collect();
    let file = nettrace(("Universal.Events", 0, "cpu"), &threads, &stack.0, &events);
    assert_bounded(Format::Nettrace, &file, of_bytes(50_000), WORK);
}

#[test]
fn names_of_threads_of_nettrace_are_paid_for_by_each_class() {
    let thread = bytes().varuint(1).u8(1).utf8(&"t".repeat(5_000));
    let allocation = |class: u64| {
        let head = bytes().u32(1).u32(0).u16(0).u64(1).u64(0);
        (1, 0, head.utf16(&class.to_string()).0)
    };
    let events: Vec<_> = (0..100).map(allocation).collect();
    let file = nettrace((RUNTIME, 10, ""), &[thread], &[], &events);
    assert_bounded(Format::Nettrace, &file, of_bytes(50_000), WORK);
}

fn chrome_event(phase: &str, name: &str, thread: usize) -> Value {
    json!({"ph": phase, "name": name, "pid": 1, "tid": thread, "ts": 1, "dur": 1})
}

#[test]
fn names_of_processes_are_paid_for_by_each_thread_of_chrome() {
    let name =
        json!({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "p".repeat(1000)}});
    let mut events = vec![name];
    events.extend((0..100).map(|thread| chrome_event("X", "f", thread)));
    let file = Value::Array(events).to_string();
    assert_bounded(Format::ChromeTrace, file.as_bytes(), of_bytes(50_000), WORK);
}

#[test]
fn threads_of_chrome_are_paid_for() {
    let events: Vec<Value> = (0..300)
        .map(|thread| chrome_event("X", "f", thread))
        .collect();
    let file = Value::Array(events).to_string();
    assert_bounded(Format::ChromeTrace, file.as_bytes(), of_bytes(30_000), WORK);
}

#[test]
fn values_of_cpu_profiles_in_pieces_are_counted() {
    let piece = json!({"data": {"cpuProfile": {
        "nodes": [{"id": 1, "callFrame": {"functionName": "f"}}], "samples": [1, 1, 1, 1]}}});
    let event =
        json!({"ph": "P", "name": "ProfileChunk", "pid": 1, "id": 1, "ts": 1, "args": piece});
    let file = Value::Array(vec![event; 10]).to_string();
    let limits = Limits {
        max_messages: 40,
        ..Limits::default()
    };
    let what = "the number of values in the JSON";
    assert_bounded(Format::ChromeTrace, file.as_bytes(), limits, what);
}

/// Seconds when each beginning looks through all ends.
#[test]
fn ends_of_the_same_moment_take_no_quadratic_time() {
    let count = 100_000;
    let event = |phase, name, number| {
        format!(r#",{{"ph":"{phase}","name":"{name}{number}","pid":1,"tid":1,"ts":1}}"#)
    };
    let mut file = format!("[{}", chrome_event("X", "f", 1));
    file.extend((0..count).map(|number| event("E", "ended", number)));
    file.extend((0..count).map(|number| event("B", "other", number)));
    // The one beginning that has its end before it.
    file.push_str(&event("B", "ended", 0));
    file.push(']');
    let (profile, report) =
        read_within(Format::ChromeTrace, file.as_bytes(), Limits::default()).unwrap();
    assert_eq!(profile.series[0].total(), 1000);
    assert_eq!(report.count("ends_without_begin"), count - 1);
    assert_eq!(report.count("events_left_open"), count);
}

/// As trees they would be refused: they are deeper than recursion may go.
#[test]
fn what_nobody_asks_for_in_events_makes_no_trees() {
    let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    let file = format!(
        r#"{{"traceEvents": [{{"ph": "X", "name": "f", "pid": 1, "tid": 1, "ts": 1, "dur": 1,
            "args": {{"more": {deep}, "url": "a.js", "line": 54, "funcLine": "50"}}}}],
            "stackFrames": {{"1": {{"name": "g", "parent": {deep}}}}}}}"#
    );
    let (profile, _) =
        read_within(Format::ChromeTrace, file.as_bytes(), Limits::default()).unwrap();
    let leaf = profile.stacks.get(profile.series[0].samples[0].stack)[0];
    let line = profile.symbols.lines(leaf)[0];
    let function = profile.symbols.function(line.function);
    assert_eq!((line.line, function.start_line), (54, 50));
    assert_eq!(profile.symbols.strings.get(function.file), "a.js");
}

/// Gigabytes of names when they are looked at for each of the lines.
#[test]
fn a_long_name_at_many_lines_is_looked_at_once() {
    let count = 100_000;
    let ticks: Vec<Value> = (1..=count)
        .map(|line| json!({"line": line, "ticks": 1}))
        .collect();
    let file = json!({"nodes": [{"id": 1, "hitCount": count, "positionTicks": ticks,
        "callFrame": {"functionName": "f".repeat(65_000), "url": "u".repeat(65_000)}}]});
    let (profile, _) = read_within(
        Format::CpuProfile,
        file.to_string().as_bytes(),
        Limits::default(),
    )
    .unwrap();
    assert_eq!(profile.series[0].samples.len(), count);
}

fn firefox(mut file: Value) -> Vec<u8> {
    if file.get("meta").is_none() {
        file["meta"] = json!({"interval": 1});
    }
    file.to_string().into_bytes()
}

#[test]
fn stacks_of_firefox_without_frames_are_paid_for() {
    let count = 300;
    let positions: Vec<u32> = (0..count).collect();
    let prefixes: Vec<Option<u32>> = (0..count).map(|stack| stack.checked_sub(1)).collect();
    let thread = json!({
        "stackTable": {"prefix": prefixes, "frame": vec![Value::Null; count as usize]},
        "samples": {"stack": positions},
    });
    let file = firefox(json!({"threads": [thread]}));
    assert_bounded(Format::Firefox, &file, of_bytes(30_000), WORK);
}

#[test]
fn lines_of_firefox_at_one_address_are_paid_for() {
    let count = 100;
    let positions: Vec<u32> = (0..count).collect();
    let prefixes: Vec<Option<u32>> = (0..count).map(|stack| stack.checked_sub(1)).collect();
    let zeros = vec![0; count as usize];
    let thread = json!({
        "stringTable": ["f"],
        "funcTable": {"name": [0]},
        "frameTable": {"func": zeros, "address": zeros, "inlineDepth": positions},
        "stackTable": {"prefix": prefixes, "frame": positions},
        "samples": {"stack": positions},
    });
    let file = firefox(json!({"threads": [thread]}));
    assert_bounded(Format::Firefox, &file, of_bytes(15_000), WORK);
}

#[test]
fn strings_of_firefox_are_paid_for_by_each_thread() {
    let thread = json!({"frameTable": {"schema": {"location": 0}, "data": [[0]]}, "stackTable": {},
        "samples": {"schema": {"stack": 0}, "data": []}});
    let file = firefox(json!({"shared": {"stringArray": ["f".repeat(1000)]},
        "threads": vec![thread; 100]}));
    let what = "the number of bytes of all names";
    assert_bounded(Format::Firefox, &file, of_bytes(50_000), what);
}

#[test]
fn json_inside_of_firefox_is_counted() {
    let inner = json!(vec![Value::Array(vec![]); 100]).to_string();
    let limits = Limits {
        max_messages: 20,
        ..Limits::default()
    };
    let what = "the number of values in the JSON";
    for file in [
        json!({"threads": [inner]}),
        json!({"threads": [], "libs": inner}),
    ] {
        assert_bounded(Format::Firefox, &firefox(file), limits, what);
    }
}

#[test]
fn series_of_firefox_are_bounded() {
    let thread = |kind: usize| {
        json!({"candela": {"type": format!("t{kind}:t:count::")},
        "samples": {"stack": [null]}})
    };
    let threads: Vec<Value> = (0..5000).map(thread).collect();
    let file = firefox(json!({"threads": threads}));
    let error = read_within(Format::Firefox, &file, Limits::default()).unwrap_err();
    assert!(
        error.starts_with("the number of series exceeds the limit of 4096"),
        "{error}"
    );
}

/// Tens of seconds when each process makes the categories of the first one, and each frame looks
/// through all libraries.
#[test]
fn categories_and_libraries_of_firefox_take_no_quadratic_time() {
    let count = 20_000;
    let categories = vec![json!({"name": "Kernel"}); count];
    let processes = vec![json!({"threads": []}); count];
    let libs: Vec<Value> = (0..count)
        .map(|lib| json!({"name": format!("{lib}")}))
        .collect();
    let frame = |frame| json!(format!("f (in {})", count - 1 - frame));
    let strings: Vec<Value> = (0..count).map(frame).collect();
    let rows: Vec<Value> = (0..count).map(|row| json!([row])).collect();
    let thread = json!({
        "stringTable": strings,
        "frameTable": {"schema": {"location": 0}, "data": rows},
        "stackTable": {"schema": {"prefix": 0, "frame": 1}, "data": [[null, 0]]},
        "samples": {"schema": {"stack": 0}, "data": [[0]]},
    });
    let file = firefox(
        json!({"meta": {"interval": 1, "categories": categories}, "libs": libs,
        "processes": processes, "threads": [thread]}),
    );
    let (profile, _) = read_within(Format::Firefox, &file, Limits::default()).unwrap();
    let leaf = profile.stacks.get(profile.series[0].samples[0].stack)[0];
    let mapping = profile.symbols.location(leaf).mapping;
    let path = profile.symbols.mapping(mapping).file;
    assert_eq!(profile.symbols.strings.get(path), "19999");
}

#[test]
fn profiles_of_speedscope_share_the_bound_of_disorder() {
    let mut events: Vec<Value> = Vec::new();
    for position in 0..200 {
        events.push(json!({"type": "O", "frame": u32::from(position < 100), "at": 0}));
    }
    events.extend(vec![json!({"type": "C", "frame": 1, "at": 0}); 100]);
    let profile = json!({"type": "evented", "unit": "none", "events": events});
    let limits = Limits {
        max_messages: 15_000,
        ..Limits::default()
    };
    let file = |profiles: usize| {
        json!({"shared": {"frames": [{"name": "a"}, {"name": "b"}]},
            "profiles": vec![profile.clone(); profiles]})
        .to_string()
    };
    read_within(Format::Speedscope, file(1).as_bytes(), limits).unwrap();
    let what = "the number of frames that are open over frames closed out of order";
    assert_bounded(Format::Speedscope, file(2).as_bytes(), limits, what);
}

#[test]
fn events_of_pmcstat_are_bounded() {
    let sections = (0..5000).map(|event| format!("@ event{event} [0 samples]\n"));
    let text = sections.collect::<String>() + "100.0%  [9]  f\n";
    let error = read_within(Format::Pmcstat, text.as_bytes(), Limits::default()).unwrap_err();
    assert!(
        error.starts_with("the number of series exceeds the limit of 4096"),
        "{error}"
    );
}

/// A report of simpleperf with one sample, of these addresses.
fn simpleperf(addresses: std::ops::Range<u64>) -> Vec<u8> {
    let sample = addresses.fold(msg().n(4, 1), |sample, address| {
        sample.m(3, &msg().n(1, address))
    });
    let record = msg().m(1, &sample).0;
    let mut bytes = b"SIMPLEPERF\x01\x00".to_vec();
    bytes.extend((record.len() as u32).to_le_bytes());
    bytes.extend(record);
    bytes.extend([0; 4]);
    bytes
}

#[test]
fn addresses_of_simpleperf_are_paid_for() {
    assert_bounded(
        Format::Simpleperf,
        &simpleperf(0..100),
        of_bytes(2_000),
        WORK,
    );
}

#[test]
fn deep_stacks_of_simpleperf_keep_their_roots() {
    let limits = Limits {
        max_stack_depth: 2,
        ..Limits::default()
    };
    let (profile, report) = read_within(Format::Simpleperf, &simpleperf(1..6), limits).unwrap();
    assert_eq!(report.count("stacks_cut"), 1);
    let leaf_first = profile.stacks.get(profile.series[0].samples[0].stack);
    let addresses = leaf_first
        .iter()
        .map(|frame| profile.symbols.location(*frame).address);
    assert_eq!(addresses.collect::<Vec<_>>(), [4, 5]);
}
