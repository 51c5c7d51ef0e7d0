//! The chosen row of a table whose rows change places.

/// A row by what it is of; without that the one at the same place.
#[derive(Clone, Debug)]
pub(crate) struct Selection<K> {
    key: Option<K>,
    position: usize,
}

// === impl Selection ===

impl<K> Default for Selection<K> {
    fn default() -> Self {
        Self {
            key: None,
            position: 0,
        }
    }
}

impl<K: Clone + PartialEq> Selection<K> {
    /// Where the chosen row is now; none in an empty table.
    pub(crate) fn position(&self, keys: &[K]) -> Option<usize> {
        let found = self
            .key
            .as_ref()
            .and_then(|key| keys.iter().position(|it| it == key));
        found.or_else(|| {
            keys.len()
                .checked_sub(1)
                .map(|last| self.position.min(last))
        })
    }

    pub(crate) fn key(&self, keys: &[K]) -> Option<K> {
        keys.get(self.position(keys)?).cloned()
    }

    /// Chooses the row so many below, or above.
    pub(crate) fn step(&mut self, keys: &[K], distance: isize) {
        let Some(position) = self.position(keys) else {
            return;
        };
        self.position = position.saturating_add_signed(distance).min(keys.len() - 1);
        self.key = keys.get(self.position).cloned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chosen_row_is_followed_to_its_new_place() {
        let mut selection: Selection<&str> = Selection::default();
        assert_eq!(selection.position(&[]), None);
        selection.step(&["a", "b", "c"], 1);
        assert_eq!(selection.key(&["c", "a", "b"]), Some("b"));
        assert_eq!(selection.position(&["c", "a", "b"]), Some(2));
        assert_eq!(selection.position(&["c", "a"]), Some(1), "b is gone");
        selection.step(&["c", "a", "b"], 100);
        assert_eq!(selection.key(&["c", "a", "b"]), Some("b"));
        selection.step(&["c", "a", "b"], -100);
        assert_eq!(selection.key(&["c", "a", "b"]), Some("c"));
    }
}
