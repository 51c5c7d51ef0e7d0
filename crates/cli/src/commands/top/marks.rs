//! Two moments to compare: A, and B or what is there now.

use std::cmp::Ordering;

use candela_model::diff_functions;

use super::frame_key::FrameKey;
use super::kind::Kind;
use super::snapshot::Snapshot;

/// What was marked so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    first: Option<Mark>,
    second: Option<Mark>,
}

#[derive(Clone, Debug)]
struct Mark {
    /// What was shown then; that of A is what is compared.
    kind: Kind,
    /// Whose trees it holds.
    group: Option<String>,
    snapshot: Snapshot,
}

/// A function at both moments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) function: FrameKey,
    /// Own nanoseconds a second.
    pub(crate) before: f64,
    pub(crate) after: f64,
}

/// What the marks are of, for the head of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    Nothing,
    WithNow,
    Both,
}

// === impl Marks ===

impl Marks {
    /// The first mark is A, the second B, and the third begins anew.
    pub(crate) fn mark(
        &mut self,
        kind: Kind,
        group: Option<&str>,
        snapshot: &Snapshot,
    ) -> Compared {
        let mark = Mark {
            kind,
            group: group.map(str::to_owned),
            snapshot: snapshot.clone(),
        };
        if self.first.is_some() && self.second.is_none() {
            self.second = Some(mark);
        } else {
            self.first = Some(mark);
            self.second = None;
        }
        self.compared()
    }

    pub(crate) fn compared(&self) -> Compared {
        match (&self.first, &self.second) {
            (None, _) => Compared::Nothing,
            (Some(_), None) => Compared::WithNow,
            (Some(_), Some(_)) => Compared::Both,
        }
    }

    /// What A is of.
    pub(crate) fn first_title(&self) -> String {
        let title = self.first.as_ref().map(|mark| {
            let group = mark.group.as_deref().unwrap_or("all");
            format!("{} of {group}", mark.kind.title())
        });
        title.unwrap_or_default()
    }

    /// What is compared.
    pub(crate) fn kind(&self) -> Option<Kind> {
        self.first.as_ref().map(|mark| mark.kind)
    }

    /// The functions with the largest change of their own value first.
    pub(crate) fn changes(&self, now: &Snapshot) -> Vec<Change> {
        let Some(first) = &self.first else {
            return Vec::new();
        };
        let second = self.second.as_ref();
        let after_snapshot = second.map_or(now, |mark| &mark.snapshot);
        let before = first.snapshot.tree(first.kind);
        let (frames, rows) = diff_functions(before, after_snapshot.tree(first.kind));
        let mut changes: Vec<Change> = rows
            .iter()
            .map(|row| Change {
                function: FrameKey::of(&frames, row.frame),
                before: first.snapshot.per_second(row.before.self_value),
                after: after_snapshot.per_second(row.after.self_value),
            })
            .filter(|change| change.before != 0.0 || change.after != 0.0)
            .collect();
        changes.sort_by(|left, right| {
            let size = |change: &Change| (change.after - change.before).abs();
            let by_size = size(right)
                .partial_cmp(&size(left))
                .unwrap_or(Ordering::Equal);
            by_size.then_with(|| left.function.name.cmp(&right.function.name))
        });
        changes
    }
}
