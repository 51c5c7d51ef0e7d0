//! Which pods are meant: selectors of labels and of fields, as Kubernetes writes them.
//!
//! <https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors>,
//! <https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/>

use super::node_report::Pod;

/// Fields of a pod that an agent tells.
const FIELDS: [&str; 4] = [
    "metadata.name",
    "metadata.namespace",
    "spec.nodeName",
    "status.podIP",
];
/// More requirements than this no selector has.
const MOST_REQUIREMENTS: usize = 64;

/// All requirements of all selectors: a pod must meet each of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PodFilter {
    labels: Vec<Requirement>,
    fields: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    condition: Condition,
}

/// What is asked of the value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Condition {
    In(Vec<String>),
    /// None of these, or no value at all.
    NotIn(Vec<String>),
    Exists,
    Missing,
}

impl PodFilter {
    /// # Errors
    /// What is wrong with the first selector that is none.
    pub(super) fn parse(labels: &[String], fields: &[String]) -> Result<Self, String> {
        let mut filter = Self::default();
        for selector in labels {
            for text in split_outside_lists(selector) {
                let requirement = label_requirement(text)
                    .ok_or_else(|| bad("label", selector, "key=value, key!=value, key in (a,b), key notin (a,b), key and !key are read"))?;
                filter.labels.push(requirement);
            }
        }
        for selector in fields {
            for text in selector.split(',').map(str::trim) {
                let requirement = equality(text).filter(|it| FIELDS.contains(&it.key.as_str()));
                let hint = format!("FIELD=VALUE and FIELD!=VALUE of {}", FIELDS.join(", "));
                let requirement = requirement.ok_or_else(|| bad("field", selector, &hint))?;
                filter.fields.push(requirement);
            }
        }
        let count = filter.labels.len() + filter.fields.len();
        if count > MOST_REQUIREMENTS {
            return Err(format!(
                "the filters have {count} requirements, at most {MOST_REQUIREMENTS} may be"
            ));
        }
        Ok(filter)
    }

    /// Whether a node's pod is meant. Without any requirement every node is, also one without a pod.
    pub(super) fn takes(&self, node: &str, pod: Option<&Pod>) -> bool {
        if self.labels.is_empty() && self.fields.is_empty() {
            return true;
        }
        let Some(pod) = pod else {
            return false;
        };
        let field = |key: &str| match key {
            "metadata.name" => Some(pod.name.as_str()),
            "metadata.namespace" => Some(pod.namespace.as_str()),
            "status.podIP" => Some(pod.ip.as_str()),
            "spec.nodeName" => Some(node),
            _ => None,
        };
        let of_label = |it: &Requirement| it.is_met_by(pod.labels.get(&it.key).map(String::as_str));
        let of_field = |it: &Requirement| it.is_met_by(field(&it.key));
        self.labels.iter().all(of_label) && self.fields.iter().all(of_field)
    }
}

impl Requirement {
    fn is_met_by(&self, value: Option<&str>) -> bool {
        let is_among =
            |values: &[String]| value.is_some_and(|value| values.iter().any(|it| it == value));
        match &self.condition {
            Condition::In(values) => is_among(values),
            Condition::NotIn(values) => !is_among(values),
            Condition::Exists => value.is_some(),
            Condition::Missing => value.is_none(),
        }
    }
}

fn label_requirement(text: &str) -> Option<Requirement> {
    if let Some(requirement) = list_requirement(text) {
        return Some(requirement);
    }
    if let Some(requirement) = equality(text) {
        return Some(requirement);
    }
    let (key, condition) = match text.strip_prefix('!') {
        Some(key) => (key.trim(), Condition::Missing),
        None => (text, Condition::Exists),
    };
    Some(Requirement {
        key: checked_key(key)?,
        condition,
    })
}

/// `key in (a, b)` and `key notin (a, b)`.
fn list_requirement(text: &str) -> Option<Requirement> {
    let (left, rest) = text.split_once('(')?;
    let values = rest.strip_suffix(')')?;
    let (key, operator) = left.trim().rsplit_once(char::is_whitespace)?;
    let values = values.split(',').map(|value| checked_value(value.trim()));
    let values = values.collect::<Option<Vec<String>>>()?;
    Some(Requirement {
        key: checked_key(key.trim())?,
        condition: match operator {
            "in" => Condition::In(values),
            "notin" => Condition::NotIn(values),
            _ => return None,
        },
    })
}

