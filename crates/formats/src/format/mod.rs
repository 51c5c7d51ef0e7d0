//! The formats there are, and reading and writing any of them.

mod catalog;
mod entry;
mod part;

use std::fmt;
use std::io::BufRead;
use std::io::Write;

use candela_model::Profile;

use crate::dot::DotOptions;
use crate::error::ReadError;
use crate::error::WriteError;
use crate::folded::FoldedOptions;
use crate::format::catalog::CATALOG;
pub(crate) use crate::format::entry::Entry;
pub(crate) use crate::format::entry::Writer;
pub use crate::format::part::Part;
use crate::html::HtmlOptions;
use crate::inflate::inflate_prefix;
use crate::options::ReadOptions;
use crate::otlp::OtlpOptions;
use crate::pprof::PprofOptions;
#[cfg(doc)]
use crate::pprof_text::TextLayout;
use crate::pprof_text::TextOptions;
use crate::report::Report;
use crate::selection::Selection;
use crate::svg::SvgOptions;

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
    /// The window's flame graph as a page of one file.
    Html,
    /// OTLP profiles, protobuf.
    Otlp,
    /// OTLP profiles, JSON.
    OtlpJson,
    /// Events of profiles, a JSON object a line.
    ProfileEvent,
    /// The JSON of speedscope.
    Speedscope,
    /// A flame graph in levels, the JSON of Pyroscope.
    Flamebearer,
    /// Trace events and timelines of Chrome.
    ChromeTrace,
    /// A dump of Ruby's stackprof as JSON.
    Stackprof,
    /// What Valgrind's DHAT and the crate `dhat` write.
    Dhat,
    /// What Firefox records and its profiler shows.
    Firefox,
    /// A CPU profile of V8.
    CpuProfile,
    /// A sampled heap profile of V8.
    HeapProfile,
    /// The text of callgrind, a call graph.
    Callgrind,
    /// Our own JSON with all of a profile.
    Json,
    /// The graph of functions for Graphviz.
    Dot,
    /// A trace of .NET.
    Nettrace,
    /// A trace of Perfetto.
    Perfetto,
    /// A recording of Java Flight Recorder.
    Jfr,
    /// A CPU profile of gperftools.
    GperftoolsCpu,
    /// pprof's text forms of heaps, locks, threads and goroutines.
    LegacyText,
    /// A heap profile of jemalloc.
    Jemalloc,
    /// A stack dump of Go.
    GoStacks,
    /// The text of `perf script`.
    PerfScript,
    /// The call graph of FreeBSD's pmcstat.
    Pmcstat,
    /// A call tree copied from Apple's Instruments.
    Instruments,
    /// The time and allocation report of GHC.
    GhcProf,
    /// A recording of Linux's perf.
    PerfData,
    /// A report of Android's simpleperf.
    Simpleperf,
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
    /// Rows of tables; 0 writes all, but of the functions of [`TextLayout::Tree`] 80.
    pub limit: usize,
    /// For text.
    pub text: TextOptions,
    /// For pprof.
    pub pprof: PprofOptions,
    /// For OTLP.
    pub otlp: OtlpOptions,
    /// For folded stacks.
    pub folded: FoldedOptions,
    /// For SVG; an empty title becomes the profile type.
    pub svg: SvgOptions,
    /// For the page of one file, which cannot be written without a template.
    pub html: HtmlOptions,
    /// For the graph of functions.
    pub dot: DotOptions,
}

