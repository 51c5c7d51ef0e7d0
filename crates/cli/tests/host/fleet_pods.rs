//! What the DaemonSets of `candela infra render kubernetes` run: an agent for each daemon, started with the arguments and
//! the environment of the manifest, beside each other on one node; their files go to a bucket of Google's.
#![cfg(all(feature = "server", feature = "agent"))]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::gcs;
use crate::serve::BUCKET;
use crate::support;
use crate::support::Program;
use crate::support::Running;
use serde_json::Value;
use serde_json::json;

const NODE: &str = "node-of-the-test";
/// The first profile of a daemon, its end, and the upload, beside other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// A service account with a key of its own, as Google's console gives it.
fn service_account(folder: &Path) -> String {
    let arguments = [
        "genpkey",
        "-algorithm",
        "RSA",
        "-pkeyopt",
        "rsa_keygen_bits:2048",
    ];
    let key = Command::new("openssl").args(arguments).output().unwrap();
    assert!(key.status.success(), "{}", support::stderr(&key));
    let account = json!({
        "type": "service_account",
        "private_key": support::stdout(&key),
        "private_key_id": "0123456789abcdef",
        "client_email": "profiler@shop.iam.gserviceaccount.com",
    });
    let path = folder.join("account.json");
    fs::write(&path, account.to_string()).unwrap();
    path.display().to_string()
}

fn document() -> Value {
    let collector = json!({"perf_collector": {
        "perf_polling_frequency_hz": 199,
        "dump_duration_seconds": 2,
        "process_filter": {"comm": ["shares"]},
        "export_to": format!("gs://{BUCKET}"),
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
        "export_to": format!("gs://{BUCKET}"),
        "bucket_subdirectory": "traces",
    }});
    json!({"observability_daemons": [collector, perfetto]})
}

/// The pods of all DaemonSets of a rendering.
fn pods(manifest: &str) -> Vec<Value> {
    let objects = manifest.split("\n---\n");
    let objects = objects.map(|object| serde_saphyr::from_str::<Value>(object).unwrap());
    let sets = objects.filter(|object| object["kind"] == "DaemonSet");
    sets.map(|set| set["spec"]["template"].clone()).collect()
}

/// The labels of a pod in a file, as the kubelet writes them where the manifest has a volume for that.
fn write_labels(pod: &Value, file: &Path) {
    let volumes = pod["spec"]["volumes"].as_array().unwrap();
    let has_labels = |volume: &Value| {
        let item = &volume["downwardAPI"]["items"][0];
        item["fieldRef"]["fieldPath"] == "metadata.labels" && item["path"] == "labels"
    };
    assert!(volumes.iter().any(has_labels), "{volumes:?}");
    let labels = pod["metadata"]["labels"].as_object().unwrap().iter();
    let lines: String = labels
        .map(|(key, value)| format!("{key}={value}\n"))
        .collect();
    fs::write(file, lines).unwrap();
}

/// Starts what the container of a pod runs, as the kubelet would; its volumes lie below `folder`.
fn start(pod: &Value, folder: &Path) -> Program {
    let container = &pod["spec"]["containers"][0];
    let data = folder.join("data");
    let labels = folder.join("labels");
    fs::create_dir_all(&data).unwrap();
    write_labels(pod, &labels);
    let mut command = support::candela();
    for argument in container["args"].as_array().unwrap() {
        command.arg(argument.as_str().unwrap());
    }
    for variable in container["env"].as_array().unwrap() {
        let value = match variable["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
            None if variable["name"] == "CANDELA_AGENT__KUBERNETES__OWN_LABELS_FILE" => {
                labels.to_str().unwrap()
            }
            None => variable["value"].as_str().unwrap(),
            Some("spec.nodeName") => NODE,
            Some("status.podIP") => "10.0.0.7",
            Some(_) => "of-the-pod",
        };
        command.env(variable["name"].as_str().unwrap(), value);
    }
    let mount = container["volumeMounts"][0]["mountPath"].as_str();
    assert_eq!(
        mount,
        Some("/var/lib/candela"),
        "the data directory of the image"
    );
    Program::start(command.env("CANDELA_DATA_DIR", data))
}

/// The keys of a folder of the bucket.
fn keys(bucket: &str, folder: &str) -> Vec<String> {
    let (_, listing) = support::get(&format!("{bucket}/{BUCKET}?prefix={folder}/{NODE}/"));
    let listing = String::from_utf8(listing).unwrap();
    let keys = listing.split("<Key>").skip(1);
    keys.map(|rest| rest.split('<').next().unwrap().to_owned())
        .collect()
}

