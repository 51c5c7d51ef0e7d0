//! The ways in: every profile is decoded and checked before it reaches the log.

pub(crate) mod admission;
pub(crate) mod append;
pub(crate) mod batch;
pub(crate) mod body;
pub(crate) mod decode;
pub(crate) mod form;
mod grpc_status;
pub(crate) mod limits;
mod otlp;
pub(crate) mod otlp_grpc;
pub(crate) mod otlp_http;
mod otlp_logs;
mod otlp_profiles;
pub(crate) mod pushed_labels;
pub(crate) mod raw_series;
pub(crate) mod read;
pub(crate) mod room;
pub(crate) mod taken_formats;
pub(crate) mod upload;

pub(crate) use self::grpc_status::call_status;
pub(crate) use self::grpc_status::grpc_status;
