//! Documents that people have in files.

use std::io;
use std::io::Read;
use std::path::Path;

use candela_fleet::MOST_DOCUMENT_BYTES;

use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;

/// What the document is called in messages, and its text.
pub(super) fn read_document(file: &Path) -> Result<(String, String), CliError> {
    if is_standard_input(file) {
        let name = "standard input".to_owned();
        let text = read(io::stdin().lock()).or_exit(ExitStatus::Failed, &name)?;
        return Ok((name, text));
    }
    let name = file.display().to_string();
    let opened = std::fs::File::open(file).or_exit(ExitStatus::Usage, &name)?;
    let text = read(opened).or_exit(ExitStatus::Failed, &name)?;
    Ok((name, text))
}

pub(super) fn is_standard_input(file: &Path) -> bool {
    file == Path::new("-")
}

/// One byte more than may be: whoever reads the document says that it is too long.
fn read(source: impl Read) -> io::Result<String> {
    let mut text = String::new();
    let most = MOST_DOCUMENT_BYTES as u64 + 1;
    source.take(most).read_to_string(&mut text)?;
    Ok(text)
}
