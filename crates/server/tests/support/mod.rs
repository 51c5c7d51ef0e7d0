//! A real server over a real store in a temporary directory, and a client that sends just the
//! bytes it is told to.

pub(crate) mod columns;
pub(crate) mod fleet;
pub(crate) mod tenants;

use std::io::Read;
use std::io::Write;
use std::net::SocketAddr;
use std::net::TcpStream;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::Sample;
use candela_query::Engine;
use candela_server::LocalIngest;
use candela_server::Server;
use candela_server::ServerOptions;
use candela_server::SymbolSources;
use candela_store::ManualClock;
use candela_store::Store;
use candela_store::StoreOptions;
use candela_symbols::ArchiveLimits;
use candela_symbols::SymbolArchive;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// The time of every test, nanoseconds: 2023-11-14T22:13:20Z.
pub(crate) const NOW_NS: i64 = 1_700_000_000_000_000_000;

/// When the test profiles start: 20 s before.
pub(crate) const START_NS: i64 = NOW_NS - 20_000_000_000;

/// Long enough for a busy machine; nothing waits this long unless it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A server that runs until the value is dropped.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) otlp_grpc: Option<SocketAddr>,
    pub(crate) otlp_http: Option<SocketAddr>,
    pub(crate) runtime: Runtime,
    pub(crate) store: Store,
    pub(crate) local_ingest: LocalIngest,
    stop: Option<oneshot::Sender<()>>,
    running: Option<tokio::task::JoinHandle<()>>,
    pub(crate) data_dir: tempfile::TempDir,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// Options for a free port and the tests' clock.
pub(crate) fn options() -> ServerOptions {
    ServerOptions {
        clock: Arc::new(ManualClock::at(NOW_NS)),
        ..ServerOptions::new("127.0.0.1:0".parse().expect("an address"))
    }
}

pub(crate) fn open_store(data_dir: &Path) -> Store {
    let options = StoreOptions {
        clock: Arc::new(ManualClock::at(NOW_NS)),
        ..StoreOptions::new(data_dir)
    };
    Store::open(options).expect("a new store opens")
}

impl TestServer {
    pub(crate) fn start() -> Self {
        Self::start_with(options())
    }

    pub(crate) fn start_with(options: ServerOptions) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let data_dir = tempfile::tempdir().expect("a temporary directory");
        let archive =
            SymbolArchive::open(&data_dir.path().join("symbols"), ArchiveLimits::default());
        let symbols = SymbolSources {
            archive: Arc::new(archive.expect("a folder for symbols")),
            debuginfod: None,
        };
        let options = ServerOptions {
            symbols: options.symbols.clone().or(Some(symbols)),
            ..options
        };
        let (stop, stopped) = oneshot::channel();
        let (server, store) = runtime.block_on(async {
            let store = open_store(data_dir.path());
            let engine = Engine::new(store.clone());
            let server = Server::bind(options, store.clone(), engine).await;
            (server.expect("the server binds"), store)
        });
        let (address, otlp_grpc, otlp_http) = (
            server.local_address(),
            server.otlp_grpc_address(),
            server.otlp_http_address(),
        );
        let local_ingest = server.local_ingest();
        let running = runtime.spawn(async move {
            let shutdown = async {
                let _ = stopped.await;
            };
            server.run(shutdown).await.expect("the server runs");
        });
        Self {
            address,
            otlp_grpc,
            otlp_http,
            runtime,
            store,
            local_ingest,
            stop: Some(stop),
            running: Some(running),
            data_dir,
        }
    }

    /// A server that has [`demo_profile`], uploaded as pprof.
    pub(crate) fn with_demo_profile() -> Self {
        let server = Self::start();
        let answer = server.post(
            "/api/v1/ingest?service=checkout",
            &pprof_bytes(&demo_profile()),
        );
        assert_eq!(answer.status, 200, "{}", answer.text());
        server
    }

    /// The shutdown signal.
    pub(crate) fn signal_shutdown(&mut self) {
        self.stop
            .take()
            .expect("signalled once")
            .send(())
            .expect("the server runs");
    }

    /// Waits until the server has ended.
    pub(crate) fn wait_for_end(&mut self) {
        let running = self.running.take().expect("waited for once");
        let end = async { tokio::time::timeout(PATIENCE, running).await };
        self.runtime
            .block_on(end)
            .expect("the server ends in time")
            .expect("without a panic");
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        request(self.address, "GET", path, &[], b"")
    }

    pub(crate) fn post(&self, path: &str, body: &[u8]) -> Answer {
        request(self.address, "POST", path, &[], body)
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        request(self.address, "DELETE", path, &[], b"")
    }

    /// The JSON of a GET that must succeed.
    pub(crate) fn json(&self, path: &str) -> serde_json::Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        let Some(running) = self.running.take() else {
            return;
        };
        let ended = self
            .runtime
            .block_on(async { tokio::time::timeout(PATIENCE, running).await });
        if !std::thread::panicking() {
            ended
                .expect("the server ends in time")
                .expect("without a panic");
        }
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

