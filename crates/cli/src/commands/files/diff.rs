//! `candela diff`: what changed between two profiles.

use std::path::Path;
use std::process::ExitCode;

use candela_formats::BeforeScale;
use candela_formats::DiffOptions;
use candela_formats::DiffSides;
use candela_formats::DiffTable;
use candela_formats::FoldedDiffOptions;
use candela_formats::HtmlDiffOptions;
use candela_formats::HtmlOptions;
use candela_formats::SvgDiffOptions;
use candela_formats::WriteError;
use candela_formats::write_diff_csv;
use candela_formats::write_diff_json;
use candela_formats::write_diff_markdown;
use candela_formats::write_diff_text;
use candela_formats::write_folded_diff;
use candela_formats::write_html_diff;
use candela_formats::write_svg_diff;
use candela_insight::Normalization;
use candela_model::FlameDiff;
use candela_model::FlameTree;
use candela_model::NodePlaces;
use candela_model::ProfileType;
use serde_json::Value;
use serde_json::json;

use super::convert::svg_options;
use super::input::FileProfile;
use super::input::shown_source;
use super::samples::samples_of;
use super::served::Served;
use super::side;
use super::side::Selection;
use crate::args::GlobalArgs;
use crate::args::files::DiffArgs;
use crate::args::files::DiffFormat;
use crate::args::files::NormalizationArg;
use crate::commands::profiles::html_options;
use crate::commands::profiles::tell_choice;
use crate::commands::profiles::tree_of;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;

/// Only so many nodes are tested, the heaviest, as on a server.
const MOST_NODES: usize = 20_000;

