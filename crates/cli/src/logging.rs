//! Log lines: to standard error, as text or JSON.

use std::io;
use std::io::IsTerminal;
use std::io::Write;
use std::sync::Mutex;
use std::sync::PoisonError;

use tracing_subscriber::EnvFilter;

use crate::args::ColorChoice;
use crate::args::GlobalArgs;
use crate::args::LogFormat;

/// As much as is kept of lines that wait; later ones are lost.
const MOST_HELD_BYTES: usize = 64 << 10;

/// Lines that wait until the terminal is no picture any more.
static HELD: Mutex<Option<Vec<u8>>> = Mutex::new(None);

/// While this lives, lines wait.
#[cfg(feature = "agent")]
pub(crate) struct Held(());

/// Standard error, or the lines that wait.
struct LogWriter;

/// Starts logging. `CANDELA_LOG` takes a filter such as `candela_agent=debug` and wins over flags.
pub(crate) fn start(global: &GlobalArgs) {
    set_color(global.color);
    let level = match (global.quiet, global.verbose) {
        (true, _) => "error",
        (false, 0) => "warn,candela=info",
        (false, 1) => "info",
        (false, 2) => {
            "info,candela=debug,candela_agent=debug,candela_store=debug,candela_server=debug"
        }
        (false, _) => "debug",
    };
    let filter = EnvFilter::try_from_env("CANDELA_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| LogWriter);
    match global.log_format {
        LogFormat::Json => builder.json().init(),
        LogFormat::Text => builder
            .with_ansi(uses_color(global.color))
            .with_target(false)
            .compact()
            .init(),
    }
}

fn set_color(choice: ColorChoice) {
    let choice = match choice {
        ColorChoice::Auto => anstream::ColorChoice::Auto,
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
}

fn uses_color(choice: ColorChoice) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    }
}

/// Keeps lines back from a terminal that shows a picture.
#[cfg(feature = "agent")]
pub(crate) fn hold() -> Held {
    if io::stderr().is_terminal() {
        *HELD.lock().unwrap_or_else(PoisonError::into_inner) = Some(Vec::new());
    }
    Held(())
}

#[cfg(feature = "agent")]
impl Drop for Held {
    fn drop(&mut self) {
        let held = HELD.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Nobody is left to tell when standard error is closed.
        let _ = io::stderr().write_all(&held.unwrap_or_default());
    }
}

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match HELD.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(held) if held.len() + bytes.len() > MOST_HELD_BYTES => {}
            Some(held) => held.extend_from_slice(bytes),
            None => return io::stderr().write(bytes),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
