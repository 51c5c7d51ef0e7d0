//! Reading a trace with the messages that Perfetto publishes for Python.

use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;

/// The interpreter that `scripts/install-deps test` sets up, when it has Perfetto's messages.
pub(crate) fn python() -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let python = test.ancestors().nth(3)?.join("test-python/bin/python");
    let import = Command::new(&python)
        .args([
            "-c",
            "import perfetto.protos.perfetto.trace.perfetto_trace_pb2",
        ])
        .stderr(Stdio::null())
        .status();
    if import.is_ok_and(|status| status.success()) {
        return Some(python);
    }
    None
}

/// Counts samples by stack, as Perfetto does, and sums the counter.
pub(crate) const COUNT: &str = r#"
import sys, collections
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos
trace = protos.Trace()
trace.ParseFromString(sys.stdin.buffer.read())
state, counts, last, threads = {}, collections.Counter(), {}, {}
for packet in trace.packet:
    for thread in packet.process_tree.threads:
        threads[thread.tid] = thread.name
    number = packet.trusted_packet_sequence_id
    if packet.sequence_flags & 1:
        state[number] = {"types": packet.trace_packet_defaults.perf_sample_defaults.timebase.name}
        last[number] = 0
    if not packet.HasField("perf_sample"):
        continue
    tables = state[number]
    for kind in ("function_names", "mapping_paths", "mappings", "frames", "callstacks"):
        for entry in getattr(packet.interned_data, kind):
            tables[kind, entry.iid] = entry
    sample = packet.perf_sample
    names = []
    for iid in tables["callstacks", sample.callstack_iid].frame_ids:
        frame = tables["frames", iid]
        assert ("mappings", frame.mapping_id) in tables
        named = frame.function_name_id != 0
        names.append(tables["function_names", frame.function_name_id].str.decode() if named else hex(frame.rel_pc))
    key = tables["types"], threads.get(sample.tid, ""), ";".join(names)
    counts[key] += sample.timebase_count - last[number]
    last[number] = sample.timebase_count
for (kind, thread, stack), value in sorted(counts.items()):
    print(kind, "[%s]" % thread, stack, value)
"#;
