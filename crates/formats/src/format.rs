//! The formats there are, and reading and writing any of them.

use std::fmt;
use std::io::BufRead;
use std::io::Write;

use candela_model::Profile;

use crate::dot::DotOptions;
use crate::dot::write_dot;
use crate::error::ReadError;
use crate::error::WriteError;
use crate::folded_read::looks_folded;
use crate::folded_read::read_folded;
use crate::folded_write::FoldedOptions;
use crate::folded_write::write_folded;
use crate::inflate::inflate_prefix;
use crate::inflate::read_inflated;
use crate::jfr;
use crate::jfr::JfrOptions;
use crate::options::ReadOptions;
use crate::otlp;
use crate::otlp::OtlpOptions;
use crate::pprof;
use crate::pprof::PprofOptions;
use crate::pyroscope;
use crate::report::Report;
use crate::selection::Selection;
use crate::speedscope;
use crate::svg::SvgOptions;
use crate::svg::write_svg;
use crate::top::TableFormat;
use crate::top::write_top;

/// A profile format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Format {
    /// pprof protobuf, usually gzipped.
    Pprof,
    /// Folded stacks, one a line.
    Folded,
    /// A flame graph as SVG.
    Svg,
    /// OTLP profiles, protobuf.
    Otlp,
    /// OTLP profiles, JSON.
    OtlpJson,
    /// The JSON of speedscope.
    Speedscope,
    /// A flame graph in levels, the JSON of Pyroscope.
    Flamebearer,
    /// The graph of functions for Graphviz.
    Dot,
    /// A recording of Java Flight Recorder.
    Jfr,
    /// The table of functions as comma-separated values.
    Csv,
    /// The table of functions in Markdown.
    Markdown,
    /// The table of functions as text.
    Text,
}

/// What a writer is told besides the profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteOptions {
    /// The type that formats of one column show: an identifier, short name or sample type. Without
    /// it time wins over bytes and bytes over counts.
    pub sample_type: Option<String>,
    /// Rows of tables; 0 writes all.
    pub limit: usize,
    /// For pprof.
    pub pprof: PprofOptions,
    /// For OTLP.
    pub otlp: OtlpOptions,
    /// For folded stacks.
    pub folded: FoldedOptions,
    /// For SVG; an empty title becomes the profile type.
    pub svg: SvgOptions,
    /// For the graph of functions.
    pub dot: DotOptions,
}

impl Format {
    /// All formats, those that can be read first.
    pub const ALL: [Self; 12] = [
        Self::Pprof,
        Self::Folded,
        Self::Otlp,
        Self::OtlpJson,
        Self::Speedscope,
        Self::Flamebearer,
        Self::Jfr,
        Self::Svg,
        Self::Dot,
        Self::Text,
        Self::Csv,
        Self::Markdown,
    ];

