//! The terminal as a screen, and as it was before.

use std::io;
use std::io::Stdout;
use std::panic;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::thread;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Hide;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::EnterAlternateScreen;
use ratatui::crossterm::terminal::LeaveAlternateScreen;
use ratatui::crossterm::terminal::disable_raw_mode;
use ratatui::crossterm::terminal::enable_raw_mode;

use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::logging;

/// Whether the terminal is a screen now.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// The screen, until it is dropped, whatever becomes of the view.
pub(super) struct Screen {
    pub(super) terminal: Terminal<CrosstermBackend<Stdout>>,
    _held: logging::Held,
}

// === impl Screen ===

impl Screen {
    pub(super) fn open() -> Result<Self, CliError> {
        let what = "cannot use the terminal";
        restore_at_panic();
        let held = logging::hold();
        IS_OPEN.store(true, Ordering::SeqCst);
        let opened = enable_raw_mode()
            .and_then(|()| execute!(io::stdout(), EnterAlternateScreen, Hide))
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match opened {
            Ok(terminal) => Ok(Self {
                terminal,
                _held: held,
            }),
            Err(error) => {
                restore();
                Err(error).or_exit(ExitStatus::Failed, what)
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back; once.
fn restore() {
    if !IS_OPEN.swap(false, Ordering::SeqCst) {
        return;
    }
    // Nobody could be told when the terminal itself is gone.
    let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

/// The message of a panic of this thread is to be read on the terminal as it was before. That of another
/// thread, which the agent survives, must not be written over the picture.
fn restore_at_panic() {
    let drawing = thread::current().id();
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if IS_OPEN.load(Ordering::SeqCst) && thread::current().id() != drawing {
            tracing::error!("{panic}");
            return;
        }
        restore();
        before(panic);
    }));
}
