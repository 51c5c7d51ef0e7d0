//! Rules that rewrite the labels of targets, with the meaning that Prometheus gave them
//! (<https://prometheus.io/docs/prometheus/latest/configuration/configuration/#relabel_config>).

use candela_model::Labels;
use md5::Digest;
use md5::Md5;
use regex::Regex;

use crate::scrape::error::ScrapeConfigError;

/// Labels of one target at any time, and bytes of a name or value. Rules can double what they find,
/// and a file of targets is written by other programs.
const MOST_LABELS: usize = 512;
const LONGEST_TEXT: usize = 64 << 10;

/// What a rule does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RelabelAction {
    /// Sets `target_label` to `replacement` where the source matches.
    #[default]
    Replace,
    /// Drops targets whose source does not match.
    Keep,
    /// Drops targets whose source matches.
    Drop,
    /// Drops targets whose source is not the value of `target_label`.
    KeepEqual,
    /// Drops targets whose source is the value of `target_label`.
    DropEqual,
    /// Sets `target_label` to the source's MD5 hash modulo `modulus`.
    HashMod,
    /// Copies each label whose name matches to the name that `replacement` makes of it.
    LabelMap,
    /// Removes each label whose name matches.
    LabelDrop,
    /// Removes each label whose name does not match.
    LabelKeep,
    /// Sets `target_label` to the source in lower case.
    Lowercase,
    /// Sets `target_label` to the source in upper case.
    Uppercase,
}

/// A rule as it is configured; the default is Prometheus's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelabelSpec {
    /// Labels whose values, joined by `separator`, are the source.
    pub source_labels: Vec<String>,
    /// What stands between them.
    pub separator: String,
    /// Matched with all of the source, or with all of a name.
    pub regex: String,
    /// Of [`RelabelAction::HashMod`].
    pub modulus: u64,
    /// The label that is set; may refer to groups, as `replacement`.
    pub target_label: String,
    /// The new value; `$1` and `${name}` are groups of the pattern, `$$` is a dollar.
    pub replacement: String,
    /// What is done.
    pub action: RelabelAction,
}

/// A rule that can be applied.
#[derive(Clone, Debug)]
pub struct RelabelRule {
    spec: RelabelSpec,
    regex: Regex,
}

/// What rules made of a target is too large to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "relabelling gave more than {MOST_LABELS} labels or one longer than {LONGEST_TEXT} bytes; look for a rule that doubles"
)]
pub struct RelabelError;

// === impl RelabelAction ===

impl RelabelAction {
    /// Every action with its name in the configuration.
    pub const NAMES: [(&'static str, Self); 11] = [
        ("replace", Self::Replace),
        ("keep", Self::Keep),
        ("drop", Self::Drop),
        ("keepequal", Self::KeepEqual),
        ("dropequal", Self::DropEqual),
        ("hashmod", Self::HashMod),
        ("labelmap", Self::LabelMap),
        ("labeldrop", Self::LabelDrop),
        ("labelkeep", Self::LabelKeep),
        ("lowercase", Self::Lowercase),
        ("uppercase", Self::Uppercase),
    ];

    /// The action of a name, in any case as in Prometheus.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let mut all = Self::NAMES.iter();
        all.find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|&(_, action)| action)
    }

    /// Its name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        let mut all = Self::NAMES.iter();
        all.find(|(_, action)| *action == self)
            .map(|(name, _)| *name)
            .expect("every action is in the table, which a test walks")
    }

    fn sets_a_label(self) -> bool {
        matches!(
            self,
            Self::Replace
                | Self::KeepEqual
                | Self::DropEqual
                | Self::HashMod
                | Self::Lowercase
                | Self::Uppercase
        )
    }
}

// === impl RelabelSpec ===

impl Default for RelabelSpec {
    fn default() -> Self {
        Self {
            source_labels: Vec::new(),
            separator: ";".to_owned(),
            regex: "(.*)".to_owned(),
            modulus: 0,
            target_label: String::new(),
            replacement: "$1".to_owned(),
            action: RelabelAction::default(),
        }
    }
}

// === impl RelabelRule ===

