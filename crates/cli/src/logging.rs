//! Log lines: to standard error, as text or JSON.

use std::fmt;
use std::io;
use std::io::IsTerminal;
use std::io::Write;
use std::sync::Mutex;
use std::sync::PoisonError;

use candela_formats::printable;
use candela_formats::printable_lines;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::SubscriberBuilder;
use tracing_subscriber::fmt::format::Compact;
use tracing_subscriber::fmt::format::DefaultFields;
use tracing_subscriber::fmt::format::Format;
use tracing_subscriber::fmt::format::Writer;

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
struct LogWriter {
    is_json: bool,
}

/// Fields without control characters: paths and names come from programs that we do not control, and the subscriber itself
/// escapes only the message.
struct PrintableFields;

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
    let builder = tracing_subscriber::fmt().with_env_filter(filter);
    match global.log_format {
        LogFormat::Json => builder
            .json()
            .with_writer(|| LogWriter { is_json: true })
            .init(),
        LogFormat::Text => as_text(builder, uses_color(global.color))
            .with_writer(|| LogWriter { is_json: false })
            .init(),
    }
}

fn as_text<Filter, Writer>(
    builder: SubscriberBuilder<DefaultFields, Format, Filter, Writer>,
    has_color: bool,
) -> SubscriberBuilder<PrintableFields, Format<Compact>, Filter, Writer> {
    builder
        .fmt_fields(PrintableFields)
        .with_ansi(has_color)
        .with_target(false)
        .compact()
}

impl<'writer> FormatFields<'writer> for PrintableFields {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> fmt::Result {
        let mut text = String::new();
        DefaultFields::new().format_fields(Writer::new(&mut text), fields)?;
        writer.write_str(&printable(&text))
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
            None if self.is_json && io::stderr().is_terminal() => {
                let text = String::from_utf8_lossy(bytes);
                io::stderr().write_all(printable_lines(&text).as_bytes())?;
            }
            None => return io::stderr().write(bytes),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Keeps what is logged.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The line that a path with control characters gives, in its message and two fields.
    fn line(has_color: bool) -> String {
        let kept = Kept::default();
        let writer = kept.clone();
        let subscriber = as_text(tracing_subscriber::fmt(), has_color)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            let path = "/tmp/\u{1b}[2J\u{9b}2J\u{7}\u{202e}\n";
            tracing::warn!(path, shown = %path, "odd {path}");
        });
        let bytes = kept.0.lock().expect("no panic").clone();
        String::from_utf8(bytes).expect("UTF-8")
    }

    #[test]
    fn names_in_log_lines_do_not_drive_a_terminal() {
        for has_color in [false, true] {
            let line = line(has_color);
            let controls = line
                .chars()
                .filter(|it| it.is_control() || *it == '\u{202e}');
            let controls: String = controls.filter(|it| *it != '\u{1b}').collect();
            assert_eq!(controls, "\n", "{line:?}");
            assert!(!line.contains("\u{1b}[2J"), "{line:?}");
            assert_eq!(line.contains('\u{1b}'), has_color, "{line:?}");
            assert_eq!(line.matches("/tmp/").count(), 3, "{line:?}");
        }
    }
}
