//! What others have written and we take: licences, bans and sources of crates, and the flaws that are published of crates and
//! of the window's packages. Others keep the lists of flaws. Where such a list cannot be had, the end of the log says so and
//! nothing fails: a change can land while somebody else's server is down.

use std::time::Duration;

use crate::process::command;
use crate::process::root;
use crate::process::say;
use crate::process::target;
use crate::steps::Steps;

/// Where cargo-deny gets the list of crates' flaws.
const DATABASE: &str = "https://github.com/RustSec/advisory-db";
/// Whoever has not answered by then is out of reach.
const TIME_TO_ANSWER: Duration = Duration::from_secs(4);
/// The list of crates' flaws is ten megabytes the first time.
const TIME_TO_FETCH: Duration = Duration::from_mins(1);
/// The first time, crates are downloaded that only builds with `kube` and `perfetto` need.
const TIME_TO_CHECK: Duration = Duration::from_mins(5);

/// Who depends on a crate would be most of the log; `cargo tree --invert` tells it.
const CHECK: [&str; 3] = ["--locked", "check", "--hide-inclusion-graph"];
/// One try, of the lockfile: nothing needs to be installed.
const AUDIT: [&str; 5] = [
    "npm",
    "audit",
    "--package-lock-only",
    "--fetch-retries=0",
    "--fetch-timeout=4000",
];

/// How a program ended, and all that it printed.
#[derive(Debug)]
struct Ended {
    is_success: bool,
    is_late: bool,
    /// The end, in words.
    end: String,
    text: String,
}

/// What a list of flaws says.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Sound,
    /// A flaw, or a check that does not work: either fails.
    Found(Vec<String>),
    /// The list cannot be had, and why.
    Unknown(String),
}

/// All of it, by itself.
pub(crate) fn advisories() -> Result<(), String> {
    let mut steps = Steps::new(None);
    add_steps(&mut steps);
    steps.finish()
}

/// The same in a longer run.
pub(crate) fn add_steps(steps: &mut Steps) {
    steps.work("crates: licences, bans, sources", || {
        let what = [&CHECK[..], &["licenses", "bans", "sources"]].concat();
        let ended = cargo_deny(TIME_TO_CHECK, &what)?;
        if ended.is_success {
            return Ok(());
        }
        Err(ended.findings())
    });
    ask(steps, "crates: advisories", |_| flaws_of_crates());
    ask(steps, "window: advisories", flaws_of_packages);
}

/// A step that passes where its list cannot be had, and says so at the end.
fn ask(
    steps: &mut Steps,
    name: &str,
    flaws: impl FnOnce(&mut Vec<String>) -> Result<Answer, Vec<String>>,
) {
    let mut notes = Vec::new();
    steps.work(name, || match flaws(&mut notes)? {
        Answer::Sound => Ok(()),
        Answer::Found(lines) => Err(lines),
        Answer::Unknown(reason) => {
            notes.push(format!("{name} NOT CHECKED: {reason}"));
            Ok(())
        }
    });
    for note in notes {
        steps.note(note);
    }
}

fn flaws_of_crates() -> Result<Answer, Vec<String>> {
    // Fetching may take a minute, but nobody should wait so long for a host that is out of reach.
    let probe = ["git", "ls-remote", DATABASE, "HEAD"];
    let probe = run(TIME_TO_ANSWER, ".", &probe)?;
    if !probe.is_success {
        return Ok(probe.answer_of_git());
    }
    let fetch = cargo_deny(TIME_TO_FETCH, &["fetch", "db"])?;
    if !fetch.is_success {
        return Ok(fetch.answer_of_git());
    }
    // The list is there, so a failure is one.
    let what = [&["--offline"], &CHECK[..], &["advisories"]].concat();
    let check = cargo_deny(TIME_TO_CHECK, &what)?;
    if check.is_success {
        return Ok(Answer::Sound);
    }
    Ok(Answer::Found(check.findings()))
}

