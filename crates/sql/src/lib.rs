//! Read-only SQL over the profiles of one tenant: blocks and head as DataFusion tables.
#![forbid(unsafe_code)]
