//! Load for as long as it takes to see something grow: of the server, or of the agent.

mod agent;
mod server;

pub(crate) use self::agent::AgentSoak;
pub(crate) use self::server::ServerSoak;
