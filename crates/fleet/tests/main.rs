//! The document of a fleet, by its bytes.

mod kubernetes;
mod messages;
mod properties;
mod published_documents;
mod trace_configs;
