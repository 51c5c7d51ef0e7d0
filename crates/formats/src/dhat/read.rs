//! DHAT JSON to a profile.

use std::io::BufRead;

use candela_model::FrameKind;
use candela_model::LabelSetId;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::ProfileType;
use serde::Deserialize;

use crate::count::Count;
use crate::dhat::NAME;
use crate::dhat::frame::FrameText;
use crate::error::ReadError;
use crate::json_input::parse_json;
use crate::named_stacks::NamedStacks;
use crate::naming;
use crate::options::ReadOptions;
use crate::report::Report;

#[derive(Deserialize)]
struct File {
    #[serde(rename = "dhatFileVersion")]
    version: u64,
    #[serde(default)]
    mode: String,
    /// The unit of time and how much of it there was.
    #[serde(default)]
    tu: String,
    #[serde(default)]
    te: i64,
    pps: Vec<ProgramPoint>,
    ftbl: Vec<String>,
}

/// A place that allocates. What was when it ended and at the peak is told only where lifetimes are.
#[derive(Deserialize)]
struct ProgramPoint {
    /// In all: bytes and blocks.
    #[serde(default)]
    tb: i64,
    #[serde(default)]
    tbk: i64,
    /// When all together were at their most.
    gb: Option<i64>,
    gbk: Option<i64>,
    /// At the end.
    eb: Option<i64>,
    ebk: Option<i64>,
    /// Frames, innermost first.
    fs: Vec<usize>,
}

const FILE_VERSION: u64 = 2;

/// Reads a file of DHAT: what was allocated in all, what was left at the end (`inuse`), and what there
/// was when the heap was at its largest (`peak`), as objects and bytes. Files of its modes `copy` and
/// `ad-hoc` have the first only.
///
/// # Errors
/// When the input cannot be read, is no such JSON of version 2, exceeds a limit, or names a frame that
/// is not there.
pub fn read_dhat(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut stacks = NamedStacks::new(&options.limits);
    let file: File = parse_json(NAME, input, &options.limits, &mut stacks.report)?;
    if file.version != FILE_VERSION {
        return Err(invalid(format!(
            "the file is of version {}; known is version {FILE_VERSION}",
            file.version
        )));
    }
    let locations: Vec<LocationId> = file
        .ftbl
        .iter()
        .map(|text| location(text, &mut stacks))
        .collect();
    let types = types(&file);
    let mut root_first: Vec<LocationId> = Vec::new();
    for point in &file.pps {
        root_first.clear();
        for &frame in point.fs.iter().rev() {
            let location = locations.get(frame).copied().ok_or_else(|| {
                let count = locations.len();
                invalid(format!(
                    "frame {frame} does not exist, the file has {count}"
                ))
            })?;
            // The root above all is no function.
            if file.ftbl[frame] != "[root]" {
                root_first.push(location);
            }
        }
        let stack = stacks.stack(&root_first)?;
        let values = [
            Some(point.tbk),
            Some(point.tb),
            point.ebk,
            point.eb,
            point.gbk,
            point.gb,
        ];
        for (series, value) in values.into_iter().take(types.len()).enumerate() {
            let value = Count::whole(value.unwrap_or(0));
            stacks.add_at(series, stack, LabelSetId(0), 0, value)?;
        }
    }
    let duration = duration_ns(&file);
    let (mut profile, report) = stacks.finish(types, options);
    for series in &mut profile.series {
        series.duration_ns = duration.clamp(0, i64::MAX - series.start_ns);
    }
    Ok((profile, report))
}

/// Those in all, at the end, and at the peak, as far as there are any.
fn types(file: &File) -> Vec<ProfileType> {
    let has_lifetimes = file
        .pps
        .iter()
        .any(|point| point.gb.is_some() || point.eb.is_some());
    let names: &[(&str, &str)] = match file.mode.as_str() {
        "copy" => &[("copied_objects", "count"), ("copied_space", "bytes")],
        "ad-hoc" | "rust-ad-hoc" => &[("events", "count"), ("units", "count")],
        _ if has_lifetimes => &[
            ("alloc_objects", "count"),
            ("alloc_space", "bytes"),
            ("inuse_objects", "count"),
            ("inuse_space", "bytes"),
            ("peak_objects", "count"),
            ("peak_space", "bytes"),
        ],
        _ => &[("alloc_objects", "count"), ("alloc_space", "bytes")],
    };
    let types = names.iter().map(|&name| match name {
        ("events" | "units", _) => naming::typed("ad_hoc", name, name),
        _ => naming::typed("memory", name, ("space", "bytes")),
    });
    types.collect()
}

/// Time may be in instructions, which are no time.
fn duration_ns(file: &File) -> i64 {
    let factor = match file.tu.as_str() {
        "ns" => 1,
        "µs" | "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => 0,
    };
    file.te.saturating_mul(factor)
}

fn location(text: &str, stacks: &mut NamedStacks<'_>) -> LocationId {
    let frame = FrameText::parse(stacks.cut(text));
    let symbols = &mut stacks.profile.symbols;
    let object = Mapping {
        file: symbols.strings.intern(frame.object),
        ..Mapping::default()
    };
    let mapping = symbols.intern_mapping(object);
    let place = Location::new(FrameKind::Native, frame.address).in_mapping(mapping);
    if !frame.is_named() && frame.address != 0 {
        return symbols.intern_location(&place, &[]);
    }
    let function = symbols.intern_function(frame.name, "", frame.file, 0);
    symbols.intern_location(&place, &[(function, frame.line, frame.column)])
}

fn invalid(problem: String) -> ReadError {
    ReadError::Invalid {
        format: NAME,
        problem,
    }
}
