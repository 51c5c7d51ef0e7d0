//! Profiles as log records: one `ProfileEvent` each, a JSON object in the text of the body.
//!
//! There are two shapes of the same thing, which agents claim to be one: a flat object (`eventType`,
//! `sampleWeight`, `stackTrace` …) and a nested one (`event.type`, `sample.weight`, `stack_trace` …).
//! Each key is looked for under all of its names, so that a mixture is understood too.

mod decode;
mod fields;
mod labels;
mod lines;
mod measures;
mod stack;
mod time;
mod write;

pub use crate::otlp::events::decode::logs_request_from_bytes;
pub use crate::otlp::events::decode::read_profile_events;
pub(crate) use crate::otlp::events::lines::ENTRY;
pub use crate::otlp::events::lines::read_profile_event_lines;
pub use crate::otlp::events::write::write_profile_events;
