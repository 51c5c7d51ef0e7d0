//! The fleet: one document that says which daemons run on every node, the nodes that listen for it, and
//! snapshots of all of them at one moment.
//!
//! A node holds a stream open, on which it is told the document and each new one, and reports what its
//! daemons do. The document is kept with the store; which nodes there are is not, they say so again.

mod chalk;
mod counts;
mod documents;
mod hub;
mod instance;
mod lines;
mod listener;
mod node_report;
mod nodes;
mod orders;
mod pod_filter;
mod routes;
mod snapshot;
mod stream;
mod trigger;
mod versions;

pub(crate) use self::chalk::CHALK_ROUTES;
pub(crate) use self::counts::write_fleet_metrics;
pub(crate) use self::hub::Fleet;
pub(crate) use self::routes::FLEET_ROUTES;
