//! What is left out on purpose.

use std::fmt;
use std::sync::Arc;

use candela_model::Filters;
use candela_model::Labels;
use candela_model::Selector;

use crate::labels::ProcessFacts;

/// The label of what a [`ProcessRule`] leaves out. It is in no profile, as no such series is.
///
/// The verdict goes the way of the labels because it may change when they do: what a pod is called is known after
/// the first samples of its processes.
pub(crate) const LEFT_OUT_LABEL: &str = "candela.left_out";

/// Whose samples are kept, by what is known of a process and does not become a label: its command line, say.
#[derive(Clone)]
pub struct ProcessRule(Arc<dyn Fn(&ProcessFacts) -> bool + Send + Sync>);

/// Which samples are kept, and which of their frames. By default all.
#[derive(Clone, Debug, Default)]
pub struct SampleFilters {
    /// Only series that one of these matches; all where there is none.
    pub include: Vec<Selector>,
    /// No series that one of these matches, even if it is included.
    pub exclude: Vec<Selector>,
    /// Only processes that this keeps; all where there is none.
    pub processes: Option<ProcessRule>,
    /// Frames that are taken out of stacks, whose samples stay: filters of kind hide.
    pub hide: Filters,
    /// Series with fewer samples in a profile are left out of it.
    pub min_samples: u64,
}

// === impl SampleFilters ===

impl SampleFilters {
    /// Whether samples of a series are kept.
    #[must_use]
    pub fn wants(&self, labels: &Labels) -> bool {
        let is_match =
            |selector: &Selector| selector.matches(|name| labels.get(name).unwrap_or_default());
        if labels.get(LEFT_OUT_LABEL).is_some() {
            return false;
        }
        let is_included = self.include.is_empty() || self.include.iter().any(is_match);
        is_included && !self.exclude.iter().any(is_match)
    }

    /// Whether every series is kept whole.
    pub(crate) fn keep_all_series(&self) -> bool {
        self.include.is_empty()
            && self.exclude.is_empty()
            && self.processes.is_none()
            && self.min_samples <= 1
    }
}

// === impl ProcessRule ===

impl ProcessRule {
    /// Keeps processes of which `keeps` says so. It is asked when a process is first sampled, when more is known of
    /// it, and never for a sample.
    pub fn new(keeps: impl Fn(&ProcessFacts) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(keeps))
    }

    /// Whether samples of a process are kept.
    #[must_use]
    pub fn keeps(&self, process: &ProcessFacts) -> bool {
        (self.0)(process)
    }
}

impl fmt::Debug for ProcessRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ProcessRule")
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selectors(texts: &[&str]) -> Vec<Selector> {
        let selectors = texts.iter().map(|text| text.parse().expect("sound"));
        selectors.collect()
    }

    #[test]
    fn exclusion_wins() {
        let filters = SampleFilters {
            include: selectors(&[r#"{service_name=~"web-.*"}"#, r#"{namespace="shop"}"#]),
            exclude: selectors(&[r#"{container="sidecar"}"#]),
            ..SampleFilters::default()
        };
        let wants =
            |pairs: &[(&str, &str)]| filters.wants(&Labels::from_pairs(pairs.iter().copied()));
        assert!(wants(&[("service_name", "web-1")]));
        assert!(wants(&[("service_name", "x"), ("namespace", "shop")]));
        assert!(!wants(&[("service_name", "x")]));
        assert!(!wants(&[("namespace", "shop"), ("container", "sidecar")]));
        assert!(SampleFilters::default().wants(&Labels::default()));
    }
}
