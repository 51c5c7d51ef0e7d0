//! What a server with the limits that it has by default takes of clients that mean no good, or know no better.

use std::io::Read;
use std::io::Write;
use std::net::SocketAddr;
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use crate::Figure;
use crate::host::Bench;
use crate::latency::Latencies;
use crate::latency::Quantiles;
use crate::latency::milliseconds;
use crate::load::mixed;
use crate::load::profile;
use crate::process::Program;
use crate::process::json_of;
use crate::process::measure_for;

const SERVICES: u64 = 6;
const STACKS_OF_A_SERVICE: u64 = 150_000;

/// A flame graph of all there is: over a second of one core.
const HEAVY: &str = "/api/v1/flamegraph?max_nodes=1000&type=samples";
/// All of it as text: 0.9 GB.
const LONG: &str = "/api/v1/flamegraph?format=json&max_nodes=0&type=samples";
/// It has more than these.
const LONG_BYTES: u64 = 500_000_000;
/// What the window asks first.
const CHEAP: &str = "/api/v1/services";
const PAUSE: Duration = Duration::from_millis(40);

const MOST_MILLISECONDS: f64 = 200.0;
const MOST_MIB: u64 = 600;

const HEAVY_CLIENTS: usize = 20;
/// How long a client that does nothing does it.
const IDLE: Duration = Duration::from_secs(10);

struct Attack {
    what: &'static str,
    run: fn(&Server) -> Result<String, String>,
}

const ATTACKS: [Attack; 6] = [
    Attack {
        what: "50 bodies of 64 MiB",
        run: large_bodies,
    },
    Attack {
        what: "10 000 series",
        run: many_series,
    },
    Attack {
        what: "1 000 idle and 200 slow connections",
        run: idle_connections,
    },
    Attack {
        what: "60 abandoned queries",
        run: abandoned_queries,
    },
    Attack {
        what: "40 clients that do not read 0.9 GB",
        run: unread_answers,
    },
    Attack {
        what: "4 clients that read 0.9 GB",
        run: read_answers,
    },
];

/// A server with large profiles.
struct Server {
    program: Program,
    address: SocketAddr,
    url: String,
}

/// X1: the list of services while twenty clients ask for heavy queries without a pause.
pub(crate) fn cheap_beside_heavy(bench: &Bench) -> Result<Figure, String> {
    let mut server = Server::start(bench, "x1")?;
    let is_over = AtomicBool::new(false);
    let heavy = Latencies::default();
    let heavy_failed = AtomicUsize::new(0);
    let asked = thread::scope(|scope| {
        for _ in 0..HEAVY_CLIENTS {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    let begun = Instant::now();
                    match server.ask(HEAVY) {
                        Ok((200, _)) => heavy.add(begun.elapsed()),
                        _ => _ = heavy_failed.fetch_add(1, Ordering::SeqCst),
                    }
                }
            });
        }
        measure_for(Duration::from_secs(5));
        let asked = server.ask_cheaply(|| measure_for(Duration::from_secs(20)));
        is_over.store(true, Ordering::SeqCst);
        asked
    });
    server.program.still_runs()?;
    let heavy = Quantiles::of(heavy.take());
    let heavy_failed = heavy_failed.into_inner();
    let p99 = milliseconds(asked.took.p99);
    Ok(Figure {
        text: format!(
            "p50 {:.1} ms, p99 {p99:.1} ms of {}, {} failed; {} heavy ones, {:.1} s each, {heavy_failed} failed",
            milliseconds(asked.took.p50),
            asked.took.count,
            asked.failed,
            heavy.count,
            heavy.p50.as_secs_f64(),
        ),
        is_met: Some(
            p99 <= MOST_MILLISECONDS && asked.failed == 0 && heavy.count > 0 && heavy_failed == 0,
        ),
    })
}

/// X2: the most memory under each attack, one after the other, and the list of services beside it.
pub(crate) fn memory_under_attack(bench: &Bench) -> Result<Figure, String> {
    let mut server = Server::start(bench, "x2")?;
    let mut lines = Vec::new();
    let mut is_met = true;
    for attack in &ATTACKS {
        server.program.forget_most_resident()?;
        let mut outcome = Err("it did not run".to_owned());
        let asked = server.ask_cheaply(|| outcome = (attack.run)(&server));
        let outcome = outcome.map_err(|error| format!("{}: {error}", attack.what))?;
        let most_mib = server.program.most_resident_bytes()? >> 20;
        server.program.still_runs()?;
        is_met &= most_mib <= MOST_MIB && asked.failed == 0;
        lines.push(format!(
            "{}: {most_mib} MiB, {outcome}, services p99 {:.0} ms of {} ({} failed)",
            attack.what,
            milliseconds(asked.took.p99),
            asked.took.count,
            asked.failed
        ));
    }
    Ok(Figure {
        text: lines.join("; "),
        is_met: Some(is_met),
    })
}

