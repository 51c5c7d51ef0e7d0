//! What the daemons of a fleet cost, and the levers that make them cost less.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;
use serde_json::json;

use crate::Figure;
use crate::host::Bench;
use crate::pair::Pair;
use crate::process::BpfStatistics;
use crate::process::Program;
use crate::process::json_of;
use crate::process::measure_for;
use crate::process::output;
use crate::process::shares;

const WARM_UP: Duration = Duration::from_secs(10);
/// Two dumps of the longer kind.
const PERIOD: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(30);
const TICKS_PER_SECOND: f64 = 100.0;

/// A bucket at which nobody listens.
const NOWHERE: [(&str, &str); 4] = [
    ("AWS_ENDPOINT_URL", "http://127.0.0.1:9"),
    ("AWS_REGION", "us-east-1"),
    ("AWS_ACCESS_KEY_ID", "bench"),
    ("AWS_SECRET_ACCESS_KEY", "bench"),
];

/// A server, and an agent that hardly samples itself: what is measured beside it is a daemon's.
struct Node {
    pair: Pair,
    candela: std::path::PathBuf,
    folder: std::path::PathBuf,
}

/// F1: CPU of each daemon with both cores busy, as more of one core than the agent takes without one; of perf with
/// its children. Files wait on the node: uploads are the network's.
pub(crate) fn cpu(bench: &Bench) -> Result<Figure, String> {
    let folder = bench.folder("f1")?;
    let mut burner = shares(bench.root(), &folder)?;
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let mut burners: Vec<Program> = (0..cores)
        .map(|_| Program::start(&mut burner))
        .collect::<Result<_, _>>()?;
    let mut node = Node::start(bench, &folder)?;
    let _stats = BpfStatistics::enable()?;
    let nothing = node.cost_of(None)?;
    let usual = json!({"perf_polling_frequency_hz": 99, "dump_duration_seconds": 10});
    let with = |changes: Value| {
        let mut fields = usual.clone();
        for (name, value) in changes.as_object().into_iter().flatten() {
            fields[name] = value.clone();
        }
        collector(&fields)
    };
    let daemons = [
        ("perf_collector 99 Hz, 10 s", with(json!({}))),
        ("at 49 Hz", with(json!({"perf_polling_frequency_hz": 49}))),
        (
            "with dumps of 30 s",
            with(json!({"dump_duration_seconds": 30})),
        ),
        ("without call graphs", with(json!({"call_graph": false}))),
        ("by the host's perf", with(json!({"profiler": "perf"}))),
        ("perfetto_daemon 99 Hz", perfetto()),
    ];
    let mut told = Vec::new();
    let mut usual_share = 0.0;
    for (name, daemon) in &daemons {
        let share = node
            .cost_of(Some(daemon))
            .map_err(|error| format!("{name}: {error}"))?
            - nothing;
        if told.is_empty() {
            usual_share = share;
        }
        told.push(format!("{name} {:.2} %", share * 100.0));
    }
    for burner in &mut burners {
        burner.still_runs()?;
    }
    node.pair.server.still_runs()?;
    Ok(Figure {
        text: told.join("; "),
        is_met: Some(usual_share <= 0.01),
    })
}

impl Node {
    fn start(bench: &Bench, folder: &Path) -> Result<Self, String> {
        let candela = bench.binary("candela")?;
        let pair = Pair::start(bench, folder, "1", &NOWHERE)?;
        let folder = folder.to_owned();
        Ok(Self {
            pair,
            candela,
            folder,
        })
    }

    /// What all takes while a daemon runs, or none, as a share of one core.
    fn cost_of(&mut self, daemon: Option<&Value>) -> Result<f64, String> {
        let daemons: Vec<&Value> = daemon.into_iter().collect();
        let file = self.folder.join("document.json");
        let document = json!({"observability_daemons": daemons}).to_string();
        fs::write(&file, document).map_err(|error| error.to_string())?;
        output(
            Command::new(&self.candela)
                .args([
                    "infra",
                    "apply",
                    "persistence",
                    "--yes",
                    "--server",
                    &self.pair.url,
                    "-f",
                ])
                .arg(&file),
        )?;
        self.wait_for(daemons.len())?;
        measure_for(WARM_UP);
        let before = self.seconds()?;
        measure_for(PERIOD);
        let seconds = self.seconds()? - before;
        self.pair.agent.still_runs()?;
        Ok(seconds / PERIOD.as_secs_f64())
    }

    /// Until so many daemons run, and no other does.
    fn wait_for(&self, count: usize) -> Result<(), String> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let answer = json_of(&format!("{}/api/v1/fleet/nodes", self.pair.url))?;
            let daemons = answer["nodes"][0]["daemons"].as_array();
            let daemons = daemons.map(Vec::as_slice).unwrap_or_default();
            let running = daemons.iter().filter(|it| it["state"] == "running");
            if daemons.len() == count && running.count() == count {
                return Ok(());
            }
            measure_for(Duration::from_millis(200));
        }
        Err(format!("{count} daemons do not run within {PATIENCE:?}"))
    }

    fn seconds(&self) -> Result<f64, String> {
        let programs = self.pair.agent.bpf_sum("run_time_ns")? as f64 / 1e9;
        Ok(self.pair.agent.cpu_seconds()? + programs + children_seconds(self.pair.agent.pid()))
    }
}

/// What the children of a process have taken: those that it waited for, and those that there are.
fn children_seconds(parent: u32) -> f64 {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ticks = entries.filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let fields: Vec<u64> = stat
            .rsplit(") ")
            .next()?
            .split(' ')
            .map(|field| field.parse().unwrap_or(0))
            .collect();
        // The parent is the second behind the name; then times of its own, and of those it waited for.
        let waited_for = fields.get(13)? + fields.get(14)?;
        let own = fields.get(11)? + fields.get(12)?;
        match (pid == parent, fields.get(1)? == &u64::from(parent)) {
            (true, _) => Some(waited_for),
            (false, true) => Some(own + waited_for),
            (false, false) => None,
        }
    });
    ticks.sum::<u64>() as f64 / TICKS_PER_SECOND
}

fn collector(fields: &Value) -> Value {
    let mut fields = fields.clone();
    fields["export_to"] = "s3://bench".into();
    json!({"perf_collector": fields})
}

fn perfetto() -> Value {
    let config = "buffers { size_kb: 10240 fill_policy: RING_BUFFER } \
        data_sources { config { name: \"linux.perf\" perf_event_config { all_cpus: true sampling_frequency: 99 } } } \
        trigger_config { trigger_mode: CLONE_SNAPSHOT trigger_timeout_ms: 60000 \
        triggers { name: \"bench\" stop_delay_ms: 100 } }";
    json!({"perfetto_daemon": {
        "config_text": config,
        "trigger": "PERFETTO_TRIGGER_HTTP",
        "trigger_name": "bench",
        "export_to": "s3://bench",
    }})
}
