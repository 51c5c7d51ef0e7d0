//! How the agent is doing: its counts, its losses, its costs, as JSON and as Prometheus metrics.

mod agent_status;
mod board;
mod cost_status;
mod metrics;
mod parts;

pub use self::agent_status::AgentStatus;
pub use self::agent_status::Quality;
pub(crate) use self::board::StatusBoard;
pub use self::cost_status::CostStatus;
pub use self::cost_status::ProgramStatus;
pub use self::parts::DeliveryStatus;
pub use self::parts::SourceStatus;
pub use self::parts::SymbolStatus;

/// The version of this crate, which is the agent's.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