/// Sends a request, with a Host unless `headers` has one, and reads the answer to its end.
pub(crate) fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("host"))
    {
        head.push_str(&format!("Host: {address}\r\n"));
    }
    if !headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("content-length"))
    {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut stream = TcpStream::connect(address).expect("the server accepts");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("a timeout can be set");
    stream.write_all(head.as_bytes()).expect("the head is sent");
    // A server that refuses by the head need not read the body.
    let _ = stream.write_all(body);
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    parse_answer(&bytes)
}

fn parse_answer(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no answer: {}", String::from_utf8_lossy(bytes)));
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let status = lines
        .next()
        .expect("a status line")
        .split(' ')
        .nth(1)
        .expect("a status");
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut answer = Answer {
        status: status.parse().expect("a number"),
        headers: headers.collect(),
        body: bytes[end + 4..].to_vec(),
    };
    if answer.header("transfer-encoding") == Some("chunked") {
        answer.body = without_chunks(&answer.body);
    }
    answer
}

/// The content of a body in chunks (RFC 9112, 7.1).
fn without_chunks(mut body: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    loop {
        let end = body.windows(2).position(|window| window == b"\r\n");
        let (head, rest) = body.split_at(end.expect("the answer was cut"));
        let head = std::str::from_utf8(head).expect("a number");
        let length = usize::from_str_radix(head, 16).expect("a number");
        if length == 0 {
            return content;
        }
        content.extend_from_slice(&rest[2..2 + length]);
        body = &rest[2 + length + 2..];
    }
}

/// `main` with `burn` (70 ns) and `rest` → `sleep` (30 ns), all of `/usr/bin/checkout`.
pub(crate) fn demo_profile() -> Profile {
    let mut profile = Profile::default();
    let mapping = profile.symbols.strings.intern("/usr/bin/checkout");
    let mapping = profile.symbols.intern_mapping(candela_model::Mapping {
        file: mapping,
        memory_start: 0x1000,
        memory_limit: 0x9000,
        ..candela_model::Mapping::default()
    });
    let mut location = |name: &str, line: u32, address: u64| {
        let function = profile.symbols.intern_function(name, "", "burn.c", line);
        let location = Location::new(FrameKind::Unknown, address).in_mapping(mapping);
        profile
            .symbols
            .intern_location(&location, &[(function, line + 1, 0)])
    };
    let main = location("main", 1, 0x1100);
    let burn = location("burn", 10, 0x1200);
    let rest = location("rest", 20, 0x1300);
    let sleep = location("sleep", 30, 0x1400);
    let mut series = cpu_series();
    let samples = [
        (vec![burn, main], 40),
        (vec![sleep, rest, main], 30),
        (vec![burn, main], 30),
    ];
    for (stack, value) in samples {
        let stack = profile.stacks.intern(&stack);
        series.samples.push(Sample::new(stack, value));
    }
    profile.series.push(series);
    profile
}

/// Ten seconds of CPU, without samples.
pub(crate) fn cpu_series() -> ProfileSeries {
    ProfileSeries {
        start_ns: START_NS,
        duration_ns: 10_000_000_000,
        period: 10,
        ..ProfileSeries::new(Labels::default(), cpu_type())
    }
}

pub(crate) fn cpu_type() -> ProfileType {
    ProfileType::new("process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds")
}

pub(crate) fn pprof_bytes(profile: &Profile) -> Vec<u8> {
    let mut bytes = Vec::new();
    let options = candela_formats::PprofOptions {
        compress: true,
        ..candela_formats::PprofOptions::default()
    };
    candela_formats::write_pprof(profile, &mut bytes, &options).expect("a valid profile");
    bytes
}

/// The checkout's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
