//! A `perfetto_daemon` at work, and its snapshots as another decoder reads them.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::Sender;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use bytes::Bytes;
use candela_agent::AgentOptions;
use candela_daemons::Clock;
use candela_daemons::Daemon;
use candela_daemons::DaemonContext;
use candela_daemons::DaemonError;
use candela_daemons::Notes;
use candela_daemons::Outbox;
use candela_daemons::OutboxLimits;
use candela_daemons::SnapshotRequest;
use candela_daemons::Stop;
use candela_daemons::SystemClock;
use candela_daemons::TraceDaemon;
use candela_daemons::TriggerPortOptions;
use candela_fleet::DaemonBody;
use candela_fleet::FleetDocument;
use serde_json::Value;
use serde_json::json;

use crate::support::PATIENCE;

pub(crate) const NODE: &str = "node-1";
pub(crate) const TRIGGER: &str = "moment";

/// What a daemon is asked to do.
#[derive(Clone, Debug)]
pub(crate) struct Wish<'wish> {
    pub(crate) engine: &'wish str,
    pub(crate) sources: &'wish str,
    /// Of the trigger, beyond its name.
    pub(crate) trigger: &'wish str,
    /// Further fields of the configuration.
    pub(crate) further: &'wish str,
}

/// A daemon with its own folder. It ends by [`TracesDaemon::end`].
pub(crate) struct TracesDaemon {
    _folder: tempfile::TempDir,
    outbox: Arc<Outbox>,
    stop: Stop,
    started: Receiver<()>,
    requests: Sender<SnapshotRequest>,
    /// What does not work although it runs.
    pub(crate) notices: Receiver<Option<String>>,
    pub(crate) thread: JoinHandle<Result<(), DaemonError>>,
}

impl Wish<'_> {
    /// A document with this daemon, whose buffer has 4 MiB.
    pub(crate) fn document(&self) -> FleetDocument {
        let Self {
            engine,
            sources,
            trigger,
            further,
        } = self;
        let config = format!(
            "buffers {{ size_kb: 4096 fill_policy: RING_BUFFER }} {sources} {further} \
             trigger_config {{ trigger_mode: CLONE_SNAPSHOT trigger_timeout_ms: 1000000 \
             triggers {{ name: \"{TRIGGER}\" {trigger} }} }}"
        );
        let document = json!({"observability_daemons": [{"perfetto_daemon": {
            "export_to": "s3://bucket",
            "bucket_subdirectory": "traces",
            "engine": engine,
            "trigger": "PERFETTO_TRIGGER_HTTP",
            "trigger_name": TRIGGER,
            "config_text": config,
        }}]});
        let document = FleetDocument::read(&document.to_string());
        document.expect("a document").document
    }
}

impl TracesDaemon {
    /// Starts the daemon of these data sources, with our own engine, asked for snapshots.
    pub(crate) fn start(
        sources: &str,
        stop_delay_ms: u32,
        port: Option<TriggerPortOptions>,
    ) -> Self {
        let trigger = format!("stop_delay_ms: {stop_delay_ms}");
        let wish = Wish {
            engine: "native",
            sources,
            trigger: &trigger,
            further: "",
        };
        let daemon = Self::begin(&wish, port, Arc::new(SystemClock::default()));
        daemon.wait_for_start();
        daemon
    }

    /// Starts a daemon, which may take its time, or fail.
    pub(crate) fn begin(
        wish: &Wish<'_>,
        port: Option<TriggerPortOptions>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let document = wish.document();
        let DaemonBody::PerfettoDaemon(element) = &document.daemons()[0].body else {
            panic!("no perfetto_daemon");
        };
        let daemon = TraceDaemon::new(element, &AgentOptions::default()).expect("a daemon");
        let daemon = match port {
            Some(port) => daemon.with_port(port, NODE),
            None => daemon,
        };
        let folder = tempfile::tempdir().expect("a folder");
        let outbox = Outbox::open(folder.path(), OutboxLimits::default()).expect("an outbox");
        let stop = Stop::default();
        let (requests, receiver) = channel();
        let (tell_start, started) = channel();
        let (notices, noticed) = channel();
        let context = DaemonContext {
            outbox: Arc::clone(&outbox),
            clock,
            stop: stop.clone(),
            notes: Notes::default(),
            started: Box::new(move || tell_start.send(()).expect("the test waits")),
            notice: Box::new(move |problem| notices.send(problem).expect("the test listens")),
            requests: receiver,
        };
        let thread = std::thread::spawn(move || Box::new(daemon).run(context));
        Self {
            _folder: folder,
            outbox,
            stop,
            started,
            requests,
            notices: noticed,
            thread,
        }
    }

    pub(crate) fn wait_for_start(&self) {
        self.started.recv_timeout(PATIENCE).expect("it starts");
    }

    /// Asks for a snapshot as the server does.
    pub(crate) fn ask(&self) -> Receiver<Result<String, String>> {
        let (answer, answered) = channel();
        let answer = Box::new(move |result| answer.send(result).expect("the test waits"));
        let request = SnapshotRequest { answer };
        self.requests.send(request).expect("it listens");
        answered
    }

    /// Takes a snapshot.
    pub(crate) fn snapshot(&self) -> Bytes {
        let name = self.ask().recv_timeout(PATIENCE).expect("an answer");
        self.taken(&name.expect("a snapshot"))
    }

