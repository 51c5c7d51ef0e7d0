//! One side of a comparison: a file, an address or a selection of a server.

use candela_formats::ReadOptions;
use candela_model::Profile;
use candela_model::Selector;

use super::input::FileProfile;
use super::input::Input;
use super::input::shown_source;
use crate::args::GlobalArgs;
use crate::args::files::DiffArgs;
use crate::commands::client::Client;
use crate::commands::profiles::DEFAULT_TYPE;
use crate::commands::profiles::add_wall_if_asked;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;

/// What a server is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Selection<'a> {
    pub(super) selector: &'a str,
    pub(super) from: &'a str,
    pub(super) to: &'a str,
}

/// The profile of a side, filtered.
pub(super) fn load(
    global: &GlobalArgs,
    arguments: &DiffArgs,
    source: &str,
) -> Result<FileProfile, CliError> {
    let filters = arguments.filters.filters()?;
    if let Some(selection) = Selection::parse(source)? {
        return Ok(FileProfile {
            profile: ask(global, arguments, source, &selection)?,
            ..FileProfile::default()
        });
    }
    let input = Input::new(global, &arguments.reading);
    let mut side = input.read_all(&[source])?;
    add_wall_if_asked(&mut side.profile, arguments.profile_type.as_deref());
    filters.apply_to_profile(&mut side.profile);
    if side.profile.sample_count() == 0 {
        return Err(CliError::no_data(format!(
            "no data: nothing of {} passes the filters",
            shown_source(source)
        )));
    }
    Ok(side)
}

fn ask(
    global: &GlobalArgs,
    arguments: &DiffArgs,
    source: &str,
    selection: &Selection<'_>,
) -> Result<Profile, CliError> {
    let mut parameters = vec![
        ("query", selection.selector),
        ("from", selection.from),
        ("to", selection.to),
        (
            "type",
            arguments.profile_type.as_deref().unwrap_or(DEFAULT_TYPE),
        ),
        ("format", "pprof"),
    ];
    parameters.extend(arguments.filters.parameters());
    let bytes = Client::new(global)?.get("/api/v1/flamegraph", &parameters)?;
    let (profile, report) = candela_formats::read_pprof(bytes.as_slice(), &ReadOptions::default())
        .or_exit(ExitStatus::Failed, "answer of the server")?;
    // Said even with -q: the figures are not those that were asked for.
    for comment in &report.comments {
        output::note(&format!("note: {source}: {comment}"));
    }
    if profile.sample_count() == 0 {
        return Err(CliError::no_data(format!(
            "no data: the server has nothing of {source}"
        )));
    }
    Ok(profile)
}

impl<'a> Selection<'a> {
    /// `{label="value"}@FROM..TO`; the last hour where no time is given. `None` for what does not begin
    /// like a selector.
    pub(super) fn parse(source: &'a str) -> Result<Option<Self>, CliError> {
        if !source.starts_with('{') {
            return Ok(None);
        }
        let (selector, range) = split_range(source).unwrap_or((source, "now-1h..now"));
        let Some((from, to)) = range.split_once("..") else {
            return Err(CliError::usage(format!(
                "{source}: the time behind @ is FROM..TO, such as now-2h..now-1h"
            )));
        };
        Ok(Some(Self { selector, from, to }))
    }
}

/// The selector and the range behind it. Values may have anything inside, so that what stands before
/// the `@` has to be a selector.
fn split_range(source: &str) -> Option<(&str, &str)> {
    source.rmatch_indices("}@").find_map(|(brace, _)| {
        let (selector, range) = (&source[..=brace], &source[brace + 2..]);
        selector.parse::<Selector>().ok().map(|_| (selector, range))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_have_a_time() {
        let parsed = |source| Selection::parse(source).expect("a selection");
        assert_eq!(parsed("cpu.pb.gz"), None);
        let whole = parsed("{a=\"b@c..d\"}@now-2h..now-1h").expect("a selection");
        assert_eq!(whole.selector, "{a=\"b@c..d\"}");
        assert_eq!((whole.from, whole.to), ("now-2h", "now-1h"));
        for selector in ["{a=\"}@x\"}", "{a='it\"s'}", "{a=`}@b..c`}"] {
            let source = format!("{selector}@now-2h..now");
            let found = Selection::parse(&source).expect("a selection");
            let found = found.map(|found| (found.selector, found.from));
            assert_eq!(found, Some((selector, "now-2h")));
            let last_hour = parsed(selector).map(|found| (found.selector, found.from));
            assert_eq!(last_hour, Some((selector, "now-1h")));
        }
        let last_hour = parsed("{}").expect("a selection");
        assert_eq!((last_hour.selector, last_hour.from), ("{}", "now-1h"));
        let error = Selection::parse("{}@now").expect_err("no range");
        assert!(error.to_string().contains("FROM..TO"), "{error}");
    }
}
