//! `profile` of bcc: folded stacks with their counts.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use candela_formats::ReadOptions;
use candela_formats::read_folded;
use candela_model::Profile;

use crate::on_demand::request::ProfileRequest;
use crate::on_demand::session::Session;
use crate::on_demand::target::Resolved;
use crate::on_demand::tools::counts::Taken;
use crate::on_demand::tools::process::run;
use crate::on_demand::tools::trust::trusted;

/// What distributions call it.
const NAMES: [&str; 4] = ["profile", "profile.py", "profile-bpfcc", "bcc-profile"];
/// It ends by itself, but compiles its program before it begins.
const LATENESS: Duration = Duration::from_secs(30);

/// A profile by `profile -f -F N -p PIDS SECONDS`.
///
/// # Errors
/// When it may not be run or fails.
pub(crate) fn bcc_profile(
    path: &Path,
    request: &ProfileRequest,
    target: &Resolved,
    session: &Session,
) -> Result<Profile, String> {
    let program = trusted(path, |name| NAMES.contains(&name))?;
    let mut command = Command::new(program);
    command
        // Neither our environment nor anybody's settings decide what root runs.
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .current_dir("/")
        .args(["-f", "-F", &request.sampling_frequency.to_string()]);
    if let Resolved::Pids(pids) = target {
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        command.args(["-p", &pids.join(",")]);
    }
    command.arg(request.duration().as_secs().to_string());
    let taken = Taken::now();
    let patience = request.duration() + LATENESS;
    let text = run(command, Some(patience), &session.signals, || {
        session.has_begun();
    })?;
    let stacks = without_process_names(&String::from_utf8_lossy(&text));
    if stacks.is_empty() {
        return Ok(Profile::default());
    }
    let read = read_folded(stacks.as_bytes(), &ReadOptions::default());
    let (profile, _) = read.map_err(|error| format!("what profile wrote: {error}"))?;
    Ok(taken.cpu_time(profile, request))
}

/// The first frame of each line is the name of the process, which is no function. What has no other
/// keeps it, so that no sample is lost.
fn without_process_names(text: &str) -> String {
    let stack = |line: &str| match line.split_once(';') {
        Some((_, stack)) => format!("{stack}\n"),
        None => format!("{line}\n"),
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(stack).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_names_are_no_frames() {
        let text = "postgres;main;PostgresMain 3\n\npostgres 1\n";
        assert_eq!(
            without_process_names(text),
            "main;PostgresMain 3\npostgres 1\n"
        );
    }
}