    /// The snapshot of this name, which has waited longest.
    pub(crate) fn taken(&self, name: &str) -> Bytes {
        assert!(name.ends_with("-perfetto-trace.pb"), "{name}");
        let waiting = self
            .outbox
            .oldest_waiting()
            .expect("it can be read")
            .expect("it waits");
        assert_eq!(waiting.name(), name);
        let bytes = waiting.bytes.clone();
        self.outbox.uploaded(waiting);
        bytes
    }

    pub(crate) fn end(self) {
        self.stop.set();
        self.thread.join().expect("no panic").expect("it ends well");
    }
}

/// The interpreter that `scripts/install-deps test` sets up, when it has Perfetto's messages.
pub(crate) fn python() -> Option<PathBuf> {
    let test = std::env::current_exe().expect("a path");
    let python = test.ancestors().nth(3)?.join("test-python/bin/python");
    let import = "import perfetto.protos.perfetto.trace.perfetto_trace_pb2";
    let mut command = Command::new(&python);
    let status = command.args(["-c", import]).stderr(Stdio::null()).status();
    status
        .is_ok_and(|status| status.success())
        .then_some(python)
}

/// What Perfetto's own messages for Python make of a snapshot, of one process.
pub(crate) fn decoded(python: &Path, trace: &[u8], pid: u32) -> Value {
    let mut child = Command::new(python)
        .args(["-c", DECODE, &pid.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python");
    let mut input = child.stdin.take().expect("a pipe");
    let trace = trace.to_vec();
    let writing = std::thread::spawn(move || input.write_all(&trace));
    let output = child.wait_with_output().expect("it ends");
    writing.join().expect("no panic").expect("it reads all");
    assert!(output.status.success(), "python says what is wrong above");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Reads what a viewer does: names by the process tree, samples by the interned data of their sequence, and slices
/// from one switch of a CPU to its next.
const DECODE: &str = r#"
import collections, json, sys
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

pid = int(sys.argv[1])
trace = protos.Trace()
trace.ParseFromString(sys.stdin.buffer.read())
threads, processes, tables = {}, {}, {}
samples, triggers, switches = [], [], collections.defaultdict(list)
release, clocks, lost, has_gap = "", set(), 0, False
track_events = collections.Counter()
for packet in trace.packet:
    for thread in packet.process_tree.threads:
        threads[thread.tid] = (thread.tgid, thread.name)
    for process in packet.process_tree.processes:
        processes[process.pid] = list(process.cmdline)
    if packet.HasField("clock_snapshot"):
        times = {clock.clock_id: clock.timestamp for clock in packet.clock_snapshot.clocks}
        clocks.add(times[1] - times[6])
    if packet.HasField("system_info"):
        release = packet.system_info.utsname.release
    for cpu in packet.ftrace_stats.cpu_stats:
        lost += cpu.overrun
    if packet.HasField("clone_snapshot_trigger"):
        trigger = packet.clone_snapshot_trigger
        triggers.append([trigger.trigger_name, trigger.stop_delay_ms, packet.timestamp])
    number = packet.trusted_packet_sequence_id
    if packet.sequence_flags & 1:
        tables[number] = {}
    kinds = ("function_names", "mapping_paths", "mappings", "frames", "callstacks", "event_names")
    for kind in kinds:
        for entry in getattr(packet.interned_data, kind):
            tables[number][kind, entry.iid] = entry
    if packet.track_event.name_iid:
        track_events[tables[number]["event_names", packet.track_event.name_iid].name] += 1
    if packet.HasField("perf_sample") and packet.perf_sample.pid == pid:
        sample, known = packet.perf_sample, tables[number]
        names = []
        for iid in known["callstacks", sample.callstack_iid].frame_ids:
            frame = known["frames", iid]
            assert ("mappings", frame.mapping_id) in known
            named = frame.function_name_id != 0
            names.append(known["function_names", frame.function_name_id].str.decode() if named else "")
        cpu = sample.cpu if sample.HasField("cpu") else -1
        samples.append([packet.timestamp, cpu, sample.tid, names])
    if packet.HasField("ftrace_events"):
        bundle = packet.ftrace_events
        sched = bundle.compact_sched
        has_gap |= bundle.lost_events
        columns = (sched.switch_prev_state, sched.switch_next_pid, sched.switch_next_prio,
                   sched.switch_next_comm_index)
        assert all(len(column) == len(sched.switch_timestamp) for column in columns)
        time = 0
        for delta, state, tid, priority, name in zip(sched.switch_timestamp, *columns):
            time += delta
            switches[bundle.cpu].append([time, state, tid, priority, sched.intern_table[name]])
slices, states, comms = [], collections.Counter(), collections.Counter()
for cpu, of_cpu in switches.items():
    for before, after in zip(of_cpu, of_cpu[1:]):
        assert before[0] <= after[0], "switches of a CPU go back in time"
        tid = before[2]
        if threads.get(tid, (0, ""))[0] == pid:
            slices.append([before[0], after[0], cpu, tid])
            states[after[1]] += 1
            comms[before[4]] += 1
unnamed = {switch[2] for of_cpu in switches.values() for switch in of_cpu} - set(threads) - {0}
print(json.dumps({
    "threads": {tid: name for tid, (tgid, name) in threads.items() if tgid == pid},
    "process": processes.get(pid), "samples": samples, "triggers": triggers,
    "slices": slices, "states": states, "comms": comms, "cpus": sorted(switches),
    "release": release, "clock_distances": sorted(clocks), "lost": lost, "has_gap": has_gap,
    "unnamed": sorted(unnamed), "track_events": track_events,
}))
"#;
