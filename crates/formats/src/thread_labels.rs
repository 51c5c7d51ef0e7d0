//! Labels that say whose sample it is.

use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::SampleLabel;
use candela_model::StringId;

use crate::work::STEPS_PER_ENTRY;

/// A thread as formats describe it; what is empty or `None` is unknown and makes no label.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadLabels<'a> {
    pub(crate) thread_name: &'a str,
    pub(crate) thread_id: Option<i64>,
    pub(crate) pid: Option<i64>,
    /// The base name of the executable or what else the format calls the process.
    pub(crate) process_name: &'a str,
    /// One more label that the format has, as name and text.
    pub(crate) other: Option<(&'a str, &'a str)>,
}

impl ThreadLabels<'_> {
    /// What it takes to make the set: threads refer to names that stand in the input once.
    pub(crate) fn steps(&self) -> usize {
        let other = self.other.map_or(0, |(_, text)| text.len());
        let texts = self.thread_name.len() + self.process_name.len() + other;
        STEPS_PER_ENTRY + texts
    }

    /// The set of these labels. Texts are cut by the caller.
    pub(crate) fn intern(&self, profile: &mut Profile) -> LabelSetId {
        let strings = &mut profile.symbols.strings;
        let mut set = Vec::new();
        let mut texts = vec![
            ("thread_name", self.thread_name),
            ("process_executable_name", self.process_name),
        ];
        texts.extend(self.other);
        for (key, text) in texts {
            if !text.is_empty() {
                let key = strings.intern(key);
                set.push(SampleLabel::text(key, strings.intern(text)));
            }
        }
        for (key, number) in [("thread_id", self.thread_id), ("pid", self.pid)] {
            if let Some(value) = number {
                let unit = StringId(0);
                set.push(SampleLabel {
                    key: strings.intern(key),
                    value: LabelValue::Number { value, unit },
                });
            }
        }
        profile.label_sets.intern(set)
    }
}
