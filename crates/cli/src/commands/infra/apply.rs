//! `candela infra apply persistence`: checks, shows what changes, asks, applies.

use std::io;
use std::io::IsTerminal;
use std::io::Write;
use std::process::ExitCode;

use serde_json::Value;

use super::DOCUMENT;
use super::document_file::is_standard_input;
use super::document_file::read_document;
use crate::args::GlobalArgs;
use crate::args::infra::ApplyArgs;
use crate::commands::client::Client;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;

pub(super) fn apply(global: &GlobalArgs, arguments: &ApplyArgs) -> Result<ExitCode, CliError> {
    let client = Client::new(global)?;
    let (name, document) = wanted(&client, arguments)?;
    let checked = client.post(
        &format!("{DOCUMENT}/check"),
        "application/json",
        document.as_bytes(),
    )?;
    let checked: Value =
        serde_json::from_slice(&checked).or_exit(ExitStatus::Failed, "the server's check")?;
    refuse_problems(&name, &checked)?;
    if !global.quiet {
        for note in texts(&checked, "notes") {
            output::note(&note);
        }
    }
    if arguments.check_bucket {
        check_buckets(global, &document)?;
    }
    let version = checked["version"].as_u64().unwrap_or_default();
    let diff = checked["diff_text"].as_str().unwrap_or_default();
    if diff.is_empty() {
        if !global.quiet {
            output::note(&format!(
                "nothing to change: version {version} says the same"
            ));
        }
        return Ok(ExitCode::SUCCESS);
    }
    output::print_text(diff)?;
    if !arguments.yes {
        confirm(arguments)?;
    }
    // What was shown is what is applied: the server refuses when somebody else was quicker.
    let version = version.to_string();
    let applied = match arguments.rollback {
        Some(old) => {
            let old = old.to_string();
            let parameters = [("to", old.as_str()), ("version", &version)];
            client.post_with(&format!("{DOCUMENT}/rollback"), &parameters, b"")?
        }
        None => client.put(DOCUMENT, &[("version", &version)], document.as_bytes())?,
    };
    let applied: Value =
        serde_json::from_slice(&applied).or_exit(ExitStatus::Failed, "the server's answer")?;
    if !global.quiet {
        output::note(&format!("version {} is applied", applied["version"]));
    }
    Ok(ExitCode::SUCCESS)
}

/// What is to be applied, and what it is called in messages.
fn wanted(client: &Client, arguments: &ApplyArgs) -> Result<(String, String), CliError> {
    if let Some(version) = arguments.rollback {
        let answer = client.get_json(&format!("{DOCUMENT}/versions/{version}"), &[])?;
        return Ok((format!("version {version}"), answer["document"].to_string()));
    }
    let Some(file) = arguments.file.as_deref() else {
        return Err(CliError::usage("name the document with -f FILE"));
    };
    read_document(file)
}

fn refuse_problems(name: &str, checked: &Value) -> Result<(), CliError> {
    let problems = texts(checked, "problems");
    for problem in &problems {
        output::note(problem);
    }
    match problems.len() {
        0 => Ok(()),
        1 => Err(CliError::failed(format!(
            "{name} has a problem; nothing was applied"
        ))),
        count => Err(CliError::failed(format!(
            "{name} has {count} problems; nothing was applied"
        ))),
    }
}

#[cfg(feature = "agent")]
fn check_buckets(global: &GlobalArgs, document: &str) -> Result<(), CliError> {
    super::bucket_check::check_buckets(global, document)
}

#[cfg(not(feature = "agent"))]
fn check_buckets(_: &GlobalArgs, _: &str) -> Result<(), CliError> {
    Err(CliError::failed(
        "this build has no daemons, and so no client of buckets; leave --check-bucket out, or take a build with the feature `agent`",
    ))
}

fn confirm(arguments: &ApplyArgs) -> Result<(), CliError> {
    let is_document = arguments.file.as_deref().is_some_and(is_standard_input);
    if is_document || !io::stdin().is_terminal() {
        return Err(CliError::usage(
            "standard input is no terminal to ask on, and nothing was applied; add --yes to apply what is shown",
        ));
    }
    let mut stderr = anstream::stderr();
    // Who does not see the question cannot answer it, and nothing is applied.
    let _ = write!(stderr, "apply? [y/N] ").and_then(|()| stderr.flush());
    let mut answer = String::new();
    io::stdin()
        .read_line(&mut answer)
        .or_exit(ExitStatus::Failed, "standard input")?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(CliError::failed("nothing was applied")),
    }
}

fn texts(checked: &Value, name: &str) -> Vec<String> {
    let remarks = checked[name].as_array().into_iter().flatten();
    let texts = remarks.filter_map(|remark| remark["text"].as_str());
    texts.map(str::to_owned).collect()
}
