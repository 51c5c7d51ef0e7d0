//! `candela open`: the window over local files.

use std::fmt::Write;
use std::process::ExitCode;

use super::input::FileProfile;
use super::serving;
use crate::args::GlobalArgs;
use crate::args::files::OpenArgs;
use crate::commands::browser::open_browser;
use crate::commands::profiles::unasked_type;
use crate::errors::CliError;
use crate::output;
use crate::percent::percent_encoded;

pub(crate) fn run(global: &GlobalArgs, arguments: &OpenArgs) -> Result<ExitCode, CliError> {
    let files = serving::read(global, &arguments.reading, &arguments.files)?;
    let link = link_to(&files);
    let listen = arguments.listen.as_deref();
    serving::serve(files, listen, std::future::pending(), |address| {
        let url = format!("{address}/{link}");
        output::note(&format!("candela is at {url}"));
        output::note("the files are shown until Ctrl-C");
        if !arguments.no_browser {
            open_browser(&url);
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The address of the window that shows all of it: the time of the profiles, and what the first shows first.
fn link_to(files: &[FileProfile]) -> String {
    let series = || files.iter().flat_map(|file| &file.profile.series);
    let starts = series().map(|series| series.start_ns);
    let ends = series().map(|series| series.start_ns.saturating_add(series.duration_ns));
    let from = starts.min().unwrap_or_default() / NANOSECONDS_PER_MILLISECOND;
    // A profile of a moment lies within the next second.
    let to = ends.max().unwrap_or_default() / NANOSECONDS_PER_MILLISECOND + 1_000;
    let mut link = format!("?v=1&live=0&from={from}&to={to}");
    let mut shown = files.iter().filter_map(|file| {
        let writers = file.default_sample_type.as_deref();
        unasked_type(&file.profile, writers)
    });
    if let Some(shown) = shown.next() {
        // Colons may stand in a query, and are what people know types by.
        let shown = shown.to_string();
        let shown: Vec<String> = shown.split(':').map(percent_encoded).collect();
        write!(link, "&type={}", shown.join(":")).expect("a string takes all");
    }
    link
}

const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;
