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
        let stacks = without_process_names(text);
        assert_eq!(stacks, "main;PostgresMain 3\npostgres 1\n");
    }
}

#[cfg(test)]
mod host_tests {
    use std::fs;
    use std::sync::Arc;

    use axum::http::HeaderMap;
    use axum::http::HeaderValue;
    use axum::http::header::CONTENT_TYPE;

    use super::*;
    use crate::on_demand::session::Sessions;
    use crate::on_demand::tools::trust::is_mounted_nosuid;

    fn request(body: &str) -> ProfileRequest {
        let json = HeaderValue::from_static("application/json");
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, json)]);
        ProfileRequest::parse(&headers, body.as_bytes()).expect("valid")
    }

    /// bcc itself needs the headers of the kernel, which few hosts have: a script that writes what it
    /// writes, and fails with other arguments than bcc takes.
    #[test]
    fn folded_stacks_become_cpu_time() {
        let folder = tempfile::tempdir().expect("a folder");
        if is_mounted_nosuid(folder.path()).expect("it is there") {
            eprintln!("skipped: nothing is run from temporary folders, which are mounted nosuid");
            return;
        }
        let path = folder.path().join("profile-bpfcc");
        let script = "#!/bin/sh\ntest \"$*\" = '-f -F 100 -p 7,8 1' || exit 9\n\
            echo 'postgres;main;PostgresMain 3'\necho 'postgres;main;rest 1'\n";
        let text = folder.path().join("script");
        fs::write(&text, script).expect("written");
        // By another process: a child that another test starts meanwhile would hold a file that we
        // write, and what is written cannot be run.
        let mut install = Command::new("install");
        let installed = install.args(["-m", "755"]).arg(&text).arg(&path).status();
        assert!(installed.expect("install starts").success());
        let request = request(r#"{"profiler":{"BccProfile":null},"timeout_seconds":1}"#);
        let session = Arc::new(Sessions::default()).begin().expect("idle");
        let profile = |pids: &[u32]| {
            let target = Resolved::Pids(pids.to_vec());
            bcc_profile(&path, &request, &target, &session)
        };
        let taken = profile(&[7, 8]).expect("it ran");
        let series = &taken.series[0];
        assert_eq!(series.profile_type.sample_type, "cpu");
        assert_eq!((series.period, series.total()), (10_000_000, 40_000_000));
        let names: Vec<&str> = taken
            .symbols
            .functions()
            .iter()
            .map(|function| taken.symbols.strings.get(function.name))
            .collect();
        assert!(!names.contains(&"postgres"), "{names:?}");
        assert!(names.contains(&"PostgresMain"), "{names:?}");
        let error = profile(&[7]).expect_err("other arguments");
        assert!(error.contains("exit status: 9"), "{error}");
    }
}
