//! Where in the document something stands.

use std::fmt;

use serde::Serialize;

/// One step down.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(untagged)]
pub enum PathSegment {
    /// Into an object: a key, in `snake_case` where it is one of ours.
    Key(String),
    /// Into a list: from 0.
    Index(usize),
}

/// The way from the top of the document to a value; empty for the document itself.
///
/// Written `observability_daemons[0].perf_collector.export_to`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct DocumentPath(Vec<PathSegment>);

impl DocumentPath {
    /// The document itself.
    #[must_use]
    pub fn top() -> Self {
        Self::default()
    }

    /// The value of a key below this one.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.with(PathSegment::Key(key.to_owned()))
    }

    /// An element of the list that stands here.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(PathSegment::Index(index))
    }

    /// All steps, from the top.
    #[must_use]
    pub fn segments(&self) -> &[PathSegment] {
        &self.0
    }

    fn with(&self, segment: PathSegment) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment);
        Self(segments)
    }
}

impl fmt::Display for DocumentPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                PathSegment::Index(index) => write!(formatter, "[{index}]")?,
                // Keys of maps of others may hold anything, dots too.
                PathSegment::Key(key) if !is_plain(key) => write!(formatter, "[{key:?}]")?,
                PathSegment::Key(key) if position == 0 => formatter.write_str(key)?,
                PathSegment::Key(key) => write!(formatter, ".{key}")?,
            }
        }
        Ok(())
    }
}

fn is_plain(key: &str) -> bool {
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    !key.is_empty() && key.chars().all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_like_the_document() {
        let daemons = DocumentPath::top().key("observability_daemons");
        let path = daemons.index(1).key("perf_collector").key("export_to");
        let text = "observability_daemons[1].perf_collector.export_to";
        assert_eq!(path.to_string(), text);
        assert_eq!(DocumentPath::top().to_string(), "");
    }

    #[test]
    fn keys_with_dots_are_quoted() {
        let selector = DocumentPath::top().key("writers").index(0);
        let path = selector.key("node_selector").key("a.b/c");
        assert_eq!(path.to_string(), r#"writers[0].node_selector["a.b/c"]"#);
        let first = DocumentPath::top().key("a.b").key("");
        assert_eq!(first.to_string(), r#"["a.b"][""]"#);
    }
}
