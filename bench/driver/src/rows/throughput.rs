//! I2: durable profiles for each second that a server computes, and those of a peer in the same run.

use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use candela_wire::push::v1::PushRequest;
use candela_wire::push::v1::RawProfileSeries;
use candela_wire::push::v1::RawSample;
use candela_wire::types::v1::LabelPair;
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use serde_json::json;

use crate::Figure;
use crate::host::Bench;
use crate::load::now_ns;
use crate::process::Program;
use crate::process::measure_for;

/// A CPU profile of Go's compiler.
const GO_CPU: &str = "bench/data/go-cpu.pb.gz";
const TYPE: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
const SERIES: u64 = 32;
/// Pushes under way at a time: a server that makes each wait for its storage must not idle.
const PUSHERS: usize = 64;
/// The servers take turns, so that both meet the same machine.
const TURNS: usize = 3;
const TURN: Duration = Duration::from_secs(10);
/// What a server puts off is part of what pushes cost.
const SETTLING: Duration = Duration::from_secs(5);
const TIMES_AS_MANY: f64 = 5.0;
const START: Duration = Duration::from_secs(120);
/// The field `time_nanos` of a pprof profile. Of a number that is there twice the last one counts
/// (protobuf), and a gzip file may follow another (RFC 1952, 2.2), so that a new time is appended.
const TIME_FIELD: u8 = 9 << 3;

/// What a server took.
#[derive(Debug, Default)]
struct Taken {
    profiles: u64,
    cpu_seconds: f64,
    seconds: f64,
}

impl Taken {
    fn per_core_second(&self) -> f64 {
        self.profiles as f64 / self.cpu_seconds
    }
}

/// A server that takes pushes.
struct Target {
    program: Program,
    url: String,
    taken: Taken,
    /// From when on it is asked what it has.
    start_ns: i64,
}