/// `key=value`, `key==value` and `key!=value`.
fn equality(text: &str) -> Option<Requirement> {
    let (key, value) = text.split_once('=')?;
    let value = checked_value(value.strip_prefix('=').unwrap_or(value).trim())?;
    let (key, condition) = match key.strip_suffix('!') {
        Some(key) => (key, Condition::NotIn(vec![value])),
        None => (key, Condition::In(vec![value])),
    };
    Some(Requirement {
        key: checked_key(key.trim())?,
        condition,
    })
}

fn checked_key(key: &str) -> Option<String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    (!key.is_empty() && key.chars().all(is_allowed)).then(|| key.to_owned())
}

/// Values of labels may be empty; addresses of version 6 have colons.
fn checked_value(value: &str) -> Option<String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    value.chars().all(is_allowed).then(|| value.to_owned())
}

/// At commas that stand in no list of values.
fn split_outside_lists(text: &str) -> Vec<&str> {
    let mut is_in_list = false;
    let parts = text.split(|c: char| {
        match c {
            '(' => is_in_list = true,
            ')' => is_in_list = false,
            _ => {}
        }
        c == ',' && !is_in_list
    });
    parts.map(str::trim).collect()
}

fn bad(what: &str, selector: &str, hint: &str) -> String {
    let shown: String = selector.chars().take(100).collect();
    format!("{shown:?} is no selector of {what}s: {hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Pod {
        Pod {
            namespace: "shop".to_owned(),
            name: "agent-1".to_owned(),
            ip: "10.0.0.7".to_owned(),
            labels: [("app", "agent"), ("tier", "a"), ("plain", "")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
        }
    }

    fn takes(labels: &[&str], fields: &[&str]) -> bool {
        let texts = |given: &[&str]| given.iter().map(ToString::to_string).collect::<Vec<_>>();
        let filter = PodFilter::parse(&texts(labels), &texts(fields)).expect("a filter");
        filter.takes("node-1", Some(&pod()))
    }

    #[test]
    fn selectors_are_those_of_kubernetes() {
        for (selector, expected) in [
            ("app=agent", true),
            ("app==agent", true),
            ("app = agent", true),
            ("app=other", false),
            ("app!=other", true),
            ("app!=agent", false),
            ("none!=a", true),
            ("app", true),
            ("none", false),
            ("!none", true),
            ("!app", false),
            ("plain=", true),
            ("app in (x, agent),tier=a", true),
            ("app in (x,y)", false),
            ("app notin (x,y),!none", true),
            ("app notin (x,agent)", false),
            ("none notin (x)", true),
        ] {
            assert_eq!(takes(&[selector], &[]), expected, "{selector}");
        }
        for (selector, expected) in [
            ("metadata.name=agent-1", true),
            ("metadata.namespace=shop,status.podIP=10.0.0.7", true),
            ("metadata.namespace!=shop", false),
            ("spec.nodeName=node-1", true),
            ("spec.nodeName=node-2", false),
        ] {
            assert_eq!(takes(&[], &[selector]), expected, "{selector}");
        }
        assert!(takes(&["app=agent", "tier=a"], &["metadata.name=agent-1"]));
        assert!(!takes(&["app=agent", "tier=b"], &[]), "all must be met");
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        for selector in [
            "", "=a", "a=b=c", "a>5", "a in x", "a in (b", "a of (b)", "a=é", "a,,b", "!",
        ] {
            let given = [selector.to_owned()];
            let error = PodFilter::parse(&given, &[]).expect_err(selector);
            assert!(error.contains("is no selector of labels"), "{error}");
        }
        for selector in ["metadata.name", "status.phase=Running", ""] {
            let given = [selector.to_owned()];
            let error = PodFilter::parse(&[], &given).expect_err(selector);
            assert!(error.contains("metadata.namespace"), "{error}");
        }
        let many = vec!["a=b".to_owned(); MOST_REQUIREMENTS + 1];
        assert!(PodFilter::parse(&many, &[]).is_err());
    }

    #[test]
    fn a_node_without_a_pod_is_meant_when_no_pod_is_asked_for() {
        assert!(PodFilter::default().takes("node-1", None));
        let filter = PodFilter::parse(&["!app".to_owned()], &[]).expect("a filter");
        assert!(!filter.takes("node-1", None));
    }
}
