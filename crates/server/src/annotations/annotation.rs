//! What an annotation is, and which texts are one.

use std::collections::BTreeMap;

use candela_model::Selector;
use candela_store::DocumentKind;
use serde::Deserialize;
use serde::Serialize;

use crate::kept_list::Kept;

/// Characters of a text: a sentence and a link.
const MOST_TEXT: usize = 1000;
/// Labels of one annotation, and bytes of a name and of a value.
const MOST_LABELS: usize = 16;
const MOST_LABEL_NAME: usize = 128;
const MOST_LABEL_VALUE: usize = 256;
/// Characters of a kind: it is one word.
const MOST_KIND: usize = 32;

/// Something that happened, as readers of profiles want to know it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Annotation {
    /// Its name, given when it is kept.
    pub id: String,
    /// When, or since when, unix milliseconds.
    pub time_ms: i64,
    /// Until when, for what takes a while.
    pub end_ms: Option<i64>,
    /// `deploy`, `config`, `note` or another word.
    pub kind: String,
    /// What people say of it.
    pub text: String,
    /// What it is about: `service_name`, `version` and others. Without a label it is about all.
    pub labels: BTreeMap<String, String>,
    /// The token or user that wrote it.
    pub author: String,
    /// When it was written, unix milliseconds.
    pub created_ms: i64,
}

/// Why something is no annotation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnnotationError {
    /// The kind is no word.
    #[error("kind {kind:?} is not a word of 1 to {MOST_KIND} small letters, digits, '-' and '_'")]
    Kind {
        /// As given, cut where it is long.
        kind: String,
    },
    /// The text is empty, too long, or has control characters.
    #[error("the text is {reason}")]
    Text {
        /// What is wrong with it.
        reason: String,
    },
    /// The labels are too many or too long.
    #[error("the labels are wrong: {reason}")]
    Labels {
        /// What is wrong with them.
        reason: String,
    },
    /// It ends before it begins.
    #[error("it ends at {end_ms} ms, before it begins at {time_ms} ms")]
    Ends {
        /// The beginning.
        time_ms: i64,
        /// The end.
        end_ms: i64,
    },
    /// The list cannot be read or written.
    #[error("annotations cannot be kept: {reason}")]
    NotKept {
        /// What failed.
        reason: String,
    },
}

impl Annotation {
    /// Whether this may be kept.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), AnnotationError> {
        let is_word =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        let length = self.kind.chars().count();
        if !(1..=MOST_KIND).contains(&length) || !self.kind.chars().all(is_word) {
            let kind = self.kind.chars().take(MOST_KIND).collect();
            return Err(AnnotationError::Kind { kind });
        }
        self.check_text()?;
        self.check_labels()?;
        match self.end_ms {
            Some(end_ms) if end_ms < self.time_ms => Err(AnnotationError::Ends {
                time_ms: self.time_ms,
                end_ms,
            }),
            _ => Ok(()),
        }
    }

    fn check_text(&self) -> Result<(), AnnotationError> {
        let wrong = |reason: String| Err(AnnotationError::Text { reason });
        if self.text.trim().is_empty() {
            return wrong("empty".to_owned());
        }
        let length = self.text.chars().count();
        if length > MOST_TEXT {
            return wrong(format!(
                "{length} characters long, at most {MOST_TEXT} may be"
            ));
        }
        if self.text.chars().any(|c| c.is_control() && c != '\n') {
            return wrong("not all text: it has control characters".to_owned());
        }
        Ok(())
    }

    fn check_labels(&self) -> Result<(), AnnotationError> {
        let wrong = |reason: String| Err(AnnotationError::Labels { reason });
        if self.labels.len() > MOST_LABELS {
            let count = self.labels.len();
            return wrong(format!("there are {count}, at most {MOST_LABELS} may be"));
        }
        for (name, value) in &self.labels {
            if name.is_empty() || name.len() > MOST_LABEL_NAME {
                return wrong(format!("a name has 1 to {MOST_LABEL_NAME} bytes"));
            }
            if value.is_empty() || value.len() > MOST_LABEL_VALUE {
                return wrong(format!(
                    "{name:?} has a value of 1 to {MOST_LABEL_VALUE} bytes"
                ));
            }
            if name.chars().chain(value.chars()).any(char::is_control) {
                return wrong(format!("{name:?} has control characters"));
            }
        }
        Ok(())
    }

    /// Whether it is about something that a selector selects. A label that it does not name may have
    /// any value.
    pub(super) fn is_about(&self, selector: &Selector) -> bool {
        let mut matchers = selector.matchers().iter();
        matchers.all(|matcher| {
            let value = self.labels.get(matcher.name());
            value.is_none_or(|value| matcher.matches(value))
        })
    }

    /// Whether any of it is in a range; the end of the range is not.
    pub(super) fn is_within(&self, from_ms: i64, to_ms: i64) -> bool {
        let end_ms = self.end_ms.unwrap_or(self.time_ms);
        self.time_ms < to_ms && end_ms >= from_ms
    }
}

impl Kept for Annotation {
    const KIND: DocumentKind = DocumentKind::Annotations;
    const DOCUMENT: &'static str = "annotations";
    const NAME: &'static str = "annotation";

    fn id(&self) -> &str {
        &self.id
    }

    fn author(&self) -> &str {
        &self.author
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deploy() -> Annotation {
        Annotation {
            time_ms: 1_000,
            kind: "deploy".to_owned(),
            text: "checkout v2".to_owned(),
            labels: [("service_name", "checkout"), ("version", "v2")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            ..Annotation::default()
        }
    }

    #[test]
    fn it_is_about_what_its_labels_do_not_exclude() {
        let is_about = |selector: &str| deploy().is_about(&selector.parse().expect("a selector"));
        for selector in [
            "{}",
            r#"{service_name="checkout"}"#,
            r#"{service_name=~"check.*", region="eu"}"#,
            r#"{version!="v1"}"#,
        ] {
            assert!(is_about(selector), "{selector}");
        }
        for selector in [r#"{service_name="cart"}"#, r#"{version="v1"}"#] {
            assert!(!is_about(selector), "{selector}");
        }
    }

    #[test]
    fn a_while_is_within_each_range_that_it_touches() {
        let mut some = deploy();
        assert!(some.is_within(1_000, 1_001) && !some.is_within(0, 1_000));
        some.end_ms = Some(5_000);
        assert!(some.is_within(2_000, 3_000) && some.is_within(5_000, 6_000));
        assert!(!some.is_within(5_001, 6_000));
    }

    #[test]
    fn what_is_none_is_told_why() {
        type Change = fn(&mut Annotation);
        let cases: [(Change, &str); 9] = [
            (|it| it.kind = String::new(), "kind"),
            (
                |it| it.kind = "Big Deploy".to_owned(),
                "kind \"Big Deploy\"",
            ),
            (|it| it.kind = "x".repeat(33), "kind"),
            (|it| it.text = " \n".to_owned(), "empty"),
            (|it| it.text = "x".repeat(1001), "1001 characters"),
            (|it| it.text = "a\u{7}".to_owned(), "control"),
            (|it| it.end_ms = Some(999), "before it begins"),
            (
                |it| drop(it.labels.insert(String::new(), "x".to_owned())),
                "a name",
            ),
            (
                |it| {
                    it.labels
                        .extend((0..16).map(|n| (n.to_string(), "x".to_owned())));
                },
                "at most 16",
            ),
        ];
        assert_eq!(deploy().check(), Ok(()));
        for (change, part) in cases {
            let mut wrong = deploy();
            change(&mut wrong);
            let error = wrong.check().expect_err(part).to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
