//! What a format tells of itself: the row of the catalog that each format's module has.

use std::io::BufRead;
use std::io::Write;

use candela_model::FlameTree;
use candela_model::Profile;
use candela_model::ProfileType;

use crate::error::ReadError;
use crate::error::WriteError;
use crate::format::Format;
use crate::format::Part;
use crate::format::WriteOptions;
use crate::options::ReadOptions;
use crate::report::Report;

/// All that is known of a format.
pub(crate) struct Entry {
    pub(crate) format: Format,
    /// The name for `--from` and `--to`.
    pub(crate) name: &'static str,
    /// File extensions, the usual one first, without the leading dot.
    pub(crate) extensions: &'static [&'static str],
    /// What it is, in one line.
    pub(crate) description: &'static str,
    /// The parts of a profile that it has a place for. The names of functions and the values of one
    /// profile type are kept by all.
    pub(crate) keeps: &'static [Part],
    /// Whether inflated bytes begin like this format; they may be cut anywhere. Formats are asked in
    /// the order of the catalog. `None` for what is not read or never detected.
    pub(crate) detects: Option<fn(&[u8]) -> bool>,
    /// `None` for what is only written.
    pub(crate) read: Option<Reader>,
    /// `None` for what is only read.
    pub(crate) write: Option<Writer>,
}

/// Reads input that may be compressed.
pub(crate) type Reader = fn(&mut dyn BufRead, &ReadOptions) -> Result<(Profile, Report), ReadError>;

/// How a format is written.
#[derive(Clone, Copy)]
pub(crate) enum Writer {
    /// With all series. The profile is valid and has series.
    Profile(fn(&Profile, &mut dyn Write, &WriteOptions) -> Result<Report, WriteError>),
    /// The series of one profile type.
    Series(SeriesWriter),
    /// The stacks of one profile type, merged.
    Tree(fn(&FlameTree, &ProfileType, &mut dyn Write, &WriteOptions) -> Result<(), WriteError>),
}

/// Writes the series of one profile type. The profile is valid.
pub(crate) type SeriesWriter =
    fn(&Profile, &ProfileType, &mut dyn Write, &WriteOptions) -> Result<(), WriteError>;
