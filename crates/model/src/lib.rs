//! The profile data model of Candela: pure values and the operations on them.
//!
//! Whatever is read becomes a [`Profile`]; whatever is written comes from one. A profile owns its
//! tables (strings, functions, mappings, locations, stacks, sample label sets) and holds any number
//! of [`ProfileSeries`]: one label set, one profile type, one time window and its samples. A pprof
//! file with four value columns is one profile with four series; a request of an agent with
//! sixty containers is one profile with sixty.
//!
//! This crate never sees IO, clocks, threads, protobuf or any file format.
//!
//! ```
//! use candela_model::{FrameKind, Labels, Location, Profile, ProfileSeries, ProfileType, Sample};
//!
//! let mut profile = Profile::default();
//! let function = profile.symbols.intern_function("burn", "", "burn.c", 10);
//! let location = profile.symbols.intern_location(
//!     &Location::new(FrameKind::Native, 0x1234),
//!     &[(function, 12, 0)],
//! );
//! let stack = profile.stacks.intern(&[location]);
//! let mut series = ProfileSeries::new(
//!     Labels::from_pairs([("service_name", "demo")]),
//!     "process_cpu:cpu:nanoseconds:cpu:nanoseconds".parse::<ProfileType>()?,
//! );
//! series.samples.push(Sample::new(stack, 10_101_010));
//! profile.series.push(series);
//! assert_eq!(profile.series[0].total(), 10_101_010);
//! # Ok::<(), candela_model::ProfileTypeError>(())
//! ```
#![forbid(unsafe_code)]

mod drop_remedies;
mod filter;
mod flame_builder;
mod flame_diff;
mod flame_profile;
mod flame_sides;
mod flame_tree;
mod flame_union;
mod frame_kind;
mod ids;
mod instance_labels;
mod interner;
mod label_sets;
mod labels;
mod lists;
mod merge;
mod node_places;
mod profile;
mod profile_type;
mod profiled_time;
mod sample_value;
mod selector;
mod short_names;
mod source_values;
mod stack_cut;
mod stacks;
mod strings;
mod symbols;
mod validate;
mod wall;

pub use crate::drop_remedies::drop_remedy;
pub use crate::filter::Filter;
pub use crate::filter::FilterError;
pub use crate::filter::FilterKind;
pub use crate::filter::FilterPreset;
pub use crate::filter::Filters;
pub use crate::filter::ShownNodes;
pub use crate::filter::TagMatches;
pub use crate::filter::TagValue;
pub use crate::filter::TagVerdict;
pub use crate::flame_builder::FlameTreeBuilder;
pub use crate::flame_builder::NodeId;
pub use crate::flame_diff::FlameDiff;
pub use crate::flame_diff::FunctionDiff;
pub use crate::flame_diff::NodeValue;
pub use crate::flame_diff::UnionTooLarge;
pub use crate::flame_diff::diff_functions;
pub use crate::flame_tree::FlameTree;
pub use crate::flame_tree::Frame;
pub use crate::flame_tree::FrameId;
pub use crate::flame_tree::FrameTable;
pub use crate::flame_tree::FunctionRow;
pub use crate::frame_kind::FrameKind;
pub use crate::ids::FunctionId;
pub use crate::ids::LabelSetId;
pub use crate::ids::LinkId;
pub use crate::ids::LocationId;
pub use crate::ids::MappingId;
pub use crate::ids::StackId;
pub use crate::ids::StringId;
pub use crate::instance_labels::instance_labels;
pub use crate::label_sets::LabelSetTable;
pub use crate::label_sets::LabelValue;
pub use crate::label_sets::SampleLabel;
pub use crate::labels::Labels;
pub use crate::node_places::NodePlaces;
pub use crate::profile::Link;
pub use crate::profile::Profile;
pub use crate::profile::ProfileSeries;
pub use crate::profile::Sample;
pub use crate::profile_type::ProfileType;
pub use crate::profile_type::ProfileTypeError;
pub use crate::profile_type::Temporality;
pub use crate::profiled_time::ProfiledTime;
pub use crate::selector::LabelMatcher;
pub use crate::selector::MatchOperator;
pub use crate::selector::Selector;
pub use crate::selector::SelectorError;
pub use crate::short_names::SHORT_NAMES;
pub use crate::short_names::TypeResolutionError;
pub use crate::short_names::resolve_profile_type;
pub use crate::short_names::short_name;
pub use crate::source_values::CodeAddress;
pub use crate::source_values::CodePosition;
pub use crate::source_values::CodeValue;
pub use crate::source_values::SourcePlace;
pub use crate::source_values::SourceQuestion;
pub use crate::stack_cut::PgoOptions;
pub use crate::stacks::StackTable;
pub use crate::strings::StringTable;
pub use crate::symbols::Function;
pub use crate::symbols::Line;
pub use crate::symbols::Location;
pub use crate::symbols::Mapping;
pub use crate::symbols::SymbolTables;
pub use crate::validate::ValidationError;
pub use crate::wall::WallCover;
pub use crate::wall::WallParts;

/// The label that names the program a series belongs to.
pub const SERVICE_NAME_LABEL: &str = "service_name";