#[test]
fn each_daemon_has_an_agent_and_its_files_reach_a_bucket_of_google() {
    let test = "each_daemon_has_an_agent_and_its_files_reach_a_bucket_of_google";
    if !support::is_root(test)
        || !support::has_tool(test, "gcc")
        || !support::has_tool(test, "openssl")
    {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let bucket = gcs::start_at();
    let data = folder.path().join("data").display().to_string();
    let server = Running::start(&["server", "--listen", "127.0.0.1:0", "--data-dir", &data]);
    let url = server.url("");
    let file = folder.path().join("persistence.json");
    let file = file.to_str().unwrap();
    let apply = |document: &Value| {
        fs::write(file, document.to_string()).unwrap();
        let arguments = [
            "infra",
            "apply",
            "persistence",
            "--yes",
            "-f",
            file,
            "--server",
            &url,
        ];
        support::expect_code(&support::run(&arguments), 0);
    };
    apply(&document());
    let account = format!("GOOGLE_SERVICE_ACCOUNT={}", service_account(folder.path()));
    let base = format!("GOOGLE_BASE_URL={bucket}");
    let rendered = support::run(&[
        "infra",
        "render",
        "kubernetes",
        "--server",
        &url,
        "--agent-server",
        &url,
        "--env",
        &account,
        "--env",
        &base,
    ]);
    support::expect_code(&rendered, 0);
    let pods = pods(&support::stdout(&rendered));
    assert_eq!(pods.len(), 2);
    let _shares = Program::start(Command::new(support::compile_shares(folder.path())).arg("600"));
    let programs: Vec<Program> = pods
        .iter()
        .enumerate()
        .map(|(index, pod)| start(pod, &folder.path().join(index.to_string())))
        .collect();

    // Each is heard beside the other, and runs its own daemon alone.
    let nodes = || support::get_json(&server.url("/api/v1/fleet/nodes"))["nodes"].clone();
    support::within(PATIENCE, "both run", || {
        let nodes = nodes();
        let nodes = nodes.as_array().unwrap();
        let is_right = |node: &Value| {
            let daemons = node["daemons"].as_array().unwrap();
            let is_own = daemons.iter().all(|daemon| daemon["id"] == node["daemon"]);
            node["node"] == NODE && is_own && daemons.len() == 1 && daemons[0]["state"] == "running"
        };
        (nodes.len() == 2 && nodes.iter().all(is_right)).then_some(())
    });
    let dumps = support::within(PATIENCE, "a dump is in the bucket", || {
        let keys = keys(&bucket, "perf-data");
        (keys.len() >= 2).then_some(keys)
    });
    let (status, dump) = support::get(&format!("{bucket}/{BUCKET}/{}", dumps[1]));
    assert_eq!(status, 200);
    let local = folder.path().join("perf-data.gz");
    fs::write(&local, dump).unwrap();
    let arguments = ["query", "top", local.to_str().unwrap(), "--type", "cpu"];
    let top = support::stdout(&support::run(&arguments));
    assert!(top.contains("burn_fifty"), "{top}");

    // Only the agent that has something to take a snapshot of is asked.
    let snapshot = support::run(&["profiling", "perfetto-snapshot", "--server", &url]);
    let told = support::stdout(&snapshot);
    support::expect_code(&snapshot, 0);
    assert_eq!(told.lines().count(), 2, "{told}");
    let traces = keys(&bucket, "traces");
    assert_eq!(traces.len(), 1, "{told}");
    assert!(told.contains(&traces[0]), "{told}");

    // By the labels of the manifest's pods, and by no others.
    let by_label = |selector: &str| {
        let arguments = [
            "profiling",
            "perfetto-snapshot",
            "--pod-label",
            selector,
            "--server",
            &url,
        ];
        support::run(&arguments)
    };
    let chosen = by_label("app.kubernetes.io/component=perfetto-daemon");
    support::expect_code(&chosen, 0);
    assert_eq!(support::stdout(&chosen).lines().count(), 2);
    support::expect_code(&by_label("app.kubernetes.io/component=other"), 5);

    apply(&json!({}));
    support::within(PATIENCE, "no daemon runs", || {
        let nodes = nodes();
        let mut nodes = nodes.as_array().unwrap().iter();
        let is_idle = |node: &Value| node["daemons"].as_array().is_some_and(Vec::is_empty);
        nodes.all(is_idle).then_some(())
    });
    drop(programs);
}
