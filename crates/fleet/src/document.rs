//! The whole document: what it holds, how it is read and written.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde::Serializer;

use crate::cross_checks::check_daemons_together;
use crate::daemon::ObservabilityDaemon;
use crate::fields::Fields;
use crate::fields::unknown_key;
use crate::json::Json;
use crate::object::ObjectWriter;
use crate::path::DocumentPath;
use crate::report::Note;
use crate::report::NoteKind;
use crate::report::Problem;
use crate::report::Problems;
use crate::report::Report;
use crate::report::TextPosition;
use crate::spelling::known_name;

/// Largest document that is read, bytes: a hundred times what a fleet's needs.
pub const MOST_DOCUMENT_BYTES: usize = 4 << 20;

/// Each is a sampler of its own on every node, so more are a mistake long before.
pub const MOST_DAEMONS: usize = 64;

const NAMES: [&str; 4] = [
    "common_persistence_specs",
    "observability_daemons",
    "suspended",
    "writers",
];
/// Fields of the published type that others act on. They are kept as they are, so that a document goes
/// through describe and apply unharmed; a list, because a name that is on none is a typing error.
const NAMES_OF_OTHERS: [&str; 13] = [
    "api_server_host",
    "autodiscover_key",
    "bootstrap_cloud_resources",
    "cluster_manager_config",
    "insecure",
    "kafka_bootstrap_servers",
    "kafka_sasl_mechanism",
    "kafka_sasl_secret",
    "kafka_security_protocol",
    "metadata_provider",
    "redis_is_clustered",
    "redis_lightning_supports_has_many",
    "snowflake_storage_integration_name",
];
const COMMON_NAMES: [&str; 2] = ["google_cloud_project", "service_account_name"];

/// The fleet's configuration. What is absent is `None`, which is neither empty nor `false`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetDocument {
    /// Who the daemons are in the cloud.
    pub common_persistence_specs: Option<CommonPersistenceSpecs>,
    /// What runs on each node.
    pub observability_daemons: Option<Vec<ObservabilityDaemon>>,
    /// Whether daemons rest, but for those that keep running.
    pub suspended: Option<bool>,
    /// A field of others, kept as it is.
    pub writers: Option<Json>,
    /// Further fields of others by name, kept as they are.
    pub fields_of_others: BTreeMap<String, Json>,
}

/// What all daemons share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommonPersistenceSpecs {
    /// Google's project of the bucket (CH-50).
    pub google_cloud_project: Option<String>,
    /// The service account of the daemons, in Kubernetes and at Google (CH-50).
    pub service_account_name: Option<String>,
    /// Fields of others, kept as they are, in the spelling they came in.
    ///
    /// The spelling stays because only its owner knows it: `v_2` and `v2` are both `v2` in
    /// lowerCamelCase.
    pub fields_of_others: BTreeMap<String, Json>,
}

/// A document that holds all rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedDocument {
    /// What is to be kept: as given, but for what the notes call an adjustment.
    pub document: FleetDocument,
    /// What its author should know.
    pub notes: Vec<Note>,
}

impl AcceptedDocument {
    /// The notes that are no mere adjustments.
    pub fn warnings(&self) -> impl Iterator<Item = &Note> {
        self.notes
            .iter()
            .filter(|note| note.kind == NoteKind::Warning)
    }
}

impl FleetDocument {
    /// Reads a document and checks it against all rules.
    ///
    /// # Errors
    /// Everything that is wrong with it; when it is no JSON, the first place only.
    pub fn read(text: &str) -> Result<AcceptedDocument, Problems> {
        Self::read_with(text, Report::default())
    }

    /// Reads a document that a server has accepted before, maybe by the rules of an earlier version: what only later
    /// rules refuse is told in the notes, and holds.
    ///
    /// # Errors
    /// As [`FleetDocument::read`].
    pub fn read_applied(text: &str) -> Result<AcceptedDocument, Problems> {
        Self::read_with(text, Report::of_applied())
    }

    fn read_with(text: &str, mut report: Report) -> Result<AcceptedDocument, Problems> {
        if text.len() > MOST_DOCUMENT_BYTES {
            let length = text.len();
            let message =
                format!("has {length} bytes, more than {MOST_DOCUMENT_BYTES}; make it smaller");
            return Err(Problems(vec![problem_of_text(None, message)]));
        }
        // Editors of other systems put a mark at the beginning, which is no part of JSON.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let json: Json = serde_json::from_str(text)
            .map_err(|error| Problems(vec![syntax_problem(text, &error)]))?;
        let document = read_document(&json, &mut report);
        match document {
            Some(document) if report.problems.is_empty() => Ok(AcceptedDocument {
                document,
                notes: report.into_notes(),
            }),
            _ => Err(report.into_problems()),
        }
    }

