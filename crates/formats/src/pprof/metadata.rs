//! What pprof has no field for, kept in comments: the profile type ids of the columns and the
//! labels that all samples share. Other tools show comments and ignore them.

use candela_model::Labels;
use candela_model::ProfileType;

const TYPE_PREFIX: &str = "candela.type=";
const LABEL_PREFIX: &str = "candela.label.";

/// What our own comments of a profile say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Metadata {
    /// One for each column.
    pub(crate) types: Vec<ProfileType>,
    pub(crate) labels: Labels,
}

impl Metadata {
    /// Takes in a comment; `false` when it is somebody else's.
    pub(crate) fn take(&mut self, comment: &str) -> bool {
        if let Some(id) = comment.strip_prefix(TYPE_PREFIX) {
            let parsed = id.parse::<ProfileType>();
            let is_type = parsed.is_ok();
            self.types.extend(parsed);
            return is_type;
        }
        let label = comment.strip_prefix(LABEL_PREFIX);
        let Some((name, value)) = label.and_then(|label| label.split_once('=')) else {
            return false;
        };
        self.labels.set(name, value);
        true
    }

    /// The comments that say this.
    pub(crate) fn comments(&self) -> Vec<String> {
        let types = self.types.iter().map(|id| format!("{TYPE_PREFIX}{id}"));
        let labels = self
            .labels
            .iter()
            .map(|(name, value)| format!("{LABEL_PREFIX}{name}={value}"));
        types.chain(labels).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_round_trip() {
        let metadata = Metadata {
            types: vec!["a:b:c:d:e".parse().expect("five parts")],
            labels: Labels::from_pairs([("service_name", "x=y")]),
        };
        let mut read = Metadata::default();
        for comment in metadata.comments() {
            assert!(read.take(&comment));
        }
        assert_eq!(read, metadata);
        assert!(!read.take("candela.type=nonsense"));
        assert!(!read.take("go1.22"));
    }
}
