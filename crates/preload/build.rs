//! Compiles this crate a second time, as the library that programs load.
//!
//! By rustc itself: the library has no dependencies, and a cargo in a cargo would wait for its lock.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-env-changed=RUSTC_LINKER");
    println!("cargo:rustc-check-cfg=cfg(candela_preload)");

    let output = PathBuf::from(variable("OUT_DIR")).join("libcandela-preload.so");
    let mut command = Command::new(variable("RUSTC"));
    command
        .args(["--crate-name", "candela_preload", "--edition", "2024"])
        .args(["--crate-type", "cdylib", "--cfg", "candela_preload"])
        .args(["--target", &variable("TARGET")])
        .args(["-C", "opt-level=3", "-C", "codegen-units=1"])
        .args(["-C", "panic=abort", "-C", "strip=debuginfo"])
        // Its frames are walked, in every build.
        .args(["-C", "force-unwind-tables=yes"])
        // It needs no library by name: what it uses is in whatever C library the program has, of any
        // version, and symbols without a version bind to all of them.
        .args(["-C", "link-arg=-nostdlib", "-C", "link-arg=-Wl,-z,now"])
        .args(["-C", "link-arg=-Wl,-soname,libcandela-preload.so"])
        .arg("src/lib.rs")
        .arg("-o")
        .arg(&output);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        command.arg("-C").arg(format!("linker={linker}"));
    }
    let result = command
        .output()
        .unwrap_or_else(|error| panic!("cannot run rustc: {error}"));
    if !result.status.success() {
        panic!(
            "rustc could not compile the preloaded library ({}):\n{}",
            result.status,
            String::from_utf8_lossy(&result.stderr)
        );
    }
}

fn variable(name: &str) -> String {
    env::var(name)
        .unwrap_or_else(|error| panic!("cargo sets {name} for this build script: {error}"))
}
