//! What stands in a file of targets: a list of groups, YAML or JSON, as Prometheus's `file_sd`
//! (<https://prometheus.io/docs/prometheus/latest/configuration/configuration/#file_sd_config>).

use candela_model::Labels;
use serde_json::Value;

use crate::scrape::job::TargetGroup;

/// Bytes of a file, and addresses in it.
pub(crate) const MOST_FILE_BYTES: usize = 4 << 20;
const MOST_ADDRESSES: usize = 20_000;

/// Labels of a group.
const MOST_GROUP_LABELS: usize = 256;

/// A text that is no list of groups of targets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetFileError {
    /// Neither YAML nor JSON.
    #[error("no valid YAML or JSON: {0}")]
    Syntax(String),
    /// More than a file may have.
    #[error("more than {limit} {what}; split the file")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much there may be.
        limit: usize,
    },
    /// A part that is not what it should be.
    #[error("{place}: {problem}")]
    Shape {
        /// Which part: `group 2: targets`.
        place: String,
        /// What is wrong.
        problem: String,
    },
}

/// The groups of a file's text; an empty file has none.
///
/// # Errors
/// Where the text is no such list, with the place.
pub fn parse_target_file(text: &str) -> Result<Vec<TargetGroup>, TargetFileError> {
    if text.len() > MOST_FILE_BYTES {
        return Err(TargetFileError::TooLarge {
            what: "bytes",
            limit: MOST_FILE_BYTES,
        });
    }
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    // JSON first: not all of it is YAML, tabs for example.
    let document: Value = serde_json::from_str(text).or_else(|_| {
        serde_saphyr::from_str(text).map_err(|error: serde_saphyr::Error| {
            let message = error.to_string();
            let first_line = message.lines().next().unwrap_or_default();
            TargetFileError::Syntax(first_line.to_owned())
        })
    })?;
    if document.is_null() {
        return Ok(Vec::new());
    }
    parse_target_groups(&document)
}

/// The groups of a list, which may also stand in the configuration.
///
/// # Errors
/// As [`parse_target_file`].
pub fn parse_target_groups(document: &Value) -> Result<Vec<TargetGroup>, TargetFileError> {
    let Value::Array(nodes) = document else {
        return Err(shape(
            "",
            "must be a list of groups with targets and labels",
        ));
    };
    let mut left = MOST_ADDRESSES;
    let groups = nodes.iter().enumerate().map(|(position, node)| {
        let place = format!("group {}", position + 1);
        let found = group(node, &place)?;
        left = left
            .checked_sub(found.addresses.len())
            .ok_or(TargetFileError::TooLarge {
                what: "targets",
                limit: MOST_ADDRESSES,
            })?;
        Ok(found)
    });
    groups.collect()
}

fn group(node: &Value, place: &str) -> Result<TargetGroup, TargetFileError> {
    let Value::Object(entries) = node else {
        return Err(shape(place, "must have targets and labels"));
    };
    let mut group = TargetGroup::default();
    for (name, value) in entries {
        let inner = format!("{place}: {name}");
        match (name.as_str(), value) {
            ("targets" | "labels", Value::Null) => {}
            ("targets", Value::Array(items)) => {
                let texts = items.iter().map(|item| scalar(item, &inner));
                group.addresses = texts.collect::<Result<_, _>>()?;
            }
            ("targets", _) => return Err(shape(&inner, "must be a list of host:port")),
            ("labels", Value::Object(labels)) => {
                if labels.len() > MOST_GROUP_LABELS {
                    return Err(TargetFileError::TooLarge {
                        what: "labels of a group",
                        limit: MOST_GROUP_LABELS,
                    });
                }
                let pairs = labels
                    .iter()
                    .map(|(label, value)| Ok((label.clone(), scalar(value, &inner)?)));
                let pairs = pairs.collect::<Result<Vec<_>, TargetFileError>>()?;
                group.labels = Labels::from_pairs(pairs);
            }
            ("labels", _) => return Err(shape(&inner, "must be names and values")),
            _ => {
                return Err(shape(
                    place,
                    &format!("{name:?} is neither targets nor labels"),
                ));
            }
        }
    }
    Ok(group)
}

/// Numbers and truth values are texts that nobody put quotes around.
fn scalar(node: &Value, place: &str) -> Result<String, TargetFileError> {
    match node {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(flag) => Ok(flag.to_string()),
        _ => Err(shape(place, "every value must be a text")),
    }
}

fn shape(place: &str, problem: &str) -> TargetFileError {
    let place = match place {
        "" => "the file".to_owned(),
        place => place.to_owned(),
    };
    TargetFileError::Shape {
        place,
        problem: problem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_and_json_say_the_same() {
        let yaml = "# shops\n- targets: ['a:6060', b:6060]\n  labels:\n    shard: 7\n    env: prod\n- targets: [\"c:1\"]\n";
        let json = "[\n\t{\"targets\": [\"a:6060\", \"b:6060\"], \"labels\": {\"shard\": \"7\", \"env\": \"prod\"}},\n\t{\"targets\": [\"c:1\"]}\n]";
        let expected = [
            TargetGroup {
                addresses: vec!["a:6060".to_owned(), "b:6060".to_owned()],
                labels: Labels::from_pairs([("env", "prod"), ("shard", "7")]),
            },
            TargetGroup {
                addresses: vec!["c:1".to_owned()],
                labels: Labels::default(),
            },
        ];
        for text in [yaml, json] {
            assert_eq!(parse_target_file(text).expect("sound"), expected);
        }
        for empty in ["", "  \n", "# nothing\n", "[]", "null"] {
            assert_eq!(parse_target_file(empty).expect("sound"), [], "{empty:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let cases = [
            ("targets: [a]", "the file: must be a list of groups"),
            ("- a:1\n", "group 1: must have targets"),
            ("- targets: a:1\n", "group 1: targets: must be a list"),
            ("- {}\n- targets: [[1]]\n", "group 2: targets: every value"),
            (
                "- targets: [a]\n  lables: {}\n",
                "\"lables\" is neither targets nor labels",
            ),
            ("- labels: [a]\n", "group 1: labels: must be names"),
            ("- [", "no valid YAML or JSON"),
        ];
        for (text, part) in cases {
            let error = parse_target_file(text).expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn too_much_is_refused() {
        let many = format!(
            "[{{\"targets\": [{}\"a\"]}}]",
            "\"a\",".repeat(MOST_ADDRESSES)
        );
        let error = parse_target_file(&many).expect_err("too many").to_string();
        assert!(error.contains("more than 20000 targets"), "{error}");
        let long = " ".repeat(MOST_FILE_BYTES + 1);
        assert!(parse_target_file(&long).is_err());
    }
}