impl RelabelRule {
    /// A rule of its configuration.
    ///
    /// # Errors
    /// [`ScrapeConfigError::Pattern`] and [`ScrapeConfigError::Rule`].
    pub fn new(spec: RelabelSpec) -> Result<Self, ScrapeConfigError> {
        let lacks = |missing| {
            let action = spec.action.name();
            Err(ScrapeConfigError::Rule { action, missing })
        };
        if spec.action.sets_a_label() && spec.target_label.is_empty() {
            return lacks("a target_label");
        }
        if spec.action == RelabelAction::HashMod && spec.modulus == 0 {
            return lacks("a modulus above 0");
        }
        if spec.action == RelabelAction::LabelMap && spec.replacement.is_empty() {
            return lacks("a replacement, which makes the new name");
        }
        // All of the text, over line ends too.
        let anchored = format!("^(?s:{})$", spec.regex);
        let regex = Regex::new(&anchored).map_err(|source| ScrapeConfigError::Pattern {
            pattern: spec.regex.clone(),
            source: Box::new(source),
        })?;
        Ok(Self { spec, regex })
    }

    /// Applies the rule; `false` when the target is dropped.
    fn apply(&self, labels: &mut Labels) -> bool {
        let spec = &self.spec;
        let source = self.source(labels);
        match spec.action {
            RelabelAction::Replace => self.replace(&source, labels),
            RelabelAction::Keep => return self.regex.is_match(&source),
            RelabelAction::Drop => return !self.regex.is_match(&source),
            RelabelAction::KeepEqual => return self.target(labels) == source,
            RelabelAction::DropEqual => return self.target(labels) != source,
            RelabelAction::HashMod => {
                let remainder = hash(&source) % spec.modulus;
                labels.set(spec.target_label.as_str(), remainder.to_string());
            }
            RelabelAction::LabelMap => self.map_names(labels),
            RelabelAction::LabelDrop => self.retain(labels, |is_match| !is_match),
            RelabelAction::LabelKeep => self.retain(labels, |is_match| is_match),
            RelabelAction::Lowercase => {
                labels.set(spec.target_label.as_str(), source.to_lowercase());
            }
            RelabelAction::Uppercase => {
                labels.set(spec.target_label.as_str(), source.to_uppercase());
            }
        }
        true
    }

    /// A label that is not there is an empty text.
    fn source(&self, labels: &Labels) -> String {
        let names = self.spec.source_labels.iter();
        let values: Vec<&str> = names
            .map(|name| labels.get(name).unwrap_or_default())
            .collect();
        values.join(&self.spec.separator)
    }

    fn target<'a>(&self, labels: &'a Labels) -> &'a str {
        labels.get(&self.spec.target_label).unwrap_or_default()
    }

    fn replace(&self, source: &str, labels: &mut Labels) {
        let Some(groups) = self.regex.captures(source) else {
            return;
        };
        let (mut name, mut value) = (String::new(), String::new());
        groups.expand(&self.spec.target_label, &mut name);
        groups.expand(&self.spec.replacement, &mut value);
        // A group that took part in nothing names nothing.
        if !name.is_empty() {
            labels.set(name, value);
        }
    }

    fn map_names(&self, labels: &mut Labels) {
        let pairs = labels.iter().filter_map(|(name, value)| {
            let groups = self.regex.captures(name)?;
            let mut mapped = String::new();
            groups.expand(&self.spec.replacement, &mut mapped);
            (!mapped.is_empty()).then(|| (mapped, value.to_owned()))
        });
        let mapped: Vec<(String, String)> = pairs.collect();
        for (name, value) in mapped {
            labels.set(name, value);
        }
    }

    fn retain(&self, labels: &mut Labels, is_kept: impl Fn(bool) -> bool) {
        let kept = labels
            .iter()
            .filter(|(name, _)| is_kept(self.regex.is_match(name)));
        *labels = Labels::from_pairs(kept.collect::<Vec<_>>());
    }
}

/// The labels after all rules; `None` when one of them drops the target.
///
/// # Errors
/// When the labels grow beyond what any target has.
pub fn relabel(mut labels: Labels, rules: &[RelabelRule]) -> Result<Option<Labels>, RelabelError> {
    for rule in rules {
        if !rule.apply(&mut labels) {
            return Ok(None);
        }
        let is_long = |text: &str| text.len() > LONGEST_TEXT;
        let is_too_much = labels.len() > MOST_LABELS
            || labels
                .iter()
                .any(|(name, value)| is_long(name) || is_long(value));
        if is_too_much {
            return Err(RelabelError);
        }
    }
    Ok(Some(labels))
}

