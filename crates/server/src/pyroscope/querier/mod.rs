//! `querier.v1.QuerierService`: what Grafana's data source, Drilldown and `profilecli` ask.

pub(crate) mod lines;
pub(crate) mod merge;
pub(crate) mod names;
pub(crate) mod selection;