impl Format {
    /// All formats, those that can be read first.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        CATALOG.iter().map(|entry| entry.format)
    }

    /// The name for `--from` and `--to`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// File extensions, the usual one first, without the leading dot.
    #[must_use]
    pub fn extensions(self) -> &'static [&'static str] {
        self.entry().extensions
    }

    /// What it is, in one line.
    #[must_use]
    pub fn description(self) -> &'static str {
        self.entry().description
    }

    /// Whether [`read`] reads it.
    #[must_use]
    pub fn is_readable(self) -> bool {
        self.entry().read.is_some()
    }

    /// Whether [`write()`] writes it.
    #[must_use]
    pub fn is_writable(self) -> bool {
        self.entry().write.is_some()
    }

    /// The parts of a profile that it has a place for, besides the names of functions and the values of
    /// one profile type.
    #[must_use]
    pub fn keeps(self) -> &'static [Part] {
        self.entry().keeps
    }

    /// The parts that it has no place for.
    pub fn loses(self) -> impl Iterator<Item = Part> {
        let keeps = self.keeps();
        Part::ALL.into_iter().filter(|part| !keeps.contains(part))
    }

    /// What of this profile would be lost.
    #[must_use]
    pub fn losses(self, profile: &Profile) -> Vec<Part> {
        self.loses().filter(|part| part.is_in(profile)).collect()
    }

    /// The format with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|format| format.name() == name)
    }

    /// The format that a file name's extension means; of several the longest counts.
    #[must_use]
    pub fn from_file_name(file_name: &str) -> Option<Self> {
        let lower = file_name.to_ascii_lowercase();
        let matching = Self::all().flat_map(|format| {
            let extensions = format.extensions().iter();
            extensions.map(move |extension| (extension.len(), format, extension))
        });
        let matching = matching.filter(|(_, _, extension)| {
            let stem = lower.strip_suffix(*extension);
            stem.is_some_and(|stem| stem.ends_with('.'))
        });
        matching
            .max_by_key(|(length, ..)| *length)
            .map(|(_, format, _)| format)
    }

    fn entry(self) -> &'static Entry {
        let mut entries = CATALOG.iter();
        entries
            .find(|entry| entry.format == self)
            .expect("the catalog has every format, as a test sees")
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
    let mut entries = CATALOG.iter();
    let found = entries.find(|entry| entry.detects.is_some_and(|detects| detects(&prefix)));
    found.map(|entry| entry.format)
}

/// Reads any readable format.
///
/// # Errors
/// Those of the format's reader, and for formats that are only written.
pub fn read(
    format: Format,
    mut input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let Some(reader) = format.entry().read else {
        return Err(ReadError::NotReadable {
            format: format.name(),
            readable: names(Format::is_readable),
        });
    };
    reader(&mut input, options)
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
    let Some(writer) = format.entry().write else {
        return Err(WriteError::NotWritable {
            format: format.name(),
            writable: names(Format::is_writable),
        });
    };
    profile.validate()?;
    if profile.series.is_empty() {
        return Err(WriteError::Empty);
    }
    if let Writer::Profile(write) = writer {
        return write(profile, &mut output, options);
    }
    let selection = Selection::of(profile, options.sample_type.as_deref())?;
    let profile_type = selection.profile_type;
    match writer {
        Writer::Profile(_) => {}
        Writer::Series(write) => write(profile, profile_type, &mut output, options)?,
        Writer::Tree(write) => write(&selection.tree(), profile_type, &mut output, options)?,
    }
    let mut report = Report::default();
    report.note_many(
        "types_left_out",
        "series of other sample types do not fit in this format",
        selection.left_out(),
    );
    Ok(report)
}

fn names(condition: fn(Format) -> bool) -> String {
    let formats = Format::all().filter(|format| condition(*format));
    let names: Vec<&str> = formats.map(Format::name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalog_has_every_format_once() {
        let mut numbers: Vec<usize> = Format::all().map(|format| format as usize).collect();
        numbers.sort_unstable();
        let expected: Vec<usize> = (0..CATALOG.len()).collect();
        assert_eq!(numbers, expected);
    }

    #[test]
    fn names_and_extensions_are_found() {
        for format in Format::all() {
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
            b"\n\n\n",
            b"pyroscope-io==1.2.1",
            b"\nthis\nis an unknown\nformat\n",
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
        assert!(message.contains("readable are jfr, "), "{message}");
    }
}
