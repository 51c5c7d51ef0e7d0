//! Lists with a shape of their own: what stands in the file, kept until its reader knows it.

use std::fmt;

use serde_json::Value as Node;

use super::value::MASK;

/// Names whose values nobody is shown.
const SECRETS: [&str; 2] = ["password", "bearer_token"];

/// A list of anything. It may hold secrets, which are not shown.
#[derive(Clone, PartialEq)]
pub(crate) struct Structure(Node);

// === impl Structure ===

impl Structure {
    /// The list of a text as the environment has it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let node: Node = serde_saphyr::from_str(text).map_err(|error| {
            let message = error.to_string();
            let first_line = message.lines().next().unwrap_or_default();
            format!("no valid YAML: {first_line}")
        })?;
        Self::from_node(&node)
    }

    /// The list of a node of the configuration file.
    pub(super) fn from_node(node: &Node) -> Result<Self, String> {
        if !node.is_array() {
            return Err("must be a list".to_owned());
        }
        if has_mask(node) {
            return Err(format!(
                "{MASK} stands for a secret that is not shown; write the secret itself"
            ));
        }
        Ok(Self(node.clone()))
    }

    #[cfg(feature = "agent")]
    pub(crate) fn expose(&self) -> &Node {
        &self.0
    }
}

/// JSON is YAML, too.
impl fmt::Display for Structure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", masked(&self.0))
    }
}

impl fmt::Debug for Structure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

fn is_secret(name: &str, value: &Node) -> bool {
    SECRETS.contains(&name) && !value.is_null()
}

/// The same with masks in the places of secrets.
fn masked(node: &Node) -> Node {
    match node {
        Node::Array(items) => Node::Array(items.iter().map(masked).collect()),
        Node::Object(entries) => {
            let entries = entries.iter().map(|(name, value)| {
                let value = match is_secret(name, value) {
                    true => Node::from(MASK),
                    false => masked(value),
                };
                (name.clone(), value)
            });
            Node::Object(entries.collect())
        }
        single => single.clone(),
    }
}

fn has_mask(node: &Node) -> bool {
    match node {
        Node::Array(items) => items.iter().any(has_mask),
        Node::Object(entries) => entries
            .iter()
            .any(|(name, value)| (is_secret(name, value) && value == MASK) || has_mask(value)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_inside_are_shown_to_nobody() {
        let text =
            r#"[{"basic_auth": {"username": "a", "password": "hunter2"}}, {"bearer_token": 7}]"#;
        let structure = Structure::parse(text).expect("a list");
        let shown = format!("{structure} {structure:?}");
        assert!(
            !shown.contains("hunter2") && !shown.contains('7'),
            "{shown}"
        );
        assert!(shown.contains(r#""username":"a""#), "{shown}");
        let error = Structure::parse(&structure.to_string()).expect_err("only masks");
        assert!(error.contains("write the secret itself"), "{error}");
    }

    #[test]
    fn only_lists_are_taken() {
        for text in ["a: b", "7", "{}", "[{"] {
            assert!(Structure::parse(text).is_err(), "{text}");
        }
        assert_eq!(Structure::parse("[]").expect("a list").to_string(), "[]");
    }
}
