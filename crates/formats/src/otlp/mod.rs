//! OTLP profiles, `opentelemetry.proto.profiles.v1development` of version 1.10 and later.
//!
//! The signal is still in development and its field numbers moved between versions under one
//! package name. We speak 1.10, which is the first with the numbers of today, and tell senders of
//! older versions apart where the bytes allow it.

mod attributes;
mod decode;
mod dictionary;
mod dictionary_writer;
mod encode;
mod events;
mod json_read;
mod json_write;
mod label_budget;
mod logs_json;
mod message_count;
mod names;
mod own;
mod profile_type;
mod sample_labels;
mod texts;
mod wire_version;

pub use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
pub use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::profiles::v1development as wire;

use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
use crate::format::Writer;
use crate::inflate::read_inflated;
pub use crate::otlp::decode::decode_otlp;
pub use crate::otlp::decode::decode_otlp_bytes;
pub use crate::otlp::decode::otlp_request_from_bytes;
pub use crate::otlp::encode::OtlpOptions;
pub use crate::otlp::encode::encode_otlp;
pub use crate::otlp::encode::encode_otlp_bytes;
pub(crate) use crate::otlp::events::ENTRY as EVENTS_ENTRY;
pub use crate::otlp::events::logs_request_from_bytes;
pub use crate::otlp::events::read_profile_event_lines;
pub use crate::otlp::events::read_profile_events;
pub use crate::otlp::events::write_profile_events;
pub use crate::otlp::json_read::otlp_request_from_json;
pub use crate::otlp::json_write::otlp_request_to_json;
pub use crate::otlp::logs_json::logs_request_from_json;
use crate::report::Report;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::Otlp,
    name: NAME,
    extensions: &["otlp"],
    description: "OpenTelemetry profiles (OTLP 1.10) protobuf, all sample types",
    keeps: &Part::ALL,
    detects: Some(wire_version::looks_like_otlp),
    read: Some(|input, options| {
        let bytes = read_inflated(input, options.limits.inflated_bytes())?;
        decode_otlp_bytes(&bytes, options)
    }),
    write: Some(Writer::Profile(|profile, output, options| {
        output.write_all(&encode_otlp_bytes(profile, &options.otlp))?;
        output.flush()?;
        Ok(Report::default())
    })),
};

pub(crate) const JSON_ENTRY: Entry = Entry {
    format: Format::OtlpJson,
    name: "otlp-json",
    extensions: &["otlp.json"],
    description: "OpenTelemetry profiles (OTLP 1.10) JSON, all sample types",
    keeps: &Part::ALL,
    detects: Some(json_read::looks_like_otlp_json),
    read: Some(|input, options| {
        let bytes = read_inflated(input, options.limits.inflated_bytes())?;
        let mut repairs = Report::default();
        let request = otlp_request_from_json(&bytes, &options.limits, &mut repairs)?;
        let (profile, mut report) = decode_otlp(&request, options)?;
        report.absorb_notes(repairs);
        Ok((profile, report))
    }),
    write: Some(Writer::Profile(|profile, output, options| {
        let json = otlp_request_to_json(&encode_otlp(profile, &options.otlp));
        serde_json::to_writer(&mut *output, &json).map_err(std::io::Error::from)?;
        output.flush()?;
        Ok(Report::default())
    })),
};

/// The format's name in messages.
const NAME: &str = "otlp";

/// Attributes of our own start with this.
const OWN_PREFIX: &str = "candela.";
/// The first part of the profile type; wins over what the types say.
const PROFILE_NAME_ATTRIBUTE: &str = "candela.profile.name";
/// The kind of code of a location.
const FRAME_TYPE_ATTRIBUTE: &str = "profile.frame.type";
/// Build ids in the order in which we prefer them.
const BUILD_ID_ATTRIBUTES: [&str; 4] = [
    "process.executable.build_id.gnu",
    "process.executable.build_id.go",
    "process.executable.build_id.htlhash",
    // Deprecated name of the last one, still sent.
    "process.executable.build_id.profiling",
];
