//! `candela open`: the window over local files.

use std::fmt::Write;
use std::process::ExitCode;

use candela_formats::most_telling_type;
use candela_model::Profile;

use super::serving;
use crate::args::GlobalArgs;
use crate::args::files::OpenArgs;
use crate::commands::browser::open_browser;
use crate::errors::CliError;
use crate::output;
use crate::percent::percent_encoded;

pub(crate) fn run(global: &GlobalArgs, arguments: &OpenArgs) -> Result<ExitCode, CliError> {
    let profiles = serving::read(global, &arguments.reading, &arguments.files)?;
    let link = link_to(&profiles);
    let listen = arguments.listen.as_deref();
    serving::serve(profiles, listen, std::future::pending(), |address| {
        let url = format!("{address}/{link}");
        output::note(&format!("candela is at {url}"));
        output::note("the files are shown until Ctrl-C");
        if !arguments.no_browser {
            open_browser(&url);
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The address of the window that shows all of it: the time of the profiles and their most telling type.
fn link_to(profiles: &[Profile]) -> String {
    let series = || profiles.iter().flat_map(|profile| &profile.series);
    let starts = series().map(|series| series.start_ns);
    let ends = series().map(|series| series.start_ns.saturating_add(series.duration_ns));
    let from = starts.min().unwrap_or_default() / NANOSECONDS_PER_MILLISECOND;
    // A profile of a moment lies within the next second.
    let to = ends.max().unwrap_or_default() / NANOSECONDS_PER_MILLISECOND + 1_000;
    let mut link = format!("?v=1&live=0&from={from}&to={to}");
    let types = series().map(|series| &series.profile_type);
    if let Some(shown) = most_telling_type(types) {
        // Colons may stand in a query, and are what people know types by.
        let shown = shown.to_string();
        let shown: Vec<String> = shown.split(':').map(percent_encoded).collect();
        write!(link, "&type={}", shown.join(":")).expect("a string takes all");
    }
    link
}

const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;
