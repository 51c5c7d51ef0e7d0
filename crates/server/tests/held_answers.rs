//! Answers that their clients do not read, and answers that are longer than what they are made of.

use std::fs;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::HeaderValue;
use axum::http::Request;
use bytes::Bytes;
use candela_model::FrameKind;
use candela_model::Location;
use candela_model::Profile;
use candela_model::Sample;
use candela_server::Limits;
use candela_server::ServerOptions;
use h2::RecvStream;
use h2::client::SendRequest;
use tokio::task::JoinHandle;

use crate::support;
use crate::support::PATIENCE;
use crate::support::TestServer;
use crate::support::fleet::eventually;

/// Frames that all stacks have, and stacks.
const DEPTH: usize = 50;
const STACKS: usize = 50;

/// 2,500 nodes, each with a name: more than a megabyte, which is written as it is read.
const LONG: &str = "/api/v1/flamegraph?format=json&max_nodes=0";
/// A hundredth of it: whole.
const WHOLE: &str = "/api/v1/flamegraph?format=json&max_nodes=25";
/// Some bytes: sent at once.
const SHORT: &str = "/api/v1/services";

/// The least that a streamed answer counts for.
const SOURCE: usize = 16 << 20;

/// What a machine that others keep busy needs to send a head.
const SHORTEST: Duration = Duration::from_secs(3);

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3600);

/// A profile of functions with names of so many bytes.
fn profile_of_long_names(name_bytes: usize) -> Profile {
    let mut profile = Profile::default();
    let mut state = 1_u64;
    let mut location = |name: &str| {
        // Text that hardly compresses.
        let mut name = name.to_owned();
        while name.len() < name_bytes {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            name.push_str(&format!("{:08x}", state >> 32));
        }
        let function = profile.symbols.intern_function(&name, "", "", 0);
        let location = Location::new(FrameKind::Unknown, 0);
        profile
            .symbols
            .intern_location(&location, &[(function, 0, 0)])
    };
    let leaf = location("leaf");
    let path: Vec<_> = (0..DEPTH)
        .map(|depth| location(&format!("frame_{depth}_")))
        .collect();
    let mut series = support::cpu_series();
    for number in 0..STACKS {
        // Another order of the same frames for each.
        let frames = (0..DEPTH).map(|depth| path[(depth * (number + 1) + number) % DEPTH]);
        let stack: Vec<_> = std::iter::once(leaf).chain(frames).collect();
        let stack = profile.stacks.intern(&stack);
        series.samples.push(Sample::new(stack, 10));
    }
    profile.series.push(series);
    profile
}

fn start(name_bytes: usize, limits: Limits) -> TestServer {
    let server = TestServer::start_with(ServerOptions {
        limits,
        ..support::options()
    });
    let body = support::pprof_bytes(&profile_of_long_names(name_bytes));
    let answer = server.post("/api/v1/ingest?service=long", &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    server
}

/// A client of HTTP/2 that reads nothing but heads.
struct Client<'a> {
    server: &'a TestServer,
    requests: SendRequest<Bytes>,
    connection: JoinHandle<()>,
    unread: Vec<RecvStream>,
}

impl<'a> Client<'a> {
    fn new(server: &'a TestServer) -> Self {
        let (requests, connection) = server.runtime.block_on(async {
            let stream = tokio::net::TcpStream::connect(server.address).await;
            // What is not read of one answer must not hold up the others.
            let handshake = h2::client::Builder::new()
                .initial_connection_window_size(16 << 20)
                .handshake(stream.expect("the server accepts"));
            let (requests, connection) = handshake.await.expect("HTTP/2");
            let connection = tokio::spawn(async move {
                let _ = connection.await;
            });
            (requests, connection)
        });
        Self {
            server,
            requests,
            connection,
            unread: Vec::new(),
        }
    }

