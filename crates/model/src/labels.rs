//! Series labels.

use std::fmt;

/// The labels of a series: sorted by name, each name once. An empty value is the same as no label,
/// as in Prometheus, so none is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels {
    pairs: Vec<(String, String)>,
}

impl Labels {
    /// Labels from name and value pairs in any order; of equal names the last one counts.
    pub fn from_pairs<N: Into<String>, V: Into<String>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let mut pairs: Vec<(String, String)> = pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        // One sort, as setting label by label moves all that follow for each: readers pass on what
        // strangers send. It is stable, so that of equal names the last stays the last.
        pairs.sort_by(|left, right| left.0.cmp(&right.0));
        pairs.dedup_by(|later, kept| {
            let is_same_name = later.0 == kept.0;
            if is_same_name {
                std::mem::swap(later, kept);
            }
            is_same_name
        });
        pairs.retain(|(_, value)| !value.is_empty());
        Self { pairs }
    }

    /// Sets a label; an empty value removes it.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        let (name, value) = (name.into(), value.into());
        let position = self.pairs.binary_search_by(|pair| pair.0.cmp(&name));
        match (position, value.is_empty()) {
            (Ok(index), true) => {
                self.pairs.remove(index);
            }
            (Ok(index), false) => self.pairs[index].1 = value,
            (Err(_), true) => {}
            (Err(index), false) => self.pairs.insert(index, (name, value)),
        }
    }

    /// Sets a label unless it is there.
    pub fn set_default(&mut self, name: &str, value: &str) {
        if self.get(name).is_none() {
            self.set(name, value);
        }
    }

    /// The value of a label.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let index = self
            .pairs
            .binary_search_by(|pair| pair.0.as_str().cmp(name))
            .ok()?;
        Some(&self.pairs[index].1)
    }

    /// Names and values, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.pairs
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// How many labels there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("{")?;
        for (index, (name, value)) in self.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(formatter, "{separator}{name}={value:?}")?;
        }
        formatter.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_sorted_and_unique() {
        let labels = Labels::from_pairs([("pod", "a"), ("host", "h"), ("pod", "b"), ("empty", "")]);
        assert_eq!(labels.to_string(), r#"{host="h", pod="b"}"#);
        assert_eq!(labels.get("pod"), Some("b"));
        assert_eq!(labels.get("empty"), None);
    }

    #[test]
    fn of_equal_names_the_last_counts_even_if_it_is_empty() {
        let labels = Labels::from_pairs([("pod", "a"), ("pod", "b"), ("host", "h"), ("pod", "c")]);
        assert_eq!(labels.to_string(), r#"{host="h", pod="c"}"#);
        assert!(Labels::from_pairs([("pod", "a"), ("pod", "")]).is_empty());
    }

    #[test]
    fn many_labels_in_descending_order_take_no_quadratic_time() {
        let count = 200_000;
        let labels = Labels::from_pairs((0..count).rev().map(|n| (format!("{n:06}"), "x")));
        assert_eq!(labels.len(), count);
        assert_eq!(labels.iter().next(), Some(("000000", "x")));
    }

    #[test]
    fn an_empty_value_removes() {
        let mut labels = Labels::from_pairs([("pod", "a")]);
        labels.set_default("pod", "z");
        assert_eq!(labels.get("pod"), Some("a"));
        labels.set("pod", "");
        assert!(labels.is_empty());
    }
}
