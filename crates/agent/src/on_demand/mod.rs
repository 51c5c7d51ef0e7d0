//! CPU profiles on demand: `POST /profile/cpu` answers with a profile of the next seconds.
//!
//! The requests and answers are those of the endpoint of Neon's `compute_ctl`, so that what asks there
//! can ask here: PostgreSQL's processes unless told otherwise, one session at a time. Both profilers that
//! a request can name are our own sampler, which needs neither kernel headers nor tools; a tool of the
//! host is run only when the request has its path. Beside it is `/metrics`, as there.
//!
//! ```text
//! routes ─ request ─► session ─► target ─► sampler or tools ─► encode
//! ```

mod encode;
mod error;
mod guard;
mod host_processes;
mod profiling;
mod reply;
mod request;
mod routes;
mod sampler;
mod server;
mod session;
mod target;
mod tools;

pub use self::error::OnDemandError;
pub use self::server::ON_DEMAND_PORT;
pub use self::server::OnDemandHandle;
pub use self::server::OnDemandOptions;
pub use self::server::OnDemandServer;
pub use self::tools::trusted_program;
