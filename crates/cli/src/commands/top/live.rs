//! The live view: pictures from a source, keys from a terminal.

use std::io::Read;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use candela_formats::Format;
use candela_formats::WriteOptions;
use candela_symbols::foreign::open_regular;
use ratatui::crossterm::event;
use ratatui::crossterm::event::Event;
use ratatui::crossterm::event::KeyEventKind;

use super::app::App;
use super::app::Effect;
use super::app::Overlay;
use super::draw::draw;
use super::frame_key::FrameKey;
use super::look::Look;
use super::screen::Screen;
use super::source::Question;
use super::source::Source;
use super::source_view::SourceView;
use super::source_view::line_values;
use crate::commands::signals;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;

/// How long a key is waited for before the source is asked.
const TICK: Duration = Duration::from_millis(100);

/// The largest source file that is shown, bytes.
const LARGEST_SOURCE: u64 = 4 << 20;

/// Shows pictures until somebody has seen enough.
pub(super) fn run(
    mut app: App,
    mut source: Box<dyn Source>,
    look: Look,
) -> Result<ExitCode, CliError> {
    let what = "cannot use the terminal";
    let stop = signals::stop_signal()?;
    let mut screen = Screen::open()?;
    let mut is_stale = true;
    while !stop.flag().load(Ordering::SeqCst) {
        if let Some(snapshot) = source.refresh(&Question::of(&app))? {
            app.snapshot = snapshot;
            is_stale = true;
        }
        if std::mem::take(&mut is_stale) {
            let drawn = screen.terminal.draw(|frame| draw(&app, look, frame));
            drawn.or_exit(ExitStatus::Failed, what)?;
        }
        let mut wait = TICK;
        while event::poll(wait).or_exit(ExitStatus::Failed, what)? {
            wait = Duration::ZERO;
            is_stale = true;
            let Event::Key(key) = event::read().or_exit(ExitStatus::Failed, what)? else {
                continue;
            };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            match app.on_key(key) {
                Some(Effect::Quit) => return Ok(ExitCode::SUCCESS),
                Some(effect) => carry_out(&mut app, source.as_ref(), &effect),
                None => {}
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn carry_out(app: &mut App, source: &dyn Source, effect: &Effect) {
    match effect {
        Effect::Quit => {}
        // The next question is another one, and until it is answered nothing is known.
        Effect::Regroup => app.snapshot.forget_trees(),
        Effect::Write => {
            let message = match write(app) {
                Ok(path) => format!("written to {}", path.display()),
                Err(error) => error.to_string(),
            };
            app.message = Some(message);
        }
        Effect::ShowUrl => match source.url(&Question::of(app), app.kind) {
            Some(url) => app.overlay = Some(Overlay::Text(url)),
            None => {
                let hint = "no server, so no window: `candela up`, then top --server URL";
                app.message = Some(hint.to_owned());
            }
        },
        Effect::ShowSource(function) => {
            let values = line_values(&app.snapshot.profile, app.kind, function);
            let text = read_source(function);
            app.show_source(SourceView::new(&function.file, text, &values));
        }
    }
}

/// Both kinds as pprof, in the folder that the command was started in.
fn write(app: &App) -> Result<PathBuf, CliError> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.map_or(0, |since| since.as_secs());
    let path = PathBuf::from(format!("candela-top-{seconds}.pb.gz"));
    if app.snapshot.profile.sample_count() == 0 {
        return Err(CliError::no_data(
            "nothing was sampled, so nothing is written",
        ));
    }
    let mut bytes = Vec::new();
    let options = WriteOptions::default();
    candela_formats::write(Format::Pprof, &app.snapshot.profile, &mut bytes, &options)
        .or_exit(ExitStatus::Failed, "profile")?;
    output::write_file(&path, &bytes)?;
    Ok(path)
}

/// The text of a function's file, or why there is none.
fn read_source(function: &FrameKey) -> Result<String, String> {
    // A program may name anything its source: a pipe would never end.
    let file = open_regular(Path::new(&function.file)).map_err(|it| it.to_string())?;
    let mut bytes = Vec::new();
    file.take(LARGEST_SOURCE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LARGEST_SOURCE {
        return Err("it is too large for a source file".to_owned());
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
