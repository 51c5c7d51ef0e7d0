//! `candela doctor`: what works on this host, what does not, and the command that fixes it.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use crate::args::GlobalArgs;
use crate::config::Settings;
use crate::errors::CliError;
use crate::errors::ExitStatus;
use crate::output;

/// One thing that was looked at.
#[derive(Debug)]
struct Check {
    name: String,
    is_ok: bool,
    /// Whether the program cannot do its main job without it.
    is_required: bool,
    detail: String,
    fix: String,
}

pub(crate) fn run(global: &GlobalArgs, json: bool) -> Result<ExitCode, CliError> {
    let settings = super::settings(global, Vec::new())?;
    let mut checks = host_checks();
    checks.push(data_directory(&settings));
    checks.push(port(&settings));
    checks.push(debuginfod(&settings));
    if json {
        output::print_json(&as_json(&checks))?;
    } else {
        output::print_text(&as_text(&checks))?;
    }
    let is_broken = checks.iter().any(|check| check.is_required && !check.is_ok);
    if is_broken {
        return Ok(ExitStatus::Permission.into());
    }
    Ok(ExitCode::SUCCESS)
}

/// What the kernel allows, and which kinds of profile it gives.
#[cfg(feature = "agent")]
fn host_checks() -> Vec<Check> {
    let program = std::env::current_exe();
    let program = program.map_or_else(|_| "candela".to_owned(), |path| path.display().to_string());
    let mut checks = candela_agent::capabilities();
    checks.extend(candela_agent::kind_checks());
    checks
        .into_iter()
        .map(|check| Check {
            name: check.name.to_owned(),
            is_ok: check.ok,
            is_required: check.required,
            detail: check.detail,
            fix: check.fix.unwrap_or_default().replace("{program}", &program),
        })
        .collect()
}

#[cfg(not(feature = "agent"))]
fn host_checks() -> Vec<Check> {
    vec![Check {
        name: "agent".to_owned(),
        is_ok: false,
        is_required: false,
        detail: "this build has no agent".to_owned(),
        fix: "use a build with the feature agent to sample this host".to_owned(),
    }]
}

fn data_directory(settings: &Settings) -> Check {
    let data_dir = settings.data_dir(&super::environment());
    let problem = write_probe(&data_dir).err();
    Check {
        name: "data_directory".to_owned(),
        is_ok: problem.is_none(),
        is_required: false,
        detail: match &problem {
            None => format!("{} is writable", data_dir.display()),
            Some(error) => format!("{}: {error}", data_dir.display()),
        },
        fix: "choose a writable folder with --data-dir or CANDELA_DATA_DIR".to_owned(),
    }
}

/// Whether files can be made there, or in the nearest folder above that exists. Leaves nothing
/// behind: a doctor that creates the data directory would change what it looks at.
fn write_probe(data_dir: &Path) -> std::io::Result<()> {
    // Made absolute first: the folder above `data` is the working directory, not nothing.
    let data_dir = std::path::absolute(data_dir)?;
    let existing = data_dir
        .ancestors()
        .find(|folder| folder.is_dir())
        .map_or_else(|| PathBuf::from("/"), Path::to_path_buf);
    let probe = existing.join(format!(".candela-doctor-{}", std::process::id()));
    fs::write(&probe, b"probe")?;
    fs::remove_file(&probe)
}

fn port(settings: &Settings) -> Check {
    let address = settings.address("server.listen");
    let problem = TcpListener::bind(address).err();
    Check {
        name: "port".to_owned(),
        is_ok: problem.is_none(),
        is_required: false,
        detail: match &problem {
            None => format!("{address} is free"),
            Some(error) => format!("{address}: {error}; a candela may be running there"),
        },
        fix: "choose another address with --listen".to_owned(),
    }
}

fn debuginfod(settings: &Settings) -> Check {
    let mut urls = settings.list("symbols.debuginfod_urls");
    urls.extend(
        super::environment()
            .remove("DEBUGINFOD_URLS")
            .filter(|urls| !urls.is_empty()),
    );
    let detail = if urls.is_empty() {
        "no server: binaries without symbols of their own show the names they export".to_owned()
    } else {
        urls.join(" ")
    };
    Check {
        name: "debuginfod".to_owned(),
        is_ok: true,
        is_required: false,
        detail,
        fix: String::new(),
    }
}

fn as_json(checks: &[Check]) -> serde_json::Value {
    let checks: Vec<serde_json::Value> = checks
        .iter()
        .map(|check| {
            json!({
                "name": check.name,
                "ok": check.is_ok,
                "required": check.is_required,
                "detail": check.detail,
                "fix": if check.is_ok { "" } else { check.fix.as_str() },
            })
        })
        .collect();
    json!({ "schema": "candela/doctor/v1", "checks": checks })
}

fn as_text(checks: &[Check]) -> String {
    let mut text = String::new();
    for check in checks {
        let mark = match (check.is_ok, check.is_required) {
            (true, _) => "ok  ",
            (false, true) => "FAIL",
            (false, false) => "warn",
        };
        text.push_str(&format!("{mark}  {:<20} {}\n", check.name, check.detail));
        if !check.is_ok && !check.fix.is_empty() {
            text.push_str(&format!("      {:<20} fix: {}\n", "", check.fix));
        }
    }
    text
}
