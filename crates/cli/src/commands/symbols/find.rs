//! `candela symbols find`

use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;

use candela_symbols::BuildId;
use candela_symbols::Contents;
use candela_symbols::DebugFileSearch;
use candela_symbols::ObjectFile;
use serde_json::Value;
use serde_json::json;

use super::sources::fetched_folder;
use super::sources::uploaded_folder;
use crate::args::GlobalArgs;
use crate::args::symbols::FindArgs;
use crate::commands::environment;
use crate::config::Settings;
use crate::errors::CliError;
use crate::errors::ExitStatus;
use crate::output;
use crate::table::Table;

/// A file of this machine.
struct Found {
    /// Where it was found: `file`, `debug file`, `supplement`, `uploaded` or `debuginfod`.
    place: &'static str,
    path: PathBuf,
    contents: Contents,
}

/// Says which files of this machine have the symbols, in the order in which they are trusted.
pub(super) fn find(global: &GlobalArgs, arguments: &FindArgs) -> Result<ExitCode, CliError> {
    let settings = crate::commands::settings(global, Vec::new())?;
    let path = Path::new(&arguments.what);
    let (build_id, mut found) = match (path.is_file(), BuildId::from_gnu_hex(&arguments.what)) {
        (true, _) => of_file(path)?,
        (false, Some(build_id)) => of_build_id(build_id),
        (false, None) => {
            return Err(CliError::usage(format!(
                "{:?} is neither a file nor the hexadecimal digits of a build id",
                arguments.what
            )));
        }
    };
    found.extend(kept(&settings, &build_id));
    if arguments.json {
        print_json(&build_id, &found)?;
    } else {
        print_text(global, &build_id, &found)?;
    }
    let is_named = found
        .iter()
        .any(|file| file.contents != Contents::default());
    if is_named {
        return Ok(ExitCode::SUCCESS);
    }
    let message = format!(
        "no file of this machine has symbols of build id {build_id}; install its debug package, or set symbols.debuginfod_urls"
    );
    Err(CliError::no_data(message))
}

/// The file itself, and what belongs to it.
fn of_file(path: &Path) -> Result<(BuildId, Vec<Found>), CliError> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let object = ObjectFile::open(&path);
    let object = object.map_err(|error| CliError::new(ExitStatus::Failed, error.to_string()))?;
    let search = DebugFileSearch::default();
    let mut found = vec![Found::of("file", &object)];
    let debug_file = search.find(&object);
    found.extend(debug_file.iter().map(|file| Found::of("debug file", file)));
    let with_dwarf = debug_file.as_deref().unwrap_or(&object);
    let supplement = search.find_supplement(with_dwarf);
    found.extend(supplement.iter().map(|file| Found::of("supplement", file)));
    Ok((object.build_id().clone(), found))
}

fn of_build_id(build_id: BuildId) -> (BuildId, Vec<Found>) {
    let search = DebugFileSearch::default();
    let debug_file = search.find_build_id(&build_id);
    let mut found: Vec<Found> = debug_file
        .iter()
        .map(|file| Found::of("debug file", file))
        .collect();
    let supplement = debug_file.and_then(|file| search.find_supplement(&file));
    found.extend(supplement.iter().map(|file| Found::of("supplement", file)));
    (build_id, found)
}

/// What was sent to a server of this machine, and what was fetched.
fn kept(settings: &Settings, build_id: &BuildId) -> Vec<Found> {
    let uploaded = DebugFileSearch {
        directories: vec![uploaded_folder(settings)],
    };
    let uploaded = uploaded.find_build_id(build_id);
    let mut found: Vec<Found> = uploaded
        .iter()
        .map(|file| Found::of("uploaded", file))
        .collect();
    let Some(digits) = build_id.gnu_hex() else {
        return found;
    };
    let environment = environment();
    let of_elfutils = candela_symbols::DebuginfodOptions::from_environment(|name| match name {
        // The cache is looked into whether servers are set or not.
        "DEBUGINFOD_URLS" => Some("http://localhost".to_owned()),
        other => environment.get(other).cloned(),
    });
    let folders = of_elfutils.map(|options| options.cache_directory);
    for folder in [fetched_folder(settings)].into_iter().chain(folders) {
        let path = folder.join(&digits).join("debuginfo");
        let object = ObjectFile::open(&path).ok();
        let object = object.filter(|object| object.build_id() == build_id);
        found.extend(object.iter().map(|file| Found::of("debuginfod", file)));
    }
    found
}

impl Found {
    fn of(place: &'static str, object: &ObjectFile) -> Self {
        Self {
            place,
            path: object.path().to_owned(),
            contents: object.contents(),
        }
    }
}

fn print_text(global: &GlobalArgs, build_id: &BuildId, found: &[Found]) -> Result<(), CliError> {
    let mut table = Table::new(&["place", "contents", "path"]);
    for file in found {
        let contents = match file.contents.names().join(" ") {
            none if none.is_empty() => "stripped".to_owned(),
            names => names,
        };
        table.push(vec![
            file.place.to_owned(),
            contents,
            file.path.display().to_string(),
        ]);
    }
    if !global.quiet {
        output::note(&format!("build id {build_id}"));
    }
    output::print_text(&table.to_text())
}

fn print_json(build_id: &BuildId, found: &[Found]) -> Result<(), CliError> {
    let files: Vec<Value> = found
        .iter()
        .map(|file| {
            json!({
                "place": file.place,
                "path": file.path.display().to_string(),
                "contents": file.contents.names(),
            })
        })
        .collect();
    output::print_json(&json!({
        "schema": "candela/symbols-find/v1",
        "build_id": build_id.to_string(),
        "files": files,
    }))
}
