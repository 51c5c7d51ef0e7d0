//! `candela convert`: any format to any other.

use std::path::Path;
use std::process::ExitCode;

use candela_formats::Format;
use candela_formats::HtmlOptions;
use candela_formats::Orientation;
use candela_formats::Part;
use candela_formats::PprofOptions;
use candela_formats::SvgOptions;
use candela_formats::TextLayout;
use candela_formats::TextOptions;
use candela_formats::WriteOptions;
use candela_model::Profile;

use super::input::FileProfile;
use super::input::Input;
use crate::args::GlobalArgs;
use crate::args::files::ConvertArgs;
use crate::args::files::DrawingArgs;
use crate::args::files::OrientationArg;
use crate::commands::profiles::add_wall_if_asked;
use crate::commands::profiles::html_options;
use crate::commands::profiles::output_format;
use crate::commands::profiles::resolve_sample_type;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;

pub(crate) fn run(global: &GlobalArgs, arguments: &ConvertArgs) -> Result<ExitCode, CliError> {
    let filters = arguments.filters.filters()?;
    let file = arguments.output.as_deref();
    let file = file.filter(|path| *path != Path::new("-"));
    let format = output_format(arguments.to.as_deref(), file)?.ok_or_else(|| {
        CliError::usage("name the format of the result: -o FILE.EXTENSION or --to FORMAT")
    })?;
    if file.is_none() && is_binary(format) {
        output::refuse_binary_on_terminal(format.name())?;
    }
    let input = Input::new(global, &arguments.reading).of_format(arguments.from.as_deref())?;
    let FileProfile {
        mut profile,
        default_sample_type,
        comments,
    } = input.read_all(&arguments.inputs)?;
    let loses_comments = format != Format::Pprof && !comments.is_empty();
    filters.apply_to_profile(&mut profile);
    if let Some(wanted) = &arguments.sample_type {
        keep_type(&mut profile, wanted)?;
    }
    if profile.sample_count() == 0 {
        return Err(CliError::no_data("no data: nothing passes the filters"));
    }
    let default_sample_type = default_sample_type.filter(|wanted| {
        let mut types = profile.series.iter().map(|series| &series.profile_type);
        types.any(|profile_type| profile_type.sample_type == *wanted)
    });
    let options = WriteOptions {
        sample_type: default_sample_type.clone(),
        // Who converts wants all rows; who looks at a terminal wants a screen of them.
        limit: if file.is_none() && format == Format::Text {
            global.limit
        } else {
            0
        },
        pprof: PprofOptions {
            keep_times: true,
            comments,
            default_sample_type,
            ..PprofOptions::default()
        },
        svg: svg_options(&arguments.drawing),
        html: HtmlOptions {
            title: arguments.drawing.title.clone().unwrap_or_default(),
            ..html_options()
        },
        text: TextOptions {
            layout: text_layout(&arguments.layout)?,
            functions: arguments.functions.clone().unwrap_or_default(),
        },
        ..WriteOptions::default()
    };
    let mut bytes = Vec::new();
    let report = candela_formats::write(format, &profile, &mut bytes, &options)
        .or_exit(ExitStatus::Failed, format.name())?;
    match file {
        Some(path) => output::write_file(path, &bytes)?,
        None => output::print(&bytes)?,
    }
    if !global.quiet {
        for note in &report.notes {
            output::note(&format!("note: {note}"));
        }
        tell_losses(format, &profile, loses_comments);
    }
    Ok(ExitCode::SUCCESS)
}

fn text_layout(name: &str) -> Result<TextLayout, CliError> {
    TextLayout::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = TextLayout::ALL.iter().map(|layout| layout.name()).collect();
        CliError::usage(format!("--layout {name:?} is none of {}", names.join(", ")))
    })
}

/// The options of a flame graph.
pub(super) fn svg_options(drawing: &DrawingArgs) -> SvgOptions {
    SvgOptions {
        title: drawing.title.clone().unwrap_or_default(),
        orientation: match drawing.orientation {
            OrientationArg::Icicle => Orientation::Icicle,
            OrientationArg::Flame => Orientation::Flame,
        },
        ..SvgOptions::default()
    }
}

fn keep_type(profile: &mut Profile, wanted: &str) -> Result<(), CliError> {
    add_wall_if_asked(profile, Some(wanted));
    let profile_type = resolve_sample_type(profile, wanted)?;
    let series = &mut profile.series;
    series.retain(|series| series.profile_type == profile_type);
    Ok(())
}

/// What of this profile the format has no place for. That other types are left out says the writer.
fn tell_losses(format: Format, profile: &Profile, loses_comments: bool) {
    let lost = format.losses(profile);
    let lost = lost.into_iter().filter(|part| *part != Part::AllTypes);
    let comments = loses_comments.then_some("comments");
    let lost: Vec<&str> = lost.map(Part::name).chain(comments).collect();
    if !lost.is_empty() {
        output::note(&format!(
            "note: {format} has no place for: {}",
            lost.join(", ")
        ));
    }
}

fn is_binary(format: Format) -> bool {
    matches!(format, Format::Pprof | Format::Otlp | Format::Perfetto)
}
