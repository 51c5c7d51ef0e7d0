//! Labels as clients of Pyroscope, Parca and Profefe push them: some are not labels but say what the profile is.

use candela_model::Labels;
use candela_model::Profile;
use candela_model::SERVICE_NAME_LABEL;
use candela_wire::types::v1::LabelPair;

use crate::api_error::ApiError;

/// What clients that name no service get (pyroscope-api 1.10).
pub(crate) const UNKNOWN_SERVICE: &str = "unknown_service";

/// First part of the profile type.
const NAME: &str = "__name__";

/// The labels of one pushed series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PushedLabels {
    /// First part of the profile type, if the client says it.
    pub(crate) name: Option<String>,
    /// What is stored with the series.
    pub(crate) labels: Labels,
}

impl PushedLabels {
    /// Of a series of a push.
    ///
    /// # Errors
    /// 400 when there are none, or a name is empty or there twice.
    pub(crate) fn of(pairs: Vec<LabelPair>) -> Result<Self, ApiError> {
        let bad = |message: String| Err(ApiError::bad_request("bad_label", message));
        if pairs.is_empty() {
            return bad("a series has no labels".to_owned());
        }
        let mut pairs: Vec<(String, String)> = pairs
            .into_iter()
            .map(|pair| (pair.name, pair.value))
            .collect();
        pairs.sort();
        if pairs[0].0.is_empty() {
            let value = shown(&pairs[0].1);
            return bad(format!("a label without a name, of the value {value:?}"));
        }
        if let Some(twice) = pairs.windows(2).find(|two| two[0].0 == two[1].0) {
            return bad(format!("the label {:?} is given twice", shown(&twice[0].0)));
        }
        Ok(Self::from_pairs(pairs))
    }

    /// An error that says whose profiles are refused.
    pub(crate) fn in_error(&self, error: ApiError) -> ApiError {
        in_error_of(self.labels.get(SERVICE_NAME_LABEL), error)
    }

    /// Labels with two underscores in front are no labels of the series: sessions would make one
    /// series of each process, and the rest is for servers.
    pub(crate) fn from_pairs(pairs: Vec<(String, String)>) -> Self {
        let mut name = None;
        let mut kept = Vec::with_capacity(pairs.len());
        for (label, value) in pairs {
            if label == NAME {
                name = Some(value).filter(|name| !name.is_empty());
            } else if !label.starts_with("__") {
                kept.push((label, value));
            }
        }
        let mut labels = Labels::from_pairs(kept);
        labels.set_default(SERVICE_NAME_LABEL, UNKNOWN_SERVICE);
        Self { name, labels }
    }

    /// The name of the client is the first part of the types (pyroscope-api 1.10).
    pub(crate) fn name_types(&self, profile: &mut Profile) {
        let Some(name) = &self.name else { return };
        for series in &mut profile.series {
            series.profile_type.name.clone_from(name);
        }
    }
}

/// An error that says of which service the profiles are that are refused.
pub(crate) fn in_error_of(service: Option<&str>, mut error: ApiError) -> ApiError {
    let service = shown(service.unwrap_or(UNKNOWN_SERVICE));
    error.message = format!("service {service:?}: {}", error.message);
    error
}

/// As much of a text as a message repeats.
fn shown(text: &str) -> &str {
    const MOST: usize = 64;
    &text[..text.floor_char_boundary(MOST)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Result<PushedLabels, ApiError> {
        let pair = |&(name, value): &(&str, &str)| LabelPair {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        PushedLabels::of(pairs.iter().map(pair).collect())
    }

    #[test]
    fn what_is_no_label_is_not_stored() {
        let pushed = of(&[
            ("__name__", "process_cpu"),
            ("__session_id__", "1f"),
            ("__delta__", "false"),
            ("service_name", "api"),
            ("a.b", "c"),
        ]);
        let pushed = pushed.expect("labels");
        assert_eq!(pushed.name.as_deref(), Some("process_cpu"));
        let wanted = Labels::from_pairs([("service_name", "api"), ("a.b", "c")]);
        assert_eq!(pushed.labels, wanted);
    }

    #[test]
    fn a_series_without_a_service_has_one() {
        let pushed = of(&[("region", "eu")]).expect("labels");
        assert_eq!(pushed.labels.get("service_name"), Some("unknown_service"));
    }

    #[test]
    fn labels_that_cannot_be_are_refused() {
        for pairs in [&[][..], &[("", "x")], &[("a", "1"), ("a", "2")]] {
            let error = of(pairs).expect_err("no labels");
            assert_eq!(error.code, "bad_label", "{}", error.message);
        }
    }
}
