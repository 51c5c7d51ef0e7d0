//! Every command block of the documentation is run.
//!
//! Blocks marked `sh` run in bash, one after another, in an empty folder, with `candela` on the path
//! and a `candela up` at its default address. All this happens in a network namespace of its
//! own, where port 4040 is free whatever runs on the host. Those of `docs/clients` need what clients
//! have sent: `tests/host/clients` runs them.

use crate::support;
use crate::support::Running;
use std::fmt::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;

/// What every newcomer types first. `make test` is what runs this test, `make up` has one of its
/// own below, and `make demo` is `candela demo`, which has `tests/host/demo.rs`.
const OTHERWISE_TESTED: [&str; 3] = ["make up", "make test", "make demo"];

/// Starts the program of the documentation and waits until it has data, then runs the blocks, on a host
/// on which something runs: on an idle one there is nothing to record.
const PROLOGUE: &str = r#"
set -euo pipefail
ip link set lo up
CANDELA_AGENT__INTERVAL=2s candela up --data-dir "$PWD/data" --rate 99 &
up=$!
nice sh -c 'while :; do :; done' &
# What a block leaves behind when it fails would keep the test's output open, and a CPU busy.
trap 'kill $(jobs -p) || true; wait' EXIT
for attempt in $(seq 1 600); do
    candela query top --from now-5m >/dev/null 2>&1 && break
    kill -0 $up
    read -rt 0.1 <> <(:) || true
done
candela query top --from now-5m >/dev/null
mkdir work
cd work
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn documents() -> Vec<PathBuf> {
    let mut documents = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    for entry in std::fs::read_dir(root().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            documents.push(path);
        }
    }
    documents.sort();
    documents
}

/// The `sh` blocks of a document.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("\n```sh\n") {
        let (block, following) = after.split_once("\n```").expect("a block ends");
        blocks.push(block.to_owned());
        rest = following;
    }
    blocks
}

#[test]
fn every_command_block_runs() {
    let test = "every_command_block_runs";
    let tools = ["unshare", "ip", "curl"];
    if !support::is_root(test) || !tools.iter().all(|tool| support::has_tool(test, tool)) {
        return;
    }
    let mut script = PROLOGUE.to_owned();
    let mut count = 0;
    for document in documents() {
        let name = document.strip_prefix(root()).unwrap().display().to_string();
        for block in blocks(&std::fs::read_to_string(&document).unwrap()) {
            if OTHERWISE_TESTED.contains(&block.trim()) {
                continue;
            }
            if block.contains("go tool") && !support::has_tool(test, "go") {
                continue;
            }
            writeln!(
                script,
                "echo '>>> a block of {name}'\nset -x\n{block}\n{{ set +x; }} 2>/dev/null"
            )
            .unwrap();
            count += 1;
        }
    }
    assert!(count >= 4, "{count} blocks");
    let folder = tempfile::tempdir().unwrap();
    let own_folder = Path::new(env!("CARGO_BIN_EXE_candela")).parent().unwrap();
    let path = format!(
        "{}:{}",
        own_folder.display(),
        std::env::var("PATH").unwrap()
    );
    // What is printed is the test's own output, which also shows where a block hangs.
    let status = Command::new("unshare")
        .args(["--net", "bash", "-c", &script])
        .current_dir(folder.path())
        .env("PATH", path)
        .env_remove("CANDELA_CONFIG")
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn make_up_serves_the_window() {
    let test = "make_up_serves_the_window";
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_candela"));
    let target = program.ancestors().nth(2).expect("target/debug/candela");
    let mut make = Command::new("make");
    make.args(["up", "ARGS=--listen 127.0.0.1:0"])
        .current_dir(root())
        .env("CANDELA_DATA_DIR", folder.path().join("data"))
        // What the tests have built: a release takes ten minutes of its own, and cargo would wait for whatever else
        // compiles. `cargo xtask bench N2` builds both.
        .args(["BUILD_UI=true", "BUILD=true", "BUILT=debug"])
        .env("CARGO_TARGET_DIR", target)
        .stdin(Stdio::null());
    let make = Running::launch(&mut make).unwrap();
    let (status, _) = support::get(&make.url("/ready"));
    assert_eq!(status, 200);
    let (status, page) = support::get(&make.url("/"));
    assert_eq!(status, 200);
    assert!(
        String::from_utf8_lossy(&page).contains("<script"),
        "the window, not the page that explains"
    );
    // What a person's Ctrl-C does: the whole foreground group gets it, so make's child does.
    let children = Command::new("pgrep")
        .args(["-P", &make.pid().to_string()])
        .output()
        .unwrap();
    let child: u32 = support::stdout(&children).trim().parse().unwrap();
    support::signal(child, "INT");
    make.wait();
}
