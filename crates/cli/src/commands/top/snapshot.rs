//! One moment of the view: what the last seconds were spent on.

use candela_model::FlameTree;
use candela_model::FlameTreeBuilder;
use candela_model::Profile;

use super::kind::Kind;

/// The samples of some seconds, merged.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// How long the samples were taken.
    pub(crate) seconds: f64,
    /// All that is known of them.
    pub(crate) profile: Profile,
    /// Who they are of, whichever of them the trees are of.
    pub(crate) groups: Vec<Group>,
    /// What the view cannot show and why.
    pub(crate) note: Option<String>,
    /// Whether waiting threads are seen.
    pub(crate) has_waits: bool,
    trees: [FlameTree; 2],
}

/// A process of this host, or a service of a server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    /// What tells it from others: the process id, or the name of the service.
    pub(crate) key: String,
    /// Its service, where the key is another thing.
    pub(crate) name: String,
    /// Nanoseconds, by kind.
    pub(crate) values: [i64; 2],
}

// === impl Snapshot ===

impl Default for Snapshot {
    fn default() -> Self {
        Self::new(Profile::default(), 0.0, Vec::new())
    }
}

impl Snapshot {
    /// Of all samples of a profile.
    pub(crate) fn new(profile: Profile, seconds: f64, groups: Vec<Group>) -> Self {
        Self {
            trees: Kind::ALL.map(|kind| tree_of(&profile, kind)),
            seconds,
            profile,
            groups,
            note: None,
            has_waits: true,
        }
    }

    /// Leaves only who there is: the trees are of somebody who is not asked for any more.
    pub(crate) fn forget_trees(&mut self) {
        *self = Self {
            seconds: self.seconds,
            groups: std::mem::take(&mut self.groups),
            note: self.note.take(),
            has_waits: self.has_waits,
            ..Self::default()
        };
    }

    pub(crate) fn tree(&self, kind: Kind) -> &FlameTree {
        &self.trees[kind.index()]
    }

    /// A value as what it was in each second.
    pub(crate) fn per_second(&self, value: i64) -> f64 {
        if self.seconds <= 0.0 {
            return 0.0;
        }
        value as f64 / self.seconds
    }

    /// What a group did of a kind in each second; a dash where that is not seen.
    pub(crate) fn figure(&self, group: &Group, kind: Kind) -> String {
        if kind == Kind::OffCpu && !self.has_waits {
            return "-".to_owned();
        }
        kind.figure(self.per_second(group.values[kind.index()]))
    }

    /// The groups with the most of a kind first.
    pub(crate) fn groups_by(&self, kind: Kind) -> Vec<&Group> {
        let (first, second) = (kind.index(), kind.other().index());
        let mut groups: Vec<&Group> = self.groups.iter().collect();
        groups.sort_by(|left, right| {
            let by_value = right.values[first].cmp(&left.values[first]);
            let by_other = right.values[second].cmp(&left.values[second]);
            by_value
                .then(by_other)
                .then_with(|| left.key.cmp(&right.key))
        });
        groups
    }
}

fn tree_of(profile: &Profile, kind: Kind) -> FlameTree {
    let mut builder = FlameTreeBuilder::new();
    for (position, series) in profile.series.iter().enumerate() {
        if Kind::of(&series.profile_type) == Some(kind) {
            builder.add_series(profile, position);
        }
    }
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_has_no_figure() {
        let group = Group {
            key: "7".to_owned(),
            name: String::new(),
            values: [500_000_000, 0],
        };
        let mut snapshot = Snapshot::new(Profile::default(), 1.0, vec![group.clone()]);
        assert_eq!(snapshot.figure(&group, Kind::OffCpu), "0.00");
        snapshot.has_waits = false;
        assert_eq!(snapshot.figure(&group, Kind::OffCpu), "-");
        assert_eq!(snapshot.figure(&group, Kind::Cpu), "50.0%");
        snapshot.forget_trees();
        assert!(!snapshot.has_waits);
    }
}