    /// Checks a document that was put together, not read, by the same rules.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn accept(&self) -> Result<AcceptedDocument, Problems> {
        Self::read(&self.to_string())
    }

    /// Whether daemons rest; by default they do not.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.suspended.unwrap_or(false)
    }

    /// All daemons, those that rest, too.
    #[must_use]
    pub fn daemons(&self) -> &[ObservabilityDaemon] {
        self.observability_daemons.as_deref().unwrap_or_default()
    }

    /// The written form.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let common = self.common_persistence_specs.as_ref();
        let list = |daemons: &Vec<ObservabilityDaemon>| {
            Json::List(daemons.iter().map(ObservabilityDaemon::to_json).collect())
        };
        let mut object = ObjectWriter::default();
        for (name, value) in &self.fields_of_others {
            object = object.json(name, Some(value.clone()));
        }
        object
            .json(
                "common_persistence_specs",
                common.map(CommonPersistenceSpecs::to_json),
            )
            .json(
                "observability_daemons",
                self.observability_daemons.as_ref().map(list),
            )
            .boolean("suspended", self.suspended)
            .json("writers", self.writers.clone())
            .finish()
    }
}

/// The one written form: `snake_case`, keys sorted, two spaces, what was absent stays absent. Equal
/// documents are written alike. No line break ends it.
impl fmt::Display for FleetDocument {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = serde_json::to_string_pretty(&self.to_json()).map_err(|_| fmt::Error)?;
        formatter.write_str(&text)
    }
}

impl Serialize for FleetDocument {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl CommonPersistenceSpecs {
    fn read(json: &Json, path: &DocumentPath, report: &mut Report) -> Option<Self> {
        let fields = Fields::of(json, path, &COMMON_NAMES, report)?;
        let others = fields.unknown().iter();
        Some(Self {
            google_cloud_project: fields.text("google_cloud_project", report),
            service_account_name: fields.text("service_account_name", report),
            fields_of_others: others
                .map(|(key, value)| ((*key).to_owned(), (*value).clone()))
                .collect(),
        })
    }

