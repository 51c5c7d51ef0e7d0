//! `--focus`, `--ignore`, `--hide`, `--show`, `--show-from`, `--collapse`, `--tagfocus`, `--tagignore`,
//! `--path`, and `--preset` for lists of them: filters, whose order among each other counts. Derived arguments would lose it.

use candela_model::FilterKind;
use candela_model::FilterPreset;
use candela_model::Filters;
use clap::Arg;
use clap::ArgAction;
use clap::ArgMatches;
use clap::Args;
use clap::Command;
use clap::FromArgMatches;
use clap::builder::PossibleValue;
use clap::builder::PossibleValuesParser;

use crate::errors::CliError;

const PRESET: &str = "preset";

const HEADING: &str = "Filters, applied in the order given";

/// The filters in the order of the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilterArgs {
    given: Vec<(FilterKind, String)>,
}

impl FilterArgs {
    /// As parameters of a request.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.given
            .iter()
            .map(|(kind, pattern)| (kind.name(), pattern.as_str()))
    }

    /// To be applied here. A wrong pattern is a usage error.
    pub(crate) fn filters(&self) -> Result<Filters, CliError> {
        let given = self.given.iter();
        let given: Vec<(FilterKind, &str)> = given
            .map(|(kind, pattern)| (*kind, pattern.as_str()))
            .collect();
        Filters::parse(&given).map_err(|error| CliError::usage(error.to_string()))
    }
}

impl FromArgMatches for FilterArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut arguments = Self::default();
        arguments.update_from_arg_matches(matches)?;
        Ok(arguments)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let mut placed: Vec<(usize, FilterKind, String)> = Vec::new();
        for kind in FilterKind::ALL {
            let places = matches.indices_of(kind.name()).into_iter().flatten();
            let patterns = matches
                .get_many::<String>(kind.name())
                .into_iter()
                .flatten();
            placed.extend(
                places
                    .zip(patterns)
                    .map(|(place, pattern)| (place, kind, pattern.clone())),
            );
        }
        let presets = FilterPreset::all();
        let places = matches.indices_of(PRESET).into_iter().flatten();
        let ids = matches.get_many::<String>(PRESET).into_iter().flatten();
        for (place, id) in places.zip(ids) {
            let preset = presets
                .iter()
                .find(|preset| preset.id == id.as_str())
                .cloned();
            let filters = preset.into_iter().flat_map(FilterPreset::into_filters);
            placed.extend(filters.map(|(kind, pattern)| (place, kind, pattern)));
        }
        // Stable: those of one preset keep their order.
        placed.sort_by_key(|(place, ..)| *place);
        self.given = placed
            .into_iter()
            .map(|(_, kind, pattern)| (kind, pattern))
            .collect();
        Ok(())
    }
}

impl Args for FilterArgs {
    fn augment_args(command: Command) -> Command {
        let command = FilterKind::ALL.into_iter().fold(command, |command, kind| {
            let argument = Arg::new(kind.name())
                .long(flag_of(kind))
                .value_name(value_name_of(kind))
                .help(help_of(kind))
                .help_heading(HEADING)
                .action(ArgAction::Append);
            command.arg(argument)
        });
        let presets = FilterPreset::all().into_iter();
        let presets = presets.map(|preset| PossibleValue::new(preset.id).help(preset.about));
        let argument = Arg::new(PRESET)
            .long(PRESET)
            .value_name("NAME")
            .value_parser(PossibleValuesParser::new(presets))
            .help("The filters of a preset of the window, at this place of the order")
            .help_heading(HEADING)
            .action(ArgAction::Append);
        command.arg(argument)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn flag_of(kind: FilterKind) -> &'static str {
    match kind {
        FilterKind::ShowFrom => "show-from",
        other => other.name(),
    }
}

fn value_name_of(kind: FilterKind) -> &'static str {
    match kind {
        FilterKind::TagFocus | FilterKind::TagIgnore => "[KEY=]REGEX",
        FilterKind::Path => "FUNCTION",
        FilterKind::Collapse => "recursion|REGEX",
        _ => "REGEX",
    }
}

fn help_of(kind: FilterKind) -> &'static str {
    match kind {
        FilterKind::Focus => {
            "Only stacks with a frame that matches; fn: file: line: pkg: bin: kind: choose what of it"
        }
        FilterKind::Ignore => "Only stacks without a frame that matches",
        FilterKind::Hide => "Take frames that match out of the stacks",
        FilterKind::Show => "Take all other frames out of the stacks",
        FilterKind::ShowFrom => "Begin stacks at their first frame that matches",
        FilterKind::Collapse => {
            "Fold recursion (recursion:REGEX of what matches) into its first frame, or neighbours of one pkg:REGEX bin:REGEX file:REGEX kind:REGEX into one named after it"
        }
        FilterKind::TagFocus => {
            "Only samples with a label, their own or their series', that matches: also KEY=1kb:1mb"
        }
        FilterKind::TagIgnore => "Only samples without a label that matches",
        FilterKind::Path => "Only stacks that begin with this frame; repeated, the next one",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> FilterArgs {
        let command = FilterArgs::augment_args(Command::new("query"));
        let arguments = std::iter::once(&"query").chain(arguments);
        let matches = command.try_get_matches_from(arguments).expect("valid");
        FilterArgs::from_arg_matches(&matches).expect("no failures")
    }

    #[test]
    fn the_order_of_the_command_line_is_kept() {
        let arguments = parsed(&[
            "--hide",
            "a",
            "--focus",
            "b",
            "--hide=c",
            "--show-from",
            "d",
            "--collapse=recursion",
            "--hide=e",
        ]);
        let given: Vec<(&str, &str)> = arguments.parameters().collect();
        assert_eq!(
            given,
            [
                ("hide", "a"),
                ("focus", "b"),
                ("hide", "c"),
                ("show_from", "d"),
                ("collapse", "recursion"),
                ("hide", "e")
            ]
        );
    }

    #[test]
    fn a_preset_stands_where_it_is_given() {
        let arguments = parsed(&["--hide", "a", "--preset", "kernel", "--focus", "b"]);
        let given: Vec<(&str, &str)> = arguments.parameters().collect();
        assert_eq!(
            given,
            [("hide", "a"), ("focus", "kind:kernel"), ("focus", "b")]
        );
        let command = FilterArgs::augment_args(Command::new("query"));
        let unknown = command.try_get_matches_from(["query", "--preset", "kernle"]);
        let message = unknown.expect_err("no preset").to_string();
        assert!(message.contains("my-code"), "{message}");
    }

    #[test]
    fn a_wrong_pattern_is_named() {
        let error = parsed(&["--focus", "fn:("])
            .filters()
            .expect_err("no regex");
        assert!(error.to_string().contains("focus=fn:("), "{error}");
    }
}
