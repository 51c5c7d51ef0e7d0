//! Linux's perf: the whole host is recorded, and what belongs to the target is taken from it.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use candela_formats::ReadOptions;
use candela_formats::read_perf_script;
use candela_model::Profile;

use crate::on_demand::request::ProfileRequest;
use crate::on_demand::session::Session;
use crate::on_demand::session::Signals;
use crate::on_demand::target::Resolved;
use crate::on_demand::tools::counts::Taken;
use crate::on_demand::tools::process::run;
use crate::on_demand::tools::trust::trusted;

/// Without the period: a sample is one, whatever perf takes for a clock on this machine.
const FIELDS: &str = "comm,pid,tid,time,event,ip,sym,dso";

/// How long perf may take to name what it has recorded.
const LONGEST_SCRIPT: Duration = Duration::from_secs(300);

/// A profile by `perf record` and `perf script`.
///
/// # Errors
/// When perf may not be run or fails, or has no samples of the target.
pub(crate) fn perf(
    path: &Path,
    request: &ProfileRequest,
    target: &Resolved,
    session: &Session,
) -> Result<Profile, String> {
    let program = trusted(path, |name| name == "perf" || name.starts_with("perf_"))?;
    let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
    let data = folder.path().join("perf.data");
    let perf = |subcommand: &str| {
        let mut command = Command::new(&program);
        command
            // Neither our environment nor anybody's settings decide what root runs.
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", folder.path())
            .current_dir(folder.path())
            .arg(subcommand);
        command
    };
    let mut record = perf("record");
    record
        .args(["-a", "-F", &request.sampling_frequency.to_string(), "-g"])
        .args(["--no-buffering", "--inherit", "-o"])
        .arg(&data);
    let taken = Taken::now();
    run(record, Some(request.duration()), &session.signals, || {
        session.has_begun();
    })?;
    if session.signals.is_discarded() {
        return Err("stopped".to_owned());
    }
    let mut script = perf("script");
    script.arg("-i").arg(&data).args(["-F", FIELDS]);
    if let Resolved::Pids(pids) = target {
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        script.arg(format!("--pid={}", pids.join(",")));
    }
    // What was recorded is wanted, also when the recording was ended early, unless it is to be thrown away.
    let signals = Signals {
        stop: Arc::clone(&session.signals.discard),
        ..session.signals.clone()
    };
    let text = run(script, Some(LONGEST_SCRIPT), &signals, || {})?;
    if session.signals.is_discarded() {
        return Err("stopped".to_owned());
    }
    if text.iter().all(u8::is_ascii_whitespace) {
        return Ok(Profile::default());
    }
    let read = read_perf_script(text.as_slice(), &ReadOptions::default());
    let (profile, _) = read.map_err(|error| format!("what perf script wrote: {error}"))?;
    Ok(taken.cpu_time(profile, request))
}
