//! Compiles the BPF programs with clang into the build directory.

use std::env;
use std::path::PathBuf;
use std::process::Command;

const OLDEST_CLANG: u32 = 14;
const NEWEST_CLANG: u32 = 22;

/// Names of bpf/NAME.bpf.c.
const OBJECTS: [&str; 2] = ["sampler", "switches"];

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    println!("cargo:rerun-if-env-changed=PATH");

    let clang = find_clang();
    for object in OBJECTS {
        compile(&clang, object);
    }
}

fn compile(clang: &str, object: &str) {
    let output = PathBuf::from(variable("OUT_DIR")).join(format!("{object}.bpf.o"));
    let libbpf_headers = variable("DEP_BPF_INCLUDE");
    let mut command = Command::new(clang);
    command
        .args([
            "-g",
            "-O2",
            "-Wall",
            "-Wextra",
            "-Wno-unused-parameter",
            "-Wno-sign-compare",
            "-Werror",
        ])
        .args(["-target", "bpf", "-mcpu=v3", "-nostdinc", "-fno-ident"])
        .args(["-I", &libbpf_headers])
        // Debug paths of the build machine have no place in the object.
        .arg(format!(
            "-fdebug-prefix-map={}=.",
            variable("CARGO_MANIFEST_DIR")
        ))
        .args(["-c", &format!("bpf/{object}.bpf.c"), "-o"])
        .arg(&output);
    let result = command
        .output()
        .unwrap_or_else(|error| panic!("cannot run {clang}: {error}"));
    if !result.status.success() {
        panic!(
            "{clang} could not compile the BPF programs ({}):\n{}",
            result.status,
            String::from_utf8_lossy(&result.stderr)
        );
    }
}

fn variable(name: &str) -> String {
    env::var(name)
        .unwrap_or_else(|error| panic!("cargo sets {name} for this build script: {error}"))
}

/// The first clang with a BPF back end: `$CLANG`, `clang`, then versioned names, newest first.
fn find_clang() -> String {
    if let Ok(clang) = env::var("CLANG") {
        if has_bpf_target(&clang) {
            return clang;
        }
        panic!(
            "CLANG={clang} does not run or has no BPF target; unset it or name a clang >= {OLDEST_CLANG}"
        );
    }
    let versioned = (OLDEST_CLANG..=NEWEST_CLANG)
        .rev()
        .map(|version| format!("clang-{version}"));
    std::iter::once("clang".to_owned())
        .chain(versioned)
        .find(|clang| has_bpf_target(clang))
        .unwrap_or_else(|| {
            panic!(
                "no clang found: the BPF programs need clang {OLDEST_CLANG} or newer; \
                 install it (Debian, Ubuntu: `apt-get install clang`) or set CLANG to its path"
            )
        })
}

fn has_bpf_target(clang: &str) -> bool {
    Command::new(clang)
        .arg("--print-targets")
        .output()
        .is_ok_and(|output| {
            output.status.success() && String::from_utf8_lossy(&output.stdout).contains("bpf")
        })
}