/// The row.
pub(crate) fn profiles_per_core(bench: &Bench) -> Result<Figure, String> {
    let path = bench.root().join(GO_CPU);
    let compressed = std::fs::read(&path).map_err(|error| format!("{GO_CPU}: {error}"))?;
    let folder = bench.folder("i2")?;
    let mut command = Command::new(bench.binary("candela")?);
    command
        .args(["server", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(folder.join("data"));
    let (program, url) = Program::start_candela(&mut command)?;
    let mut targets = vec![Target::new(program, url)];
    if let Some(peer) = bench.peer() {
        targets.push(start_pyroscope(Path::new(peer), &folder.join("peer"))?);
    }
    for target in &mut targets {
        // What a server does once is not what a profile costs.
        target.push_for(TURN, &compressed)?;
        target.taken = Taken::default();
    }
    for _ in 0..TURNS {
        for target in &mut targets {
            target.push_for(TURN, &compressed)?;
        }
    }
    let ours = targets[0].taken.per_core_second();
    let mut text = format!(
        "{ours:.0} profiles of {} bytes a second and core, durable ({:.0} a second in all)",
        compressed.len(),
        targets[0].taken.profiles as f64 / targets[0].taken.seconds,
    );
    let Some(peer) = targets.get(1) else {
        text.push_str("; peer not run");
        return Ok(Figure { text, is_met: None });
    };
    let theirs = peer.taken.per_core_second();
    text.push_str(&format!(
        "; Pyroscope {theirs:.0}: {:.1} times",
        ours / theirs
    ));
    Ok(Figure {
        text,
        is_met: Some(ours >= TIMES_AS_MANY * theirs),
    })
}

impl Target {
    fn new(program: Program, url: String) -> Self {
        Self {
            program,
            url,
            taken: Taken::default(),
            start_ns: now_ns(),
        }
    }

    /// Pushes as fast as it answers, and adds up what it took.
    fn push_for(&mut self, duration: Duration, compressed: &[u8]) -> Result<(), String> {
        let cpu_before = self.program.cpu_seconds()?;
        let begun = Instant::now();
        let pushed = AtomicU64::new(0);
        let problem: Mutex<Option<String>> = Mutex::default();
        std::thread::scope(|scope| {
            for _ in 0..PUSHERS {
                scope.spawn(|| {
                    let agent = ureq::Agent::new_with_defaults();
                    let url = format!("{}/push.v1.PusherService/Push", self.url);
                    while begun.elapsed() < duration {
                        let number = pushed.fetch_add(1, Ordering::SeqCst);
                        let body = push_request(compressed, number).encode_to_vec();
                        let request = agent.post(&url).content_type("application/proto");
                        let answer = request.send(&body[..]);
                        let answer = answer.and_then(|mut it| it.body_mut().read_to_vec());
                        if let Err(error) = answer {
                            let mut problem = problem.lock().expect("no panic while locked");
                            *problem = Some(format!("{url}: {error}"));
                            return;
                        }
                    }
                });
            }
        });
        self.taken.seconds += begun.elapsed().as_secs_f64();
        measure_for(SETTLING);
        self.program.still_runs()?;
        self.taken.cpu_seconds += self.program.cpu_seconds()? - cpu_before;
        self.taken.profiles += pushed.into_inner();
        match problem.into_inner().expect("no panic while locked") {
            None => self.is_found(),
            Some(problem) => Err(problem),
        }
    }

    /// Fails when nothing of what was acknowledged can be asked for.
    fn is_found(&self) -> Result<(), String> {
        let millisecond = 1_000_000;
        let question = json!({
            "profileTypeID": TYPE,
            "labelSelector": "{service_name=\"bench-00\"}",
            "start": self.start_ns / millisecond,
            "end": now_ns() / millisecond,
        });
        let url = format!(
            "{}/querier.v1.QuerierService/SelectMergeStacktraces",
            self.url
        );
        let answer = ureq::post(&url)
            .content_type("application/json")
            .send(question.to_string());
        let answer = answer.and_then(|mut it| it.body_mut().read_to_string());
        let answer = answer.map_err(|error| format!("{url}: {error}"))?;
        let answer: serde_json::Value =
            serde_json::from_str(&answer).map_err(|error| format!("{url}: {error}"))?;
        match answer["flamegraph"]["total"].as_str() {
            None | Some("0") => Err(format!("{url}: nothing of what was pushed is there")),
            Some(_) => Ok(()),
        }
    }
}

fn push_request(compressed: &[u8], number: u64) -> PushRequest {
    let pair = |name: &str, value: String| LabelPair {
        name: name.to_owned(),
        value,
    };
    let series = number % SERIES;
    let labels = vec![
        pair("__name__", "process_cpu".to_owned()),
        pair("service_name", format!("bench-{:02}", series / 2)),
        pair("pod", format!("pod-{series}")),
    ];
    let samples = vec![RawSample {
        raw_profile: with_time(compressed, now_ns()).into(),
        ..RawSample::default()
    }];
    PushRequest {
        series: vec![RawProfileSeries { labels, samples }],
    }
}

/// A compressed pprof that says another time of its start.
fn with_time(compressed: &[u8], time_ns: i64) -> Vec<u8> {
    let mut field = vec![TIME_FIELD];
    prost::encoding::encode_varint(time_ns as u64, &mut field);
    let body = compressed.to_vec();
    let mut member = GzEncoder::new(body, Compression::fast());
    member
        .write_all(&field)
        .and_then(|()| member.finish())
        .expect("memory takes all that is written")
}

/// Grafana Pyroscope as one process with storage in a folder, its limits out of the way. Its parts ask
/// each other at its usual gRPC port, which must be free. It is ready after three quarters of a minute.
fn start_pyroscope(program: &Path, folder: &Path) -> Result<Target, String> {
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let http = free_port()?;
    let mut command = Command::new(program);
    command.current_dir(folder).args([
        "-architecture.storage=v2",
        "-self-profiling.disable-push=true",
        "-usage-stats.enabled=false",
        "-server.http-listen-address=127.0.0.1",
        "-distributor.ingestion-rate-limit-mb=100000",
        "-distributor.ingestion-burst-size-mb=100000",
    ]);
    command.arg(format!("-server.http-listen-port={http}"));
    let mut program = Program::start(&mut command)?;
    let url = format!("http://127.0.0.1:{http}");
    let begun = Instant::now();
    while ureq::get(&format!("{url}/ready")).call().is_err() {
        program.still_runs()?;
        if begun.elapsed() > START {
            return Err(format!("{url}/ready does not answer"));
        }
        measure_for(Duration::from_millis(200));
    }
    Ok(Target::new(program, url))
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    Ok(address.port())
}
