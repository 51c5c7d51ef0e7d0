//! `querier.v1.QuerierService`: what Grafana's data source, Drilldown and `profilecli` ask.

pub(crate) mod analysis;
mod exemplar;
pub(crate) mod heatmap;
pub(crate) mod lines;
pub(crate) mod merge;
pub(crate) mod names;
mod points;
pub(crate) mod selection;
pub(crate) mod series;
