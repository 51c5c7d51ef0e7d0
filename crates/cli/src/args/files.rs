//! Arguments of the commands over profile files.

use std::path::PathBuf;

use clap::Args;
use clap::ValueEnum;

use crate::args::filters::FilterArgs;

/// How files are read.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ReadingArgs {
    /// Refuse a file that must be repaired, or of which a part is left out
    #[arg(long)]
    pub(crate) strict: bool,
}

/// `candela convert`
#[derive(Args, Clone, Debug)]
pub(crate) struct ConvertArgs {
    /// Profiles, merged when there are several: files, http(s) addresses, or - for standard input
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<String>,
    /// File to write; its name tells the format unless --to does [default: standard output]
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Format of the input, where its content does not tell
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,
    /// Format of the output
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<String>,
    /// Profile type to write; formats of one type otherwise show what the writer of the file wants shown
    /// first, else time, bytes in use, bytes, counts, the first there is
    #[arg(long, value_name = "TYPE")]
    pub(crate) sample_type: Option<String>,
    /// Which text --to text is: table, or top, tree, peek, traces as pprof prints them
    #[arg(long, value_name = "LAYOUT", default_value = "table")]
    pub(crate) layout: String,
    /// Functions of the layout peek
    #[arg(long, value_name = "REGEX")]
    pub(crate) functions: Option<String>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    #[command(flatten)]
    pub(crate) drawing: DrawingArgs,
    #[command(flatten)]
    pub(crate) filters: FilterArgs,
}

/// How flame graphs are drawn.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct DrawingArgs {
    /// Where the root of a flame graph is: icicle has it on top, flame at the bottom
    #[arg(long, value_enum, default_value_t = OrientationArg::Icicle)]
    pub(crate) orientation: OrientationArg,
    /// Heading of a flame graph [default: the profile type]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
}

/// Which way stacks grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrientationArg {
    #[default]
    Icicle,
    Flame,
}

/// `candela push`
#[derive(Args, Clone, Debug)]
pub(crate) struct PushArgs {
    /// Profile files of any format and age; - is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<String>,
    /// Service that was profiled
    #[arg(long, value_name = "NAME")]
    pub(crate) service: String,
    /// Label of all profiles; may be repeated
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = parse_label)]
    pub(crate) labels: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

/// `candela open`
#[cfg(feature = "server")]
#[derive(Args, Clone, Debug)]
pub(crate) struct OpenArgs {
    /// Profile files of any format; - is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<String>,
    /// Address of the window [default: a free port of 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Only print the address of the window
    #[arg(long)]
    pub(crate) no_browser: bool,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

/// `candela diff`
#[derive(Args, Clone, Debug)]
pub(crate) struct DiffArgs {
    /// What to compare with: a file, an http(s) address, or SELECTOR@FROM..TO of a server
    #[arg(value_name = "BASE")]
    pub(crate) base: String,
    /// What to judge
    #[arg(value_name = "NEW")]
    pub(crate) new: String,
    /// Profile type: an id, a short name (cpu, alloc, lock …) or a prefix [default: of files what
    /// their writer wants shown first; else cpu, time, bytes in use, bytes, counts, the first there is]
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) profile_type: Option<String>,
    /// Form of the output [default: by the name of the file, else text]
    #[arg(long, value_enum)]
    pub(crate) format: Option<DiffFormat>,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// In a picture, widths of BASE, so that what is gone is seen; a page starts with them
    #[arg(long)]
    pub(crate) negate: bool,
    /// In a picture, compare shares: BASE is scaled to the total of NEW; a page starts with that
    #[arg(long)]
    pub(crate) normalize: bool,
    /// What ratios and intervals of the table compare: shares, values by the time that was looked at, or
    /// values by what most functions did
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub(crate) normalization: NormalizationArg,
    /// What part of the significant changes may be chance
    #[arg(long, value_name = "RATE", default_value_t = 0.05, value_parser = parse_rate)]
    pub(crate) fdr: f64,
    #[command(flatten)]
    pub(crate) drawing: DrawingArgs,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    #[command(flatten)]
    pub(crate) filters: FilterArgs,
}

/// What "unchanged" means in a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum NormalizationArg {
    #[default]
    Share,
    Absolute,
    Robust,
}

/// Form of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffFormat {
    Text,
    Json,
    Markdown,
    Csv,
    Svg,
    /// A page of one file: flame graph and table, without any network
    Html,
    /// Two columns: stack, value before, value after
    Folded,
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok();
    rate.filter(|rate| *rate > 0.0 && *rate < 1.0)
        .ok_or_else(|| "it is no number between 0 and 1".to_owned())
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it is not NAME=VALUE")?;
    if name.is_empty() {
        return Err("the name is empty".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}