    /// Status and headers of an answer, of which the rest is left unread.
    fn ask(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: &'static [u8],
    ) -> (u16, HeaderMap) {
        let method = if body.is_empty() { "GET" } else { "POST" };
        let uri = format!("http://{}{path}", self.server.address);
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).expect("a request");
        let is_end = body.is_empty();
        let answer = self.server.runtime.block_on(async {
            let mut requests = self.requests.clone().ready().await.expect("a connection");
            let (answer, mut sending) = requests.send_request(request, is_end).expect("sent");
            if !is_end {
                sending
                    .send_data(Bytes::from_static(body), true)
                    .expect("sent");
            }
            tokio::time::timeout(PATIENCE, answer).await
        });
        let (head, body) = answer.expect("in time").expect("an answer").into_parts();
        self.unread.push(body);
        (head.status.as_u16(), head.headers)
    }

    fn status(&mut self, path: &str) -> u16 {
        self.ask(path, &[], b"").0
    }

    /// Asks until the answer is not that the server is busy.
    fn status_in_time(&mut self, path: &str) -> u16 {
        let deadline = std::time::Instant::now() + PATIENCE;
        loop {
            let status = self.status(path);
            if status != 429 {
                return status;
            }
            assert!(std::time::Instant::now() < deadline, "busy for ever");
            let pause = async { tokio::time::sleep(Duration::from_millis(20)).await };
            self.server.runtime.block_on(pause);
        }
    }

    /// Waits until the server has closed the connection.
    fn wait_for_close(&mut self) {
        let connection = &mut self.connection;
        let closed = async { tokio::time::timeout(PATIENCE, connection).await };
        let closed = self.server.runtime.block_on(closed);
        closed.expect("in time").expect("no panic");
    }

    /// Reads the oldest answer to its end, or until it breaks off.
    fn read_oldest(&mut self) -> Result<usize, h2::Error> {
        let mut body = self.unread.remove(0);
        let read = async {
            let mut length = 0;
            while let Some(data) = body.data().await {
                let data = data?;
                length += data.len();
                body.flow_control().release_capacity(data.len())?;
            }
            Ok(length)
        };
        let read = async { tokio::time::timeout(PATIENCE, read).await };
        self.server.runtime.block_on(read).expect("in time")
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// The memory that this process has, bytes.
fn resident_bytes() -> usize {
    bytes_of_status("VmRSS:")
}

/// The most memory that this process had, bytes.
fn most_resident_bytes() -> usize {
    bytes_of_status("VmHWM:")
}

fn bytes_of_status(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("a process");
    let line = status.lines().find(|line| line.starts_with(name));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    let kib: Option<usize> = kib.and_then(|kib| kib.parse().ok());
    kib.expect("a number") << 10
}

fn cut_answers(server: &TestServer) -> u64 {
    let metrics = server.get("/metrics").text();
    let name = "candela_answers_cut_total ";
    let count = metrics.lines().find_map(|line| line.strip_prefix(name));
    count
        .and_then(|count| count.parse().ok())
        .expect("a number")
}

/// Reads an answer in chunks and their heads, and keeps nothing of it but its length.
fn length_of(server: &TestServer, path: &str, accept_encoding: &str) -> usize {
    let mut stream = TcpStream::connect(server.address).expect("the server accepts");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept-Encoding: {accept_encoding}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("sent");
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        std::io::BufRead::read_line(&mut reader, &mut line).expect("a head");
        if line.starts_with("HTTP/") {
            assert!(line.contains(" 200 "), "{line}");
        }
    }
    let mut length = 0;
    let mut chunk = vec![0; 1 << 16];
    loop {
        match reader.read(&mut chunk).expect("the answer") {
            0 => return length,
            read => length += read,
        }
    }
}

#[test]
fn an_answer_may_be_much_longer_than_the_memory_it_takes() {
    let name_bytes = 60_000;
    let server = start(name_bytes, Limits::default());
    let before = most_resident_bytes();
    let text = DEPTH * STACKS * name_bytes;
    for format in ["json", "folded"] {
        let path = format!("/api/v1/flamegraph?format={format}&max_nodes=0");
        let length = length_of(&server, &path, "identity");
        assert!(length > text, "{length} bytes of {format}");
    }
    // Each test is a process of its own.
    let grown = most_resident_bytes() - before;
    assert!(grown < text / 5, "{grown} bytes more for {text} of text");
}

#[test]
fn a_long_answer_comes_whole_in_chunks_and_compressed() {
    let server = start(5000, Limits::default());
    let plain = server.get(LONG);
    assert_eq!(plain.status, 200);
    assert_eq!(plain.header("transfer-encoding"), Some("chunked"));
    assert_eq!(plain.json()["tree"]["total"], 10 * STACKS);
    let gzip = [("Accept-Encoding", "gzip")];
    let compressed = support::request(server.address, "GET", LONG, &gzip, b"");
    assert_eq!(compressed.header("content-encoding"), Some("gzip"));
    assert_eq!(compressed.header("transfer-encoding"), Some("chunked"));
    assert!(compressed.body.len() < plain.body.len());
    let mut inflated = Vec::new();
    flate2::read::GzDecoder::new(&compressed.body[..])
        .read_to_end(&mut inflated)
        .expect("gzip to its end");
    assert!(inflated == plain.body, "{} bytes", inflated.len());
}

#[test]
fn a_caller_that_reads_nothing_streams_no_more_than_half() {
    let limits = Limits {
        streamed_bytes: 4 * SOURCE,
        answers_bytes: 8 << 20,
        write_timeout: NEVER,
        ..Limits::default()
    };
    let server = start(20_000, limits);
    let mut client = Client::new(&server);
    assert_eq!([LONG, LONG].map(|path| client.status(path)), [200, 200]);
    // It has 50 MB of text.
    let refused = server.get(LONG);
    assert_eq!(refused.status, 429);
    assert_eq!(refused.json()["code"], "busy");
    assert!(refused.header("retry-after").is_some());
    // What is whole is not streamed, and turns are free again.
    assert_eq!(server.get(WHOLE).status, 200);
    assert_eq!(server.get(SHORT).status, 200);
    assert!(client.read_oldest().expect("to its end") > 1 << 20);
    assert_eq!(client.status(LONG), 200);
}

