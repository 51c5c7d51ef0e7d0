//! From a document that is applied to objects in the bucket: a real server, a real agent, the kernel, and a server of S3.
#![cfg(all(feature = "server", feature = "agent"))]

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::s3;
use crate::serve::BUCKET;
use crate::support;
use crate::support::Program;
use crate::support::Running;
use serde_json::Value;
use serde_json::json;

const NODE: &str = "node-of-the-test";
/// The first profile of a daemon, its end, and the upload, beside other tests.
const PATIENCE: Duration = Duration::from_secs(60);

struct Node {
    folder: tempfile::TempDir,
    server: Running,
    _agent: Program,
    _shares: Program,
}

impl Node {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let endpoint = s3::start(&folder.path().join("buckets")).endpoint.unwrap();
        let data = path("data");
        let server = Running::start(&["server", "--listen", "127.0.0.1:0", "--data-dir", &data]);
        let mut agent = support::candela();
        agent
            .args([
                "agent",
                "--server",
                &server.url(""),
                "--data-dir",
                &path("agent"),
            ])
            .env("CANDELA_AGENT__KUBERNETES__NODE", NODE)
            .env("CANDELA_AGENT__KUBERNETES__POD", "candela-agent-x7k2p")
            .env("CANDELA_AGENT__KINDS", "cpu")
            .env("CANDELA_AGENT__FLEET_STORE", "true")
            .env("CANDELA_AGENT__PERFETTO_TRIGGER__LISTEN", "127.0.0.1:0")
            .env("AWS_ENDPOINT_URL", format!("http://{endpoint}"))
            .env("AWS_REGION", "eu-central-1")
            .env("AWS_ACCESS_KEY_ID", s3::KEY_ID)
            .env("AWS_SECRET_ACCESS_KEY", s3::SECRET);
        let shares = support::compile_shares(folder.path());
        Self {
            _agent: Program::start(&mut agent),
            _shares: Program::start(Command::new(shares).arg("600")),
            server,
            folder,
        }
    }

    fn apply(&self, document: &Value) {
        let file = self.folder.path().join("persistence.json");
        fs::write(&file, document.to_string()).unwrap();
        let url = self.server.url("");
        let file = file.to_str().unwrap();
        let arguments = [
            "infra",
            "apply",
            "persistence",
            "-f",
            file,
            "--yes",
            "--server",
            &url,
        ];
        support::expect_code(&support::run(&arguments), 0);
    }

    /// Objects below a folder of the bucket, by their names.
    fn objects(&self, folder: &str) -> Vec<PathBuf> {
        let folder = self
            .folder
            .path()
            .join("buckets")
            .join(BUCKET)
            .join(folder)
            .join(NODE);
        let Ok(entries) = fs::read_dir(folder) else {
            return Vec::new();
        };
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    }

    /// Functions of a service in the store; `None` while it has none.
    fn stored(&self, service: &str) -> Option<String> {
        let selector = format!("{{service_name={service:?}, node={NODE:?}}}");
        let url = self.server.url("");
        let arguments = [
            "query", "top", "--query", &selector, "--type", "cpu", "--format", "json", "--server",
            &url,
        ];
        let output = support::run(&arguments);
        output.status.success().then(|| support::stdout(&output))
    }

    /// Its daemons as the server knows them; `None` while it knows none.
    fn daemons(&self) -> Option<Vec<Value>> {
        let nodes = support::get_json(&self.server.url("/api/v1/fleet/nodes"));
        let nodes = nodes["nodes"].as_array().unwrap().clone();
        let node = nodes.into_iter().find(|node| node["node"] == NODE)?;
        node["daemons"].as_array().cloned()
    }
}

/// Functions of a file by their totals.
fn functions(file: &Path) -> String {
    let file = file.to_str().unwrap();
    let output = support::run(&["query", "top", file, "--type", "cpu", "--format", "json"]);
    support::expect_code(&output, 0);
    support::stdout(&output)
}

#[test]
fn a_document_becomes_objects_in_the_bucket() {
    let test = "a_document_becomes_objects_in_the_bucket";
    if !support::is_root(test) || !support::has_tool(test, "gcc") {
        return;
    }
    let node = Node::start();
    let collector = json!({"perf_collector": {
        "perf_polling_frequency_hz": 199,
        "dump_duration_seconds": 2,
        "max_dumps_retained": 2,
        "process_filter": {"comm": ["shares"]},
        "export_to": format!("s3://{BUCKET}"),
        "bucket_subdirectory": "perf-data",
    }});
    let config = "buffers { size_kb: 10240 fill_policy: RING_BUFFER } \
        data_sources { config { name: \"linux.perf\" perf_event_config { all_cpus: true sampling_frequency: 99 } } } \
        trigger_config { trigger_mode: CLONE_SNAPSHOT trigger_timeout_ms: 60000 \
        triggers { name: \"traces\" stop_delay_ms: 100 } }";
    let perfetto = json!({"perfetto_daemon": {
        "config_text": config,
        "trigger": "PERFETTO_TRIGGER_HTTP",
        "trigger_name": "traces",
        "export_to": format!("s3://{BUCKET}"),
        "bucket_subdirectory": "traces",
    }});
    node.apply(&json!({"observability_daemons": [collector, perfetto]}));

    let dumps = support::within(PATIENCE, "two dumps are in the bucket", || {
        let dumps = node.objects("perf-data");
        (dumps.len() >= 2).then_some(dumps)
    });
    let names = dumps
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap());
    for name in names {
        assert_eq!(name.len(), "20260220T153012-perf-data.gz".len(), "{name}");
        assert!(name.ends_with("-perf-data.gz"), "{name}");
    }
    let seen = functions(&dumps[1]);
    for function in ["burn_fifty", "burn_thirty", "burn_twenty", "main"] {
        assert!(seen.contains(function), "{function}: {seen}");
    }
    support::within(PATIENCE, "both daemons run", || {
        let daemons = node.daemons()?;
        let running = daemons.iter().filter(|daemon| daemon["state"] == "running");
        (running.count() == 2).then_some(())
    });

    let url = node.server.url("");
    let snapshot = support::run(&["profiling", "perfetto-snapshot", "--server", &url]);
    support::expect_code(&snapshot, 0);
    let told = support::stdout(&snapshot);
    let traces = node.objects("traces");
    assert_eq!(traces.len(), 1, "{told}");
    let name = traces[0].file_name().unwrap().to_str().unwrap();
    assert!(name.ends_with("-perfetto-trace.pb"), "{name}");
    assert!(told.contains(&format!("traces/{NODE}/{name}")), "{told}");
    let seen = functions(&traces[0]);
    assert!(seen.contains("burn_fifty"), "{seen}");

    // The same moments are in the store.
    for service in ["dump:shares", "snapshot:shares"] {
        let seen = support::within(PATIENCE, service, || node.stored(service));
        for function in ["burn_fifty", "main"] {
            assert!(seen.contains(function), "{service}, {function}: {seen}");
        }
    }
    support::within(PATIENCE, "what is stored is counted", || {
        let daemons = node.daemons()?;
        let is_stored = |daemon: &&Value| daemon["stored"].as_u64() >= Some(1);
        let none_lost = daemons.iter().all(|daemon| daemon["not_stored"] == 0);
        (none_lost && daemons.iter().filter(is_stored).count() == 2).then_some(())
    });

    node.apply(&json!({}));
    support::within(PATIENCE, "the node has no daemons", || {
        node.daemons()?.is_empty().then_some(())
    });
}
