//! `candela query` when the answer is a part of what was asked for, or nothing.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use crate::support;
use crate::support::Running;
use crate::support::run;
use crate::support::stderr;
use crate::support::stdout;

fn server(folder: &Path) -> Running {
    let data_dir = folder.to_str().unwrap();
    Running::start(&["server", "--listen", "127.0.0.1:0", "--data-dir", data_dir])
}

fn ingest(running: &Running, folded: &str) {
    let url = running.url("/api/v1/ingest?service=a");
    let (status, _) = support::try_post(&url, folded.as_bytes()).unwrap();
    assert_eq!(status, 200);
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[test]
fn a_block_that_cannot_be_read_is_told_by_every_query() {
    let folder = tempfile::tempdir().unwrap();
    let running = server(folder.path());
    ingest(&running, "main;lost 3\n");
    assert_eq!(running.terminate(), Some(0), "writes the block");
    let samples = files(&folder.path().join("blocks/v1/samples"));
    assert!(!samples.is_empty());
    for path in samples {
        let length = fs::metadata(&path).unwrap().len();
        fs::write(&path, vec![0; usize::try_from(length).unwrap()]).unwrap();
    }
    let running = server(folder.path());
    ingest(&running, "main;kept 2\n");
    let url = running.url("");
    for question in [
        ["query", "top"],
        ["query", "tree"],
        ["query", "profile"],
        ["query", "series"],
    ] {
        let rest = ["--type", "samples", "--server", url.as_str(), "-q"];
        let output = run(&[&question[..], &rest[..]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let told = stderr(&output);
        assert!(
            told.starts_with("note: a block of the data cannot be read and is left out"),
            "{question:?}: {told}"
        );
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}

#[test]
fn nothing_found_exits_with_5_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let running = server(folder.path());
    let url = running.url("");
    for format in ["text", "json", "csv"] {
        let arguments = ["query", "labels", "--server", &url, "--format", format];
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(5), "{format}");
        assert!(
            stderr(&output).contains("no data"),
            "{format}: {}",
            stderr(&output)
        );
        let is_json = serde_json::from_str::<serde_json::Value>(&stdout(&output)).is_ok();
        assert_eq!(is_json, format == "json");
    }
}
