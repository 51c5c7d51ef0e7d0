//! What the pages of `docs/clients` show is what the programs here do, and their commands work.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use super::cache::program;
use super::cache::succeed;
use super::client::TestServer;

/// Where pages say that the server is.
const SHOWN_ADDRESS: &str = "http://127.0.0.1:4040";

/// A block of a page, and the word after its fence.
struct Block {
    language: String,
    text: String,
}

/// Runs the commands of a client's page against a server that has the client's profiles.
pub(crate) fn run_commands(client: &str, server: &TestServer) {
    let folder = tempfile::tempdir().unwrap();
    let own_folder = Path::new(env!("CARGO_BIN_EXE_candela")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut count = 0;
    for block in blocks(client).iter().filter(|block| block.language == "sh") {
        let address = server.address();
        let commands = block.text.replace(SHOWN_ADDRESS, &address);
        let script = format!(
            "set -euo pipefail\ncandela() {{ command candela --server {address} \"$@\"; }}\n{commands}"
        );
        succeed(
            Command::new("bash")
                .args(["-c", &script])
                .current_dir(folder.path())
                .env("PATH", format!("{}:{path}", own_folder.display()))
                .env("PPROF_TMPDIR", folder.path())
                .env_remove("CANDELA_CONFIG"),
        );
        count += 1;
    }
    assert!(
        count > 0,
        "{} has no check by query",
        page(client).display()
    );
}

#[test]
fn pages_show_lines_of_the_programs() {
    for entry in fs::read_dir(pages_folder()).unwrap() {
        let path = entry.unwrap().path();
        let client = path.file_stem().unwrap().to_str().unwrap();
        let lines = lines_of_program(client);
        for block in blocks(client) {
            if ["sh", "text"].contains(&&*block.language) {
                continue;
            }
            for line in block.text.lines().map(str::trim) {
                let wanted = line.replace(&format!("\"{SHOWN_ADDRESS}\""), "address");
                assert!(
                    wanted.is_empty() || lines.contains(&wanted),
                    "{}: no program has the line {wanted:?}",
                    path.display()
                );
            }
        }
    }
}

/// The lines of all files of a client's program, and of the test that starts it.
fn lines_of_program(client: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut folders = vec![program(client)];
    while let Some(folder) = folders.pop() {
        // Not every page has a program.
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = fs::read_to_string(path) {
                lines.extend(text.lines().map(|line| line.trim().to_owned()));
            }
        }
    }
    lines
}

fn blocks(client: &str) -> Vec<Block> {
    let path = page(client);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let mut blocks = Vec::new();
    let mut parts = text.split("\n```");
    parts.next();
    while let (Some(block), Some(_)) = (parts.next(), parts.next()) {
        let (language, text) = block.split_once('\n').expect("a block has lines");
        blocks.push(Block {
            language: language.to_owned(),
            text: text.to_owned(),
        });
    }
    blocks
}

fn page(client: &str) -> PathBuf {
    pages_folder().join(format!("{client}.md"))
}

fn pages_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/clients")
}
