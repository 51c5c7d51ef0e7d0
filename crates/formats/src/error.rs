//! What can go wrong in reading and writing.

use std::io;

use crate::refusal::Refusal;

/// Input that does not become a profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The source failed.
    #[error("the input cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The bytes break off or break the rules of the format.
    #[error("{format}: {problem} at byte {offset}")]
    Corrupt {
        /// Name of the format.
        format: &'static str,
        /// What is wrong.
        problem: String,
        /// Where, counted from the start of the (inflated) input.
        offset: usize,
    },
    /// The bytes are well formed and make no sense.
    #[error("{format}: {problem}")]
    Invalid {
        /// Name of the format.
        format: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// A limit of [`Limits`](crate::Limits) is exceeded.
    #[error("{what} exceeds the limit of {limit}: split the profile or raise the limit")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The compressed input is damaged.
    #[error("{encoding} data is damaged or cut off: {reason}")]
    Compression {
        /// `gzip`, `zstd` or `zip`.
        encoding: &'static str,
        /// What the decompressor says.
        reason: String,
    },
    /// A file of a kind that is no profile, as [`refusal`](crate::refusal()) knows it.
    #[error("{0}")]
    Refused(Refusal),
    /// No reader for this format.
    #[error("format {format} can be written but not read; readable are {readable}")]
    NotReadable {
        /// Name of the format.
        format: &'static str,
        /// The formats that can be read.
        readable: String,
    },
}

/// A profile that cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The sink failed.
    #[error("the output cannot be written: {0}")]
    Io(#[from] io::Error),
    /// Nothing to write.
    #[error("the profile has no series: there is nothing to write")]
    Empty,
    /// The chosen series does not exist.
    #[error("the profile has no sample type {wanted:?}; it has {available}")]
    NoSuchType {
        /// What was asked for.
        wanted: String,
        /// What there is.
        available: String,
    },
    /// A negative value in a format that is made of lengths.
    #[error(
        "{format} cannot show negative values, as {name:?} has: compare the two profiles instead of subtracting them"
    )]
    Negative {
        /// Name of the format.
        format: &'static str,
        /// The function with such a value.
        name: String,
    },
    /// What functions are chosen by is no regular expression.
    #[error("{pattern:?} is no regular expression: {reason}")]
    Pattern {
        /// What was given.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No function was chosen.
    #[error("no function's name matches {pattern:?}")]
    NoFunction {
        /// The regular expression.
        pattern: String,
    },
    /// There is no page to put profiles into.
    #[error(
        "this build has no page to put profiles into: build the window with `cargo xtask ui`, then the program with the feature `ui`; svg needs neither"
    )]
    NoTemplate,
    /// The page has no place for profiles.
    #[error(
        "the page has {found} places {placeholder:?} for profiles, not one: it is of another version"
    )]
    Template {
        /// What is looked for.
        placeholder: &'static str,
        /// How many there are.
        found: usize,
    },
    /// The profile does not hold together.
    #[error("the profile is not valid: {0}")]
    Invalid(#[from] candela_model::ValidationError),
    /// No writer for this format.
    #[error("format {format} can be read but not written; writable are {writable}")]
    NotWritable {
        /// Name of the format.
        format: &'static str,
        /// The formats that can be written.
        writable: String,
    },
}
