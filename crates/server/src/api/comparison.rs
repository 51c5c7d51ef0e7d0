//! How a comparison is made: its parameters, and the samples that its statistics take.

use std::time::Duration;

use candela_formats::DiffClusters;
use candela_formats::DiffOptions;
use candela_formats::DiffSamples;
use candela_formats::SampledFunction;
use candela_formats::SampledNodes;
use candela_insight::ChangeFilter;
use candela_insight::Counts;
use candela_insight::Normalization;
use candela_insight::Pair;
use candela_insight::Side;
use candela_model::FlameDiff;
use candela_model::FrameId;
use candela_model::NodePlaces;
use candela_query::ClusterKind;
use candela_query::ComparedSamples;
use candela_query::Engine;
use candela_query::FunctionSamples;
use candela_query::Query;
use candela_query::QueryError;
use candela_query::SideSamples;
use candela_query::WeightSums;

use crate::api::errors::query_error;
use crate::api_error::ApiError;
use crate::parameters::Parameters;

/// What statistics take beyond this is not worth the wait: the values are there without them.
const MOST_TIME: Duration = Duration::from_secs(10);
/// Only so many nodes are tested, the heaviest: with 32 clusters a side that is 12 MiB, whatever is shown.
const MOST_NODES: usize = 20_000;

/// How a comparison is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ComparisonAsked {
    pub(crate) options: DiffOptions,
    with_statistics: bool,
}

impl ComparisonAsked {
    /// # Errors
    /// 400 with the parameter and what is wrong with it.
    pub(crate) fn of(parameters: &Parameters) -> Result<Self, ApiError> {
        let is_given = parameters.one("statistics").is_some();
        Ok(Self {
            options: DiffOptions {
                normalization: normalization_of(parameters)?,
                fdr: fdr_of(parameters)?,
                changes: changes_of(parameters)?,
            },
            with_statistics: !is_given || parameters.is_on("statistics")?,
        })
    }

    /// The samples of both sides by function and cluster, and by node of the union of their trees. That
    /// these cannot be had is no reason to have no comparison.
    ///
    /// # Errors
    /// As any query, but for its budget.
    pub(crate) fn samples(
        &self,
        engine: &Engine,
        before: &Query,
        after: &Query,
        union: &FlameDiff,
    ) -> Result<DiffSamples, ApiError> {
        let not_asked = || DiffSamples {
            unsampled: Some("not asked for: statistics=false".to_owned()),
            ..DiffSamples::default()
        };
        if !self.with_statistics && self.options.normalization != Normalization::Absolute {
            return Ok(not_asked());
        }
        let hasty = |query: &Query| {
            let mut query = query.clone();
            query.budget.max_time = query.budget.max_time.min(MOST_TIME);
            query
        };
        let places = if self.with_statistics {
            NodePlaces::of(union, MOST_NODES)
        } else {
            NodePlaces::default()
        };
        let sides = [before, after].map(hasty);
        let compared = engine.compared_samples(&sides[0], &sides[1], self.with_statistics, &places);
        match compared {
            Ok(compared) if self.with_statistics => Ok(diff_samples(compared, &places)),
            Ok(compared) => {
                let samples = diff_samples(compared, &places);
                Ok(DiffSamples {
                    before: samples.before,
                    after: samples.after,
                    ..not_asked()
                })
            }
            Err(error @ QueryError::BudgetExceeded { .. }) => Ok(DiffSamples {
                unsampled: Some(format!("statistics are left out: {error}")),
                ..DiffSamples::default()
            }),
            Err(error) => Err(query_error(error)),
        }
    }
}

fn diff_samples(compared: ComparedSamples, places: &NodePlaces) -> DiffSamples {
    let [mut before, mut after] = compared.sides;
    let of_nodes = std::mem::take(&mut before.nodes).into_iter();
    let of_nodes = of_nodes.zip(std::mem::take(&mut after.nodes));
    let nodes = SampledNodes {
        totals: of_nodes
            .map(|(before, after)| pair(before, after))
            .collect(),
        nodes: places.nodes().to_vec(),
        depths: places.depths().to_vec(),
    };
    let frames = 0..compared.frames.frames().len() as u32;
    let functions = frames.filter_map(|frame| {
        let frame = FrameId(frame);
        sampled_function(frame, before.take(frame), after.take(frame))
    });
    let functions = functions.collect();
    DiffSamples {
        clusters: match compared.clusters {
            ClusterKind::Instances => DiffClusters::Instances,
            ClusterKind::Windows => DiffClusters::Windows,
            ClusterKind::One => DiffClusters::One,
        },
        is_paired: compared.is_paired,
        unsampled: compared.unsampled,
        before: side(before),
        after: side(after),
        frames: compared.frames,
        functions,
        nodes,
    }
}

/// `None` for a frame that is on neither side.
fn sampled_function(
    frame: FrameId,
    before: Option<FunctionSamples>,
    after: Option<FunctionSamples>,
) -> Option<SampledFunction> {
    if before.is_none() && after.is_none() {
        return None;
    }
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    Some(SampledFunction {
        frame,
        own: pair(before.own, after.own),
        total: pair(before.total, after.total),
    })
}

fn pair(before: WeightSums, after: WeightSums) -> Pair {
    Pair {
        before: counts(before),
        after: counts(after),
    }
}

fn side(samples: SideSamples) -> Side {
    Side {
        all: counts(samples.all),
        exposure: samples.exposure_ns,
    }
}

fn counts(sums: WeightSums) -> Counts {
    Counts {
        by_cluster: sums.by_cluster,
        squares: sums.squares,
    }
}

fn normalization_of(parameters: &Parameters) -> Result<Normalization, ApiError> {
    let Some(name) = parameters.one("normalization") else {
        return Ok(Normalization::default());
    };
    Normalization::from_name(name).ok_or_else(|| {
        let known = Normalization::ALL.map(Normalization::name);
        unknown("normalization", name, &known)
    })
}

fn changes_of(parameters: &Parameters) -> Result<ChangeFilter, ApiError> {
    let Some(name) = parameters.one("changes") else {
        return Ok(ChangeFilter::default());
    };
    ChangeFilter::from_name(name).ok_or_else(|| {
        let known = ChangeFilter::ALL.map(ChangeFilter::name);
        unknown("changes", name, &known)
    })
}

fn unknown(parameter: &str, given: &str, known: &[&str]) -> ApiError {
    let message = format!("{parameter}: {given:?} is not known");
    let hint = format!("known: {}", known.join(", "));
    ApiError::bad_request("bad_choice", message).hint(hint)
}

fn fdr_of(parameters: &Parameters) -> Result<f64, ApiError> {
    let Some(text) = parameters.one("fdr") else {
        return Ok(DiffOptions::default().fdr);
    };
    let rate = text.parse::<f64>().ok();
    rate.filter(|rate| *rate > 0.0 && *rate < 1.0)
        .ok_or_else(|| {
            let message = format!("fdr: {text:?} is no number between 0 and 1");
            ApiError::bad_request("bad_number", message)
                .hint("0.05 lets one in twenty of what is called significant be chance")
        })
}
