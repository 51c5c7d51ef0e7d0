//! The labels that attributes are in samples.

use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::SampleLabel;
use candela_model::StringId;
use hashbrown::HashMap;

use crate::otlp::attributes::Plain;
use crate::otlp::dictionary::Attribute;
use crate::otlp::names::sample_label;

/// Labels by the index of their attribute. Each is made once: a text of thousands of bytes would be
/// looked up again for every sample that refers to it.
#[derive(Debug, Default)]
pub(crate) struct SampleLabels {
    by_attribute: HashMap<i32, Vec<SampleLabel>>,
    texts: HashMap<i32, StringId>,
}

impl SampleLabels {
    /// The labels of an attribute, one for each of its values.
    pub(crate) fn of(
        &mut self,
        index: i32,
        attribute: &Attribute<'_>,
        profile: &mut Profile,
    ) -> &[SampleLabel] {
        let made = self.by_attribute.entry(index);
        made.or_insert_with(|| {
            let strings = &mut profile.symbols.strings;
            let key = strings.intern(sample_label(attribute.key));
            let values = attribute.values.iter().map(|value| match value {
                Plain::Text(text) => LabelValue::Text(strings.intern(text)),
                Plain::Number(number) => LabelValue::Number {
                    value: *number,
                    unit: strings.intern(attribute.unit),
                },
            });
            values.map(|value| SampleLabel { key, value }).collect()
        })
    }

    /// The text of an attribute that is no label.
    pub(crate) fn text(&mut self, index: i32, text: &str, profile: &mut Profile) -> StringId {
        let made = self.texts.entry(index);
        *made.or_insert_with(|| profile.symbols.strings.intern(text))
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    #[test]
    fn labels_of_an_attribute_are_made_once() {
        let attribute = |text: &'static str| Attribute {
            key: "thread.name",
            values: vec![Plain::Text(Cow::Borrowed(text)), Plain::Number(7)],
            unit: "",
        };
        let (mut labels, mut profile) = (SampleLabels::default(), Profile::default());
        let first = labels.of(3, &attribute("a"), &mut profile).to_vec();
        assert_eq!(first.len(), 2);
        // The second attribute is not even looked at.
        assert_eq!(labels.of(3, &attribute("b"), &mut profile), first);
        let other = labels.of(4, &attribute("b"), &mut profile);
        assert_ne!(other, first);
        let service = labels.text(5, "service", &mut profile);
        assert_eq!(labels.text(5, "another", &mut profile), service);
    }
}
