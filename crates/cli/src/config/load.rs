//! Finding and reading the sources of the configuration.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use super::Origin;
use super::Setting;
use super::Settings;
use super::Value;
use super::key_search;
use super::keys;
use super::keys::Key;
use super::keys::keys;
use crate::errors::CliError;

/// What the configuration is made from. The environment is given, not read, so that tests need no
/// process of their own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inputs {
    /// `--config`.
    pub(crate) config_flag: Option<PathBuf>,
    /// All environment variables.
    pub(crate) environment: BTreeMap<String, String>,
    /// Flags that set keys.
    pub(crate) flags: Vec<Flag>,
}

/// A flag that sets a key: path, name of the flag, text.
pub(crate) type Flag = (&'static str, &'static str, String);

/// Variables of ours that are no keys.
const OTHER_VARIABLES: [&str; 4] = [
    "CANDELA_CONFIG",
    "CANDELA_DATA_DIR",
    "CANDELA_TOKEN",
    "CANDELA_LOG",
];

/// The resolved configuration.
///
/// # Errors
/// A file that cannot be read or parsed, an unknown key (with a suggestion), a value that its key
/// does not take. All problems of one source are listed at once.
pub(crate) fn load(inputs: &Inputs) -> Result<Settings, CliError> {
    let mut settings = defaults();
    if let Some(path) = find_file(inputs)? {
        apply_file(&mut settings, &path)?;
    }
    apply_environment(&mut settings, &inputs.environment)?;
    apply_flags(&mut settings, &inputs.flags)?;
    Ok(Settings { settings })
}

/// The defaults and what is given: for commands that a file or a variable of a server is not for.
///
/// # Errors
/// A value that its key does not take.
#[cfg(feature = "server")]
pub(crate) fn load_given(flags: &[Flag]) -> Result<Settings, CliError> {
    let mut settings = defaults();
    apply_flags(&mut settings, flags)?;
    Ok(Settings { settings })
}

fn apply_flags(
    settings: &mut BTreeMap<&'static str, Setting>,
    flags: &[Flag],
) -> Result<(), CliError> {
    for (path, flag, text) in flags {
        let key = key_search::find(path).expect("flags name keys of the table");
        let value = Value::parse(key.kind, text)
            .map_err(|error| CliError::usage(format!("{flag}: {error}")))?;
        set(settings, key, value, Origin::Flag(flag));
    }
    Ok(())
}

/// Puts a value over the one of a weaker source. Nothing (an empty text, a YAML null) takes the place
/// of nothing but nothing: a key with a default always has a value, which its readers rely on.
fn set(
    settings: &mut BTreeMap<&'static str, Setting>,
    key: &'static Key,
    value: Value,
    origin: Origin,
) {
    let is_optional = key.default.is_empty();
    if value != Value::Unset || is_optional {
        settings.insert(key.path, Setting { value, origin });
    }
}

fn defaults() -> BTreeMap<&'static str, Setting> {
    keys()
        .map(|key| {
            let value = Value::parse(key.kind, key.default).expect("a test parses all defaults");
            (
                key.path,
                Setting {
                    value,
                    origin: Origin::Default,
                },
            )
        })
        .collect()
}

