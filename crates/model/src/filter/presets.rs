//! Lists of filters that have a name: those that the window offers, from the same file.

use serde::Deserialize;

use super::FilterKind;

/// The list of the window.
const LIST: &str = include_str!("../../../../ui/src/model/filter-presets.json");

/// Filters that one would type again and again.
#[derive(Clone, Debug, Deserialize)]
pub struct FilterPreset {
    /// What it is asked for by.
    pub id: &'static str,
    /// What it is good for, in a sentence.
    pub about: &'static str,
    filters: Vec<(String, String)>,
}

// === impl FilterPreset ===

impl FilterPreset {
    /// All of them.
    ///
    /// # Panics
    /// Never: a test reads the list, which is compiled in.
    #[must_use]
    pub fn all() -> Vec<Self> {
        serde_json::from_str(LIST).expect("a test reads this file")
    }

    /// The one of this id.
    #[must_use]
    pub fn from_id(id: &str) -> Option<Self> {
        Self::all().into_iter().find(|preset| preset.id == id)
    }

    /// Its filters in their order.
    pub fn into_filters(self) -> impl Iterator<Item = (FilterKind, String)> {
        let filters = self.filters.into_iter();
        filters.filter_map(|(kind, text)| Some((FilterKind::from_name(&kind)?, text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Filters;

    #[test]
    fn every_preset_is_made_of_filters() {
        for preset in FilterPreset::all() {
            let count = preset.filters.len();
            let id = preset.id;
            let filters: Vec<(FilterKind, String)> = preset.into_filters().collect();
            assert!(count > 0 && filters.len() == count, "{id}: a kind is none");
            let texts: Vec<(FilterKind, &str)> = filters
                .iter()
                .map(|(kind, text)| (*kind, text.as_str()))
                .collect();
            if let Err(error) = Filters::parse(&texts) {
                panic!("{id}: {error}");
            }
        }
        assert!(
            FilterPreset::from_id("kernel").is_some() && FilterPreset::from_id("none").is_none()
        );
    }
}
