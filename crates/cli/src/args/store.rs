//! Arguments of `candela store`.

use std::path::PathBuf;

use clap::Args;
use clap::Subcommand;

/// `candela store`
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Read every file of every block and report those that are damaged; a server may run meanwhile
    Verify(StoreArgs),
    /// Make the catalog again from the blocks; the server must not run
    RebuildCatalog(StoreArgs),
    /// Merge the blocks of hours and days that are over; the server must not run
    Compact(CompactArgs),
}

/// `candela store compact`
#[derive(Args, Clone, Debug)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Also the present hour and day
    #[arg(long)]
    pub(crate) all: bool,
}

/// Which store, and how to print.
#[derive(Args, Clone, Debug)]
pub(crate) struct StoreArgs {
    /// Folder of blocks, log and catalog
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl StoreArgs {
    /// The configuration keys that these flags set.
    pub(crate) fn overrides(&self) -> Vec<(&'static str, &'static str, String)> {
        let data_dir = self.data_dir.iter();
        let keys =
            data_dir.map(|path| ("store.data_dir", "--data-dir", path.display().to_string()));
        keys.collect()
    }
}
