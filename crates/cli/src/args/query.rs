//! Arguments of `candela query`.

use std::path::PathBuf;

use clap::Args;
use clap::Subcommand;
use clap::ValueEnum;

use crate::args::files::ReadingArgs;
use crate::args::filters::FilterArgs;

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum QueryCommand {
    /// Functions by own cost
    Top(SelectionArgs),
    /// The call tree
    Tree(SelectionArgs),
    /// The merged profile
    Profile(SelectionArgs),
    /// What calls a function, and what it calls
    Callers(CallersArgs),
    /// The source of a function, with what each of its lines took
    Source(SourceArgs),
    /// The machine code of a function, with what its source lines took; needs a server
    Disassembly(DisassemblyArgs),
    /// Values over time
    Series(SeriesArgs),
    /// Label names, or the values of one label
    Labels(LabelsArgs),
    /// Profile types
    Types(TypesArgs),
    /// SQL over the tables of docs/storage.md; needs a server, or for files a build, that has it
    Sql(SqlArgs),
}

/// Which profiles.
#[derive(Args, Clone, Debug)]
pub(crate) struct SelectionArgs {
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// Profile type: an id, a short name (cpu, alloc, lock …) or a prefix [default: of files what
    /// their writer wants shown first; else cpu, time, bytes in use, bytes, counts, the first there is]
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) profile_type: Option<String>,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// How the profiles of a series combine [default: events are summed, states averaged]
    #[arg(long, value_name = "HOW", value_parser = ["sum", "avg", "last"], conflicts_with = "files")]
    pub(crate) aggregation: Option<String>,
    #[command(flatten)]
    pub(crate) filters: FilterArgs,
    /// Profile files to ask instead of a server; - is standard input
    #[arg(value_name = "FILE", conflicts_with_all = ["query", "from", "to"])]
    pub(crate) files: Vec<String>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct CallersArgs {
    /// The function: its name, or a regular expression with the prefixes of filters
    #[arg(value_name = "FUNCTION")]
    pub(crate) function: String,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct SourceArgs {
    /// The function, by its exact name
    #[arg(value_name = "FUNCTION")]
    pub(crate) function: String,
    /// Which source file, where several have a function of this name [default: that with most in it]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<String>,
    /// Which program or library [default: that with most in the function]
    #[arg(long, value_name = "PATH")]
    pub(crate) binary: Option<String>,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct DisassemblyArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Which build of the binary [default: that with most in the function]
    #[arg(long, value_name = "ID")]
    pub(crate) build_id: Option<String>,
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
    /// Profile type: an id, a short name (cpu, alloc, lock …) or a prefix [default: of files what
    /// their writer wants shown first; else cpu, time, bytes in use, bytes, counts, the first there is]
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) profile_type: Option<String>,
    /// Width of a step, seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) step: Option<u64>,
    /// One series for each value of this label; may be repeated
    #[arg(long, value_name = "LABEL")]
    pub(crate) group_by: Vec<String>,
    /// How the profiles of a series combine in a step [default: events are summed, states averaged]
    #[arg(long, value_name = "HOW", value_parser = ["sum", "avg", "min", "max", "last", "rate"])]
    pub(crate) aggregation: Option<String>,
    #[command(flatten)]
    pub(crate) filters: FilterArgs,
    /// Profile files to ask instead of a server; - is standard input
    #[arg(value_name = "FILE", conflicts_with_all = ["query", "from", "to"])]
    pub(crate) files: Vec<String>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

/// Filters of labels, for lists of names.
#[derive(Args, Clone, Debug)]
pub(crate) struct TagArgs {
    /// Only samples with a label, their own or their series', that matches
    #[arg(long, value_name = "[KEY=]REGEX")]
    pub(crate) tagfocus: Vec<String>,
    /// Only samples without a label that matches
    #[arg(long, value_name = "[KEY=]REGEX")]
    pub(crate) tagignore: Vec<String>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct TypesArgs {
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    #[command(flatten)]
    pub(crate) tags: TagArgs,
    /// Profile files to ask instead of a server; - is standard input
    #[arg(value_name = "FILE", conflicts_with_all = ["query", "from", "to"])]
    pub(crate) files: Vec<String>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct LabelsArgs {
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    #[command(flatten)]
    pub(crate) tags: TagArgs,
    /// Label whose values to list; what stands behind it, or is a file itself, is asked instead of a
    /// server
    #[arg(value_names = ["LABEL", "FILE"], num_args = 0..)]
    pub(crate) label_and_files: Vec<String>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct SqlArgs {
    /// A SELECT, EXPLAIN, SHOW or DESCRIBE; - reads it from standard input
    #[arg(value_name = "STATEMENT")]
    pub(crate) statement: String,
    /// Profile files of any format to ask in place of a server
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = SqlFormat::Text)]
    pub(crate) format: SqlFormat,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

/// Form of an answer to SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SqlFormat {
    Text,
    Json,
    Csv,
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
