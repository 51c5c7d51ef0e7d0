//! `candela doctor -p PID`: which frames of a process are missing, why, and what mends it.

use std::process::ExitCode;
use std::time::Duration;

use candela_agent::AgentOptions;
use candela_agent::CodeReport;
use candela_agent::Explanation;
use candela_agent::FrameCheckOptions;
use candela_agent::FrameReport;
use candela_agent::SampledFrames;
use serde_json::Value;
use serde_json::json;

use super::doctor_text::DoctorText;
use super::sampling;
use super::signals;
use crate::args::GlobalArgs;
use crate::errors::CliError;
use crate::output;

/// Long enough for some hundred stacks of whatever runs or waits.
const DURATION: Duration = Duration::from_secs(2);

pub(crate) fn run(global: &GlobalArgs, pid: u32, json: bool) -> Result<ExitCode, CliError> {
    let settings = super::settings(global, Vec::new())?;
    let stop = signals::stop_signal()?;
    let options = FrameCheckOptions {
        pid,
        duration: DURATION,
        stop: stop.flag(),
        agent: AgentOptions {
            // Nothing is kept in the data directory of somebody who only looks.
            debuginfod_cache: None,
            ..sampling::options(&settings)?
        },
    };
    let report =
        candela_agent::check_frames(&options).map_err(|error| sampling::failure(&error))?;
    if json {
        output::print_json(&as_json(&report)?)?;
    } else {
        output::print_text(&as_text(&report, global.limit))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(report: &FrameReport) -> Result<Value, CliError> {
    let explained = |(explanation, count): (Explanation, u64)| {
        json!({
            "name": explanation.name,
            "count": count,
            "meaning": explanation.meaning,
            "fix": explanation.remedy,
        })
    };
    let mut value = serde_json::to_value(report)
        .map_err(|error| CliError::failed(format!("the report is no JSON: {error}")))?;
    value["schema"] = json!("candela/doctor-frames/v1");
    if let Some(sampled) = &report.sampled {
        value["sampled"]["results"] = sampled
            .explained_results()
            .into_iter()
            .map(explained)
            .collect();
        value["sampled"]["drops"] = sampled
            .explained_drops()
            .into_iter()
            .map(explained)
            .collect();
    }
    Ok(value)
}

fn as_text(report: &FrameReport, limit: usize) -> String {
    let mut text = DoctorText::default();
    let runtime = match report.runtime.as_str() {
        "" => String::new(),
        runtime => format!(" ({runtime})"),
    };
    let head = format!("process {}: {}{runtime}", report.pid, report.program);
    text.line(&candela_formats::printable(&head));
    match &report.sampled {
        Some(sampled) => text.sampled(sampled),
        None => text.check(
            "warn",
            "samples",
            &format!("none: {}", report.not_sampled),
            "",
        ),
    }
    let is_sampled = report.sampled.is_some();
    let limit = if limit == 0 { usize::MAX } else { limit };
    let (shown, others): (Vec<_>, Vec<_>) = report
        .code
        .iter()
        .partition(|code| is_worth_a_line(code, is_sampled));
    let left_out = shown.len().saturating_sub(limit);
    for code in shown.iter().take(limit) {
        text.code(code);
    }
    if left_out > 0 {
        text.line(&format!("      {left_out} more: --limit 0 shows all"));
    }
    let with_problems = others
        .iter()
        .filter(|code| !code.problems.is_empty())
        .count();
    let fine = others.len() - with_problems;
    if fine > 0 {
        text.line(&format!(
            "ok    {fine} other files with names and unwind information"
        ));
    }
    if with_problems > 0 {
        text.line(&format!(
            "      {with_problems} other files lack something, but no frame was seen that misses it: --json lists them"
        ));
    }
    text.into_text()
}

/// Whether frames of it are missing; without samples, whether they could be.
fn is_worth_a_line(code: &CodeReport, is_sampled: bool) -> bool {
    let misses = code.unnamed_frames > 0 || code.short_stacks > 0;
    let has_no_file = code.path.starts_with('[');
    misses || (!code.problems.is_empty() && (!is_sampled || has_no_file))
}

impl DoctorText {
    fn sampled(&mut self, sampled: &SampledFrames) {
        let seconds = sampled.duration_ns as f64 / 1e9;
        let frames: u64 = sampled.code.values().map(|code| code.frames).sum();
        let unnamed: u64 = sampled.code.values().map(|code| code.unnamed_frames).sum();
        let mark = if unnamed == 0 { "ok" } else { "warn" };
        self.check(
            mark,
            "names",
            &format!(
                "{} of {frames} frames have names ({} stacks in {seconds:.1} s)",
                frames - unnamed,
                sampled.samples
            ),
            "",
        );
        for (explanation, count) in sampled.explained_results() {
            let mark = if explanation.remedy.is_empty() {
                "ok"
            } else {
                "warn"
            };
            let detail = format!("{count} stacks: {}", explanation.meaning);
            self.check(mark, explanation.name, &detail, explanation.remedy);
        }
        for (explanation, count) in sampled.explained_drops() {
            let detail = format!("{count}: {}", explanation.meaning);
            self.check("warn", explanation.name, &detail, explanation.remedy);
        }
    }

    fn code(&mut self, code: &CodeReport) {
        let mut parts = vec![code.path.clone()];
        if code.is_deleted {
            parts.push("(deleted)".to_owned());
        }
        if code.unnamed_frames > 0 {
            parts.push(format!(
                "{} of {} frames have no name",
                code.unnamed_frames, code.frames
            ));
        }
        if code.short_stacks > 0 {
            parts.push(format!("{} stacks end in it", code.short_stacks));
        }
        self.line(&candela_formats::printable(&format!(
            "warn  {}",
            parts.join(", ")
        )));
        for problem in &code.problems {
            self.check("", problem.cause, &problem.meaning, &problem.remedy);
        }
        if code.problems.is_empty() {
            let sources = match code.named_by.is_empty() {
                true => "nothing".to_owned(),
                false => code.named_by.join(", "),
            };
            self.check(
                "",
                "no_symbol_there",
                &format!("its symbols ({sources}) do not cover these addresses: assembly or stubs of the linker"),
                "",
            );
        }
    }
}
