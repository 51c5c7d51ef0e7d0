//! How many bytes the labels and types of all series of a request may have together.
//!
//! They are repeated for every series, and their texts may be indices of one long string: without
//! a bound a request of megabytes would make gigabytes of labels.

use candela_model::Labels;
use candela_model::ProfileType;
use opentelemetry_proto::tonic::common::v1::KeyValue;

use crate::otlp::attributes::Plain;
use crate::otlp::attributes::Texts;
use crate::otlp::attributes::key;
use crate::otlp::attributes::plain_values;
use crate::otlp::names::series_label;

/// Attributes of one resource, scope or profile.
const MAX_ATTRIBUTES: usize = 256;

/// Why a profile is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: &'static str,
    pub(crate) example: String,
}

/// What is left for labels.
#[derive(Debug)]
pub(crate) struct LabelBudget {
    left: usize,
    all: usize,
}

/// Checks the number of attributes of a resource, scope or profile.
pub(crate) fn check_attribute_count(count: usize) -> Result<(), Refusal> {
    if count <= MAX_ATTRIBUTES {
        return Ok(());
    }
    Err(Refusal {
        reason: "too_many_attributes",
        example: format!(
            "{count} attributes on one resource, scope or profile, at most {MAX_ATTRIBUTES} may be"
        ),
    })
}

impl LabelBudget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            left: bytes,
            all: bytes,
        }
    }

    /// Pays for bytes that are about to be copied.
    pub(crate) fn pay(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| Refusal {
            reason: "too_many_label_bytes",
            example: format!(
                "the labels of the request's series have more than {} bytes together",
                self.all
            ),
        })?;
        Ok(())
    }

    /// A copy of labels, paid for.
    pub(crate) fn copy(&mut self, labels: &Labels) -> Result<Labels, Refusal> {
        let bytes = labels.iter().map(|(name, value)| name.len() + value.len());
        self.pay(bytes.sum())?;
        Ok(labels.clone())
    }

    /// A copy of a profile type, paid for.
    pub(crate) fn copy_type(&mut self, profile_type: &ProfileType) -> Result<ProfileType, Refusal> {
        let parts = [
            &profile_type.name,
            &profile_type.sample_type,
            &profile_type.sample_unit,
            &profile_type.period_type,
            &profile_type.period_unit,
        ];
        self.pay(parts.iter().map(|part| part.len()).sum())?;
        Ok(profile_type.clone())
    }

    /// Attributes as labels. Attributes of the same name: the last counts.
    pub(crate) fn labels(
        &mut self,
        attributes: &[KeyValue],
        texts: Texts<'_>,
    ) -> Result<Labels, Refusal> {
        check_attribute_count(attributes.len())?;
        let mut pairs = Vec::with_capacity(attributes.len());
        for attribute in attributes {
            let name = series_label(key(attribute, texts));
            if name.is_empty() {
                continue;
            }
            let values = plain_values(attribute.value.as_ref(), texts);
            let bytes = values.iter().map(|value| value.text_bytes() + ",".len());
            self.pay(name.len() + bytes.sum::<usize>())?;
            let values: Vec<_> = values.iter().map(Plain::to_text).collect();
            pairs.push((name, values.join(",")));
        }
        Ok(Labels::from_pairs(pairs))
    }
}
