//! The dictionary that all tables share.

use crate::Rule;
use hashbrown::HashMap;

/// The append-only dictionary of rules: tables hold 16-bit indexes into it.
///
/// A whole desktop needs about ten thousand different rules, so one dictionary of
/// [`RuleSet::CAPACITY`] serves all tables of a host. Index 0 is always [`Rule::NO_RULE`].
/// Indexes never change, so a copy of `rules()[n..]` brings an older copy of length `n` up to date.
#[derive(Debug, Clone)]
pub struct RuleSet {
    rules: Vec<Rule>,
    indexes: HashMap<Rule, u16>,
}

impl RuleSet {
    /// How many rules fit: the size of the BPF array.
    pub const CAPACITY: usize = 32_768;

    /// A dictionary that holds only [`Rule::NO_RULE`].
    pub fn new() -> RuleSet {
        RuleSet {
            rules: vec![Rule::NO_RULE],
            indexes: HashMap::from([(Rule::NO_RULE, 0)]),
        }
    }

    /// The index of `rule`, which is added if it is new; `None` when the dictionary is full.
    pub fn intern(&mut self, rule: Rule) -> Option<u16> {
        if let Some(&index) = self.indexes.get(&rule) {
            return Some(index);
        }
        if self.rules.len() >= RuleSet::CAPACITY {
            return None;
        }
        let index = self.rules.len() as u16;
        self.rules.push(rule);
        self.indexes.insert(rule, index);
        Some(index)
    }

    /// The index of `rule`, if it is there.
    pub(crate) fn find(&self, rule: Rule) -> Option<u16> {
        self.indexes.get(&rule).copied()
    }

    /// Takes back all rules from `len` on, which nobody has seen yet.
    pub(crate) fn truncate(&mut self, len: usize) {
        for rule in self.rules.drain(len..) {
            self.indexes.remove(&rule);
        }
    }

    /// The rule at `index`; [`Rule::NO_RULE`] if there is none.
    pub fn get(&self, index: u16) -> Rule {
        self.rules
            .get(usize::from(index))
            .copied()
            .unwrap_or(Rule::NO_RULE)
    }

    /// All rules in the order of their indexes.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// How many rules there are, at least one.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a rule set is never empty: rule 0 is NO_RULE"
    )]
    pub fn len(&self) -> usize {
        self.rules.len()
    }
}

impl Default for RuleSet {
    fn default() -> RuleSet {
        RuleSet::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CfaKind, FpKind};

    #[test]
    fn equal_rules_share_an_index() {
        let mut rules = RuleSet::new();
        let first = rules.intern(Rule::AT_ENTRY).expect("room");
        assert_eq!(rules.intern(Rule::AT_ENTRY), Some(first));
        assert_eq!(rules.get(first), Rule::AT_ENTRY);
        assert_eq!(rules.intern(Rule::NO_RULE), Some(0));
    }

    #[test]
    fn a_full_dictionary_refuses_new_rules_and_keeps_old_ones() {
        let mut rules = RuleSet::new();
        let numbered = |n: usize| Rule::new(CfaKind::Rsp, n as i32, FpKind::Same, 0);
        for n in 1..RuleSet::CAPACITY {
            assert_eq!(rules.intern(numbered(n)), Some(n as u16));
        }
        assert_eq!(rules.intern(numbered(RuleSet::CAPACITY)), None);
        assert_eq!(rules.intern(numbered(7)), Some(7));
    }
}
