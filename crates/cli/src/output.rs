//! Writing results to standard output and messages to standard error.

use std::borrow::Cow;
use std::fs;
use std::fs::File;
use std::io;
use std::io::IsTerminal;
use std::io::Write;
use std::path::Path;

use candela_formats::printable;
use candela_formats::printable_lines;

use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;

/// Prints an error the way all of them look.
pub(crate) fn print_error(error: &CliError) {
    note(&format!("candela: {error}"));
}

/// Lines to the person at the terminal; standard output is for data.
pub(crate) fn note(text: &str) {
    // Names and messages come from programs and servers that we do not control.
    let lines: Vec<String> = text.lines().map(printable).collect();
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(anstream::stderr(), "{}", lines.join("\n"));
}

/// Writes a result to standard output. A reader that went away (`| head`) is no failure.
///
/// Files and pipes get the names as they are. A terminal would obey what is in them, whatever the format.
pub(crate) fn print(bytes: &[u8]) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    let bytes = harmless(bytes, &stdout);
    match stdout.write_all(&bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.or_exit(ExitStatus::Failed, "standard output"),
    }
}

/// What a place is to get: a terminal no character that it would obey.
fn harmless<'b>(bytes: &'b [u8], place: &impl IsTerminal) -> Cow<'b, [u8]> {
    match place.is_terminal() {
        true => Cow::Owned(printable_lines(&String::from_utf8_lossy(bytes)).into_bytes()),
        false => Cow::Borrowed(bytes),
    }
}

/// The same for a text, with a final line end.
pub(crate) fn print_text(text: &str) -> Result<(), CliError> {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    print(format!("{text}{end}").as_bytes())
}

/// The same for JSON.
pub(crate) fn print_json(value: &serde_json::Value) -> Result<(), CliError> {
    print_text(&format!("{value:#}"))
}

/// Refuses to fill a terminal with bytes that nobody can read.
pub(crate) fn refuse_binary_on_terminal(format: &str) -> Result<(), CliError> {
    if io::stdout().is_terminal() {
        return Err(CliError::usage(format!(
            "{format} is binary and standard output is a terminal: add -o FILE"
        )));
    }
    Ok(())
}

/// Names of standard output, which a file in its place would take away from every program.
const STANDARD_OUTPUT: [&str; 3] = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// Writes a file at once: a reader never sees half of it, and a failure leaves the old one. A link stays, and leads to what
/// is written.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    if STANDARD_OUTPUT.iter().any(|name| path == Path::new(name)) {
        return print(bytes);
    }
    let what = path.display().to_string();
    // Devices and pipes cannot be replaced by a rename.
    let is_special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
    if is_special {
        let opened = File::options().write(true).open(path);
        let mut file = opened.or_exit(ExitStatus::Failed, &what)?;
        let bytes = harmless(bytes, &file);
        return file.write_all(&bytes).or_exit(ExitStatus::Failed, &what);
    }
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    fs::write(&partial, bytes).or_exit(ExitStatus::Failed, &what)?;
    fs::rename(&partial, path).or_exit(ExitStatus::Failed, &what)
}
