//! What the agent does with real processes, and with servers.

mod host;
mod measure;
mod scrape;
mod support;

#[path = "support/bounds.rs"]
mod bounds;
#[path = "support/memory.rs"]
mod memory;
