//! Answers over stored profiles.

mod answers;
mod budgets;
mod cache;
mod call_sites;
mod cancellation;
mod common;
mod compared_samples;
mod heatmaps;
mod labeled;
mod links;
mod lists;
mod model;
mod naive;
mod origins;
mod sample_times;
mod tiers;
mod wall_time;
