//! Arguments of `candela dump`.

use clap::Args;
use clap::ValueEnum;

/// Whose threads.
#[derive(Args, Clone, Debug)]
pub(crate) struct DumpArgs {
    /// The process
    #[arg(short = 'p', long = "pid", value_name = "PID")]
    pub(crate) pid: u32,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = DumpFormat::Text)]
    pub(crate) format: DumpFormat,
}

/// Form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DumpFormat {
    Text,
    Json,
}