/// How cheap questions were answered.
struct Asked {
    took: Quantiles,
    failed: usize,
}

impl Server {
    fn start(bench: &Bench, row: &str) -> Result<Self, String> {
        let mut command = Command::new(bench.binary("candela")?);
        command
            .args(["server", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(bench.folder(row)?.join("data"));
        let (program, url) = Program::start_candela(&mut command)?;
        let address = url.strip_prefix("http://").unwrap_or(&url);
        let address = address.trim_end_matches('/').parse();
        let server = Self {
            program,
            address: address.map_err(|error| format!("{url}: {error}"))?,
            url: url.trim_end_matches('/').to_owned(),
        };
        for service in 0..SERVICES {
            let path = format!("/api/v1/ingest?service=service-{service}");
            let status = server.push(&path, folded(service).as_bytes())?;
            if status != 200 {
                return Err(format!("{path} was answered by {status}"));
            }
        }
        // Until blocks are written, queries read what is in memory, which is another matter.
        measure_for(Duration::from_secs(75));
        Ok(server)
    }

    fn push(&self, path: &str, body: &[u8]) -> Result<u16, String> {
        let answer = agent().post(format!("{}{path}", self.url)).send(body);
        let answer = answer.map_err(|error| error.to_string())?;
        Ok(answer.status().as_u16())
    }

    /// The status and the length of an answer that was read to its end.
    fn ask(&self, path: &str) -> Result<(u16, u64), String> {
        let answer = agent().get(format!("{}{path}", self.url)).call();
        let mut answer = answer.map_err(|error| error.to_string())?;
        let mut body = answer.body_mut().as_reader();
        let length = std::io::copy(&mut body, &mut std::io::sink());
        let length = length.map_err(|error| error.to_string())?;
        Ok((answer.status().as_u16(), length))
    }

    /// A connection over which something was asked, and nothing read.
    fn connect(&self, path: &str) -> Result<TcpStream, String> {
        let mut stream = TcpStream::connect(self.address).map_err(|error| error.to_string())?;
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream
            .write_all(head.as_bytes())
            .map_err(|error| error.to_string())?;
        Ok(stream)
    }

    /// Asks for little again and again while something else goes on.
    fn ask_cheaply(&self, meanwhile: impl FnOnce()) -> Asked {
        let is_over = AtomicBool::new(false);
        let latencies = Latencies::default();
        let failed = thread::scope(|scope| {
            let asking = scope.spawn(|| {
                let mut failed = 0;
                while !is_over.load(Ordering::SeqCst) {
                    let begun = Instant::now();
                    match self.ask(CHEAP) {
                        Ok((200, _)) => latencies.add(begun.elapsed()),
                        _ => failed += 1,
                    }
                    measure_for(PAUSE);
                }
                failed
            });
            meanwhile();
            is_over.store(true, Ordering::SeqCst);
            asking.join().unwrap_or(usize::MAX)
        });
        Asked {
            took: Quantiles::of(latencies.take()),
            failed,
        }
    }
}

fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    config
        .timeout_global(Some(Duration::from_secs(300)))
        .build()
        .into()
}

/// Stacks of 8 to 14 out of some 5 000 functions, of which the first are much more frequent.
fn folded(service: u64) -> String {
    let mut text = String::new();
    for stack in 0..STACKS_OF_A_SERVICE {
        let seed = service << 32 | stack << 4;
        for depth in 0..8 + mixed(seed) % 7 {
            let draw = mixed(seed << 8 | depth);
            let function = (draw % 71) * ((draw >> 32) % 71);
            let separator = if depth == 0 { "" } else { ";" };
            text.push_str(&format!(
                "{separator}module_{}::function_{function}",
                function % 97
            ));
        }
        text.push_str(&format!(" {}\n", 1 + mixed(stack) % 50));
    }
    text
}

fn large_bodies(server: &Server) -> Result<String, String> {
    let line = "main;serve;work 1\n";
    let body = line.repeat((64 << 20) / line.len());
    let statuses = thread::scope(|scope| {
        let pushes: Vec<_> = (0..50)
            .map(|client| {
                let (server, body) = (&server, &body);
                scope.spawn(move || {
                    let path = format!("/api/v1/ingest?service=large-{client}");
                    server.push(&path, body.as_bytes())
                })
            })
            .collect();
        pushes
            .into_iter()
            .map(|push| push.join().map_err(|_| "a pusher panicked".to_owned())?)
            .collect::<Result<Vec<u16>, String>>()
    })?;
    Ok(told(&statuses))
}

fn many_series(server: &Server) -> Result<String, String> {
    let body = profile(0).1;
    let mut statuses = Vec::new();
    for pod in 0..10_000 {
        let path = format!("/api/v1/ingest?service=many&label=pod=pod-{pod}");
        statuses.push(server.push(&path, &body)?);
    }
    let acknowledged = statuses.iter().filter(|status| **status == 200).count();
    let url = format!("{}/api/v1/label-values?label=pod", server.url);
    let stored = json_of(&url)?["values"].as_array().map_or(0, Vec::len);
    if stored != acknowledged {
        return Err(format!(
            "{acknowledged} were acknowledged and {stored} are there"
        ));
    }
    Ok(told(&statuses))
}

fn idle_connections(server: &Server) -> Result<String, String> {
    let connect = || TcpStream::connect(server.address).map_err(|error| error.to_string());
    let idle: Vec<TcpStream> = (0..1000).map(|_| connect()).collect::<Result<_, _>>()?;
    let mut slow: Vec<TcpStream> = (0..200).map(|_| connect()).collect::<Result<_, _>>()?;
    let head = "POST /api/v1/ingest?service=slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n";
    for stream in &mut slow {
        stream
            .write_all(head.as_bytes())
            .map_err(|error| error.to_string())?;
    }
    let begun = Instant::now();
    while begun.elapsed() < IDLE {
        for stream in &mut slow {
            // One that was closed is what the server may do.
            let _ = stream.write_all(b"a");
        }
        measure_for(Duration::from_secs(1));
    }
    drop((idle, slow));
    Ok("held for 10 s".to_owned())
}

fn abandoned_queries(server: &Server) -> Result<String, String> {
    for _ in 0..60 {
        let stream = server.connect(HEAVY)?;
        measure_for(Duration::from_millis(50));
        drop(stream);
    }
    Ok("each left after 50 ms".to_owned())
}

fn unread_answers(server: &Server) -> Result<String, String> {
    let unread: Vec<TcpStream> = (0..40)
        .map(|_| server.connect(LONG))
        .collect::<Result<_, _>>()?;
    // All of them have had their turns by then.
    measure_for(Duration::from_secs(60));
    let statuses: Option<Vec<u16>> = unread.into_iter().map(status_of).collect();
    statuses
        .map(|statuses| told(&statuses))
        .ok_or_else(|| "a connection had no answer".to_owned())
}

fn read_answers(server: &Server) -> Result<String, String> {
    let answers = thread::scope(|scope| {
        let reads: Vec<_> = (0..4).map(|_| scope.spawn(|| server.ask(LONG))).collect();
        reads
            .into_iter()
            .map(|read| read.join().map_err(|_| "a reader panicked".to_owned())?)
            .collect::<Result<Vec<(u16, u64)>, String>>()
    })?;
    let complete = answers
        .iter()
        .filter(|&&(status, length)| status == 200 && length > LONG_BYTES);
    match complete.count() {
        4 => Ok("4 complete".to_owned()),
        _ => Err(format!("status and length: {answers:?}")),
    }
}

/// The status that begins an answer.
fn status_of(mut stream: TcpStream) -> Option<u16> {
    let mut head = [0; 12];
    stream.set_read_timeout(Some(IDLE)).ok()?;
    stream.read_exact(&mut head).ok()?;
    std::str::from_utf8(&head[9..]).ok()?.parse().ok()
}

/// Statuses with how often each came.
fn told(statuses: &[u16]) -> String {
    let mut sorted = statuses.to_vec();
    sorted.sort_unstable();
    let counts = sorted.chunk_by(|one, other| one == other);
    let counts: Vec<String> = counts
        .map(|same| format!("{} × {}", same.len(), same[0]))
        .collect();
    counts.join(", ")
}
