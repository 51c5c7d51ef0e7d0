//! `candela symbols upload`

use std::fs::File;
use std::io;
use std::io::IsTerminal;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;

use candela_symbols::BuildId;
use candela_symbols::Contents;
use candela_symbols::DebugFileSearch;
use candela_symbols::ObjectFile;
use indicatif::ProgressBar;
use indicatif::ProgressStyle;
use serde_json::Value;
use serde_json::json;

use crate::args::GlobalArgs;
use crate::args::symbols::UploadArgs;
use crate::commands::client::Client;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;
use crate::percent::percent_encoded;

/// A file that can be sent.
struct Candidate {
    path: PathBuf,
    build_id: String,
    bytes: u64,
    contents: Contents,
}

/// What became of a file.
struct Outcome {
    path: PathBuf,
    /// `uploaded`, `present` or `failed`.
    status: &'static str,
    build_id: String,
    bytes: u64,
    message: String,
}

/// Sends the files one after the other. One that cannot be sent does not keep the others back.
pub(super) fn upload(global: &GlobalArgs, arguments: &UploadArgs) -> Result<ExitCode, CliError> {
    let client = Client::new(global)?;
    let mut outcomes = Vec::new();
    for path in &arguments.files {
        let outcome = match candidate(path) {
            Ok(candidate) => send(global, &client, &candidate, arguments.force),
            Err(error) => Err(error),
        };
        let outcome = match outcome {
            // Without a server the other files fare no better.
            Err(error) if error.status == ExitStatus::Unreachable => return Err(error),
            Err(error) => failed(path, &error),
            Ok(outcome) => outcome,
        };
        if !arguments.json {
            tell(global, &outcome);
        }
        outcomes.push(outcome);
    }
    if arguments.json {
        let files: Vec<Value> = outcomes.iter().map(outcome_json).collect();
        output::print_json(&json!({"schema": "candela/symbols-upload/v1", "files": files}))?;
    }
    let is_failed = outcomes.iter().any(|outcome| outcome.status == "failed");
    Ok(if is_failed {
        ExitStatus::Failed.into()
    } else {
        ExitCode::SUCCESS
    })
}

/// The file itself, or the debug file that knows more.
fn candidate(path: &Path) -> Result<Candidate, CliError> {
    let object = open(path)?;
    if matches!(object.build_id(), BuildId::Hash(_)) {
        return Err(CliError::failed(format!(
            "{} has no build id, so that no profile can refer to it; link it with -Wl,--build-id",
            path.display()
        )));
    }
    let debug_file = match object.contents().dwarf {
        true => None,
        false => DebugFileSearch::default().find(&object),
    };
    let best = match debug_file {
        Some(found) if found.contents().richness() > object.contents().richness() => {
            // The one found is in memory already, but its path is what people know it by.
            open(&rooted(&found))?
        }
        _ => object,
    };
    if best.contents() == Contents::default() {
        return Err(CliError::failed(format!(
            "{} (build id {}) is stripped, and this machine has no debug file for it; send the file before it was stripped",
            path.display(),
            best.build_id()
        )));
    }
    Ok(Candidate {
        path: best.path().to_owned(),
        build_id: best.build_id().to_string(),
        bytes: best.data().len() as u64,
        contents: best.contents(),
    })
}

fn rooted(object: &ObjectFile) -> PathBuf {
    let root = object.root().unwrap_or(Path::new("/"));
    let inside = object.path().strip_prefix("/").unwrap_or(object.path());
    root.join(inside)
}

fn open(path: &Path) -> Result<ObjectFile, CliError> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    ObjectFile::open(&path).map_err(|error| CliError::failed(error.to_string()))
}

fn send(
    global: &GlobalArgs,
    client: &Client,
    candidate: &Candidate,
    is_forced: bool,
) -> Result<Outcome, CliError> {
    let outcome = |status, message: String| Outcome {
        path: candidate.path.clone(),
        status,
        build_id: candidate.build_id.clone(),
        bytes: candidate.bytes,
        message,
    };
    if !is_forced && is_present(client, candidate)? {
        return Ok(outcome("present", "the server has it".to_owned()));
    }
    let what = candidate.path.display().to_string();
    let file = File::open(&candidate.path).or_exit(ExitStatus::Failed, &what)?;
    let progress = progress(global, candidate);
    let name = candidate.path.file_name().unwrap_or_default();
    let answer = client.post_file(
        "/api/v1/symbols",
        &[("name", &name.to_string_lossy())],
        candidate.bytes,
        &mut CountingReader { file, progress },
    )?;
    let answer: Value = serde_json::from_slice(&answer).or_exit(ExitStatus::Failed, "answer")?;
    if answer["is_new"] == json!(false) {
        return Ok(outcome("present", "the server has one as good".to_owned()));
    }
    Ok(outcome("uploaded", String::new()))
}

/// Whether the server keeps the same file, or one that says more.
fn is_present(client: &Client, candidate: &Candidate) -> Result<bool, CliError> {
    // Go's build ids have slashes.
    let build_id = percent_encoded(&candidate.build_id);
    let known = client.get_json(&format!("/api/v1/symbols/{build_id}"), &[])?;
    let file = &known["file"];
    if file.is_null() {
        return Ok(false);
    }
    let has = |name: &str| {
        let contents = file["contents"].as_array();
        contents.is_some_and(|contents| contents.iter().any(|content| content == name))
    };
    let kept = Contents {
        dwarf: has("dwarf"),
        symtab: has("symtab"),
        mini_debug_info: has("mini_debug_info"),
        go: has("go"),
    };
    let (kept, ours) = (kept.richness(), candidate.contents.richness());
    Ok(kept > ours || (kept == ours && file["bytes"] == candidate.bytes))
}

/// A bar on a terminal only.
fn progress(global: &GlobalArgs, candidate: &Candidate) -> ProgressBar {
    if global.quiet || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(candidate.bytes);
    let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes}")
        .expect("a template that is a constant");
    let name = candidate.path.file_name().unwrap_or_default();
    bar.set_style(style);
    bar.set_message(candela_formats::printable(&name.to_string_lossy()));
    bar
}

struct CountingReader {
    file: File,
    progress: ProgressBar,
}

impl Read for CountingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.progress.inc(count as u64);
        Ok(count)
    }
}

impl Drop for CountingReader {
    fn drop(&mut self) {
        self.progress.finish_and_clear();
    }
}

fn failed(path: &Path, error: &CliError) -> Outcome {
    Outcome {
        path: path.to_owned(),
        status: "failed",
        build_id: String::new(),
        bytes: 0,
        message: error.to_string(),
    }
}

fn tell(global: &GlobalArgs, outcome: &Outcome) {
    let Outcome {
        path,
        status,
        build_id,
        message,
        ..
    } = outcome;
    if *status == "failed" {
        output::print_error(&CliError::failed(message.clone()));
        return;
    }
    if !global.quiet {
        let detail = match message.as_str() {
            "" => String::new(),
            text => format!(" ({text})"),
        };
        output::note(&format!("{status} {} {build_id}{detail}", path.display()));
    }
}

fn outcome_json(outcome: &Outcome) -> Value {
    json!({
        "path": outcome.path.display().to_string(),
        "status": outcome.status,
        "build_id": outcome.build_id,
        "bytes": outcome.bytes,
        "message": outcome.message,
    })
}
