//! Three agents, each in a network of its own, and a link that is cut: the fleet follows its document all the same.
#![cfg(all(feature = "server", feature = "agent"))]
#![expect(clippy::print_stdout, reason = "a test that skips says why")]

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;
use std::time::Duration;

use crate::support;
use crate::support::Program;
use crate::support::Running;
use serde_json::Value;
use serde_json::json;

const NODES: [&str; 3] = ["node-a", "node-b", "node-c"];
const HUB: Ipv4Addr = Ipv4Addr::new(10, 231, 77, 1);
const BUCKET_PORT: u16 = 5000;
/// A connection that died without a word is noticed after 75 s at most, and tried again half a minute later.
const PATIENCE: Duration = Duration::from_secs(150);

/// A network of its own, with links from the hub's to those of three nodes. All of it goes with the value.
struct Networks {
    prefix: String,
}

/// Everything that runs. Fields are dropped in this order: programs end before their networks.
struct Fleet {
    agents: Vec<Program>,
    server: Running,
    _bucket: Program,
    networks: Networks,
    folder: tempfile::TempDir,
}

fn ip(arguments: &[&str]) -> bool {
    let output = Command::new("ip").args(arguments).output().unwrap();
    if !output.status.success() {
        println!("ip {arguments:?}: {}", support::stderr(&output));
    }
    output.status.success()
}

impl Networks {
    /// `None` where the kernel lets nobody make networks, which is told.
    fn make(test: &str) -> Option<Self> {
        let networks = Self {
            prefix: format!("candela{}", std::process::id()),
        };
        let hub = networks.name("hub");
        if !ip(&["netns", "add", &hub]) {
            println!("SKIP {test}: networks cannot be made here");
            return None;
        }
        let hub_address = format!("{HUB}/24");
        let is_made = ip(&["-n", &hub, "link", "set", "lo", "up"])
            && ip(&["-n", &hub, "link", "add", "hub", "type", "bridge"])
            && ip(&["-n", &hub, "addr", "add", &hub_address, "dev", "hub"])
            && ip(&["-n", &hub, "link", "set", "hub", "up"])
            && (0..NODES.len()).all(|index| networks.join(index));
        if !is_made {
            println!("SKIP {test}: links between networks cannot be made here");
            return None;
        }
        Some(networks)
    }

    fn join(&self, index: usize) -> bool {
        let (hub, node, link) = (self.name("hub"), self.name(NODES[index]), NODES[index]);
        let address = format!("10.231.77.{}/24", index + 2);
        ip(&["netns", "add", &node])
            && ip(&[
                "-n", &hub, "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns",
                &node,
            ])
            && ip(&["-n", &hub, "link", "set", link, "master", "hub"])
            && ip(&["-n", &hub, "link", "set", link, "up"])
            && ip(&["-n", &node, "addr", "add", &address, "dev", "eth0"])
            && ip(&["-n", &node, "link", "set", "lo", "up"])
            && ip(&["-n", &node, "link", "set", "eth0", "up"])
    }

    fn name(&self, of: &str) -> String {
        format!("{}-{of}", self.prefix)
    }

    /// A program in a network. The files of the host stay as they are, as `ip netns exec` would not have it.
    fn command(&self, network: &str, program: &str) -> Command {
        let mut command = support::in_clean_environment("nsenter");
        command
            .arg(format!("--net=/run/netns/{}", self.name(network)))
            .arg(program);
        command
    }

    fn set_link(&self, node: &str, state: &str) {
        assert!(ip(&["-n", &self.name("hub"), "link", "set", node, state]));
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        for network in NODES.iter().chain(&["hub"]) {
            let _ = Command::new("ip")
                .args(["netns", "del", &self.name(network)])
                .output();
        }
    }
}

impl Fleet {
    fn start(networks: Networks, moto: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let mut bucket = networks.command("hub", moto);
        bucket.args(["-H", &HUB.to_string(), "-p", &BUCKET_PORT.to_string()]);
        let bucket = Program::start(bucket.stderr(fs::File::create(path("bucket.log")).unwrap()));
        let url = format!("http://{HUB}:{BUCKET_PORT}/profiles");
        support::eventually("the bucket is made", || {
            let mut curl = networks.command("hub", "curl");
            let made = curl.args(["-fsS", "-X", "PUT", &url]).output().unwrap();
            made.status.success().then_some(())
        });

        let listen = format!("{HUB}:4040");
        let mut server = networks.command("hub", env!("CARGO_BIN_EXE_candela"));
        server.args(["server", "--insecure", "--listen", &listen]);
        server.args(["--data-dir", &path("data")]);
        let server = Running::launch(&mut server).unwrap();
        let agents = NODES.map(|node| {
            let mut agent = networks.command(node, env!("CARGO_BIN_EXE_candela"));
            agent
                .args(["agent", "--server", &format!("http://{listen}")])
                .args(["--data-dir", &path(node)])
                .env("CANDELA_AGENT__KUBERNETES__NODE", node)
                .env("CANDELA_AGENT__KINDS", "cpu")
                .env("AWS_ENDPOINT_URL", format!("http://{HUB}:{BUCKET_PORT}"))
                .env("AWS_REGION", "us-east-1")
                .env("AWS_ACCESS_KEY_ID", "testing")
                .env("AWS_SECRET_ACCESS_KEY", "testing");
            Program::start(agent.stderr(fs::File::create(path(&format!("{node}.log"))).unwrap()))
        });
        Self {
            agents: agents.into(),
            server,
            _bucket: bucket,
            networks,
            folder,
        }
    }

    /// A command beside the server.
    fn candela(&self, arguments: &[&str]) -> Output {
        let mut command = self.networks.command("hub", env!("CARGO_BIN_EXE_candela"));
        command
            .args(arguments)
            .args(["--server", &self.server.url("")]);
        command.output().unwrap()
    }

