//! Where things are, and what machine this is.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

use serde_json::json;

/// The checkout, the programs under test, and a scratch folder.
#[derive(Debug)]
pub(crate) struct Bench {
    root: PathBuf,
    scratch: tempfile::TempDir,
    peer: Option<String>,
    /// What programs printed of rows beside the one that they were run for.
    pub(crate) printed: RefCell<BTreeMap<String, serde_json::Value>>,
}

impl Bench {
    pub(crate) fn new(peer: Option<String>) -> Result<Self, String> {
        // That of the checkout which cargo runs this for: it may have been built from another one.
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR");
        let manifest = manifest.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
        let root = manifest
            .ancestors()
            .nth(2)
            .ok_or("bench/driver is not in a checkout")?;
        let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
        Ok(Self {
            root: root.to_owned(),
            scratch,
            peer,
            printed: RefCell::default(),
        })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// An empty folder of its own for a row.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.scratch.path().join(name);
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        Ok(folder)
    }

    /// A release binary beside this one.
    pub(crate) fn binary(&self, name: &str) -> Result<PathBuf, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let binary = own.with_file_name(name);
        if !binary.is_file() {
            return Err(format!("{} is not built", binary.display()));
        }
        Ok(binary)
    }

    /// A program to run beside ours.
    pub(crate) fn peer(&self) -> Option<&str> {
        self.peer.as_deref()
    }

    /// Rows that were not measured this time keep their last result.
    pub(crate) fn write_results(&self, results: &[serde_json::Value]) -> Result<(), String> {
        let path = self.root.join("bench/results.json");
        let previous: serde_json::Value = fs::read(&path)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let mut rows: Vec<serde_json::Value> =
            previous["rows"].as_array().cloned().unwrap_or_default();
        rows.retain(|row| results.iter().all(|result| result["id"] != row["id"]));
        rows.extend(results.iter().cloned());
        rows.sort_by_key(|row| row["id"].as_str().unwrap_or_default().to_owned());
        let document = json!({ "schema": "candela/bench/v1", "machine": machine(), "rows": rows });
        fs::write(&path, format!("{document:#}\n")).map_err(|error| error.to_string())
    }
}

fn machine() -> serde_json::Value {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let model = read("/proc/cpuinfo").lines().find_map(|line| {
        line.strip_prefix("model name")?
            .split(": ")
            .nth(1)
            .map(str::to_owned)
    });
    json!({
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "cpu": model,
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
    })
}
