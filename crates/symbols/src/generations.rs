//! A bounded map that forgets what was not used lately.

use std::collections::HashMap;
use std::hash::Hash;

/// Two generations: entries are added to the young one, and a hit in the old one moves its entry to
/// the young. When the young reaches half of the bound, the old is dropped and the young takes its
/// place. That approximates least-recently-used within a factor of two and costs no list, no links
/// and no scan.
#[derive(Debug)]
pub(crate) struct Generations<Key, Value> {
    young: HashMap<Key, (Value, usize)>,
    old: HashMap<Key, (Value, usize)>,
    young_weight: usize,
    old_weight: usize,
    max_weight: usize,
    evicted: u64,
}

impl<Key: Hash + Eq, Value: Clone> Generations<Key, Value> {
    /// A map whose entries weigh at most `max_weight` together.
    pub(crate) fn new(max_weight: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            young_weight: 0,
            old_weight: 0,
            max_weight,
            evicted: 0,
        }
    }

    pub(crate) fn get(&mut self, key: &Key) -> Option<Value> {
        if let Some((value, _)) = self.young.get(key) {
            return Some(value.clone());
        }
        let (key, (value, weight)) = self.old.remove_entry(key)?;
        self.old_weight -= weight;
        let answer = value.clone();
        self.insert(key, value, weight);
        Some(answer)
    }

    /// Adds an entry. One that alone weighs more than half of the bound is not kept.
    pub(crate) fn insert(&mut self, key: Key, value: Value, weight: usize) {
        self.remove(&key);
        if weight > self.max_weight / 2 {
            self.evicted += 1;
            return;
        }
        if self.young_weight + weight > self.max_weight / 2 {
            self.evicted += self.old.len() as u64;
            self.old = std::mem::take(&mut self.young);
            self.old_weight = std::mem::take(&mut self.young_weight);
        }
        self.young_weight += weight;
        self.young.insert(key, (value, weight));
    }

    fn remove(&mut self, key: &Key) {
        if let Some((_, weight)) = self.young.remove(key) {
            self.young_weight -= weight;
        }
        if let Some((_, weight)) = self.old.remove(key) {
            self.old_weight -= weight;
        }
    }

    pub(crate) fn weight(&self) -> usize {
        self.young_weight + self.old_weight
    }

    pub(crate) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Entries dropped since the start.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_used_stays() {
        let mut map = Generations::new(8);
        map.insert(0, "kept", 1);
        for key in 1..100 {
            assert_eq!(map.get(&0), Some("kept"), "after {key} insertions");
            map.insert(key, "passing", 1);
        }
        assert_eq!(map.get(&1), None);
        assert!(map.evicted() > 80);
    }

    proptest! {
        #[test]
        fn weight_is_bounded_and_answers_are_true(
            steps in prop::collection::vec((0_u8..20, 1_usize..12, any::<bool>()), 0..200)
        ) {
            let mut map = Generations::new(20);
            let mut truth = HashMap::new();
            for (key, weight, read) in steps {
                if read {
                    if let Some(value) = map.get(&key) {
                        prop_assert_eq!(Some(&value), truth.get(&key));
                    }
                } else {
                    map.insert(key, weight, weight);
                    truth.insert(key, weight);
                    let kept = (weight <= 10).then_some(weight);
                    prop_assert_eq!(map.get(&key), kept);
                }
                let held = map.young.values().chain(map.old.values()).map(|(_, weight)| weight).sum::<usize>();
                prop_assert_eq!(map.weight(), held);
                prop_assert!(held <= 20);
            }
        }
    }
}
