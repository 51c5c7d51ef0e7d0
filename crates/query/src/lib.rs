//! Selector and time range to sums by (block, stack), and from there to flame trees, merged
//! profiles, series and lists of what there is.
//!
//! Every answer is made of one primitive, the sum of values by stack over row ranges of a block or
//! over profiles of the head; the ranges come from the table of profiles, so samples of other
//! series are never looked at.
//!
//! What a query is about stands in [`Query`]: labels, a type, a range, filters of frames and tags,
//! traces and spans ([`Query::links`]), single profiles ([`Query::profiles`]). Only profiles answer
//! for the last two: sums have lost both, and an answer that lacks something for that says so.
//!
//! | question | asked with |
//! |---|---|
//! | merged stacks | [`Engine::flame_tree`], [`Engine::profile`]; a call site is a path of [`Query::filters`]; [`Profile::prune_stacks`] and [`Profile::reduce_for_pgo`] make a profile smaller |
//! | values over time | [`Engine::series`]; [`SeriesOptions::origin_ns`] says where points are |
//! | how sure a difference is | [`Engine::compared_samples`]: samples of functions by instance |
//! | which profile, which span | [`Engine::exemplars`], [`Engine::heatmap_lines`]; a [`ProfileKey`] names one profile for ever |
//! | how values are distributed | [`Engine::heatmap`] by second and from zero; [`Engine::heatmap_lines`] as they are, by line |
//! | what each thread did when | [`Engine::chart`], [`Engine::sample_heatmap`]: where it is known when samples were taken |
//! | what there is | [`Engine::types`], [`Engine::labels`], [`Engine::label_values`], [`Engine::label_sets`], [`Engine::services`], [`Engine::stats`] |
//! | what it would cost | [`Engine::estimate`] |
//!
//! [`Profile::prune_stacks`]: candela_model::Profile::prune_stacks
//! [`Profile::reduce_for_pgo`]: candela_model::Profile::reduce_for_pgo
//!
//! This crate never sees HTTP and no wire format.
//!
//! ```
//! use candela_model::{FrameKind, Labels, Location, Profile, ProfileSeries, ProfileType, Sample};
//! use candela_query::{Engine, Query};
//! use candela_store::{Store, StoreOptions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! let mut options = StoreOptions::new(directory.path());
//! options.max_age = None;
//! let store = Store::open(options)?;
//! let mut profile = Profile::default();
//! let function = profile.symbols.intern_function("burn", "", "burn.c", 10);
//! let location = Location::new(FrameKind::Native, 0);
//! let location = profile.symbols.intern_location(&location, &[(function, 12, 0)]);
//! let stack = profile.stacks.intern(&[location]);
//! let mut series = ProfileSeries::new(
//!     Labels::from_pairs([("service_name", "demo")]),
//!     "process_cpu:cpu:nanoseconds:cpu:nanoseconds".parse::<ProfileType>()?,
//! );
//! series.samples.push(Sample::new(stack, 10_000_000));
//! profile.series.push(series);
//! store.append("anonymous", profile).await?;
//!
//! let engine = Engine::new(store);
//! let mut query = Query::new("anonymous");
//! query.selector = r#"{service_name="demo"}"#.parse()?;
//! let answer = engine.flame_tree(&query)?;
//! assert_eq!(answer.value.root_total(), 10_000_000);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod block_sums;
mod budget;
mod cancellation;
mod chart;
mod chart_lanes;
mod cluster_sums;
mod columns;
mod compared_samples;
mod cut_profiles;
mod derived;
mod engine;
mod error;
mod estimate;
mod exemplars;
mod flame;
mod function_tree;
mod heatmap;
mod heatmap_lines;
mod hint;
mod instances;
mod kept;
mod label_lists;
mod left_sums;
mod line_values;
mod link_test;
mod links;
mod matching;
mod merge;
mod names;
mod parts;
mod plan;
mod profile_key;
mod profiled;
mod query;
mod rates;
mod row_sets;
mod run;
mod run_sums;
mod sample_heatmap;
mod sample_times;
mod sample_weight;
mod scan;
mod series;
mod services;
mod shelf;
mod sources;
mod span_sums;
mod sparkline;
mod stack_filter;
mod step_values;
mod steps;
mod stored_profiles;
mod sums;
mod taken;
mod tiers;
mod trie;
mod wall_rows;

pub use crate::cancellation::CancelOnDrop;
pub use crate::cancellation::Cancellation;
pub use crate::chart::Chart;
pub use crate::chart::ChartBox;
pub use crate::chart::ChartLane;
pub use crate::chart::ChartOptions;
pub use crate::compared_samples::ComparedSamples;
pub use crate::compared_samples::FunctionSamples;
pub use crate::compared_samples::SideSamples;
pub use crate::compared_samples::WeightSums;
pub use crate::engine::Engine;
pub use crate::error::QueryError;
pub use crate::estimate::Estimate;
pub use crate::estimate::TenantStats;
pub use crate::exemplars::ExemplarTable;
pub use crate::exemplars::LabeledExemplars;
pub use crate::heatmap::Heatmap;
pub use crate::heatmap::HeatmapColumn;
pub use crate::heatmap::HeatmapOptions;
pub use crate::heatmap_lines::HeatmapCells;
pub use crate::heatmap_lines::HeatmapLine;
pub use crate::heatmap_lines::HeatmapLines;
pub use crate::heatmap_lines::HeatmapLinesOptions;
pub use crate::instances::ClusterKind;
pub use crate::kept::CacheStatus;
pub use crate::label_lists::TYPE_LABELS;
pub use crate::links::LinkSelection;
pub use crate::parts::Exemplar;
pub use crate::parts::ExemplarKind;
pub use crate::parts::ExemplarOf;
pub use crate::profile_key::ProfileKey;
pub use crate::profile_key::ProfileKeyError;
pub use crate::query::Aggregation;
pub use crate::query::Answer;
pub use crate::query::Budget;
pub use crate::query::Query;
pub use crate::sample_heatmap::SampleHeatmap;
pub use crate::sample_heatmap::SampleHeatmapOptions;
pub use crate::series::LabeledPoints;
pub use crate::series::PointValue;
pub use crate::series::SeriesOptions;
pub use crate::series::SeriesTable;
pub use crate::services::ServiceSummary;
pub use crate::services::Services;
pub use crate::sparkline::SPARKLINE_BUCKETS;
pub use crate::stored_profiles::StoredProfile;