/// Prometheus takes the last eight bytes, so that both divide the same targets alike.
fn hash(text: &str) -> u64 {
    let digest = Md5::digest(text.as_bytes());
    let last: [u8; 8] = digest[8..].try_into().expect("MD5 has 16 bytes");
    u64::from_be_bytes(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(action: &str, change: impl FnOnce(&mut RelabelSpec)) -> RelabelRule {
        let mut spec = RelabelSpec {
            action: RelabelAction::of_name(action).expect("an action"),
            ..RelabelSpec::default()
        };
        change(&mut spec);
        RelabelRule::new(spec).expect("a sound rule")
    }

    fn sources(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn applied(labels: &[(&str, &str)], rules: &[RelabelRule]) -> Option<String> {
        let labels = Labels::from_pairs(labels.iter().copied());
        let labels = relabel(labels, rules).expect("small labels");
        labels.map(|labels| labels.to_string())
    }

    #[test]
    fn actions_have_one_name_each() {
        for (name, action) in RelabelAction::NAMES {
            assert_eq!(action.name(), name);
            assert_eq!(RelabelAction::of_name(&name.to_uppercase()), Some(action));
        }
    }

    /// The rules of KF-13 on a pod with its annotations.
    #[test]
    fn kf_13_rules_make_a_target_of_a_pod() {
        let pod = |phase: &str, scrape: &str| {
            vec![
                ("__address__".to_owned(), "10.0.0.7:8080".to_owned()),
                ("__meta_kubernetes_namespace".to_owned(), "shop".to_owned()),
                ("__meta_kubernetes_pod_name".to_owned(), "web-1".to_owned()),
                ("__meta_kubernetes_pod_phase".to_owned(), phase.to_owned()),
                (
                    "__meta_kubernetes_pod_label_app".to_owned(),
                    "web".to_owned(),
                ),
                ("a_scrape".to_owned(), scrape.to_owned()),
                ("a_port".to_owned(), "6060".to_owned()),
                ("a_profile_memory_enabled".to_owned(), "false".to_owned()),
            ]
        };
        let rules = [
            rule("drop", |spec| {
                spec.source_labels = sources(&["__meta_kubernetes_pod_phase"]);
                spec.regex = "Pending|Succeeded|Failed|Completed".to_owned();
            }),
            rule("labelmap", |spec| {
                spec.regex = "__meta_kubernetes_pod_label_(.+)".to_owned();
            }),
            rule("replace", |spec| {
                spec.source_labels = sources(&["__meta_kubernetes_namespace"]);
                spec.target_label = "kubernetes_namespace".to_owned();
            }),
            rule("keep", |spec| {
                spec.source_labels = sources(&["a_scrape"]);
                spec.regex = "true".to_owned();
            }),
            rule("replace", |spec| {
                spec.source_labels = sources(&["__address__", "a_port"]);
                spec.regex = r"(.+?)(?::\d+)?;(\d+)".to_owned();
                spec.replacement = "$1:$2".to_owned();
                spec.target_label = "__address__".to_owned();
            }),
            rule("labelmap", |spec| {
                spec.regex = "a_profile_(.+)".to_owned();
                spec.replacement = "__profile_$1".to_owned();
            }),
            rule("labeldrop", |spec| spec.regex = "a_.*|__meta_.*".to_owned()),
        ];
        let relabelled = |phase: &str, scrape: &str| {
            let labels = Labels::from_pairs(pod(phase, scrape));
            relabel(labels, &rules).expect("small labels")
        };
        assert_eq!(
            relabelled("Running", "true")
                .map(|labels| labels.to_string())
                .as_deref(),
            Some(
                r#"{__address__="10.0.0.7:6060", __profile_memory_enabled="false", app="web", kubernetes_namespace="shop"}"#
            )
        );
        assert_eq!(relabelled("Succeeded", "true"), None);
        assert_eq!(relabelled("Running", "yes"), None);
        assert_eq!(relabelled("Running", "true "), None, "anchored");
    }

    #[test]
    fn replace_follows_groups_and_leaves_what_does_not_match() {
        let pairs = [("a", "foo-bar"), ("b", "kept")];
        let cases = [
            // pattern, replacement, target, what becomes of it
            (
                "foo-(.*)",
                "x$1",
                "c",
                r#"{a="foo-bar", b="kept", c="xbar"}"#,
            ),
            ("foo", "x", "c", r#"{a="foo-bar", b="kept"}"#),
            (
                "(?P<first>\\w+)-.*",
                "${first}s",
                "b",
                r#"{a="foo-bar", b="foos"}"#,
            ),
            ("foo-(.*)", "", "a", r#"{b="kept"}"#),
            (
                "foo-(.*)",
                "1$$",
                "new_$1",
                r#"{a="foo-bar", b="kept", new_bar="1$"}"#,
            ),
            ("foo-bar(x)?", "v", "$1", r#"{a="foo-bar", b="kept"}"#),
        ];
        for (regex, replacement, target, expected) in cases {
            let rule = rule("replace", |spec| {
                spec.source_labels = sources(&["a"]);
                spec.regex = regex.to_owned();
                spec.replacement = replacement.to_owned();
                spec.target_label = target.to_owned();
            });
            assert_eq!(
                applied(&pairs, &[rule]).as_deref(),
                Some(expected),
                "{regex}"
            );
        }
    }

    #[test]
    fn the_source_is_joined_and_what_is_missing_is_empty() {
        let rule = rule("replace", |spec| {
            spec.source_labels = sources(&["a", "nothing", "b"]);
            spec.separator = "/".to_owned();
            spec.target_label = "c".to_owned();
        });
        assert_eq!(
            applied(&[("a", "1"), ("b", "2\n3")], &[rule]).as_deref(),
            Some(r#"{a="1", b="2\n3", c="1//2\n3"}"#)
        );
    }

    #[test]
    fn hashes_divide_targets_as_prometheus_does() {
        // `printf abc | md5sum` ends like this.
        assert_eq!(hash(""), 0xe980_0998_ecf8_427e);
        assert_eq!(hash("abc"), 0xd696_3f7d_28e1_7f72);
        let rule = rule("hashmod", |spec| {
            spec.source_labels = sources(&["a"]);
            spec.modulus = 16;
            spec.target_label = "shard".to_owned();
        });
        assert_eq!(
            applied(&[("a", "abc")], &[rule]).as_deref(),
            Some(r#"{a="abc", shard="2"}"#)
        );
    }

    #[test]
    fn equality_case_and_names() {
        let pairs = [("a", "Xy"), ("b", "Xy"), ("c", "z")];
        let with = |action: &str, target: &str| {
            let rule = rule(action, |spec| {
                spec.source_labels = sources(&["a"]);
                spec.target_label = target.to_owned();
            });
            applied(&pairs, &[rule])
        };
        let unchanged = r#"{a="Xy", b="Xy", c="z"}"#;
        assert_eq!(with("keepequal", "b").as_deref(), Some(unchanged));
        assert_eq!(with("keepequal", "c"), None);
        assert_eq!(with("dropequal", "b"), None);
        assert_eq!(with("dropequal", "c").as_deref(), Some(unchanged));
        let lower = r#"{a="Xy", b="Xy", c="xy"}"#;
        assert_eq!(with("lowercase", "c").as_deref(), Some(lower));
        let upper = r#"{a="Xy", b="Xy", c="XY"}"#;
        assert_eq!(with("uppercase", "c").as_deref(), Some(upper));
        let keep = rule("labelkeep", |spec| spec.regex = "a|c".to_owned());
        assert_eq!(
            applied(&pairs, &[keep]).as_deref(),
            Some(r#"{a="Xy", c="z"}"#)
        );
    }

    #[test]
    fn rules_that_cannot_work_are_refused() {
        let broken = |action: &str, regex: &str| {
            let spec = RelabelSpec {
                action: RelabelAction::of_name(action).expect("an action"),
                regex: regex.to_owned(),
                ..RelabelSpec::default()
            };
            RelabelRule::new(spec).expect_err("broken").to_string()
        };
        assert_eq!(
            broken("replace", ".*"),
            "relabel action replace needs a target_label"
        );
        assert!(broken("keep", "((").contains("\"((\""));
        let spec = RelabelSpec {
            action: RelabelAction::HashMod,
            target_label: "x".to_owned(),
            ..RelabelSpec::default()
        };
        let error = RelabelRule::new(spec).expect_err("no modulus").to_string();
        assert!(error.contains("modulus"), "{error}");
    }

    #[test]
    fn rules_that_double_are_stopped() {
        let double = || {
            rule("replace", |spec| {
                spec.source_labels = sources(&["a"]);
                spec.replacement = "$1$1".to_owned();
                spec.target_label = "a".to_owned();
            })
        };
        let rules: Vec<RelabelRule> = (0..60).map(|_| double()).collect();
        let labels = Labels::from_pairs([("a", "x")]);
        assert_eq!(relabel(labels, &rules), Err(RelabelError));
    }
}
