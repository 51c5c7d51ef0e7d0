//! Where profiles go.

mod backoff;
mod delivery;
mod exporter;
mod in_process;
mod otlp_grpc;
pub(crate) mod spool;

pub use self::exporter::ExportError;
pub use self::exporter::Exporter;
pub use self::exporter::Vitals;
pub use self::in_process::InProcess;
pub use self::otlp_grpc::OtlpGrpc;
pub use self::otlp_grpc::OtlpGrpcOptions;
pub use self::spool::SpoolOptions;

pub(crate) use self::delivery::Delivery;
pub(crate) use self::delivery::ProfileQueue;
