//! What this program is and can: version, formats, completions, manual pages.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use serde_json::json;

use crate::args::CommandLine;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;

/// Parts that a build may lack.
const FEATURES: [(&str, bool); 3] = [
    ("agent", cfg!(feature = "agent")),
    ("server", cfg!(feature = "server")),
    ("ui", cfg!(feature = "ui")),
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
    output::note(&format!("wrote the manual pages to {what}; read one with `man -l {what}/candela.1`"));
    Ok(ExitCode::SUCCESS)
}