    fn apply(&self, hz: u32) {
        let file: PathBuf = self.folder.path().join("persistence.json");
        fs::write(&file, document(hz).to_string()).unwrap();
        let file = file.to_str().unwrap();
        let applied = self.candela(&["infra", "apply", "persistence", "-f", file, "--yes"]);
        support::expect_code(&applied, 0);
    }

    /// Whether a node runs both daemons of a version.
    fn follows(&self, name: &str, version: u64) -> bool {
        let output = self.candela(&["infra", "describe", "nodes", "--json"]);
        let Ok(answer) = serde_json::from_str::<Value>(&support::stdout(&output)) else {
            return false;
        };
        let nodes = answer["nodes"].as_array().cloned().unwrap_or_default();
        let Some(node) = nodes.into_iter().find(|node| node["node"] == name) else {
            return false;
        };
        let daemons = node["daemons"].as_array().cloned().unwrap_or_default();
        let running = daemons.iter().filter(|daemon| daemon["state"] == "running");
        node["version"] == version && running.count() == 2
    }

    fn wait_for(&self, nodes: &[&str], version: u64) {
        support::within(PATIENCE, "the nodes follow", || {
            nodes
                .iter()
                .all(|node| self.follows(node, version))
                .then_some(())
        });
    }

    fn snapshot(&self, timeout: &str) -> (Option<i32>, String) {
        let output = self.candela(&["profiling", "perfetto-snapshot", "--timeout", timeout]);
        (output.status.code(), support::stdout(&output))
    }
}

fn document(hz: u32) -> Value {
    let config = "buffers { size_kb: 4096 fill_policy: RING_BUFFER } \
        data_sources { config { name: \"linux.perf\" perf_event_config { all_cpus: true sampling_frequency: 49 } } } \
        trigger_config { trigger_mode: CLONE_SNAPSHOT trigger_timeout_ms: 60000 \
        triggers { name: \"traces\" stop_delay_ms: 100 } }";
    json!({"observability_daemons": [
        {"perf_collector": {
            "perf_polling_frequency_hz": hz,
            "dump_duration_seconds": 2,
            "export_to": "s3://profiles",
            "bucket_subdirectory": "perf-data",
        }},
        {"perfetto_daemon": {
            "config_text": config,
            "trigger": "PERFETTO_TRIGGER_HTTP",
            "trigger_name": "traces",
            "export_to": "s3://profiles",
            "bucket_subdirectory": "traces",
        }},
    ]})
}

/// Where `scripts/install-deps test` puts it, beside the build.
fn moto(test: &str) -> Option<String> {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_candela"));
    let program = binary
        .ancestors()
        .nth(2)?
        .join("test-python/bin/moto_server");
    if !program.is_file() {
        println!("SKIP {test}: `scripts/install-deps test` installs moto");
        return None;
    }
    Some(program.display().to_string())
}

#[test]
fn a_node_that_is_cut_off_keeps_its_document_and_catches_up() {
    let test = "a_node_that_is_cut_off_keeps_its_document_and_catches_up";
    let has_tools = || {
        ["ip", "nsenter", "curl"]
            .iter()
            .all(|tool| support::has_tool(test, tool))
    };
    if !support::is_root(test) || !has_tools() {
        return;
    }
    let Some(moto) = moto(test) else { return };
    let Some(networks) = Networks::make(test) else {
        return;
    };
    let fleet = Fleet::start(networks, &moto);
    fleet.apply(49);
    fleet.wait_for(&NODES, 1);
    fleet.apply(99);
    fleet.wait_for(&NODES, 2);
    let (code, told) = fleet.snapshot("60s");
    assert_eq!(code, Some(0), "{told}");
    for node in NODES {
        assert!(told.contains(&format!("traces/{node}/2")), "{told}");
    }

    let cut_off = NODES[1];
    fleet.networks.set_link(cut_off, "down");
    let before = dumps_of(&fleet, cut_off);
    fleet.apply(19);
    fleet.wait_for(&[NODES[0], NODES[2]], 3);
    support::within(
        PATIENCE,
        "its daemon goes on with the last good document",
        || (dumps_of(&fleet, cut_off) >= before + 2).then_some(()),
    );
    let kept = fleet
        .folder
        .path()
        .join(cut_off)
        .join("fleet/document.json");
    let kept: Value = serde_json::from_slice(&fs::read(kept).unwrap()).unwrap();
    assert_eq!(kept["version"], 2);
    let (code, told) = fleet.snapshot("10s");
    assert_eq!(code, Some(1), "one has none: {told}");
    assert!(told.contains(&format!("traces/{}/2", NODES[0])), "{told}");
    assert!(!told.contains(&format!("traces/{cut_off}/2")), "{told}");

    fleet.networks.set_link(cut_off, "up");
    fleet.wait_for(&NODES, 3);
    support::within(PATIENCE, "what waited is uploaded", || {
        (dumps_of(&fleet, cut_off) <= 1).then_some(())
    });
    assert_eq!(fleet.agents.len(), NODES.len());
}

/// Dumps that wait on a node.
fn dumps_of(fleet: &Fleet, node: &str) -> usize {
    let daemons = fleet.folder.path().join(node).join("fleet/daemons");
    let folders = fs::read_dir(daemons).into_iter().flatten().flatten();
    let waiting = folders.filter_map(|folder| fs::read_dir(folder.path().join("waiting")).ok());
    waiting
        .flatten()
        .flatten()
        .filter(|file| {
            file.file_name()
                .to_string_lossy()
                .ends_with("-perf-data.gz")
        })
        .count()
}
