//! What this program is and can: version, formats, completions, manual pages.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use candela_formats::Format;
use candela_formats::Part;
use clap::CommandFactory;
use serde_json::json;

use crate::args::CommandLine;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;
use crate::table::Table;

/// Parts that a build may lack.
const FEATURES: [(&str, bool); 5] = [
    ("agent", cfg!(feature = "agent")),
    ("server", cfg!(feature = "server")),
    ("ui", cfg!(feature = "ui")),
    ("sql", cfg!(feature = "sql")),
    ("kube", cfg!(feature = "kube")),
];

pub(crate) fn version(json: bool) -> Result<ExitCode, CliError> {
    let version = env!("CARGO_PKG_VERSION");
    let features: Vec<&str> = FEATURES
        .iter()
        .filter(|(_, is_present)| *is_present)
        .map(|(name, _)| *name)
        .collect();
    if json {
        output::print_json(&json!({
            "schema": "candela/version/v1",
            "version": version,
            "features": features,
            "architecture": std::env::consts::ARCH,
        }))?;
    } else {
        output::print_text(&format!("candela {version} ({})", features.join(", ")))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "candela", &mut script);
    output::print(&script)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn manual(folder: &Path) -> Result<ExitCode, CliError> {
    let what = folder.display().to_string();
    fs::create_dir_all(folder).or_exit(ExitStatus::Failed, &what)?;
    clap_mangen::generate_to(CommandLine::command(), folder).or_exit(ExitStatus::Failed, &what)?;
    output::note(&format!(
        "wrote the manual pages to {what}; read one with `man -l {what}/candela.1`"
    ));
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn formats(json: bool) -> Result<ExitCode, CliError> {
    let formats = Format::all();
    if json {
        let rows: Vec<serde_json::Value> = formats
            .map(|format| {
                json!({
                    "name": format.name(),
                    "extensions": format.extensions(),
                    "reads": format.is_readable(),
                    "writes": format.is_writable(),
                    "description": format.description(),
                    "keeps": part_names(format.keeps().iter().copied()),
                    "loses": part_names(format.loses()),
                })
            })
            .collect();
        output::print_json(&json!({ "schema": "candela/formats/v1", "formats": rows }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&[
        "name",
        "reads",
        "writes",
        "extensions",
        "description",
        "keeps",
    ]);
    let mark = |flag: bool| if flag { "yes" } else { "-" }.to_owned();
    for format in formats {
        table.push(vec![
            format.name().to_owned(),
            mark(format.is_readable()),
            mark(format.is_writable()),
            format.extensions().join(" "),
            format.description().to_owned(),
            kept(format),
        ]);
    }
    output::print_text(&table.to_text())?;
    Ok(ExitCode::SUCCESS)
}

fn part_names(parts: impl Iterator<Item = Part>) -> Vec<&'static str> {
    parts.map(Part::name).collect()
}

/// What a format keeps, by the shorter of two lists: that of the parts it has or that of the others.
fn kept(format: Format) -> String {
    let lost = part_names(format.loses());
    let kept = part_names(format.keeps().iter().copied());
    if lost.is_empty() {
        return "everything".to_owned();
    }
    if lost.len() <= kept.len() {
        return format!("all but {}", lost.join(", "));
    }
    if kept.is_empty() {
        return "names and values".to_owned();
    }
    format!("names, values, {}", kept.join(", "))
}
