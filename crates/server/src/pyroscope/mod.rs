//! The surfaces of Grafana Pyroscope: its clients, and Grafana, find what they know.

mod about;
mod adhoc;
mod attime;
mod ingest;
pub(crate) mod push;
mod querier;
mod render;
mod routes;
mod settings;

pub(crate) use self::routes::ANY_PREFIX;
pub(crate) use self::routes::PYROSCOPE_ROUTES;
