//! The path from the root to the subtree that is asked for.

use super::frame::FrameTexts;

/// A frame of the path, by its exact texts.
#[derive(Clone, Debug)]
pub(super) struct PathFrame {
    function: String,
    /// `None` is any. Siblings of one name differ by these.
    file: Option<String>,
    binary: Option<String>,
}

impl PathFrame {
    /// `NAME`, `NAME⇥FILE` or `NAME⇥FILE⇥BINARY`: no name of a function has a tab in it.
    pub(super) fn new(text: &str) -> Self {
        let mut parts = text.split('\t').map(str::to_owned);
        Self {
            function: parts.next().unwrap_or_default(),
            file: parts.next(),
            binary: parts.next(),
        }
    }

    pub(super) fn is(&self, frame: &FrameTexts<'_>) -> bool {
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == found)
        };
        self.function == frame.function
            && is(&self.file, frame.file)
            && is(&self.binary, frame.binary)
    }
}
