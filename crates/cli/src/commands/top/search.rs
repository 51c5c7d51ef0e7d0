//! The regular expression whose functions are marked.

use candela_model::Filter;
use candela_model::FilterError;
use candela_model::FilterKind;
use candela_model::Filters;
use candela_model::FlameTree;
use candela_model::FrameTable;

/// A search, in the words of the filters of `candela query`.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    pub(crate) text: String,
    filter: Filter,
}

// === impl Search ===

impl Search {
    /// # Errors
    /// When the text is no regular expression.
    pub(crate) fn new(text: &str) -> Result<Self, FilterError> {
        Ok(Self {
            text: text.to_owned(),
            filter: Filter::new(FilterKind::Focus, text)?,
        })
    }

    /// Whether each frame of a table matches.
    pub(crate) fn matches(&self, frames: &FrameTable) -> Vec<bool> {
        Filters::matching_frames(&self.filter, frames)
    }

    /// The value of all stacks with a function that matches, each counted once.
    pub(crate) fn value_in(&self, tree: &FlameTree) -> i64 {
        let matches = self.matches(&tree.frames);
        let mut sum: i64 = 0;
        tree.for_each_stack(|path, value| {
            if path.iter().any(|frame| matches[frame.index()]) {
                sum = sum.saturating_add(value);
            }
        });
        sum
    }
}