#[test]
fn an_answer_that_has_no_room_to_stream_is_whole() {
    let limits = Limits {
        streamed_bytes: 2 * SOURCE,
        write_timeout: NEVER,
        ..Limits::default()
    };
    let server = start(1000, limits);
    let mut client = Client::new(&server);
    let mut length = || {
        let (status, headers) = client.ask(LONG, &[], b"");
        assert_eq!(status, 200);
        headers.get("content-length").is_some()
    };
    assert_eq!([length(), length()], [false, true]);
}

/// Such a client takes the end of the connection for that of the answer.
#[test]
fn an_answer_over_http_1_0_is_whole() {
    let server = start(1000, Limits::default());
    let mut stream = TcpStream::connect(server.address).expect("the server accepts");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let head = format!("GET {LONG} HTTP/1.0\r\nHost: localhost\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let length = format!("content-length: {}", body.len());
    assert!(head.lines().any(|line| line == length), "{head}");
}

#[test]
fn a_caller_that_reads_nothing_gets_no_more_than_half_of_the_memory() {
    let limits = Limits {
        answers_bytes: 5 << 19,
        write_timeout: NEVER,
        ..Limits::default()
    };
    let server = start(20_000, limits);
    let mut client = Client::new(&server);
    let mut statuses = vec![client.status(WHOLE)];
    while statuses.last() == Some(&200) {
        statuses.push(client.status(WHOLE));
    }
    assert_eq!(statuses, [200, 200, 429]);
    assert_eq!(server.get(SHORT).status, 200);
    assert!(client.read_oldest().expect("to its end") > 400_000);
    assert_eq!(client.status(WHOLE), 200);
}

#[test]
fn an_answer_that_is_not_read_in_time_is_cut() {
    for (path, limits) in [
        (
            LONG,
            Limits {
                streamed_bytes: 2 * SOURCE,
                answers_bytes: 3 << 19,
                ..Limits::default()
            },
        ),
        (
            WHOLE,
            Limits {
                answers_bytes: 3 << 19,
                ..Limits::default()
            },
        ),
    ] {
        let limits = Limits {
            write_timeout: SHORTEST,
            ..limits
        };
        let server = start(20_000, limits);
        let mut client = Client::new(&server);
        assert_eq!(client.status(path), 200);
        // It still reads nothing: others get what it had, and its connection is closed.
        let mut other = Client::new(&server);
        assert_eq!(other.status_in_time(path), 200, "{path}");
        client.wait_for_close();
        let read = client.read_oldest();
        read.expect_err("a part must not look like the whole");
        eventually("it is counted", || cut_answers(&server) > 0);
    }
}

#[test]
fn the_memory_of_an_answer_that_was_cut_is_free() {
    let limits = Limits {
        streamed_bytes: 0,
        write_timeout: SHORTEST,
        ..Limits::default()
    };
    let server = start(20_000, limits);
    let before = resident_bytes();
    // 50 MB each, and the server may have two of them at a time.
    let clients = (0..6).map(|_| {
        let mut client = Client::new(&server);
        assert_eq!(client.status_in_time(LONG), 200);
        client
    });
    let _clients: Vec<Client<'_>> = clients.collect();
    eventually("six answers were cut", || cut_answers(&server) == 6);
    let held = resident_bytes().saturating_sub(before);
    assert!(held < 60 << 20, "{held} bytes of 300 MB are held");
}

#[test]
fn an_answer_that_is_too_large_is_refused_in_the_dialect_of_the_request() {
    let limits = Limits {
        answers_bytes: 1 << 20,
        streamed_bytes: 0,
        ..Limits::default()
    };
    let server = start(30_000, limits);
    let refused = server.get(WHOLE);
    assert_eq!(refused.status, 422);
    assert_eq!(refused.json()["code"], "answer_too_large");
    let hint = refused.json()["hint"].to_string();
    assert!(hint.contains("server.answers_memory"), "{hint}");

    let call = "/querier.v1.QuerierService/SelectMergeStacktraces";
    let question = format!(
        r#"{{"profileTypeID":"{}","labelSelector":"{{}}","start":0,"end":{}}}"#,
        support::cpu_type(),
        support::NOW_NS / 1_000_000
    );
    let json = [("Content-Type", "application/json")];
    let refused = support::request(server.address, "POST", call, &json, question.as_bytes());
    assert_eq!(refused.status, 400);
    assert_eq!(refused.json()["code"], "invalid_argument");

    let mut client = Client::new(&server);
    // A message with an end and everything else left out.
    let end = [&[0x20][..], &varint(support::NOW_NS / 1_000_000)].concat();
    let profile_type = support::cpu_type().to_string();
    let message = [
        &[0x0a, profile_type.len() as u8],
        profile_type.as_bytes(),
        b"\x12\x02{}",
        &end,
    ]
    .concat();
    let framed = [&[0, 0, 0, 0, message.len() as u8], &message[..]].concat();
    let grpc = [("content-type", "application/grpc"), ("te", "trailers")];
    let (status, headers) = client.ask(call, &grpc, framed.leak());
    let code = headers.get("grpc-status").map(HeaderValue::as_bytes);
    assert_eq!((status, code), (200, Some(&b"3"[..])), "{headers:?}");
}

/// A number as protobuf writes it.
fn varint(mut number: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}
