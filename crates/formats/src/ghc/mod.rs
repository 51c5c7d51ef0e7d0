//! The time and allocation report of programs that GHC compiled for profiling, as the GHC user's guide
//! describes it: text (`+RTS -p`) or JSON (`+RTS -pj`).

mod json;
mod text;

use std::io::BufRead;

use candela_model::FrameKind;
use candela_model::Profile;

use crate::error::ReadError;
use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
use crate::ghc::json::looks_like_json;
use crate::ghc::json::read_json_report;
use crate::ghc::text::looks_like_text;
use crate::ghc::text::read_text_report;
use crate::inflate::inflate_prefix;
use crate::layers::peeked;
use crate::named_stacks::FrameText;
use crate::named_stacks::NamedStacks;
use crate::naming;
use crate::options::ReadOptions;
use crate::report::Report;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::GhcProf,
    name: NAME,
    extensions: &["ghc.prof"],
    description: "time and allocation report of GHC, text or JSON",
    keeps: &[Part::AllTypes, Part::SourceFiles, Part::StartLines],
    detects: Some(|prefix| looks_like_text(prefix) || looks_like_json(prefix)),
    read: Some(|input, options| read_ghc_prof(input, options)),
    write: None,
};

/// The format's name in messages.
const NAME: &str = "ghc-prof";

/// The series.
const TIME: usize = 0;
const ALLOCATED: usize = 1;
const ENTRIES: usize = 2;

/// The keys of JSON in front of the cost centres take less, unless the arguments of the program do not.
const PEEKED_BYTES: u64 = 64 << 10;

/// What a report tells besides the tree.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    written_ns: Option<i64>,
    /// Processor time: that of all processors together.
    ticks: i64,
    tick_ns: i64,
    bytes: i64,
}

/// Reads a report: processor time, allocated bytes, and how often each cost centre was entered.
///
/// With `-P` and in JSON the figures are those of the program. With `-p` there are only shares with a
/// decimal, of which times and bytes are made: they are as fine as a thousandth of the total.
///
/// # Errors
/// When the input cannot be read, exceeds a limit, has no tree of cost centres, or its JSON is broken.
pub fn read_ghc_prof(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let (start, whole) = peeked(Box::new(input), PEEKED_BYTES)?;
    match looks_like_json(&inflate_prefix(&start)) {
        true => read_json_report(whole, options),
        false => read_text_report(whole, options),
    }
}

fn finish(stacks: NamedStacks<'_>, totals: &Totals, options: &ReadOptions) -> (Profile, Report) {
    let types = vec![
        naming::profile_type(("cpu", "nanoseconds"), ("", ""), None),
        naming::profile_type(("alloc_space", "bytes"), ("", ""), None),
        naming::typed("calls", ("calls", "count"), ("calls", "count")),
    ];
    let (mut profile, report) = stacks.finish(types, options);
    profile.series[TIME].period = totals.tick_ns;
    if let Some(written_ns) = totals.written_ns {
        for series in &mut profile.series {
            series.start_ns = written_ns;
        }
    }
    (profile, report)
}

/// A cost centre as a frame.
fn frame_text<'t>(name: &'t str, module: &'t str, source: &'t str) -> FrameText<'t> {
    let (file, start_line) = source_of(source);
    FrameText {
        name,
        qualifier: match module {
            // What the run-time system does stands in a module of the same name.
            module if module == name => "",
            module => module,
        },
        file,
        start_line,
        kind: FrameKind::Native,
        ..FrameText::default()
    }
}

/// `Main.hs:(8,5)-(11,46)` or `Main.hs:14:28-51`: the file and the first line.
fn source_of(source: &str) -> (&str, u32) {
    if source.starts_with('<') {
        return ("", 0);
    }
    let Some((file, place)) = source.split_once(':') else {
        return ("", 0);
    };
    let place = place.strip_prefix('(').unwrap_or(place);
    let end = place.find(|c: char| !c.is_ascii_digit());
    let line = place[..end.unwrap_or(place.len())].parse().unwrap_or(0);
    (file, line)
}