    fn to_json(&self) -> Json {
        let mut object = ObjectWriter::default();
        for (name, value) in &self.fields_of_others {
            object = object.json(name, Some(value.clone()));
        }
        object
            .text("google_cloud_project", self.google_cloud_project.as_deref())
            .text("service_account_name", self.service_account_name.as_deref())
            .finish()
    }
}

fn read_document(json: &Json, report: &mut Report) -> Option<FleetDocument> {
    let top = DocumentPath::top();
    let fields = Fields::of(json, &top, &NAMES, report)?;
    let fields_of_others = read_fields_of_others(&fields, report);
    let common = fields.json("common_persistence_specs");
    let common_path = top.key("common_persistence_specs");
    let writers = fields.json("writers").cloned();
    if let Some(writers) = writers
        .as_ref()
        .filter(|json| !matches!(json, Json::List(_)))
    {
        let message = format!("is {}, not a list; write […]", writers.described());
        report.problem(top.key("writers"), message);
    }
    let common_persistence_specs =
        common.and_then(|json| CommonPersistenceSpecs::read(json, &common_path, report));
    let daemons = read_daemons(&fields, report);
    check_daemons_together(
        daemons.as_deref(),
        common_persistence_specs.as_ref(),
        report,
    );
    Some(FleetDocument {
        common_persistence_specs,
        observability_daemons: daemons
            .map(|daemons| daemons.into_iter().map(|(_, daemon)| daemon).collect()),
        suspended: fields.boolean("suspended", report),
        writers,
        fields_of_others,
    })
}

/// Each with its index, as those that were refused are left out.
fn read_daemons(
    fields: &Fields<'_>,
    report: &mut Report,
) -> Option<Vec<(usize, ObservabilityDaemon)>> {
    let json = fields.json("observability_daemons")?;
    let path = fields.path_of("observability_daemons");
    let Json::List(elements) = json else {
        let message = format!("is {}, not a list; write [{{…}}]", json.described());
        report.problem(path, message);
        return None;
    };
    if elements.len() > MOST_DAEMONS {
        let message = format!(
            "has {} elements, more than {MOST_DAEMONS}; the first {MOST_DAEMONS} are looked at, remove the others",
            elements.len()
        );
        report.problem(path.clone(), message);
    }
    let mut daemons = Vec::with_capacity(elements.len().min(MOST_DAEMONS));
    for (index, element) in elements.iter().enumerate().take(MOST_DAEMONS) {
        let daemon = ObservabilityDaemon::read(element, &path.index(index), report);
        daemons.extend(daemon.map(|daemon| (index, daemon)));
    }
    Some(daemons)
}

fn read_fields_of_others(fields: &Fields<'_>, report: &mut Report) -> BTreeMap<String, Json> {
    let mut kept = BTreeMap::new();
    for (key, value) in fields.unknown() {
        let path = fields.path_of(key);
        let Some(name) = known_name(key, &NAMES_OF_OTHERS) else {
            let is_scheduling = known_name(key, &["observability_daemon_scheduling"]).is_some();
            let message = if is_scheduling {
                "is not read by Candela, whose daemons run wherever an agent runs; remove it and \
                 choose nodes where agents are installed"
                    .to_owned()
            } else {
                unknown_key(key, &NAMES)
            };
            report.problem(path, message);
            continue;
        };
        if kept.insert(name.to_owned(), (*value).clone()).is_some() {
            let message = "stands twice, in snake_case and in lowerCamelCase; remove one";
            report.problem(fields.path_of(name), message);
        }
    }
    kept
}

/// The message of `serde_json` ends with the place, which stands before it here.
fn syntax_problem(text: &str, error: &serde_json::Error) -> Problem {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let whole = error.to_string();
    let cause = match whole.strip_suffix(&place).unwrap_or(&whole) {
        "expected ident" => "expected true, false or null",
        cause => cause,
    };
    let message = match error.classify() {
        serde_json::error::Category::Eof => format!("{cause}; the document ends too early"),
        serde_json::error::Category::Syntax => format!("{cause}; this is no JSON here"),
        _ => cause.to_owned(),
    };
    let position = position_of(text, error.line(), error.column());
    problem_of_text(Some(position), message)
}

/// `serde_json` counts bytes, and calls the end of a line column 0 of the next.
fn position_of(text: &str, line: usize, byte_column: usize) -> TextPosition {
    let characters_of = |line: usize, most_bytes: usize| {
        let bytes = text
            .split('\n')
            .nth(line.saturating_sub(1))
            .unwrap_or_default();
        let starts = bytes.char_indices().map(|(start, _)| start);
        starts.take_while(|start| *start < most_bytes).count()
    };
    if byte_column == 0 && line > 1 {
        return TextPosition {
            line: line - 1,
            column: characters_of(line - 1, usize::MAX) + 1,
        };
    }
    TextPosition {
        line,
        column: characters_of(line, byte_column).max(1),
    }
}

fn problem_of_text(position: Option<TextPosition>, message: String) -> Problem {
    Problem {
        path: DocumentPath::top(),
        position,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(text: &str) -> String {
        let problems = FleetDocument::read(text).unwrap_err();
        problems.0[0].position.unwrap().to_string()
    }

    #[test]
    fn places_in_broken_json_are_lines_and_characters() {
        assert_eq!(position("{\"suspended\": tr\n}"), "line 1, column 17");
        assert_eq!(position("{\"ä\": 1,\n \"äö\": x}"), "line 2, column 8");
        assert_eq!(position(""), "line 1, column 1");
        assert_eq!(position("\u{feff}x"), "line 1, column 1");
        assert_eq!(position(&"[".repeat(200)), "line 1, column 128");
    }

    #[test]
    fn very_many_daemons_are_refused_at_once() {
        let text = format!(
            "{{\"observability_daemons\": [{}{{}}]}}",
            "{},".repeat(300_000)
        );
        let problems = FleetDocument::read(&text).unwrap_err();
        assert_eq!(problems.0.len(), 1 + MOST_DAEMONS);
        let message = "observability_daemons: has 300001 elements, more than 64; the first 64 are looked at, remove the others";
        assert_eq!(problems.0[0].to_string(), message);
    }

    #[test]
    fn documents_have_a_size() {
        let problems = FleetDocument::read(&" ".repeat(MOST_DOCUMENT_BYTES + 1)).unwrap_err();
        let message = "the document: has 4194305 bytes, more than 4194304; make it smaller";
        assert_eq!(problems.to_string(), message);
    }
}
