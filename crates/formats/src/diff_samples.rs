//! What statistics of a comparison are made of: functions by cluster.

use candela_insight::Pair;
use candela_insight::Side;
use candela_model::FrameId;
use candela_model::FrameTable;

/// What the samples of a comparison are told apart by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiffClusters {
    /// Instances on both sides.
    Instances,
    /// Windows of time of one instance.
    Windows,
    /// Nothing: each side is one.
    #[default]
    One,
}

/// Samples of both sides, those of functions by cluster.
#[derive(Clone, Debug, Default)]
pub struct DiffSamples {
    /// What clusters are.
    pub clusters: DiffClusters,
    /// Whether they are the same on both sides, in one order.
    pub is_paired: bool,
    /// Why values tell nothing of samples, when they do not. Then only values are compared, and of the
    /// sides only the exposure counts.
    pub unsampled: Option<String>,
    /// All samples before.
    pub before: Side,
    /// All samples after.
    pub after: Side,
    /// The frames of the functions.
    pub frames: FrameTable,
    /// The functions.
    pub functions: Vec<SampledFunction>,
    /// Nodes of the union of both trees, none where nobody asked for them.
    pub nodes: SampledNodes,
}

/// The samples of the heaviest nodes of a tree, in pre-order.
#[derive(Clone, Debug, Default)]
pub struct SampledNodes {
    /// Which nodes these are.
    pub nodes: Vec<u32>,
    /// Of each the distance to the root.
    pub depths: Vec<u16>,
    /// Of each the samples in it and below it.
    pub totals: Vec<Pair>,
}

/// The samples of one function.
#[derive(Clone, Debug, Default)]
pub struct SampledFunction {
    /// The function.
    pub frame: FrameId,
    /// Those in which it ran itself.
    pub own: Pair,
    /// Those in which it is on the stack.
    pub total: Pair,
}

impl DiffClusters {
    /// `instances`, `windows` or `none`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Instances => "instances",
            Self::Windows => "windows",
            Self::One => "none",
        }
    }

    /// What is to be known about a confidence that is by these.
    pub(crate) const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Instances => None,
            Self::Windows => Some(
                "one instance on a side: windows of time stand for instances, so what instances differ by is not in the intervals",
            ),
            Self::One => Some(
                "one profile or instance on a side: samples are counted as if all were independent (Poisson), so the intervals are too narrow wherever runs differ",
            ),
        }
    }
}
