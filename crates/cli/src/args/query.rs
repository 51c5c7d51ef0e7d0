//! Arguments of `candela query`.

use std::path::PathBuf;

use clap::Args;
use clap::Subcommand;
use clap::ValueEnum;

use crate::args::filters::FilterArgs;

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum QueryCommand {
    /// Functions by own cost
    Top(SelectionArgs),
    /// The call tree
    Tree(SelectionArgs),
    /// The merged profile
    Profile(SelectionArgs),
    /// Values over time
    Series(SeriesArgs),
    /// Label names, or the values of one label
    Labels(LabelsArgs),
    /// Profile types
    Types(RangeArgs),
}

/// Which profiles.
#[derive(Args, Clone, Debug)]
pub(crate) struct SelectionArgs {
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// Profile type: an id, a short name (cpu, alloc, lock …) or a prefix
    #[arg(long = "type", value_name = "TYPE", default_value = "cpu")]
    pub(crate) profile_type: String,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) filters: FilterArgs,
    /// Profile files to ask instead of a server
    #[arg(value_name = "FILE", conflicts_with = "query")]
    pub(crate) files: Vec<PathBuf>,
}

/// When, of whom, and in which form.
#[derive(Args, Clone, Debug)]
pub(crate) struct RangeArgs {
    /// Label selector
    #[arg(long, value_name = "SELECTOR", default_value = "{}")]
    pub(crate) query: String,
    /// Start: Unix seconds, RFC 3339 or now-1h
    #[arg(long, value_name = "TIME", default_value = "now-1h")]
    pub(crate) from: String,
    /// End
    #[arg(long, value_name = "TIME", default_value = "now")]
    pub(crate) to: String,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct SeriesArgs {
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// Profile type
    #[arg(long = "type", value_name = "TYPE", default_value = "cpu")]
    pub(crate) profile_type: String,
    /// Width of a step, seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) step: Option<u64>,
    /// One series for each value of this label
    #[arg(long, value_name = "LABEL")]
    pub(crate) group_by: Vec<String>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct LabelsArgs {
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// Label whose values to list
    #[arg(value_name = "LABEL")]
    pub(crate) label: Option<String>,
}

/// Form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    Text,
    Json,
    Csv,
    Markdown,
    Pprof,
    Folded,
    Svg,
}
