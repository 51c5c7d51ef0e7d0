//! Debian's own `debuginfod` server over a temporary directory, and servers that misbehave.

use super::workshop::{C_PROGRAM, Workshop, functions, has_tool, poll};
use candela_symbols::debuginfod::Lookup;
use candela_symbols::{
    BuildId, Debuginfod, DebuginfodOptions, ObjectFile, SymbolCache, SymbolCacheOptions,
    SymbolSource, SymbolizerOptions,
};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

const PATIENCE: Duration = Duration::from_secs(60);

/// Somebody may take a server's port before it does.
const MOST_STARTS: usize = 5;

/// Nobody may listen there but root, and nobody does.
const DEAD: &str = "http://127.0.0.1:1";

/// A running server, ended with the test.
struct Server {
    process: Child,
    port: u16,
    url: String,
}

impl Server {
    /// Starts a server over `directory` and waits until it has found one debug file there.
    fn start(shop: &Workshop, directory: &str) -> Self {
        for _ in 0..MOST_STARTS {
            let port = free_port();
            let mut server = Self {
                process: spawn(shop, directory, port),
                port,
                url: format!("http://127.0.0.1:{port}"),
            };
            if server.has_scanned() {
                return server;
            }
        }
        panic!("debuginfod ended {MOST_STARTS} times");
    }

    /// Starts it again after its end, on the same port.
    fn restart(&mut self, shop: &Workshop, directory: &str) {
        self.process = spawn(shop, directory, self.port);
        assert!(self.has_scanned(), "somebody has taken port {}", self.port);
    }

    /// Waits until it has found a debug file; `false` when it ends instead, because its port is taken.
    fn has_scanned(&mut self) -> bool {
        poll("the server's scan", || {
            if self.process.try_wait().expect("a child").is_some() {
                return Some(false);
            }
            let metrics = ureq::get(format!("{}/metrics", self.url)).call().ok()?;
            let text = metrics.into_body().read_to_string().ok()?;
            let found = text
                .lines()
                .find(|line| line.starts_with("found_debuginfo_total"))?;
            (!found.ends_with(" 0")).then_some(true)
        })
    }
}

fn spawn(shop: &Workshop, directory: &str, port: u16) -> Child {
    Command::new("debuginfod")
        .args(["-F", directory, "-p", &port.to_string(), "-d", ":memory:"])
        .current_dir(shop.root())
        .env_remove("DEBUGINFOD_URLS")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts")
}

