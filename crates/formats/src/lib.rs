//! Profile formats: bytes to [`Profile`](candela_model::Profile) and back, one module per format.
//!
//! Whatever is read becomes the one profile type of `candela-model`, and whatever is written comes
//! from it, so no format knows another. Readers repair what has one sensible meaning and say so in
//! their [`Report`]; what has none they refuse with the problem and the byte where it stands.
//!
//! This crate never sees files, sockets, clocks or symbols: input is any
//! [`BufRead`](std::io::BufRead), the time comes in by [`ReadOptions`].
//!
#![forbid(unsafe_code)]

mod error;
mod inflate;
mod naming;
mod options;
mod otlp;
mod pprof;
mod protobuf;
mod report;

pub use crate::error::ReadError;
pub use crate::error::WriteError;
pub use crate::options::Limits;
pub use crate::options::ReadOptions;
pub use crate::otlp::ExportProfilesServiceRequest;
pub use crate::otlp::OtlpOptions;
pub use crate::otlp::decode_otlp;
pub use crate::otlp::decode_otlp_bytes;
pub use crate::otlp::encode_otlp;
pub use crate::otlp::encode_otlp_bytes;
pub use crate::pprof::PprofOptions;
pub use crate::pprof::read_pprof;
pub use crate::pprof::write_pprof;
pub use crate::report::AttributeValue;
pub use crate::report::Note;
pub use crate::report::Rejection;
pub use crate::report::Report;