    /// The name for `--from` and `--to`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pprof => "pprof",
            Self::Folded => "folded",
            Self::Svg => "svg",
            Self::Otlp => "otlp",
            Self::OtlpJson => "otlp-json",
            Self::Speedscope => "speedscope",
            Self::Flamebearer => "flamebearer",
            Self::Dot => "dot",
            Self::Jfr => "jfr",
            Self::Csv => "csv",
            Self::Markdown => "markdown",
            Self::Text => "text",
        }
    }

    /// File extensions, the usual one first, without the leading dot.
    #[must_use]
    pub const fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Pprof => &["pb.gz", "pb", "pprof"],
            Self::Folded => &["folded", "collapsed"],
            Self::Svg => &["svg"],
            Self::Otlp => &["otlp"],
            Self::OtlpJson => &["otlp.json"],
            Self::Speedscope => &["speedscope.json"],
            Self::Flamebearer => &["flamebearer.json"],
            Self::Dot => &["dot", "gv"],
            Self::Jfr => &["jfr", "jfr.gz"],
            Self::Csv => &["csv"],
            Self::Markdown => &["md"],
            Self::Text => &["txt"],
        }
    }

    /// What it is, in one line.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Pprof => "pprof protobuf, all sample types",
            Self::Folded => "folded stacks, one sample type",
            Self::Svg => "interactive flame graph, one sample type",
            Self::Otlp => "OpenTelemetry profiles (OTLP 1.10) protobuf, all sample types",
            Self::OtlpJson => "OpenTelemetry profiles (OTLP 1.10) JSON, all sample types",
            Self::Speedscope => "speedscope JSON, one sample type",
            Self::Flamebearer => "Pyroscope's flame graph JSON, one sample type",
            Self::Dot => "graph of functions for Graphviz, one sample type",
            Self::Jfr => "Java Flight Recorder, all events that are samples",
            Self::Csv => "table of functions, comma-separated",
            Self::Markdown => "table of functions, Markdown",
            Self::Text => "table of functions, text",
        }
    }

    /// Whether [`read`] reads it.
    #[must_use]
    pub const fn is_readable(self) -> bool {
        matches!(
            self,
            Self::Pprof
                | Self::Folded
                | Self::Otlp
                | Self::OtlpJson
                | Self::Speedscope
                | Self::Flamebearer
                | Self::Jfr
        )
    }

    /// Whether [`write()`] writes it.
    #[must_use]
    pub const fn is_writable(self) -> bool {
        !matches!(self, Self::Jfr)
    }

    /// The format with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The format that a file name's extension means.
    #[must_use]
    pub fn from_file_name(file_name: &str) -> Option<Self> {
        let lower = file_name.to_ascii_lowercase();
        Self::ALL.into_iter().find(|format| {
            let mut extensions = format.extensions().iter();
            extensions.any(|extension| {
                let stem = lower.strip_suffix(extension);
                stem.is_some_and(|stem| stem.ends_with('.'))
            })
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// More of the input tells nothing more; callers may hold all of it.
const DETECTED_BYTES: usize = 64 << 10;

/// The format of some input by its first bytes (a few kilobytes are enough), which may be
/// compressed; `None` when it is none that can be read.
#[must_use]
pub fn detect(first_bytes: &[u8]) -> Option<Format> {
    let prefix = inflate_prefix(&first_bytes[..first_bytes.len().min(DETECTED_BYTES)]);
    if prefix.is_empty() {
        return None;
    }
    if jfr::looks_like_jfr(&prefix) {
        return Some(Format::Jfr);
    }
    if looks_folded(&prefix) {
        return Some(Format::Folded);
    }
    if pprof::looks_like_pprof(&prefix) {
        return Some(Format::Pprof);
    }
    if otlp::looks_like_otlp(&prefix) {
        return Some(Format::Otlp);
    }
    if otlp::looks_like_otlp_json(&prefix) {
        return Some(Format::OtlpJson);
    }
    if speedscope::looks_like_speedscope(&prefix) {
        return Some(Format::Speedscope);
    }
    pyroscope::looks_like_flamebearer(&prefix).then_some(Format::Flamebearer)
}

/// Reads any readable format.
///
/// # Errors
/// Those of the format's reader, and for formats that are only written.
pub fn read(
    format: Format,
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    match format {
        Format::Pprof => pprof::read_pprof(input, options),
        Format::Folded => read_folded(input, options),
        Format::Otlp => {
            let bytes = read_inflated(input, options.limits.inflated_bytes())?;
            otlp::decode_otlp_bytes(&bytes, options)
        }
        Format::OtlpJson => {
            let bytes = read_inflated(input, options.limits.inflated_bytes())?;
            let request = otlp::otlp_request_from_json(&bytes, &options.limits)?;
            otlp::decode_otlp(&request, options)
        }
        Format::Speedscope => speedscope::read_speedscope(input, options),
        Format::Flamebearer => pyroscope::read_flamebearer(input, options),
        Format::Jfr => jfr::read_jfr(input, &JfrOptions::default(), options),
        other => Err(ReadError::NotReadable {
            format: other.name(),
            readable: names(Format::is_readable),
        }),
    }
}

/// Writes any writable format. Formats of one column show one type and note what they leave out.
///
/// # Errors
/// When the sink fails, the profile has no series or is not valid, or has no such sample type, and
/// for formats that are only read.
pub fn write(
    format: Format,
    profile: &Profile,
    mut output: impl Write,
    options: &WriteOptions,
) -> Result<Report, WriteError> {
    if !format.is_writable() {
        return Err(WriteError::NotWritable {
            format: format.name(),
            writable: names(Format::is_writable),
        });
    }
    if format == Format::Pprof {
        return pprof::write_pprof(profile, output, &options.pprof);
    }
    profile.validate()?;
    if profile.series.is_empty() {
        return Err(WriteError::Empty);
    }
    if format == Format::Otlp {
        output.write_all(&otlp::encode_otlp_bytes(profile, &options.otlp))?;
        output.flush()?;
        return Ok(Report::default());
    }
    if format == Format::OtlpJson {
        let request = otlp::encode_otlp(profile, &options.otlp);
        let json = otlp::otlp_request_to_json(&request);
        serde_json::to_writer(&mut output, &json).map_err(std::io::Error::from)?;
        output.flush()?;
        return Ok(Report::default());
    }
    let selection = Selection::of(profile, options.sample_type.as_deref())?;
    let mut report = Report::default();
    report.note_many(
        "types_left_out",
        "series of other sample types do not fit in this format",
        selection.left_out(),
    );
    let (tree, shown) = (selection.tree(), selection.profile_type);
    let mut table =
        |table_format| write_top(&tree, shown, table_format, options.limit, &mut output);
    match format {
        Format::Csv => table(TableFormat::Csv)?,
        Format::Markdown => table(TableFormat::Markdown)?,
        Format::Text => table(TableFormat::Text)?,
        Format::Folded => write_folded(&tree, output, &options.folded)?,
        Format::Svg => write_svg(&tree, shown, output, &options.svg)?,
        Format::Speedscope => speedscope::write_speedscope(&tree, shown, output)?,
        Format::Flamebearer => pyroscope::write_flamebearer(&tree, shown, output)?,
        Format::Dot => write_dot(&tree, shown, &options.dot, output)?,
        Format::Pprof | Format::Otlp | Format::OtlpJson | Format::Jfr => {}
    }
    Ok(report)
}

fn names(condition: fn(Format) -> bool) -> String {
    let formats = Format::ALL.into_iter().filter(|format| condition(*format));
    let names: Vec<&str> = formats.map(Format::name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_extensions_are_found() {
        for format in Format::ALL {
            assert_eq!(Format::from_name(format.name()), Some(format));
            for extension in format.extensions() {
                let name = format!("profile.{extension}");
                assert_eq!(Format::from_file_name(&name), Some(format));
            }
        }
        assert_eq!(Format::from_file_name("cpu.PB.GZ"), Some(Format::Pprof));
        assert_eq!(Format::from_file_name("svg"), None);
    }

    #[test]
    fn nothing_is_detected_in_noise() {
        for noise in [
            &b""[..],
            b"\n\n",
            b"{\"a\": 1}",
            b"hello world\n",
            &[0xff; 40],
            b"\x7fELF\x02",
        ] {
            assert_eq!(detect(noise), None, "{noise:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_says_what_can() {
        let error = read(Format::Svg, &b""[..], &ReadOptions::default()).expect_err("svg");
        let message = error.to_string();
        assert!(
            message.ends_with(
                "readable are pprof, folded, otlp, otlp-json, speedscope, flamebearer, jfr"
            ),
            "{message}"
        );
    }
}
