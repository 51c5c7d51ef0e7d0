//! Reading what is to be converted: leaves of a YAML document, or variables.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;

use serde_json::Value as Node;

use super::meanings::PREFIX_OF_VARIABLES;
use super::meanings::path_of_variable;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;

/// The largest configuration that is read, bytes.
const LARGEST: u64 = 16 << 20;

/// What is to be converted.
#[derive(Debug)]
pub(super) struct Source {
    /// As its file is called.
    pub(super) name: String,
    /// Later ones win.
    pub(super) entries: Vec<Entry>,
}

/// A key of Telegen with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Dotted; none for a variable that has no key.
    pub(super) path: Option<String>,
    /// What people know it by: the key, or the variable.
    pub(super) shown: String,
    pub(super) value: Node,
}

// === impl Source ===

impl Source {
    /// Reads a file (`-` is standard input), which is YAML, or variables as `NAME=value`, one a line. The
    /// variables of the environment come after it, as with Telegen.
    ///
    /// # Errors
    /// When it cannot be read, or is neither.
    pub(super) fn read(
        path: &Path,
        environment: &BTreeMap<String, String>,
    ) -> Result<Self, CliError> {
        let name = match path.as_os_str() == "-" {
            true => "standard input".to_owned(),
            false => path.display().to_string(),
        };
        let text = read_text(path).or_exit(ExitStatus::Usage, &name)?;
        let mut entries = match variables(&text) {
            Some(variables) => entries_of(variables),
            None => {
                leaves_of(&text).map_err(|problem| CliError::usage(format!("{name}: {problem}")))?
            }
        };
        let variables = environment.iter();
        entries.extend(entries_of(
            variables.map(|(name, value)| (name.as_str(), value.as_str())),
        ));
        Ok(Self { name, entries })
    }
}

fn read_text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    match path.as_os_str() == "-" {
        true => std::io::stdin().take(LARGEST).read_to_string(&mut text)?,
        false => fs::File::open(path)?
            .take(LARGEST)
            .read_to_string(&mut text)?,
    };
    Ok(text)
}

/// The variables of a file for systemd (EnvironmentFile=), Docker (--env-file) or a shell; none when it
/// has anything else.
fn variables(text: &str) -> Option<Vec<(&str, &str)>> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let variables: Option<Vec<_>> = lines
        .map(|line| {
            let (name, value) = line
                .strip_prefix("export ")
                .unwrap_or(line)
                .split_once('=')?;
            let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            let value = value.trim();
            let quoted = ['"', '\''].into_iter().find_map(|quote| {
                value
                    .strip_prefix(quote)
                    .and_then(|rest| rest.strip_suffix(quote))
            });
            name.chars()
                .all(is_name)
                .then_some((name, quoted.unwrap_or(value)))
        })
        .collect();
    variables.filter(|variables| !variables.is_empty())
}

fn entries_of<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Entry> {
    let ours = variables.into_iter();
    let ours = ours.filter(|(name, _)| name.starts_with(PREFIX_OF_VARIABLES));
    ours.map(|(name, value)| Entry {
        path: path_of_variable(name),
        shown: name.to_owned(),
        value: Node::from(value),
    })
    .collect()
}

fn leaves_of(text: &str) -> Result<Vec<Entry>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let document: Node = serde_saphyr::from_str(text).map_err(|error| {
        let error = error.to_string();
        format!("no valid YAML: {}", error.lines().next().unwrap_or(&error))
    })?;
    let mut entries = Vec::new();
    match &document {
        Node::Null => {}
        Node::Object(_) => leaves("", &document, &mut entries),
        _ => return Err("neither sections nor variables are in it".to_owned()),
    }
    Ok(entries)
}

fn leaves(path: &str, node: &Node, entries: &mut Vec<Entry>) {
    if let Node::Object(children) = node
        && (!children.is_empty() || path.is_empty())
    {
        for (name, child) in children {
            let path = match path.is_empty() {
                true => name.clone(),
                false => format!("{path}.{name}"),
            };
            leaves(&path, child, entries);
        }
        return;
    }
    entries.push(Entry {
        path: Some(path.to_owned()),
        shown: path.to_owned(),
        value: node.clone(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_variables_are_told_from_yaml() {
        let text = "# agent\nexport TELEGEN_AGENT_PROFILING_CPU=true\nOTHER='a b'\n";
        let found = variables(text).expect("variables");
        assert_eq!(
            found,
            [("TELEGEN_AGENT_PROFILING_CPU", "true"), ("OTHER", "a b")]
        );
        assert_eq!(variables("profiling:\n  x: a=b\n"), None);
        assert_eq!(variables("# nothing\n"), None);
    }

    #[test]
    fn leaves_have_dotted_paths() {
        let entries = leaves_of("a:\n  b: [1, 2]\n  c: {}\nd: null\n").expect("valid");
        let paths: Vec<&str> = entries.iter().map(|entry| &*entry.shown).collect();
        assert_eq!(paths, ["a.b", "a.c", "d"]);
        assert!(leaves_of("- 1").is_err());
        assert!(leaves_of("a: [").is_err());
    }
}
