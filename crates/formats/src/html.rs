//! The window's flame graph as a page of one file: nothing else is needed, no server is asked.
//!
//! The page, with the window's own script and style in it, is built with the window
//! (`ui/offline.html`) and given by the caller; this puts the profiles where it has a place for
//! them, each profile type with its tree and its table of functions.

use std::io;
use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use candela_model::FlameTree;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use serde_json::json;

use crate::columns::write_columns;
use crate::error::WriteError;
use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
use crate::format::Writer;
use crate::report::Report;
use crate::selection::Selection;
use crate::selection::tree_of;
use crate::top::TableFormat;
use crate::top::write_top;
use crate::type_json::type_json;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::Html,
    name: "html",
    extensions: &["html"],
    description: "the window's flame graph as a page of one file",
    keeps: &[
        Part::AllTypes,
        Part::Window,
        Part::SourceFiles,
        Part::StartLines,
        Part::FrameKinds,
    ],
    detects: None,
    read: None,
    write: Some(Writer::Profile(|profile, output, options| {
        let first = Selection::of(profile, options.sample_type.as_deref())?;
        write_html(profile, first.profile_type, output, &options.html)?;
        Ok(Report::default())
    })),
};

/// How a page is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HtmlOptions {
    /// The page without profiles; `None` where the program has none.
    pub template: Option<&'static str>,
    /// Heading; empty means the service, or the first profile type.
    pub title: String,
    /// Nodes of each tree, the heaviest; what is cut stays in the totals and in the table. 0 keeps all.
    pub max_nodes: usize,
}

/// What the template has once.
const PLACEHOLDER: &str = "<!--candela-profiles-->";

/// As many rows as the window asks a server for.
pub(crate) const TABLE_ROWS: usize = 10_000;

const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;

/// Writes a page with all profile types, `first` being shown first.
///
/// # Errors
/// When the sink fails, or there is no template or it is none.
pub fn write_html(
    profile: &Profile,
    first: &ProfileType,
    output: impl Write,
    options: &HtmlOptions,
) -> Result<(), WriteError> {
    let mut types = vec![first];
    for series in &profile.series {
        if !types.contains(&&series.profile_type) {
            types.push(&series.profile_type);
        }
    }
    let profiles = types.into_iter().map(|profile_type| {
        let tree = tree_of(profile, profile_type);
        let of_type = |series: &&ProfileSeries| series.profile_type == *profile_type;
        let series = profile.series.iter().filter(of_type);
        embedded(&tree, profile_type, window(series), options.max_nodes)
    });
    let profiles: Vec<Value> = profiles.collect::<Result<_, _>>()?;
    let document = json!({
        "schema": "candela/offline/v1",
        "title": title(profile, first, options),
        "profiles": profiles,
    });
    write_page(&document, output, options.template)
}

/// Writes the template with a document in its place.
///
/// # Errors
/// When the sink fails, or there is no template or it is none.
pub(crate) fn write_page(
    document: &Value,
    mut output: impl Write,
    template: Option<&str>,
) -> Result<(), WriteError> {
    let template = template.ok_or(WriteError::NoTemplate)?;
    let found = template.matches(PLACEHOLDER).count();
    let Some((head, foot)) = template.split_once(PLACEHOLDER).filter(|_| found == 1) else {
        return Err(WriteError::Template {
            placeholder: PLACEHOLDER,
            found,
        });
    };
    // Nothing in a name ends the element.
    let document = document.to_string().replace('<', "\\u003c");
    output.write_all(head.as_bytes())?;
    write!(
        output,
        "<script type=\"application/json\" id=\"candela-profiles\">{document}</script>"
    )?;
    output.write_all(foot.as_bytes())?;
    output.flush()?;
    Ok(())
}

fn title(profile: &Profile, first: &ProfileType, options: &HtmlOptions) -> String {
    if !options.title.is_empty() {
        return options.title.clone();
    }
    let mut services: Vec<&str> = profile
        .series
        .iter()
        .filter_map(|series| series.labels.get(candela_model::SERVICE_NAME_LABEL))
        .collect();
    services.dedup();
    match services[..] {
        [service] => service.to_owned(),
        _ => first.to_string(),
    }
}

/// Start and end of some series, nanoseconds; zeros without a time.
fn window<'a>(series: impl Iterator<Item = &'a ProfileSeries> + Clone) -> (i64, i64) {
    let with_time = series.filter(|series| series.start_ns != 0);
    let starts = with_time.clone().map(|series| series.start_ns);
    let ends = with_time.map(|series| series.start_ns.saturating_add(series.duration_ns));
    (starts.min().unwrap_or(0), ends.max().unwrap_or(0))
}

/// One profile type: what a server would answer to `flamegraph` and `top`, gzipped, as text.
fn embedded(
    tree: &FlameTree,
    profile_type: &ProfileType,
    (from, to): (i64, i64),
    max_nodes: usize,
) -> Result<Value, WriteError> {
    let header = json!({
        "schema": "candela/flamegraph/v1",
        "type": profile_type.to_string(),
        "unit": profile_type.sample_unit,
        "from": from / NANOSECONDS_PER_MILLISECOND,
        "to": to / NANOSECONDS_PER_MILLISECOND,
        "total": tree.root_total(),
        "samples": null,
    });
    let mut top = Vec::new();
    write_top(tree, profile_type, TableFormat::Json, TABLE_ROWS, &mut top)?;
    Ok(json!({
        "type": type_json(profile_type),
        "columns": packed(|output| write_columns(&tree.pruned(max_nodes), header, [], output))?,
        "top": packed(|output| output.write_all(&top))?,
    }))
}

/// What is written, in gzip as text.
pub(crate) fn packed(
    write: impl FnOnce(&mut GzEncoder<Vec<u8>>) -> io::Result<()>,
) -> Result<String, WriteError> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    write(&mut encoder)?;
    Ok(STANDARD.encode(encoder.finish()?))
}
