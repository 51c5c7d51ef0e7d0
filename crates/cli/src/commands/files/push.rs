//! `candela push`: profile files to a server.

use std::io::Write;
use std::process::ExitCode;

use candela_formats::OtlpOptions;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use super::input::Input;
use super::input::shown_source;
use crate::args::GlobalArgs;
use crate::args::files::PushArgs;
use crate::commands::client::Client;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;

/// Each file is read here, where its binaries may be, and sent as OTLP, which loses nothing. A file
/// that cannot be sent does not keep the others from it.
pub(crate) fn run(global: &GlobalArgs, arguments: &PushArgs) -> Result<ExitCode, CliError> {
    let client = Client::new(global)?;
    let mut last_failure: Option<CliError> = None;
    for file in &arguments.files {
        if let Err(error) = push(global, arguments, &client, file) {
            // The other files would fail for the same reason.
            let is_last = matches!(
                error.status,
                ExitStatus::Unreachable | ExitStatus::Permission
            );
            if let Some(before) = last_failure.replace(error) {
                output::print_error(&before);
            }
            if is_last {
                break;
            }
        }
    }
    last_failure.map_or(Ok(ExitCode::SUCCESS), Err)
}

fn push(
    global: &GlobalArgs,
    arguments: &PushArgs,
    client: &Client,
    file: &str,
) -> Result<(), CliError> {
    let input = Input::new(global, &arguments.reading);
    let profile = input.read_all(&[file])?.profile;
    let file = &shown_source(file);
    let body = candela_formats::encode_otlp_bytes(&profile, &OtlpOptions::default());
    let body = gzipped(&body);
    let labels = arguments
        .labels
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let labels: Vec<String> = labels.collect();
    let mut parameters = vec![("service", arguments.service.as_str())];
    parameters.extend(labels.iter().map(|label| ("label", label.as_str())));
    let answer = client.post_with("/api/v1/ingest", &parameters, &body);
    let answer = answer.map_err(|error| CliError::new(error.status, format!("{file}: {error}")))?;
    let answer: Value = serde_json::from_slice(&answer)
        .or_exit(ExitStatus::Failed, "answer of the server to the upload")?;
    if !global.quiet {
        tell(file, &arguments.service, &answer);
    }
    Ok(())
}

/// A tenth of the size, most often, and the server knows it by its first bytes.
fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("a vector takes all");
    encoder.finish().expect("a vector takes all")
}

fn tell(file: &str, service: &str, answer: &Value) {
    let number = |name: &str| answer[name].as_u64().unwrap_or_default();
    let before = match answer["duplicate"].as_bool() {
        Some(true) => "; the server had it already",
        _ => "",
    };
    output::note(&format!(
        "{file}: {} profiles, {} samples as {service}{before}",
        number("profiles"),
        number("samples")
    ));
    for note in answer["notes"].as_array().into_iter().flatten() {
        output::note(&format!("{file}: {}", note.as_str().unwrap_or_default()));
    }
}
