//! Arguments of `candela top`.

use std::time::Duration;

use clap::Args;

use crate::args::record::parse_duration;

/// What to watch.
#[derive(Args, Clone, Debug)]
pub(crate) struct TopArgs {
    /// Only these processes and, while it goes on, what they start
    #[arg(short = 'p', long = "pid", value_name = "PID", value_delimiter = ',')]
    pub(crate) pids: Vec<u32>,
    /// Samples a second and processor, 1 to 1000
    #[arg(short = 'F', long = "rate", value_name = "HZ", default_value_t = 99, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rate: u32,
    /// How long the report samples that is printed where standard output is no terminal
    #[arg(short, long, value_name = "DURATION", value_parser = parse_duration, default_value = "5s")]
    pub(crate) duration: Duration,
    /// The time that is shown, from now back [default: 10s, of a server 1m]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) window: Option<Duration>,
    /// Which profiles, of a server [default: {}]
    #[arg(long, value_name = "SELECTOR")]
    pub(crate) query: Option<String>,
}
