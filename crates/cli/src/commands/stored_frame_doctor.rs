//! `candela doctor --frames FILE`: which frames of a profile are missing, why, and what mends it.

use std::process::ExitCode;

use candela_agent::StoredCode;
use candela_agent::StoredFrameReport;
use candela_formats::format_share;
use candela_formats::format_value;
use candela_formats::printable;
use serde_json::Value;
use serde_json::json;

use super::doctor_text::DoctorText;
use super::files::input::Input;
use super::profiles::resolve;
use super::profiles::tell_choice;
use crate::args::GlobalArgs;
use crate::args::files::ReadingArgs;
use crate::errors::CliError;
use crate::output;

pub(crate) fn run(
    global: &GlobalArgs,
    source: &str,
    profile_type: Option<&str>,
    json: bool,
) -> Result<ExitCode, CliError> {
    let reading = ReadingArgs::default();
    let read = Input::new(global, &reading).read_all(&[source])?;
    let choice = read.choice(profile_type);
    let wanted = resolve(&read.profile, choice)?;
    if !global.quiet {
        tell_choice(&read.profile, choice);
    }
    let report = candela_agent::check_stored_frames(&read.profile, &wanted, source);
    if json {
        output::print_json(&as_json(&report)?)?;
    } else {
        output::print_text(&as_text(&report, global.limit))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(report: &StoredFrameReport) -> Result<Value, CliError> {
    let mut value = serde_json::to_value(report)
        .map_err(|error| CliError::failed(format!("the report is no JSON: {error}")))?;
    value["schema"] = json!("candela/doctor-stored-frames/v1");
    Ok(value)
}

fn as_text(report: &StoredFrameReport, limit: usize) -> String {
    let mut text = DoctorText::default();
    let runtime = match report.runtime.as_str() {
        "" => String::new(),
        runtime => format!(" ({runtime})"),
    };
    text.line(&format!(
        "{}{runtime}: {} in {} samples",
        printable(&report.profile_type),
        format_value(report.total, &report.unit),
        report.samples
    ));
    let share = |value| share_of(report, value);
    let named = report.frames - report.unnamed_frames;
    let mark = if report.unnamed_frames == 0 {
        "ok"
    } else {
        "warn"
    };
    let names = format!("{named} of {} frames have names", report.frames);
    text.check(mark, "names", &names, "");
    if report.ends.is_empty() {
        text.check("ok", "stacks", "none is known to lack its beginning", "");
    }
    for ends in &report.ends {
        let detail = format!(
            "{} of the profile: {}",
            share(ends.value),
            ends.problem.meaning
        );
        text.check("warn", ends.problem.cause, &detail, &ends.problem.remedy);
    }
    let limit = if limit == 0 { usize::MAX } else { limit };
    for code in report.code.iter().take(limit) {
        add_code(&mut text, code, &share(code.value));
    }
    let left_out = report.code.len().saturating_sub(limit);
    if left_out > 0 {
        text.line(&format!("      {left_out} more: --limit 0 shows all"));
    }
    if report.incomplete != 0 {
        let all = share(report.incomplete);
        text.line(&format!("      {all} of the profile lacks something"));
    }
    text.into_text()
}

fn add_code(text: &mut DoctorText, code: &StoredCode, share: &str) {
    let path = match code.path.as_str() {
        "" => "a file that is not known",
        path => path,
    };
    text.line(&printable(&format!(
        "warn  {path}, in {share} of the profile: {} of {} frames have no name, at {} addresses",
        code.unnamed_frames, code.frames, code.unnamed_addresses
    )));
    text.check(
        "",
        code.problem.cause,
        &code.problem.meaning,
        &code.problem.remedy,
    );
}

fn share_of(report: &StoredFrameReport, value: i64) -> String {
    format_share(value, report.total)
}