pub(crate) fn run(global: &GlobalArgs, arguments: &DiffArgs) -> Result<ExitCode, CliError> {
    let format = format_of(arguments)?;
    let base = side::load(global, arguments, &arguments.base)?;
    let new = side::load(global, arguments, &arguments.new)?;
    let asked = arguments.profile_type.as_deref();
    let (profile_type, after) = tree_of(&new.profile, new.choice(asked))?;
    let (type_before, before) = comparable(&profile_type, &base, asked)?;
    if !global.quiet {
        tell_choice(&new.profile, new.choice(asked));
    }
    let sides = DiffSides {
        before: &before,
        after: &after,
        profile_type: &profile_type,
    };
    let options = DiffOptions {
        normalization: arguments.normalization.into(),
        fdr: arguments.fdr,
        ..DiffOptions::default()
    };
    let selections = (
        Selection::parse(&arguments.base)?,
        Selection::parse(&arguments.new)?,
    );
    // The tree is written as JSON only.
    let union = match format {
        DiffFormat::Json => FlameDiff::new(&before, &after, 0),
        _ => FlameDiff::default(),
    };
    let table = match selections {
        _ if !format.has_table() => DiffTable::default(),
        (Some(base), Some(new)) => {
            let selections = [&base, &new];
            let asked = (&profile_type, &options, &union);
            let served = Served::ask(global, arguments, selections, asked)?;
            let statistics = served.statistics.clone();
            let judged = |frames: &_, frame| served.change(frames, frame);
            let mut table = DiffTable::of_judged(&before, &after, statistics, judged);
            table.nodes = served.nodes;
            table
        }
        _ => {
            let sides = (&base.profile, &type_before);
            let places = NodePlaces::of(&union, MOST_NODES);
            let samples = samples_of(sides, (&new.profile, &profile_type), &places);
            DiffTable::new(&before, &after, &samples, &options)
        }
    };
    let mut bytes = Vec::new();
    write(
        format,
        global,
        arguments,
        sides,
        (&table, &union),
        &mut bytes,
    )
    .or_exit(ExitStatus::Failed, "comparison")?;
    match &arguments.output {
        Some(path) => output::write_file(path, &bytes)?,
        None => output::print(&bytes)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn write(
    format: DiffFormat,
    global: &GlobalArgs,
    arguments: &DiffArgs,
    sides: DiffSides<'_>,
    (table, union): (&DiffTable, &FlameDiff),
    bytes: &mut Vec<u8>,
) -> Result<(), WriteError> {
    match format {
        DiffFormat::Text => write_diff_text(sides, table, global.limit, bytes),
        DiffFormat::Markdown => write_diff_markdown(sides, table, global.limit, bytes),
        DiffFormat::Csv => {
            let found = write_diff_csv(table, sides.profile_type, global.limit, bytes)?;
            if global.limit > 0 && found > global.limit {
                let shown = global.limit;
                output::note(&format!("{shown} of {found} rows; --limit 0 prints all"));
            }
            Ok(())
        }
        DiffFormat::Svg => {
            let options = SvgDiffOptions {
                svg: svg_options(&arguments.drawing),
                negate: arguments.negate,
                scale: scale_of(arguments),
            };
            write_svg_diff(
                sides.before,
                sides.after,
                sides.profile_type,
                bytes,
                &options,
            )
        }
        DiffFormat::Html => {
            let options = HtmlDiffOptions {
                html: HtmlOptions {
                    title: heading(arguments),
                    ..html_options()
                },
                negate: arguments.negate,
                scale: scale_of(arguments),
            };
            write_html_diff(sides, bytes, &options)
        }
        DiffFormat::Folded => write_folded_diff(
            sides.before,
            sides.after,
            bytes,
            &FoldedDiffOptions::default(),
        ),
        DiffFormat::Json => {
            let head = json_head(arguments, sides);
            write_diff_json(&head, table, union, global.limit, &mut *bytes)?;
            bytes.push(b'\n');
            Ok(())
        }
    }
}

fn scale_of(arguments: &DiffArgs) -> BeforeScale {
    if arguments.normalize {
        BeforeScale::SameTotal
    } else {
        BeforeScale::AsMeasured
    }
}

/// A page goes from hand to hand without its command: it says what it compares.
fn heading(arguments: &DiffArgs) -> String {
    match &arguments.drawing.title {
        Some(title) => title.clone(),
        None => format!(
            "{} → {}",
            shown_source(&arguments.base),
            shown_source(&arguments.new)
        ),
    }
}

/// As the server writes it, but for what only a selection has.
fn json_head(arguments: &DiffArgs, sides: DiffSides<'_>) -> Value {
    json!({
        "schema": "candela/diff/v1",
        "type": sides.profile_type.to_string(),
        "unit": sides.profile_type.sample_unit,
        "before": {"source": shown_source(&arguments.base), "total": sides.before.root_total()},
        "after": {"source": shown_source(&arguments.new), "total": sides.after.root_total()},
    })
}

/// The stacks to compare with. A short name may stand for another type there, and bytes compare with
/// nothing but bytes.
fn comparable(
    wanted: &ProfileType,
    base: &FileProfile,
    asked: Option<&str>,
) -> Result<(ProfileType, FlameTree), CliError> {
    let same = base
        .profile
        .series
        .iter()
        .any(|series| series.profile_type == *wanted);
    if same {
        return tree_of(&base.profile, base.choice(Some(&wanted.to_string())));
    }
    let (other, tree) = tree_of(&base.profile, base.choice(asked))?;
    let is_comparable =
        other.sample_unit == wanted.sample_unit && other.sample_type == wanted.sample_type;
    if is_comparable {
        return Ok((other, tree));
    }
    Err(CliError::usage(format!(
        "NEW has {wanted} and BASE has {other}, which do not compare; give --type the identifier of a \
         type that both have"
    )))
}

fn format_of(arguments: &DiffArgs) -> Result<DiffFormat, CliError> {
    if let Some(format) = arguments.format {
        return Ok(format);
    }
    let Some(path) = &arguments.output else {
        return Ok(DiffFormat::Text);
    };
    let extension = Path::new(path).extension().unwrap_or_default();
    match extension.to_str() {
        Some("txt") => Ok(DiffFormat::Text),
        Some("json") => Ok(DiffFormat::Json),
        Some("csv") => Ok(DiffFormat::Csv),
        Some("md") => Ok(DiffFormat::Markdown),
        Some("svg") => Ok(DiffFormat::Svg),
        Some("html") => Ok(DiffFormat::Html),
        Some("folded") => Ok(DiffFormat::Folded),
        _ => Err(CliError::usage(format!(
            "the name {:?} tells no form of a comparison; add --format",
            path.display().to_string()
        ))),
    }
}

impl DiffFormat {
    /// Whether functions are listed with how sure their changes are.
    const fn has_table(self) -> bool {
        matches!(self, Self::Text | Self::Json | Self::Markdown | Self::Csv)
    }
}

impl From<NormalizationArg> for Normalization {
    fn from(argument: NormalizationArg) -> Self {
        match argument {
            NormalizationArg::Share => Self::Share,
            NormalizationArg::Absolute => Self::Absolute,
            NormalizationArg::Robust => Self::Robust,
        }
    }
}
