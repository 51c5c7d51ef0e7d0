//! Arguments of `candela symbols`.

use std::path::PathBuf;

use clap::Args;
use clap::Subcommand;

/// `candela symbols`
#[derive(Debug, Subcommand)]
pub(crate) enum SymbolsCommand {
    /// Send programs, libraries or debug files: what was stored as addresses gets its names
    Upload(UploadArgs),
    /// List the symbol files that the server keeps, or the binaries that it misses names of
    List(ListArgs),
    /// Say which file of this machine has the symbols of a program or of a build id
    Find(FindArgs),
}

/// `candela symbols upload`
#[derive(Args, Clone, Debug)]
pub(crate) struct UploadArgs {
    /// ELF files; of a stripped one its debug file is sent, if this machine has it
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Send what the server has already too
    #[arg(long)]
    pub(crate) force: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `candela symbols list`
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ListArgs {
    /// The binaries that have addresses without names, those with most samples first
    #[arg(long)]
    pub(crate) wanted: bool,
    /// Print JSON: both lists
    #[arg(long)]
    pub(crate) json: bool,
}

/// `candela symbols find`
#[derive(Args, Clone, Debug)]
pub(crate) struct FindArgs {
    /// A program or library, or the hexadecimal digits of a build id
    #[arg(value_name = "PATH|BUILD_ID")]
    pub(crate) what: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
