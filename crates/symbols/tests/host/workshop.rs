//! Compiles real programs and asks the tools of binutils and Go what they say about them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Two calls are inlined into `outer`, which is called by the local function `local`.
pub(crate) const C_PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>

static inline __attribute__((always_inline)) int innermost(int n) {
    volatile int sum = 0;
    for (int i = 0; i < n; i++)
        sum += i;
    return sum;
}

static inline __attribute__((always_inline)) int between(int n) {
    return innermost(n) * 3;
}

__attribute__((noinline)) int outer(int n) {
    return between(n + 1);
}

__attribute__((noinline)) static int local(int n) {
    return outer(n) + outer(n + 1);
}

int main(int argc, char **argv) {
    printf("%d\n", local(argc));
    return 0;
}
"#;

/// A template and a function in an anonymous namespace, both called from `main`.
pub(crate) const CPP_PROGRAM: &str = r#"
#include <cstdio>
#include <vector>
#include <string>

namespace shop {
template <typename Item> struct Basket {
    std::vector<Item> items;
    __attribute__((noinline)) Item total(const std::string &what) const {
        Item sum{};
        for (const Item &item : items)
            sum += item;
        return sum + static_cast<Item>(what.size());
    }
};
namespace {
__attribute__((noinline)) int hidden(int n) {
    volatile int kept = n;
    return kept * 2;
}
}
}

int main(int argc, char **) {
    shop::Basket<long> basket{{1, 2, argc}};
    return static_cast<int>(basket.total("abc")) + shop::hidden(argc);
}
"#;

/// A directory with a program in it, removed at the end.
pub(crate) struct Workshop {
    directory: TempDir,
}

/// One frame as `addr2line -f -i` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OracleFrame {
    pub(crate) function: String,
    pub(crate) file: String,
    pub(crate) line: u32,
}

impl Workshop {
    pub(crate) fn new() -> Self {
        Self {
            directory: TempDir::new().expect("a temporary directory"),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn root(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).expect("a directory in the temporary one");
        }
        std::fs::write(&path, text).expect("a file in the temporary directory");
        path
    }

    /// Runs a tool inside the directory and returns what it printed; its failure fails the test.
    pub(crate) fn run(&self, tool: &str, arguments: &[&str]) -> String {
        let output = Command::new(tool)
            .args(arguments)
            .current_dir(self.root())
            .env("GOFLAGS", "-buildvcs=false")
            .env("GOCACHE", cache_directory())
            .env("GOTOOLCHAIN", "local")
            .output()
            .unwrap_or_else(|error| panic!("{tool} does not start: {error}"));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{tool} {arguments:?}: {errors}");
        String::from_utf8(output.stdout).expect("tools print UTF-8 here")
    }
}

/// Go's build cache: kept between runs, because building the runtime anew takes half a minute.
fn cache_directory() -> PathBuf {
    let target = option_env!("CARGO_TARGET_TMPDIR").unwrap_or("/tmp");
    Path::new(target).join("go-build")
}

/// Whether `tool` runs here; prints why a test is skipped when it does not.
pub(crate) fn has_tool(tool: &str, version_flag: &str) -> bool {
    let runs = Command::new(tool)
        .arg(version_flag)
        .output()
        .is_ok_and(|output| output.status.success());
    if !runs {
        eprintln!("skipped: {tool} is not installed here");
    }
    runs
}

/// Asks again and again until `condition` gives something; fails the test after a minute.
pub(crate) fn poll<Value>(what: &str, mut condition: impl FnMut() -> Option<Value>) -> Value {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(
            Instant::now() < deadline,
            "{what} did not happen within 60 s"
        );
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// What binutils' `addr2line` says, innermost frame first.
pub(crate) fn addr2line(program: &Path, address: u64) -> Vec<OracleFrame> {
    let output = Command::new("addr2line")
        .args(["-f", "-i", "-C", "-e"])
        .arg(program)
        .arg(format!("{address:#x}"))
        .output()
        .expect("addr2line is in binutils");
    let text = String::from_utf8(output.stdout).expect("addr2line prints UTF-8 here");
    let lines: Vec<_> = text.lines().collect();
    let pairs = lines.chunks_exact(2).map(|pair| {
        let position = pair[1].split(" (discriminator").next().unwrap_or_default();
        let (file, line) = position.rsplit_once(':').expect("FILE:LINE");
        OracleFrame {
            function: pair[0].to_owned(),
            file: file.to_owned(),
            line: line.parse().unwrap_or(0),
        }
    });
    pairs.collect()
}

/// Function symbols of a program: address, size, name as `nm -S` prints them.
pub(crate) fn functions(program: &Path) -> Vec<(u64, u64, String)> {
    let output = Command::new("nm")
        .arg("-S")
        .arg(program)
        .output()
        .expect("nm is in binutils");
    let text = String::from_utf8(output.stdout).expect("nm prints UTF-8 here");
    let lines = text.lines().filter_map(|line| {
        let words: Vec<_> = line.split(' ').collect();
        let [address, size, "t" | "T" | "W" | "w", name] = words[..] else {
            return None;
        };
        let hexadecimal = |digits| u64::from_str_radix(digits, 16).ok();
        Some((hexadecimal(address)?, hexadecimal(size)?, name.to_owned()))
    });
    lines.collect()
}