impl Drop for Server {
    fn drop(&mut self) {
        // The only way it can fail is that the server has ended already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A port that nobody listens on. debuginfod does not tell which one it was given, so it is given one: below those that
/// the kernel hands out by itself, and another one in each process and each time.
fn free_port() -> u16 {
    static TRIED: AtomicU16 = AtomicU16::new(0);
    let first = u16::try_from(std::process::id() % 10_000).expect("a small number");
    loop {
        let tried = TRIED.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + first + tried % 10_000;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

fn client(url: &str, directory: &Path) -> Debuginfod {
    let options = DebuginfodOptions::new(vec![url.to_owned()], directory.into());
    Debuginfod::start(&options).expect("the directory is writable")
}

/// A stripped program, its full version in `served/`, and the address of its function `outer`.
fn stripped_program(shop: &Workshop) -> u64 {
    shop.write("program.c", C_PROGRAM);
    std::fs::create_dir(shop.path("served")).expect("a directory in the temporary one");
    shop.run(
        "gcc",
        &[
            "-O2",
            "-g",
            "-Wl,--build-id",
            "program.c",
            "-o",
            "served/full",
        ],
    );
    shop.run("strip", &["-o", "stripped", "served/full"]);
    let symbols = functions(&shop.path("served/full"));
    let (outer, ..) = symbols
        .into_iter()
        .find(|(_, _, name)| name == "outer")
        .expect("it is not inlined");
    outer
}

fn cache(client: Debuginfod) -> SymbolCache {
    let symbolizer = SymbolizerOptions {
        debuginfod: Some(Arc::new(client)),
        ..SymbolizerOptions::default()
    };
    SymbolCache::new(SymbolCacheOptions {
        symbolizer,
        ..SymbolCacheOptions::default()
    })
}

fn has_tools() -> bool {
    has_tool("gcc", "--version")
        && has_tool("strip", "--version")
        && has_tool("debuginfod", "--version")
}

#[test]
fn stripped_programs_get_their_names_from_the_server() {
    if !has_tools() {
        return;
    }
    let shop = Workshop::new();
    let outer = stripped_program(&shop);
    let server = Server::start(&shop, "served");

    let fetching = Arc::new(client(&server.url, &shop.path("cache")));
    let symbolizer = SymbolizerOptions {
        debuginfod: Some(Arc::clone(&fetching)),
        ..SymbolizerOptions::default()
    };
    let names = SymbolCache::new(SymbolCacheOptions {
        symbolizer,
        ..SymbolCacheOptions::default()
    });
    let object = names
        .open_path(&shop.path("stripped"), Path::new("/"))
        .expect("an ELF file");
    let first = names.resolve(&object, outer);
    assert!(first.pending, "the caller does not wait: {first:?}");
    assert!(
        fetching.wait_until_idle(PATIENCE),
        "one small file takes less than a minute"
    );
    let second = names.resolve(&object, outer);
    assert_eq!(
        (second.source, second.pending),
        (SymbolSource::Dwarf, false)
    );
    assert_eq!(
        second.frames.last().map(|frame| &*frame.function),
        Some("outer")
    );
    assert_eq!(
        second.frames.len(),
        3,
        "inlined calls come with it: {second:?}"
    );
    assert_eq!(fetching.stats().fetched, 1);
    drop(server);

    // Without the server the cache directory answers, in the layout of elfutils.
    let id = object
        .build_id()
        .gnu_hex()
        .expect("the linker was told to write one");
    assert!(shop.path("cache").join(id).join("debuginfo").is_file());
    let offline = cache(client(DEAD, &shop.path("cache")));
    let object = offline
        .open_path(&shop.path("stripped"), Path::new("/"))
        .expect("an ELF file");
    let answer = offline.resolve(&object, outer);
    assert_eq!(
        (answer.source, answer.pending),
        (SymbolSource::Dwarf, false)
    );
}

#[test]
fn an_unknown_build_id_is_asked_for_once() {
    if !has_tools() {
        return;
    }
    let shop = Workshop::new();
    stripped_program(&shop);
    let server = Server::start(&shop, "served");
    let client = client(&server.url, &shop.path("cache"));
    let unknown = BuildId::Gnu(Box::from([7; 20]));
    assert_eq!(client.debug_file(&unknown), Lookup::Pending);
    assert!(client.wait_until_idle(PATIENCE));
    assert_eq!(client.debug_file(&unknown), Lookup::Absent);
    assert_eq!(client.debug_file(&unknown), Lookup::Absent);
    assert_eq!(client.stats().absent, 1);
    // A second process reads the absence from the directory.
    let second = self::client(&server.url, &shop.path("cache"));
    assert_eq!(second.debug_file(&unknown), Lookup::Absent);
    assert_eq!(second.stats().absent, 0);
}

#[test]
fn a_dead_server_is_left_alone_for_a_while() {
    static SECONDS: AtomicU64 = AtomicU64::new(1_000_000);
    let clock = || SystemTime::UNIX_EPOCH + Duration::from_secs(SECONDS.load(Ordering::Relaxed));
    let shop = Workshop::new();
    let options = DebuginfodOptions {
        clock,
        ..DebuginfodOptions::new(vec![DEAD.to_owned()], shop.path("cache"))
    };
    let client = Debuginfod::start(&options).expect("the directory is writable");
    let id = BuildId::Gnu(Box::from([1; 20]));
    assert_eq!(client.debug_file(&id), Lookup::Pending);
    assert!(client.wait_until_idle(PATIENCE));
    assert_eq!(
        (client.debug_file(&id), client.stats().failed),
        (Lookup::Unreachable, 1)
    );
    SECONDS.fetch_add(options.retry_after.as_secs() + 1, Ordering::Relaxed);
    assert_eq!(
        client.debug_file(&id),
        Lookup::Pending,
        "it may have come back"
    );
    assert!(client.wait_until_idle(PATIENCE));
    assert_eq!(client.stats().failed, 2);
}

#[test]
fn answers_given_while_a_server_was_away_are_not_kept() {
    static SECONDS: AtomicU64 = AtomicU64::new(1_000_000);
    let clock = || SystemTime::UNIX_EPOCH + Duration::from_secs(SECONDS.load(Ordering::Relaxed));
    if !has_tools() {
        return;
    }
    let shop = Workshop::new();
    let outer = stripped_program(&shop);
    let mut server = Server::start(&shop, "served");
    let urls = vec![server.url.clone()];
    drop(server.process.kill());
    server.process.wait().expect("it was just ended");

    let options = DebuginfodOptions {
        clock,
        ..DebuginfodOptions::new(urls, shop.path("cache"))
    };
    let client = Arc::new(Debuginfod::start(&options).expect("the directory is writable"));
    let symbolizer = SymbolizerOptions {
        debuginfod: Some(Arc::clone(&client)),
        ..SymbolizerOptions::default()
    };
    let names = SymbolCache::new(SymbolCacheOptions {
        symbolizer,
        ..SymbolCacheOptions::default()
    });
    let object = names
        .open_path(&shop.path("stripped"), Path::new("/"))
        .expect("an ELF file");
    assert!(names.resolve(&object, outer).pending);
    assert!(client.wait_until_idle(PATIENCE));
    let away = names.resolve(&object, outer);
    assert_eq!((away.source, away.pending), (SymbolSource::None, false));

    server.restart(&shop, "served");
    SECONDS.fetch_add(options.retry_after.as_secs() + 1, Ordering::Relaxed);
    assert!(
        names.resolve(&object, outer).pending,
        "the server is asked again"
    );
    assert!(client.wait_until_idle(PATIENCE));
    assert_eq!(names.resolve(&object, outer).source, SymbolSource::Dwarf);
}

#[test]
fn a_file_of_another_build_is_refused() {
    if !has_tools() {
        return;
    }
    let shop = Workshop::new();
    let outer = stripped_program(&shop);
    shop.write("other.c", "int main(void) { return 0; }");
    shop.run("gcc", &["-g", "-Wl,--build-id", "other.c", "-o", "other"]);
    let body = std::fs::read(shop.path("other")).expect("the compiler wrote it");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has free ports");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let lying_server = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().expect("the client connects");
        let mut request = [0; 4096];
        let size = connection.read(&mut request).expect("the client asks");
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        connection
            .write_all(head.as_bytes())
            .expect("the client listens");
        connection.write_all(&body).expect("the client listens");
        String::from_utf8_lossy(&request[..size]).into_owned()
    });

    let lied_to = Arc::new(client(&url, &shop.path("cache")));
    let symbolizer = SymbolizerOptions {
        debuginfod: Some(Arc::clone(&lied_to)),
        ..SymbolizerOptions::default()
    };
    let object = Arc::new(ObjectFile::open(&shop.path("stripped")).expect("an ELF file"));
    let symbolizer = candela_symbols::Symbolizer::new(Arc::clone(&object), symbolizer);
    assert!(symbolizer.resolve(outer).pending);
    assert!(lied_to.wait_until_idle(PATIENCE));
    let request = lying_server.join().expect("it served one request");
    let id = object
        .build_id()
        .gnu_hex()
        .expect("the linker was told to write one");
    assert!(
        request.starts_with(&format!("GET /buildid/{id}/debuginfo HTTP/1.1")),
        "{request}"
    );
    let answer = symbolizer.resolve(outer);
    assert_eq!(
        (answer.source, answer.pending),
        (SymbolSource::None, false),
        "{answer:?}"
    );
    let kept = std::fs::metadata(shop.path("cache").join(id).join("debuginfo"));
    let kept_bytes = kept.expect("the absence is written down").len();
    assert_eq!(kept_bytes, 0, "the file would be found for ever");
}

#[test]
fn a_cache_directory_that_cannot_be_written_is_no_fault_of_the_server() {
    if !has_tools() {
        return;
    }
    let shop = Workshop::new();
    stripped_program(&shop);
    let server = Server::start(&shop, "served");
    let client = client(&server.url, &shop.path("cache"));
    let object = ObjectFile::open(&shop.path("stripped")).expect("an ELF file");
    let id = object.build_id().gnu_hex().expect("it has one");
    // A file where the build id's directory should be.
    shop.write(&format!("cache/{id}"), "");
    assert_eq!(client.debug_file(object.build_id()), Lookup::Pending);
    assert!(client.wait_until_idle(PATIENCE));
    let stats = client.stats();
    assert_eq!((stats.disk_failed, stats.failed), (1, 0));
    assert_eq!(client.debug_file(object.build_id()), Lookup::Unreachable);
    // The server is not left alone for it.
    let unknown = BuildId::Gnu(Box::from([7; 20]));
    assert_eq!(client.debug_file(&unknown), Lookup::Pending);
    assert!(client.wait_until_idle(PATIENCE));
    assert_eq!(client.debug_file(&unknown), Lookup::Absent);
}

#[test]
fn a_file_beyond_the_limit_is_not_fetched() {
    if !has_tools() {
        return;
    }
    let shop = Workshop::new();
    stripped_program(&shop);
    let server = Server::start(&shop, "served");
    let mut options = DebuginfodOptions::new(vec![server.url.clone()], shop.path("cache"));
    options.max_file_bytes = 1000;
    let client = Debuginfod::start(&options).expect("the directory is writable");
    let object = ObjectFile::open(&shop.path("stripped")).expect("an ELF file");
    assert_eq!(client.debug_file(object.build_id()), Lookup::Pending);
    assert!(client.wait_until_idle(PATIENCE));
    assert_eq!(client.debug_file(object.build_id()), Lookup::Absent);
    assert_eq!(client.stats().fetched, 0);
}
