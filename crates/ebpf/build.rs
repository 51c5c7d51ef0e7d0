//! Compiles the BPF programs with clang into the build directory.

use std::env;
use std::fs;
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

    write_numbers_of_records();
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

/// The enumerators of bpf/record.h as constants, so that each number stands in one place.
fn write_numbers_of_records() {
    let header = fs::read_to_string("bpf/record.h").expect("record.h is beside this script");
    let constants: String = header.lines().filter_map(constant).collect();
    let path = PathBuf::from(variable("OUT_DIR")).join("record_numbers.rs");
    fs::write(&path, constants).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// `NAME = VALUE,` as a constant of the type that Rust uses it as; `None` for other lines and for computed values.
fn constant(line: &str) -> Option<String> {
    let (name, rest) = line.trim().split_once(" = ")?;
    let (value, _) = rest.split_once(',')?;
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !value.split(" << ").all(is_number) {
        return None;
    }
    let kind = if name.starts_with("RECORD_") || name.starts_with("COUNTER_") {
        "u32"
    } else if value.contains("<<") {
        "u8"
    } else {
        "usize"
    };
    Some(format!("pub(crate) const {name}: {kind} = {value};\n"))
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
