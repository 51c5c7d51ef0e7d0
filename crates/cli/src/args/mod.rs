//! The command line: names and help texts only. Commands get plain values.

#[cfg(feature = "agent")]
pub(crate) mod dump;
pub(crate) mod files;
pub(crate) mod filters;
#[cfg(feature = "server")]
pub(crate) mod infra;
pub(crate) mod query;
#[cfg(feature = "agent")]
pub(crate) mod record;
pub(crate) mod serve;
#[cfg(feature = "server")]
pub(crate) mod store;
#[cfg(feature = "server")]
pub(crate) mod symbols;
#[cfg(feature = "agent")]
pub(crate) mod top;

use std::path::PathBuf;

use clap::Args;
use clap::Parser;
use clap::Subcommand;
use clap::ValueEnum;

/// Always-on profiling for every process you run.
#[derive(Debug, Parser)]
#[command(
    name = "candela",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Args, Clone, Debug)]
pub(crate) struct GlobalArgs {
    /// Server to ask or to send to, also as https://USER:PASSWORD@HOST [default: http://127.0.0.1:4040]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// File that holds the bearer token; else $CANDELA_TOKEN
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Configuration file [default: candela.yaml in ., $XDG_CONFIG_HOME/candela, /etc/candela]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Tenant to ask for or to send to, where a server has several
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Most rows to print, 0 for all
    #[arg(long, global = true, value_name = "N", default_value_t = 30)]
    pub(crate) limit: usize,
    /// Colour of the output
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,
    /// Print nothing but results and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Print more; twice for everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Form of log lines
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    Auto,
    Always,
    Never,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Profile this host: agent, server and window in one process
    #[cfg(all(feature = "agent", feature = "server"))]
    Up(serve::UpArgs),
    /// Receive, store and answer; no agent
    #[cfg(feature = "server")]
    Server(serve::ServerArgs),
    /// Sample this host and send to a server
    #[cfg(feature = "agent")]
    Agent(serve::AgentArgs),
    /// Profile now: the host, processes, a cgroup or a command
    #[cfg(feature = "agent")]
    Record(record::RecordArgs),
    /// Watch what runs and what waits: processes, functions, flame graph
    #[cfg(feature = "agent")]
    Top(top::TopArgs),
    /// Print what each thread of a process does now: its state and its stack
    #[cfg(feature = "agent")]
    Dump(dump::DumpArgs),
    /// Write the library that samples the allocations of services, and print the variable that loads it
    #[cfg(feature = "agent")]
    Preload {
        /// Where it goes: a folder, or a file of the name libcandela-preload.so
        #[arg(value_name = "PLACE")]
        place: PathBuf,
    },
    /// Turn profiles of any format into any other
    Convert(files::ConvertArgs),
    /// Send profile files to a server
    Push(files::PushArgs),
    /// Show profile files in the window
    #[cfg(feature = "server")]
    Open(files::OpenArgs),
    /// Show the window over a day of a shop that does not exist, with planted truths; no agent
    #[cfg(feature = "server")]
    Demo(serve::DemoArgs),
    /// Say what changed between two profiles
    Diff(files::DiffArgs),
    /// Ask a server, or profile files
    #[command(subcommand)]
    Query(query::QueryCommand),
    /// Name what was stored as addresses: symbol files by build id
    #[cfg(feature = "server")]
    #[command(subcommand)]
    Symbols(symbols::SymbolsCommand),
    /// Say which daemons run on every node of a fleet: one document, shown and applied
    #[cfg(feature = "server")]
    #[command(subcommand)]
    Infra(infra::InfraCommand),
    /// Take something on every node of a fleet now
    #[cfg(feature = "server")]
    #[command(subcommand)]
    Profiling(infra::ProfilingCommand),
    /// Check and repair what a server keeps
    #[cfg(feature = "server")]
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Say what works on this host, what does not, and how to fix it
    Doctor {
        /// Ask a running agent's server instead: what agents cost, what they lost and why
        #[arg(long)]
        agent: bool,
        /// Say which frames of this process are missing or have no names, why, and how to get them
        #[cfg(feature = "agent")]
        #[arg(short = 'p', long, value_name = "PID", conflicts_with = "agent")]
        pid: Option<u32>,
        /// Say which frames of this profile are missing or have no names, why, and what mends it; - is
        /// standard input
        #[cfg(feature = "agent")]
        #[arg(long, value_name = "FILE", conflicts_with_all = ["agent", "pid"])]
        frames: Option<String>,
        /// Profile type of --frames: an id, a short name (cpu, alloc, lock …) or a prefix
        #[cfg(feature = "agent")]
        #[arg(long = "type", value_name = "TYPE", requires = "frames")]
        profile_type: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show, check or import the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// List the profile formats that can be read and written
    Formats {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the completion script of a shell
    Completions { shell: clap_complete::Shell },
    /// Write the manual pages into a folder
    Man {
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Print the version and what this build contains
    Version {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every key with its value and where the value comes from
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Read the configuration and report all problems
    Check,
    /// Turn a configuration of Telegen into one of candela
    Import(ConfigImportArgs),
}

/// `candela config import`
#[derive(Args, Clone, Debug)]
pub(crate) struct ConfigImportArgs {
    /// YAML, or variables as NAME=value; - is standard input
    #[arg(value_name = "FILE")]
    pub(crate) input: PathBuf,
    /// Where to write the result [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
