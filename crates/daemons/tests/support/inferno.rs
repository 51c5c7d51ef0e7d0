//! `inferno-collapse-perf` of crates.io, as others have it installed. It is under the CDDL, so it is run and never
//! linked.

use std::fs;
use std::fs::File;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;

use crate::support::skipped;

const VERSION: &str = "0.12.8";
const PROGRAM: &str = "inferno-collapse-perf";

/// The program, installed into the cache of published clients when it is not there; `None`, with the reason, where
/// there is no way to it.
pub(crate) fn collapse_perf() -> Option<PathBuf> {
    let folder = cache_folder()?.join(format!("inferno-{VERSION}"));
    fs::create_dir_all(&folder).expect("a folder");
    // Other runs of the tests may be at it, too. The lock ends with the value.
    let lock = File::create(folder.with_extension("lock")).expect("a file");
    lock.lock().expect("a lock");
    let program = folder.join("bin").join(PROGRAM);
    if program.is_file() {
        return Some(program);
    }
    let build = folder.join("build");
    let installed = Command::new("cargo")
        .args([
            "install", "inferno", "--quiet", "--locked", "--bin", PROGRAM,
        ])
        .args([
            "--version",
            VERSION,
            "--no-default-features",
            "--features",
            "cli",
        ])
        .args([
            Path::new("--root"),
            &folder,
            Path::new("--target-dir"),
            &build,
        ])
        .stdin(Stdio::null())
        .output();
    // It is large, and nobody builds it again.
    let _ = fs::remove_dir_all(&build);
    match installed {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) => {
            let reason = String::from_utf8_lossy(&output.stderr);
            skipped(&format!("inferno cannot be installed: {}", reason.trim()));
            None
        }
        Err(error) => {
            skipped(&format!("inferno cannot be installed: cargo: {error}"));
            None
        }
    }
}

fn cache_folder() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("CANDELA_TEST_CACHE") {
        return Some(folder.into());
    }
    let Some(home) = std::env::var_os("HOME") else {
        skipped("neither HOME nor CANDELA_TEST_CACHE says where published programs go");
        return None;
    };
    Some(Path::new(&home).join(".cache/candela/clients"))
}
