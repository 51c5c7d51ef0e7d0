//! Values that may stand in a file of their own.

use std::fs;

use crate::config::Settings;
use crate::errors::CliError;

/// The value of a key, or the content of the file that the key with `_file` names.
///
/// # Errors
/// When both are set, and when the file cannot be read or is empty.
pub(crate) fn itself_or_file(settings: &Settings, path: &str) -> Result<Option<String>, CliError> {
    let itself = settings.secret(path).or_else(|| settings.text(path));
    let file_key = format!("{path}_file");
    let Some(file) = settings.text(&file_key) else {
        return Ok(itself.map(str::to_owned));
    };
    if itself.is_some() {
        let origin = |key: &str| settings.get(key).origin.to_string();
        return Err(CliError::usage(format!(
            "{path} ({}) and {file_key} ({}) are both set; drop one",
            origin(path),
            origin(&file_key)
        )));
    }
    let content = fs::read_to_string(file)
        .map_err(|error| CliError::usage(format!("{file_key} {file}: {error}")))?;
    let content = content.trim();
    if content.is_empty() {
        return Err(CliError::usage(format!(
            "{file_key} {file}: the file is empty"
        )));
    }
    Ok(Some(content.to_owned()))
}