/// What runs in the reader's browser fails from `high` on. The rest is told: what builds and tests the window meets our own
/// files only.
fn flaws_of_packages(notes: &mut Vec<String>) -> Result<Answer, Vec<String>> {
    let shipped = [&AUDIT[..], &["--omit=dev", "--audit-level=high"]].concat();
    let shipped = run(TIME_TO_FETCH, "ui", &shipped)?.answer_of_npm();
    if shipped != Answer::Sound {
        return Ok(shipped);
    }
    let all = run(TIME_TO_FETCH, "ui", &AUDIT)?.answer_of_npm();
    if !matches!(all, Answer::Found(_)) {
        return Ok(all);
    }
    notes.push("window: advisories on tools, or below `high`: printed above".to_owned());
    Ok(Answer::Sound)
}

fn cargo_deny(limit: Duration, arguments: &[&str]) -> Result<Ended, Vec<String>> {
    let target = target().map_err(|error| vec![error])?;
    let program = target.join("test-python/bin/cargo-deny");
    if !program.is_file() {
        let program = program.display();
        return Err(vec![format!(
            "{program} is missing: run `scripts/install-deps test`"
        )]);
    }
    let program = program.to_string_lossy();
    let line = [&[&*program, "--color", "never"], arguments].concat();
    run(limit, ".", &line)
}

/// Runs a program that may wait for a server for ever.
fn run(limit: Duration, folder: &str, line: &[&str]) -> Result<Ended, Vec<String>> {
    say(&format!("+ {}", line.join(" ")));
    let output = command("timeout")
        .args(["--kill-after=5", &limit.as_secs_f32().to_string()])
        .args(line)
        // Reasons are read from what git prints, and nobody is there to type a password.
        .envs([("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0")])
        .current_dir(root().join(folder))
        .output()
        .map_err(|error| vec![format!("timeout does not start: {error}; is it installed?")])?;
    let [errors, text] = [&output.stderr, &output.stdout].map(|it| String::from_utf8_lossy(it));
    let line = line.join(" ");
    // 124, or 128 and the number of SIGKILL.
    let is_late = matches!(output.status.code(), Some(124 | 137));
    let ended = Ended {
        is_success: output.status.success(),
        is_late,
        end: if is_late {
            format!("{line} took more than {limit:?}")
        } else {
            format!("{line} ended with {}", output.status)
        },
        text: format!("{errors}{text}"),
    };
    if !ended.is_success {
        say(ended.text.trim_end());
    }
    Ok(ended)
}

impl Ended {
    /// Of git that failed, or of cargo-deny that called it. A program that is missing or a wrong deny.toml is our own fault.
    fn answer_of_git(&self) -> Answer {
        if self.is_late {
            return Answer::Unknown(self.end.clone());
        }
        let unreachable = [
            "fatal: unable to access",
            "fatal: Could not read from remote",
        ];
        let is_unreachable = |line: &&str| unreachable.iter().any(|it| line.starts_with(it));
        let fatal = self.text.lines().find(is_unreachable);
        fatal.map_or_else(
            || Answer::Found(self.findings()),
            |reason| Answer::Unknown(reason.to_owned()),
        )
    }

    /// Of `npm audit`, which ends alike when it has found a flaw and when the registry does not answer.
    fn answer_of_npm(&self) -> Answer {
        if self.is_success {
            return Answer::Sound;
        }
        if self.is_late {
            return Answer::Unknown(self.end.clone());
        }
        let lines = || self.text.lines().filter(|line| !line.trim().is_empty());
        if lines().any(|line| line == "npm error audit endpoint returned an error") {
            let warning = lines().find_map(|line| line.strip_prefix("npm warn audit "));
            return Answer::Unknown(warning.unwrap_or(&self.end).to_owned());
        }
        let end = [self.end.as_str()];
        Answer::Found(lines().chain(end).map(str::to_owned).collect())
    }

