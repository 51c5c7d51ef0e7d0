//! Showing an address to the person at the machine.

use std::process::Command;
use std::process::Stdio;

use crate::output;

/// Opens an address in the browser of `$BROWSER`, else in that of the desktop.
pub(crate) fn open_browser(url: &str) {
    let browser = std::env::var("BROWSER").unwrap_or_else(|_| "xdg-open".to_owned());
    // What a browser prints is not for who reads our lines.
    let started = Command::new(&browser)
        .arg(url)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = started {
        output::note(&format!(
            "cannot start {browser}: {error}; open {url} yourself"
        ));
    }
}
