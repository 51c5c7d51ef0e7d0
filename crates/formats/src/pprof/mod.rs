//! pprof: the protobuf format of <https://github.com/google/pprof/blob/main/proto/profile.proto>.
//!
//! Decoding is ours instead of generated code: a profile is read far more often than anything else
//! here, and it needs neither the intermediate structs nor an allocation per field.

mod id_map;
mod labels;
mod metadata;
mod raw;
mod read;
mod rows;
mod write;

pub(crate) use crate::pprof::raw::looks_like_pprof;
pub use crate::pprof::read::read_inflated_pprof;
pub use crate::pprof::read::read_pprof;
pub use crate::pprof::write::PprofOptions;
pub use crate::pprof::write::write_pprof;

/// The format's name in messages.
const NAME: &str = "pprof";

/// Names of the labels that hold what the model keeps apart from labels.
const TRACE_ID_LABEL: &str = "trace_id";
const SPAN_ID_LABEL: &str = "span_id";
/// What Pyroscope's SDKs call the span id.
const OLD_SPAN_ID_LABEL: &str = "profile_id";
const TIME_LABEL: &str = "timestamp_ns";
