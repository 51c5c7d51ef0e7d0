//! The surfaces of Grafana Pyroscope: its clients, and Grafana, find what they know.

mod about;
mod adhoc;
mod attime;
mod ingest;
mod labels;
pub(crate) mod push;
mod pushed;
mod querier;
mod raw_series;
mod render;
mod routes;
mod settings;

pub(crate) use self::labels::PushedLabels;
pub(crate) use self::pushed::Pushed;
pub(crate) use self::raw_series::RawSeries;
pub(crate) use self::raw_series::receive;
pub(crate) use self::routes::ANY_PREFIX;
pub(crate) use self::routes::PYROSCOPE_ROUTES;
