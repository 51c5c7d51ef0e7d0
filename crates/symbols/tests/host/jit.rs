//! A real JIT compiler and the map it writes.

use super::workshop::{Workshop, has_tool, poll};
use candela_symbols::perf_map::Refresh;
use candela_symbols::{FrameLanguage, PerfMapReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A program that lives until the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // The only way it can fail is that the program has ended already.
        drop(self.0.kill());
        drop(self.0.wait());
        // Node leaves its map behind.
        drop(std::fs::remove_file(format!(
            "/tmp/perf-{}.map",
            self.0.id()
        )));
    }
}

#[test]
fn functions_of_node_are_found_in_its_map() {
    if !has_tool("node", "--version") {
        return;
    }
    let shop = Workshop::new();
    let script = "function busyBee(n) { let s = 0; for (let i = 0; i < n; i++) s += i % 7; return s; }\n\
                  setInterval(() => busyBee(1e5), 1);\n";
    shop.write("busy.js", script);
    let node = Command::new("node")
        .args(["--perf-basic-prof", "busy.js"])
        .current_dir(shop.root())
        .stdout(Stdio::null())
        .spawn()
        .expect("node starts");
    let node = Running(node);
    let process = PathBuf::from(format!("/proc/{}", node.0.id()));
    let mut reader = PerfMapReader::new(&process);
    let (address, name) = poll("a line about busyBee", || {
        let refreshed = reader.refresh().expect("node runs and its map is ours");
        assert_ne!(refreshed, Refresh::Full);
        let text = std::fs::read_to_string(format!("/tmp/perf-{}.map", node.0.id())).ok()?;
        let complete = text.rsplit_once('\n')?.0;
        let line = complete
            .lines()
            .rev()
            .find(|line| line.contains("busyBee"))?;
        let (start, rest) = line.split_once(' ')?;
        let start = u64::from_str_radix(start.trim_start_matches("0x"), 16).ok()?;
        Some((start, rest.split_once(' ')?.1.to_owned()))
    });
    // Node may have compiled and moved more since; what the map says now of that address is asked
    // until both agree.
    let frame = poll("the reader's agreement", || {
        reader.refresh().expect("node runs and its map is ours");
        let symbol = reader.map().find(address)?;
        (symbol.name == name).then(|| symbol.to_frame())
    });
    assert!(frame.function.contains("busyBee"), "{frame:?}");
    assert_eq!(frame.language, FrameLanguage::V8);
    assert_eq!(reader.map().malformed_lines(), 0);
}