    /// The lines of cargo-deny that name what it has found, for the end of the log; all of them are above.
    fn findings(&self) -> Vec<String> {
        let lines = self.text.lines().filter(|line| is_finding(line));
        let end = [self.end.as_str()];
        lines.chain(end).map(str::to_owned).collect()
    }
}

fn is_finding(line: &str) -> bool {
    let starts = ["error", "┌─", "├ ID:", "├ Solution:"];
    let text = line.trim_start();
    let is_quoted = text
        .split_once(" │ ")
        .is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    is_quoted || line.contains("[ERROR]") || starts.iter().any(|start| text.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: &str = "it ended with exit status: 1";

    fn failed(text: &str) -> Ended {
        Ended {
            is_success: false,
            is_late: false,
            end: END.to_owned(),
            text: text.to_owned(),
        }
    }

    fn late() -> Ended {
        Ended {
            is_late: true,
            ..failed("")
        }
    }

    fn found(lines: &[&str]) -> Answer {
        let end = [&END];
        let lines = lines.iter().chain(end).map(|line| (*line).to_owned());
        Answer::Found(lines.collect())
    }

    fn unknown(reason: &str) -> Answer {
        Answer::Unknown(reason.to_owned())
    }

    #[test]
    fn a_list_that_git_cannot_fetch_is_no_failure_and_a_wrong_deny_toml_is_one() {
        // As git 2.39 and cargo-deny 0.20.2 write it, shortened, like all below.
        let unreachable = "2026-11-30 14:18:31 [ERROR] failed to fetch database: failed to fetch advisory database with cli
Cloning into 'advisory-db-3157b0e258782691'...
fatal: unable to access 'https://github.com/RustSec/advisory-db/': Could not resolve host: github.com

";
        let reason = "fatal: unable to access 'https://github.com/RustSec/advisory-db/': Could not resolve host: github.com";
        assert_eq!(failed(unreachable).answer_of_git(), unknown(reason));
        assert_eq!(late().answer_of_git(), unknown(END));

        let no_git = "2026-11-30 14:24:43 [ERROR] failed to clone: failed to spawn git: No such file or directory";
        assert_eq!(failed(no_git).answer_of_git(), found(&[no_git]));
        let wrong = "2026-11-30 14:24:43 [ERROR] failed to parse config from 'deny.toml': unexpected eof encountered";
        assert_eq!(failed(wrong).answer_of_git(), found(&[wrong]));
        assert_eq!(failed("").answer_of_git(), found(&[]));
        let full = "fatal: write error: No space left on device";
        assert_eq!(failed(full).answer_of_git(), found(&[]));
    }

    #[test]
    fn the_end_of_the_log_names_each_crate_with_its_advisory_licence_or_source() {
        let text = "error[vulnerability]: Quadratic run time when checking a start tag for duplicate attribute names
    ┌─ Cargo.lock:364:1
    │
364 │ quick-xml 0.39.4 registry+https://github.com/rust-lang/crates.io-index
    │ ━━━━━━━━━━━━━━━━ security vulnerability detected
    │
    ├ ID: RUSTSEC-2026-0194
    ├ Advisory: https://rustsec.org/advisories/RUSTSEC-2026-0194
    ├ `BytesStart::attributes()` returns an `Attributes` iterator which, by default
      | Attributes on one tag | Time |
    ├ Solution: Upgrade to >=0.41.0 (try `cargo update -p quick-xml`)

error[rejected]: failed to satisfy license requirements
   ┌─ cssparser-0.36.0/Cargo.toml:36:12
   │
36 │ license = \"MPL-2.0\"
   │            ━━━━━━━
   │            │
   │            rejected: license is not explicitly allowed

error[source-not-allowed]: detected 'git' source not explicitly allowed
    ┌─ Cargo.lock:176:16
    │
176 │ from-git 0.1.0 git+https://example.com/from-git
    │                ━━━━━━━━━━━━━━━━━━━━━━━━ source

advisories FAILED, bans ok, licenses FAILED, sources FAILED
";
        let wanted = [
            "error[vulnerability]: Quadratic run time when checking a start tag for duplicate attribute names",
            "    ┌─ Cargo.lock:364:1",
            "364 │ quick-xml 0.39.4 registry+https://github.com/rust-lang/crates.io-index",
            "    ├ ID: RUSTSEC-2026-0194",
            "    ├ Solution: Upgrade to >=0.41.0 (try `cargo update -p quick-xml`)",
            "error[rejected]: failed to satisfy license requirements",
            "   ┌─ cssparser-0.36.0/Cargo.toml:36:12",
            "36 │ license = \"MPL-2.0\"",
            "error[source-not-allowed]: detected 'git' source not explicitly allowed",
            "    ┌─ Cargo.lock:176:16",
            "176 │ from-git 0.1.0 git+https://example.com/from-git",
            END,
        ];
        assert_eq!(failed(text).findings(), wanted);
    }

    #[test]
    fn a_registry_without_audit_is_no_failure_and_a_flaw_or_a_lockfile_that_is_missing_is_one() {
        // As npm 11 writes it.
        let refused = "npm warn audit 405 Method Not Allowed - POST https://registry.npmjs.org/-/npm/v1/security/advisories/bulk
npm error audit endpoint returned an error
npm error A complete log of this run can be found in: debug-0.log
";
        let reason = "405 Method Not Allowed - POST https://registry.npmjs.org/-/npm/v1/security/advisories/bulk";
        assert_eq!(failed(refused).answer_of_npm(), unknown(reason));
        assert_eq!(late().answer_of_npm(), unknown(END));

        let report =
            "# npm audit report\n\npreact  *\nSeverity: high\n\n1 high severity vulnerability\n";
        let wanted = [
            "# npm audit report",
            "preact  *",
            "Severity: high",
            "1 high severity vulnerability",
        ];
        assert_eq!(failed(report).answer_of_npm(), found(&wanted));
        let no_lockfile =
            "npm error code ENOLOCK\nnpm error audit This command requires an existing lockfile.\n";
        let wanted = [
            "npm error code ENOLOCK",
            "npm error audit This command requires an existing lockfile.",
        ];
        assert_eq!(failed(no_lockfile).answer_of_npm(), found(&wanted));
        let sound = Ended {
            is_success: true,
            ..failed("found 0 vulnerabilities\n")
        };
        assert_eq!(sound.answer_of_npm(), Answer::Sound);
    }

    #[test]
    fn a_program_that_does_not_end_is_ended_and_one_that_is_missing_is_a_failure() {
        let limit = Duration::from_millis(50);
        let late = run(limit, ".", &["tail", "-f", "/dev/null"]).expect("`timeout` runs");
        assert_eq!(late.end, "tail -f /dev/null took more than 50ms");
        assert_eq!(late.answer_of_git(), unknown(&late.end));
        let missing = run(TIME_TO_ANSWER, ".", &["candela-no-such-program"]);
        let answer = missing.map(|missing| missing.answer_of_git());
        assert!(matches!(answer, Ok(Answer::Found(_))), "{answer:?}");
    }

    #[test]
    fn a_list_that_cannot_be_had_is_told_at_the_end_of_a_green_run_and_a_flaw_fails() {
        let mut steps = Steps::new(None);
        ask(&mut steps, "crates", |_| Ok(unknown("no network")));
        let end = steps.summary().join("\n");
        assert!(end.ends_with("\ncrates NOT CHECKED: no network"), "{end}");
        assert!(!end.contains("FAILED"), "{end}");
        ask(&mut steps, "window", |_| Ok(found(&["preact  *"])));
        assert_eq!(steps.finish(), Err("failed: window".to_owned()));
    }
}
