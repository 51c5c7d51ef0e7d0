//! How long it takes to begin, and how large the programs are.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use crate::Figure;
use crate::host::Bench;
use crate::process::Program;
use crate::process::output;
use crate::process::shares;

const MIB: f64 = 1024.0 * 1024.0;

/// N1: a real browser, a busy program, from the start of `candela up` until the program's function
/// is drawn.
pub(crate) fn first_graph(bench: &Bench) -> Result<Figure, String> {
    let folder = bench.folder("n1")?;
    let mut burner = shares(bench.root(), &folder)?;
    let _burner = Program::start(&mut burner)?;
    let start = Instant::now();
    let (_candela, url) = Program::start_candela(
        Command::new(bench.binary("candela")?)
            .args(["up", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(folder.join("data")),
    )?;
    output(
        Command::new("node")
            .arg(bench.root().join("ui/e2e/window.mjs"))
            .args([&url, "shares_c", "burn_fifty"])
            .arg(&folder)
            .env("STOP_AT_FIRST_GRAPH", "1"),
    )?;
    let seconds = start.elapsed().as_secs_f64();
    Ok(Figure {
        text: format!("{seconds:.1} s, start of the browser included"),
        is_met: Some(seconds <= 15.0),
    })
}

/// N2: a fresh clone and an empty target directory; then the same again, warm.
pub(crate) fn make_up(bench: &Bench) -> Result<Figure, String> {
    let folder = bench.folder("n2")?;
    let clone = folder.join("checkout");
    output(
        Command::new("git")
            .args(["clone", "--quiet"])
            .arg(bench.root())
            .arg(&clone),
    )?;
    let cold = seconds_until_served(&clone, &folder)?;
    let warm = seconds_until_served(&clone, &folder)?;
    Ok(Figure {
        text: format!("cold {:.1} min, warm {warm:.0} s", cold / 60.0),
        is_met: Some(cold <= 900.0 && warm <= 180.0),
    })
}

fn seconds_until_served(clone: &Path, folder: &Path) -> Result<f64, String> {
    const LONGEST: Duration = Duration::from_secs(3600);
    let port = free_port()?;
    let start = Instant::now();
    let mut make = Command::new("make")
        .args(["up", &format!("ARGS=--listen 127.0.0.1:{port}")])
        .current_dir(clone)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env("CANDELA_DATA_DIR", folder.join("data"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let result = loop {
        let answer = ureq::get(format!("http://127.0.0.1:{port}/ready")).call();
        if answer.is_ok() {
            break Ok(start.elapsed().as_secs_f64());
        }
        if let Ok(Some(status)) = make.try_wait() {
            break Err(format!("make up ended with {status}"));
        }
        if start.elapsed() > LONGEST {
            break Err("make up took more than an hour".to_owned());
        }
        std::thread::park_timeout(Duration::from_millis(200));
    };
    // make passes an interrupt on to the program that it runs.
    let _ = Command::new("pkill")
        .args(["-INT", "-P", &make.id().to_string()])
        .status();
    let _ = make.wait();
    result
}

fn free_port() -> Result<u16, String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    Ok(listener
        .local_addr()
        .map_err(|error| error.to_string())?
        .port())
}

/// N3: both builds in release mode, stripped.
pub(crate) fn binary_size(bench: &Bench) -> Result<Figure, String> {
    let folder = bench.folder("n3")?;
    let target = folder.join("target");
    output(
        Command::new("cargo")
            .args([
                "build",
                "--release",
                "--package",
                "candela",
                "--no-default-features",
                "--features",
                "agent",
            ])
            .args(["--target", "x86_64-unknown-linux-gnu"])
            .current_dir(bench.root())
            .env("RUSTFLAGS", "-C target-feature=+crt-static")
            .env("CARGO_TARGET_DIR", &target),
    )?;
    let agent = stripped_size(
        &target.join("x86_64-unknown-linux-gnu/release/candela"),
        &folder.join("agent"),
    )?;
    let default = stripped_size(&bench.binary("candela")?, &folder.join("default"))?;
    Ok(Figure {
        text: format!(
            "agent {:.1} MiB, default {:.1} MiB",
            agent / MIB,
            default / MIB
        ),
        is_met: Some(agent <= 20.0 * MIB && default <= 60.0 * MIB),
    })
}

fn stripped_size(binary: &Path, stripped: &Path) -> Result<f64, String> {
    output(Command::new("strip").arg("-o").arg(stripped).arg(binary))?;
    let metadata = fs::metadata(stripped).map_err(|error| error.to_string())?;
    Ok(metadata.len() as f64)
}
