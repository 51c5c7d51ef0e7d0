//! What is said about a function.

use crate::permutation::Confirmation;

/// Ratios this near to one are equal but for rounding.
const ROUNDING: f64 = 1e-9;

/// What became of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChangeClass {
    /// It was not there before.
    New,
    /// It is not there after.
    Gone,
    /// It is on both sides, and significantly different. Where nothing tells how significant that is:
    /// different at all.
    Changed,
    /// It is on both sides, and no difference is known to be more than chance; or on neither.
    #[default]
    Same,
}

/// A value before and after, made comparable.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Change {
    /// After by before. `None` for what is new and what is on neither side.
    pub ratio: Option<f64>,
    /// The least ratio that is in the 95 % interval.
    pub low: Option<f64>,
    /// The greatest; `None` also for what is new, which may be any multiple of nothing.
    pub high: Option<f64>,
    /// How likely chance alone makes as large a difference.
    pub p: Option<f64>,
    /// Of all functions with this q or less, so large a part is expected to be there by chance.
    pub q: Option<f64>,
    /// Whether q is within the rate that was asked for.
    pub is_significant: bool,
    /// Of what is significant: in how large a part of the arrangements of clusters the change is as large.
    /// `None` where there are too few of these.
    pub permutation_p: Option<f64>,
    /// What that says; `None` of what is not significant, which there is nothing to confirm of.
    pub confirmation: Option<Confirmation>,
    /// What became of it.
    pub class: ChangeClass,
}

/// A function's own value and its total.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FunctionChange {
    /// Of the samples that it was running in.
    pub own: Change,
    /// Of the samples in which it was on the stack.
    pub total: Change,
}

/// Which functions of a table are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChangeFilter {
    /// All of them.
    #[default]
    All,
    /// Those of which the own value or the total is significantly different, what is new and gone
    /// among them.
    Significant,
    /// Those that are on both sides and of which the own value or the total changed.
    Changed,
    /// Those that were nowhere before.
    New,
    /// Those that are nowhere after.
    Gone,
}

impl Change {
    /// What values tell without samples. `factor` is what values before are multiplied by.
    #[must_use]
    pub fn of_values(before: f64, after: f64, factor: f64) -> Self {
        let ratio = (before > 0.0).then(|| after / (before * factor));
        let differs = ratio.is_some_and(|ratio| (ratio - 1.0).abs() > ROUNDING);
        Self {
            ratio,
            class: ChangeClass::of(before, after, differs),
            ..Self::default()
        }
    }
}

impl ChangeFilter {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::All,
        Self::Significant,
        Self::Changed,
        Self::New,
        Self::Gone,
    ];

    /// The name as a parameter: `all`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Significant => "significant",
            Self::Changed => "changed",
            Self::New => "new",
            Self::Gone => "gone",
        }
    }

    /// The filter of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// Whether a function is asked for. New is what was not even on a stack: to have an own value for
    /// the first time is a change.
    #[must_use]
    pub fn keeps(self, function: &FunctionChange) -> bool {
        let either = |is: fn(&Change) -> bool| is(&function.own) || is(&function.total);
        match self {
            Self::All => true,
            Self::Significant => either(|change| change.is_significant),
            Self::Changed => {
                !matches!(function.total.class, ChangeClass::New | ChangeClass::Gone)
                    && either(|change| change.class == ChangeClass::Changed)
            }
            Self::New => function.total.class == ChangeClass::New,
            Self::Gone => function.total.class == ChangeClass::Gone,
        }
    }
}

impl ChangeClass {
    /// `new`, `gone`, `changed` or `same`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Gone => "gone",
            Self::Changed => "changed",
            Self::Same => "same",
        }
    }

    /// By presence alone; `differs` decides over what is on both sides.
    pub(crate) fn of(before: f64, after: f64, differs: bool) -> Self {
        match (before > 0.0, after > 0.0) {
            (false, true) => Self::New,
            (true, false) => Self::Gone,
            (true, true) if differs => Self::Changed,
            _ => Self::Same,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_keep_what_they_are_named_after() {
        let class = |own, total, is_significant| FunctionChange {
            own: Change {
                class: own,
                is_significant,
                ..Change::default()
            },
            total: Change {
                class: total,
                ..Change::default()
            },
        };
        use ChangeClass::Changed;
        use ChangeClass::Gone;
        use ChangeClass::New;
        use ChangeClass::Same;
        let cases = [
            (class(Same, Same, false), vec!["all"]),
            (
                class(Changed, Same, true),
                vec!["all", "significant", "changed"],
            ),
            (class(New, New, true), vec!["all", "significant", "new"]),
            (class(Gone, Gone, false), vec!["all", "gone"]),
            (class(New, Changed, false), vec!["all", "changed"]),
        ];
        for (function, expected) in cases {
            let kept = ChangeFilter::ALL
                .into_iter()
                .filter(|it| it.keeps(&function));
            let kept: Vec<&str> = kept.map(ChangeFilter::name).collect();
            assert_eq!(kept, expected, "{function:?}");
        }
        assert_eq!(ChangeFilter::from_name("gone"), Some(ChangeFilter::Gone));
        assert_eq!(ChangeFilter::from_name("none"), None);
    }

    #[test]
    fn values_alone_tell_a_ratio() {
        let change = Change::of_values(10.0, 30.0, 2.0);
        assert_eq!(
            (change.ratio, change.class),
            (Some(1.5), ChangeClass::Changed)
        );
        assert_eq!(Change::of_values(10.0, 20.0, 2.0).class, ChangeClass::Same);
        assert_eq!(Change::of_values(0.0, 20.0, 2.0).ratio, None);
    }
}