/// The first of the places that the contract lists. A file that was asked for must be there.
fn find_file(inputs: &Inputs) -> Result<Option<PathBuf>, CliError> {
    if let Some(path) = &inputs.config_flag {
        return Ok(Some(path.clone()));
    }
    let variable = |name: &str| {
        inputs
            .environment
            .get(name)
            .filter(|value| !value.is_empty())
    };
    if let Some(path) = variable("CANDELA_CONFIG") {
        return Ok(Some(PathBuf::from(path)));
    }
    let config_home = variable("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".config")));
    let candidates = [
        Some(PathBuf::from("candela.yaml")),
        config_home.map(|folder| folder.join("candela/candela.yaml")),
        Some(PathBuf::from("/etc/candela/candela.yaml")),
    ];
    for candidate in candidates.into_iter().flatten() {
        // A default place that may not be looked into (another user's home after `sudo -u`) holds
        // nothing for us.
        let is_there = candidate.try_exists().unwrap_or(false);
        if is_there {
            return Ok(Some(candidate));
        }
    }
    Ok(None)
}

fn apply_file(
    settings: &mut BTreeMap<&'static str, Setting>,
    path: &PathBuf,
) -> Result<(), CliError> {
    let in_file =
        |message: String| CliError::usage(format!("configuration {}: {message}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => in_file("there is no such file".to_owned()),
        _ => in_file(error.to_string()),
    })?;
    if text.trim().is_empty() {
        return Ok(());
    }
    let document: serde_json::Value = serde_saphyr::from_str(&text)
        .map_err(|error| in_file(format!("no valid YAML: {}", first_line(&error.to_string()))))?;
    // All of it may be commented out.
    if document.is_null() {
        return Ok(());
    }
    let mut leaves = Vec::new();
    flatten("", &document, &mut leaves).map_err(in_file)?;
    let mut problems = Vec::new();
    for (key_path, node) in leaves {
        let Some(key) = key_search::find(&key_path) else {
            problems.push(unknown_key(&key_path));
            continue;
        };
        match Value::from_node(key.kind, node) {
            Ok(value) => set(settings, key, value, Origin::File(path.clone())),
            Err(error) => problems.push(format!("{key_path}: {error}")),
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(in_file(problems.join("; ")))
}

/// Leaves of the document by dotted path. A node is a leaf as soon as its path is a key, because
/// the values of map keys are objects themselves.
fn flatten<'a>(
    prefix: &str,
    node: &'a serde_json::Value,
    leaves: &mut Vec<(String, &'a serde_json::Value)>,
) -> Result<(), String> {
    let serde_json::Value::Object(entries) = node else {
        if prefix.is_empty() {
            return Err("must hold sections such as server: and agent:".to_owned());
        }
        let is_empty_section = node.is_null() && key_search::is_section(prefix);
        if !is_empty_section {
            leaves.push((prefix.to_owned(), node));
        }
        return Ok(());
    };
    let is_unknown_and_empty =
        entries.is_empty() && !prefix.is_empty() && !key_search::is_section(prefix);
    if is_unknown_and_empty {
        leaves.push((prefix.to_owned(), node));
    }
    for (name, child) in entries {
        let path = if prefix.is_empty() {
            name.clone()
        } else {
            format!("{prefix}.{name}")
        };
        if key_search::find(&path).is_some() {
            leaves.push((path, child));
        } else {
            flatten(&path, child, leaves)?;
        }
    }
    Ok(())
}

fn apply_environment(
    settings: &mut BTreeMap<&'static str, Setting>,
    environment: &BTreeMap<String, String>,
) -> Result<(), CliError> {
    // An empty one is as good as none; as a path it would be the working directory.
    let data_dir = environment
        .get("CANDELA_DATA_DIR")
        .filter(|text| !text.is_empty());
    if let Some(data_dir) = data_dir {
        let origin = Origin::Environment("CANDELA_DATA_DIR".to_owned());
        settings.insert(
            "store.data_dir",
            Setting {
                value: Value::Text(data_dir.clone()),
                origin,
            },
        );
    }
    let mut problems = Vec::new();
    for (name, text) in environment {
        let is_ours = name.starts_with("CANDELA_") && name.contains("__");
        if !is_ours || OTHER_VARIABLES.contains(&name.as_str()) {
            continue;
        }
        let path = name["CANDELA_".len()..].replace("__", ".").to_lowercase();
        let Some(key) = key_search::find(&path) else {
            problems.push(format!("{name}: {}", unknown_key(&path)));
            continue;
        };
        match Value::parse(key.kind, text) {
            Ok(value) => set(settings, key, value, Origin::Environment(name.clone())),
            Err(error) => problems.push(format!("{name}: {error}")),
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(CliError::usage(format!(
        "environment {}",
        problems.join("; ")
    )))
}

fn unknown_key(path: &str) -> String {
    let section = path.split('.').next().unwrap_or(path);
    if keys::RESERVED_SECTIONS.contains(&section) {
        return format!("{path}: section {section} has no keys in this version");
    }
    match key_search::nearest(path) {
        Some(nearest) => format!("{path}: no such key, did you mean {nearest}?"),
        None => format!("{path}: no such key; `candela config show` lists all"),
    }
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn load_file(text: &str) -> Result<Settings, CliError> {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(text.as_bytes()).expect("written");
        load(&Inputs {
            config_flag: Some(file.path().to_owned()),
            ..Inputs::default()
        })
    }

    #[test]
    fn all_defaults_parse() {
        for key in keys() {
            assert!(Value::parse(key.kind, key.default).is_ok(), "{}", key.path);
        }
    }

    #[test]
    fn flag_wins_over_environment_over_file() {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(b"agent:\n  rate: 49\n  interval: 5s\nstore:\n  sync: os\n")
            .expect("written");
        let settings = load(&Inputs {
            config_flag: Some(file.path().to_owned()),
            environment: BTreeMap::from([
                ("CANDELA_AGENT__RATE".to_owned(), "97".to_owned()),
                ("CANDELA_AGENT__INTERVAL".to_owned(), "7s".to_owned()),
            ]),
            flags: vec![("agent.rate", "--rate", "199".to_owned())],
        })
        .expect("valid");
        assert_eq!(settings.integer("agent.rate"), 199);
        assert_eq!(settings.get("agent.rate").origin, Origin::Flag("--rate"));
        assert_eq!(settings.duration("agent.interval").as_secs(), 7);
        assert_eq!(settings.text("store.sync"), Some("os"));
    }

    #[test]
    fn unknown_keys_are_errors_with_a_suggestion() {
        let error = load_file("server:\n  lisen: 127.0.0.1:1\nagent:\n  rate: fast\n")
            .expect_err("two problems")
            .to_string();
        assert!(
            error.contains("server.lisen: no such key, did you mean server.listen?"),
            "{error}"
        );
        assert!(
            error.contains("agent.rate: \"fast\" is no whole number"),
            "{error}"
        );
    }

    #[test]
    fn maps_and_lists_are_read_from_yaml() {
        let text = "agent:\n  labels:\n    zone: eu-1\n    rack: 7\nstorage:\n  sync: os\nserver:\n  http_prefix: [/a, /b]\n";
        let settings = load_file(text).expect("valid");
        assert_eq!(settings.map("agent.labels")["rack"], "7");
        assert_eq!(settings.list("server.http_prefix"), ["/a", "/b"]);
        assert_eq!(settings.text("store.sync"), Some("os"));
    }

    #[test]
    fn tables_are_read_in_both_forms() {
        let nested = "server:\n  limits:\n  tenant_limits:\n    a:\n      series: 7\n    b:\n";
        let flat = "server:\n  tenant_limits: {a.series: 7}\n";
        for text in [nested, flat] {
            let settings = load_file(text).expect("valid");
            let expected = BTreeMap::from([("a.series".to_owned(), "7".to_owned())]);
            assert_eq!(settings.map("server.tenant_limits"), expected, "{text}");
        }
        assert!(load_file("server:\n  tenant_limits: 7\n").is_err());
        assert!(load_file("server:\n  tenant_limits: {a: {b: {c: 1}}}\n").is_err());
    }

    #[test]
    fn nothing_leaves_what_was_there() {
        let defaults = load(&Inputs::default()).expect("valid");
        for key in keys() {
            let (section, name) = key.path.split_once('.').expect("keys have sections");
            for nothing in ["", "null", "~", "\"\""] {
                let settings = load_file(&format!("{section}:\n  {name}: {nothing}\n"));
                let settings = settings.unwrap_or_else(|error| panic!("{}: {error}", key.path));
                let (found, default) = (settings.get(key.path), defaults.get(key.path));
                assert_eq!(found.value, default.value, "{} {nothing:?}", key.path);
            }
            let from_environment = load(&Inputs {
                environment: BTreeMap::from([(key.variable(), String::new())]),
                ..Inputs::default()
            });
            let from_flag = load(&Inputs {
                flags: vec![(key.path, "--flag", String::new())],
                ..Inputs::default()
            });
            for settings in [from_environment, from_flag] {
                let settings = settings.expect("valid");
                let (found, default) = (settings.get(key.path), defaults.get(key.path));
                assert_eq!(found.value, default.value, "{}", key.path);
            }
        }
    }

    #[test]
    fn an_empty_variable_keeps_what_the_file_says() {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(b"agent:\n  rate: 49\n").expect("written");
        let settings = load(&Inputs {
            config_flag: Some(file.path().to_owned()),
            environment: BTreeMap::from([
                ("CANDELA_AGENT__RATE".to_owned(), String::new()),
                ("CANDELA_DATA_DIR".to_owned(), String::new()),
            ]),
            ..Inputs::default()
        })
        .expect("valid");
        assert_eq!(settings.integer("agent.rate"), 49);
        assert_eq!(settings.text("store.data_dir"), None);
    }

    #[test]
    fn unknown_keys_are_errors_when_they_are_empty_too() {
        for text in [
            "server:\n  lisen:\n",
            "server:\n  lisen: {}\n",
            "servr:\n",
            "servr: {}\n",
        ] {
            let error = load_file(text).expect_err(text).to_string();
            assert!(error.contains("no such key"), "{text}: {error}");
        }
        for text in ["# nothing\n", "server:\nauth:\n", "storage: {}\n"] {
            assert!(load_file(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn all_problems_of_the_environment_are_told() {
        let error = load(&Inputs {
            environment: BTreeMap::from([
                ("CANDELA_AGENT__RATE".to_owned(), "fast".to_owned()),
                ("CANDELA_SERVER__LISEN".to_owned(), "x".to_owned()),
            ]),
            ..Inputs::default()
        })
        .expect_err("two problems")
        .to_string();
        assert!(
            error.contains("CANDELA_AGENT__RATE: \"fast\" is no whole number"),
            "{error}"
        );
        assert!(error.contains("did you mean server.listen?"), "{error}");
    }

    #[test]
    fn a_file_that_was_asked_for_must_be_there() {
        let inputs = Inputs {
            config_flag: Some(PathBuf::from("/nonexistent.yaml")),
            ..Inputs::default()
        };
        let error = load(&inputs).expect_err("no file").to_string();
        assert_eq!(
            error,
            "configuration /nonexistent.yaml: there is no such file"
        );
    }

    #[test]
    fn broken_yaml_is_one_line() {
        let error = load_file("server: [\n").expect_err("broken").to_string();
        assert!(error.contains("no valid YAML"), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}
