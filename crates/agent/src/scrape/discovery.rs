//! Where targets come from.

use std::fmt;

use candela_model::Labels;

use crate::scrape::job::TargetGroup;

/// The label that says where a target is: `host:port`.
pub(crate) const ADDRESS_LABEL: &str = "__address__";

/// A source of targets: one struct per source. It is asked every few seconds by the thread that
/// scrapes, so it must not wait; what has to watch something does so on a thread of its own.
pub trait TargetDiscovery: fmt::Debug + Send {
    /// Looks again; whether targets or problems are others than before.
    fn refresh(&mut self) -> bool;

    /// The labels of every target, `__address__` and `__meta_*` among them.
    fn targets(&self) -> &[Labels];

    /// What could not be read, one line each; targets known before stay.
    fn problems(&self) -> &[String];
}

/// Targets that stand in the configuration.
#[derive(Clone, Debug, Default)]
pub struct StaticTargets {
    targets: Vec<Labels>,
    is_new: bool,
}

// === impl StaticTargets ===

impl StaticTargets {
    /// The targets of some groups.
    #[must_use]
    pub fn new(groups: &[TargetGroup]) -> Self {
        Self {
            targets: groups.iter().flat_map(group_targets).collect(),
            is_new: true,
        }
    }
}

impl TargetDiscovery for StaticTargets {
    fn refresh(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }

    fn targets(&self) -> &[Labels] {
        &self.targets
    }

    fn problems(&self) -> &[String] {
        &[]
    }
}

/// The labels of each target of a group.
pub(crate) fn group_targets(group: &TargetGroup) -> impl Iterator<Item = Labels> {
    group.addresses.iter().map(|address| {
        let mut labels = group.labels.clone();
        labels.set(ADDRESS_LABEL, address.as_str());
        labels
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_targets_are_new_once() {
        let group = TargetGroup {
            addresses: vec!["a:1".to_owned(), "b:1".to_owned()],
            labels: Labels::from_pairs([("env", "test")]),
        };
        let mut targets = StaticTargets::new(&[group]);
        assert!(targets.refresh());
        assert!(!targets.refresh());
        let shown: Vec<String> = targets.targets().iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                r#"{__address__="a:1", env="test"}"#,
                r#"{__address__="b:1", env="test"}"#
            ]
        );
    }
}
