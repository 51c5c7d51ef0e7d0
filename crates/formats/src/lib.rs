//! Profile formats: bytes to [`Profile`](candela_model::Profile) and back, one module per format.
//!
//! Whatever is read becomes the one profile type of `candela-model`, and whatever is written comes
//! from it, so no format knows another. Readers repair what has one sensible meaning and say so in
//! their [`Report`]; what has none they refuse with the problem and the byte where it stands.
//!
//! This crate never sees files, sockets, clocks or symbols: input is any
//! [`BufRead`](std::io::BufRead), the time comes in by [`ReadOptions`].
//!
//! ```
//! use candela_formats::{Format, ReadOptions, WriteOptions};
//!
//! let text = b"main;work 3\nmain;rest 1\n";
//! let format = candela_formats::detect(text).expect("folded stacks");
//! assert_eq!(format, Format::Folded);
//! let (profile, report) = candela_formats::read(format, &text[..], &ReadOptions::default())?;
//! assert!(report.notes.is_empty());
//! assert_eq!(profile.series[0].total(), 4);
//!
//! let mut pprof = Vec::new();
//! candela_formats::write(Format::Pprof, &profile, &mut pprof, &WriteOptions::default())?;
//! assert_eq!(candela_formats::detect(&pprof), Some(Format::Pprof));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod columns;
mod count;
mod dot;
mod error;
mod folded;
mod format;
mod hex;
mod html;
mod inflate;
mod jfr;
mod json;
mod json_limits;
mod named_stacks;
mod naming;
mod normalize;
mod options;
mod otlp;
mod pprof;
mod pprof_text;
mod protobuf;
mod pyroscope;
mod report;
mod selection;
mod speedscope;
mod svg;
mod time_text;
mod top;
mod tree_json;
mod tree_text;
mod type_json;
mod units;

pub use crate::columns::encode_columns;
pub use crate::dot::DotOptions;
pub use crate::dot::write_dot;
pub use crate::error::ReadError;
pub use crate::error::WriteError;
pub use crate::folded::FoldedOptions;
pub use crate::folded::read_folded;
pub use crate::folded::read_groups;
pub use crate::folded::read_lines;
pub use crate::folded::write_folded;
pub use crate::format::Format;
pub use crate::format::Part;
pub use crate::format::WriteOptions;
pub use crate::format::detect;
pub use crate::format::read;
pub use crate::format::write;
pub use crate::html::HtmlOptions;
pub use crate::html::write_html;
pub use crate::inflate::inflate;
pub use crate::inflate::is_compressed;
pub use crate::jfr::JfrOptions;
pub use crate::jfr::read_jfr;
pub use crate::json::read_json;
pub use crate::json::write_json;
pub use crate::normalize::NormalizeOptions;
pub use crate::normalize::normalize;
pub use crate::options::Limits;
pub use crate::options::ReadOptions;
pub use crate::otlp::ExportLogsServiceRequest;
pub use crate::otlp::ExportProfilesServiceRequest;
pub use crate::otlp::OtlpOptions;
pub use crate::otlp::decode_otlp;
pub use crate::otlp::decode_otlp_bytes;
pub use crate::otlp::encode_otlp;
pub use crate::otlp::encode_otlp_bytes;
pub use crate::otlp::logs_request_from_bytes;
pub use crate::otlp::logs_request_from_json;
pub use crate::otlp::otlp_request_from_bytes;
pub use crate::otlp::otlp_request_from_json;
pub use crate::otlp::otlp_request_to_json;
pub use crate::otlp::read_profile_event_lines;
pub use crate::otlp::read_profile_events;
pub use crate::otlp::write_profile_events;
pub use crate::pprof::PprofOptions;
pub use crate::pprof::read_inflated_pprof;
pub use crate::pprof::read_pprof;
pub use crate::pprof::write_pprof;
pub use crate::pprof_text::PprofTextOptions;
pub use crate::pprof_text::TextLayout;
pub use crate::pprof_text::TextOptions;
pub use crate::pprof_text::write_peek;
pub use crate::pprof_text::write_pprof_top;
pub use crate::pprof_text::write_pprof_tree;
pub use crate::pprof_text::write_traces;
pub use crate::pyroscope::FlameDocument;
pub use crate::pyroscope::Flamebearer;
pub use crate::pyroscope::FlamebearerDiff;
pub use crate::pyroscope::Graph;
pub use crate::pyroscope::Timeline;
pub use crate::pyroscope::read_flamebearer;
pub use crate::pyroscope::read_tree;
pub use crate::pyroscope::read_trie;
pub use crate::pyroscope::tree_bytes;
pub use crate::report::AgentReport;
pub use crate::report::AttributeValue;
pub use crate::report::Note;
pub use crate::report::Rejection;
pub use crate::report::Report;
pub use crate::speedscope::read_speedscope;
pub use crate::speedscope::write_speedscope;
pub use crate::svg::Orientation;
pub use crate::svg::SvgDiffOptions;
pub use crate::svg::SvgOptions;
pub use crate::svg::write_svg;
pub use crate::svg::write_svg_diff;
pub use crate::top::TableFormat;
pub use crate::top::csv_field;
pub use crate::top::describe_total;
pub use crate::top::printable;
pub use crate::top::write_top;
pub use crate::tree_json::tree_json;
pub use crate::tree_text::TreeOptions;
pub use crate::tree_text::write_tree;
pub use crate::type_json::type_json;
pub use crate::units::format_share;
pub use crate::units::format_value;
