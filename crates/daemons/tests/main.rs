//! Daemons with real files, sockets and buckets.

mod bucket_check;
mod host;
mod measure;
mod outbox;
mod server;
mod supervisor;
mod support;
mod uploads;
