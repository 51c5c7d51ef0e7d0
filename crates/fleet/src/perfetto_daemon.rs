//! `perfetto_daemon`: snapshots of a ring of trace packets, at intervals or on demand (CH-20 to CH-27).

use crate::destination::Destination;
use crate::destination::read_destination;
use crate::fields::Choice;
use crate::fields::Fields;
use crate::fields::NumberRule;
use crate::json::Json;
use crate::object::ObjectWriter;
use crate::path::DocumentPath;
use crate::report::NoteKind;
use crate::report::Report;
use crate::trace_config::DEFAULT_TRIGGER_TIMEOUT_MS;
use crate::trace_config::TraceConfig;
use crate::trace_config::with_timeout;

const NAMES: [&str; 8] = [
    "bucket_subdirectory",
    "config_text",
    "engine",
    "export_to",
    "interval",
    "max_retained_runs",
    "trigger",
    "trigger_name",
];
const INTERVAL: NumberRule = NumberRule {
    name: "interval",
    range: 1000..=604_800_000,
    unit: " milliseconds",
    cure: "60000 is a minute",
};
const RETAINED: NumberRule = NumberRule {
    name: "max_retained_runs",
    range: 1..=1000,
    unit: "",
    cure: "3 is usual",
};
const TRIGGERS: [Choice<PerfettoTrigger>; 2] = [
    Choice {
        name: "PERFETTO_TRIGGER_TIME_INTERVAL",
        number: Some(1),
        value: PerfettoTrigger::TimeInterval,
    },
    Choice {
        name: "PERFETTO_TRIGGER_HTTP",
        number: Some(2),
        value: PerfettoTrigger::Http,
    },
];
const ENGINES: [Choice<PerfettoEngine>; 2] = [
    Choice {
        name: "native",
        number: None,
        value: PerfettoEngine::Native,
    },
    Choice {
        name: "traced",
        number: None,
        value: PerfettoEngine::Traced,
    },
];

/// Its fields as written: what is absent is `None`, which is not 0. The methods give what holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerfettoDaemon {
    /// Folder in the bucket.
    pub bucket_subdirectory: Option<String>,
    /// A Perfetto `TraceConfig` as text proto; always there in a document that was accepted.
    pub config_text: Option<String>,
    /// What records. A field of ours.
    pub engine: Option<PerfettoEngine>,
    /// The bucket: `s3://BUCKET` or `gs://BUCKET`.
    pub export_to: Option<String>,
    /// Between snapshots, milliseconds: 1000 to 604800000. There where time is the trigger.
    pub interval: Option<u32>,
    /// Snapshots that stay on the node: 1 to 1000.
    pub max_retained_runs: Option<u32>,
    /// When snapshots are taken; always there in a document that was accepted.
    pub trigger: Option<PerfettoTrigger>,
    /// Which trigger of `config_text` it is; always there in a document that was accepted.
    pub trigger_name: Option<String>,
}

/// When snapshots are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PerfettoTrigger {
    /// Every `interval`.
    TimeInterval,
    /// When somebody asks, at port 3565.
    Http,
}

/// What records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PerfettoEngine {
    /// Our own ring; needs nothing installed.
    Native,
    /// The `traced` of the node.
    Traced,
}

impl PerfettoDaemon {
    /// What records; our own ring by default.
    #[must_use]
    pub fn engine(&self) -> PerfettoEngine {
        self.engine.unwrap_or(PerfettoEngine::Native)
    }

    /// Snapshots that stay on the node; 3 by default.
    #[must_use]
    pub fn runs_retained(&self) -> u32 {
        self.max_retained_runs.unwrap_or(3)
    }

    /// Where snapshots go; always there in a document that was accepted.
    #[must_use]
    pub fn destination(&self) -> Option<Destination> {
        let folder = self.bucket_subdirectory.as_deref();
        Destination::parse(self.export_to.as_deref()?, folder).ok()
    }

    /// What `config_text` says; always there in a document that was accepted.
    #[must_use]
    pub fn trace_config(&self) -> Option<TraceConfig> {
        let text = self.config_text.as_deref()?;
        let read = TraceConfig::read(text, self.trigger_name.as_deref()).ok()?;
        Some(read.config)
    }

    /// With every default written out.
    #[must_use]
    pub fn with_defaults(&self) -> Self {
        Self {
            bucket_subdirectory: Some(self.bucket_subdirectory.clone().unwrap_or_default()),
            engine: Some(self.engine()),
            max_retained_runs: Some(self.runs_retained()),
            ..self.clone()
        }
    }

    pub(crate) fn read(json: &Json, path: &DocumentPath, report: &mut Report) -> Option<Self> {
        let fields = Fields::of(json, path, &NAMES, report)?;
        fields.refuse_unknown(&NAMES, report);
        let (export_to, bucket_subdirectory) = read_destination(&fields, report);
        let mut daemon = Self {
            bucket_subdirectory,
            config_text: fields.text("config_text", report),
            engine: fields.choice("engine", &ENGINES, report),
            export_to,
            interval: fields.number(&INTERVAL, report),
            max_retained_runs: fields.number(&RETAINED, report),
            trigger: fields.choice("trigger", &TRIGGERS, report),
            trigger_name: fields.text("trigger_name", report),
        };
        daemon.check_required(path, report);
        daemon.check_config_text(path, report);
        Some(daemon)
    }

    pub(crate) fn to_json(&self) -> Json {
        let engine = self.engine.and_then(|engine| name_of(&ENGINES, engine));
        let trigger = self.trigger.and_then(|trigger| name_of(&TRIGGERS, trigger));
        ObjectWriter::default()
            .text("bucket_subdirectory", self.bucket_subdirectory.as_deref())
            .text("config_text", self.config_text.as_deref())
            .text("engine", engine)
            .text("export_to", self.export_to.as_deref())
            .number("interval", self.interval)
            .number("max_retained_runs", self.max_retained_runs)
            .text("trigger", trigger)
            .text("trigger_name", self.trigger_name.as_deref())
            .finish()
    }

    fn check_required(&self, path: &DocumentPath, report: &mut Report) {
        if self.config_text.is_none() {
            report.missing(
                path.key("config_text"),
                "is required: a Perfetto TraceConfig as text proto, with a trigger_config",
            );
        }
        if self.trigger.is_none() {
            report.missing(
                path.key("trigger"),
                "is required; write PERFETTO_TRIGGER_TIME_INTERVAL or PERFETTO_TRIGGER_HTTP",
            );
        }
        if self.trigger_name.as_deref().unwrap_or_default().is_empty() {
            report.missing(
                path.key("trigger_name"),
                "is required; write the name of a trigger of config_text",
            );
        }
        if self.trigger == Some(PerfettoTrigger::TimeInterval) && self.interval.is_none() {
            report.missing(
                path.key("interval"),
                "is required by PERFETTO_TRIGGER_TIME_INTERVAL; write milliseconds, for example 60000",
            );
        }
    }

    fn check_config_text(&mut self, path: &DocumentPath, report: &mut Report) {
        let Some(text) = &self.config_text else {
            return;
        };
        let text_path = path.key("config_text");
        let name = self.trigger_name.as_deref().filter(|name| !name.is_empty());
        let read = match TraceConfig::read(text, name) {
            Ok(read) => read,
            Err(findings) => {
                for finding in findings {
                    let position = Some(finding.position);
                    report.problem_in_text(text_path.clone(), position, finding.message);
                }
                return;
            }
        };
        for warning in read.warnings {
            let position = Some(warning.position);
            report.note(
                NoteKind::Warning,
                text_path.clone(),
                position,
                warning.message,
            );
        }
        let delay = read.config.trigger.stop_delay_ms;
        let is_timed = self.trigger == Some(PerfettoTrigger::TimeInterval);
        let interval = self
            .interval
            .filter(|interval| is_timed && *interval <= delay);
        if let Some(interval) = interval {
            let message = format!(
                "{interval} milliseconds are over before the stop_delay_ms of {delay}; write more than that"
            );
            report.problem(path.key("interval"), message);
        }
        if read.config.trigger.timeout_ms.is_none() {
            self.config_text = Some(with_timeout(text, read.trigger_config_start));
            let days = DEFAULT_TRIGGER_TIMEOUT_MS / (24 * 3600 * 1000);
            let message = format!(
                "trigger_timeout_ms: {DEFAULT_TRIGGER_TIMEOUT_MS} ({days} days) was added to trigger_config, which Perfetto refuses without"
            );
            report.note(NoteKind::Adjustment, text_path, None, message);
        }
    }
}

fn name_of<T: Copy + PartialEq>(choices: &[Choice<T>], value: T) -> Option<&'static str> {
    let choice = choices.iter().find(|choice| choice.value == value);
    choice.map(|choice| choice.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_have_names_and_numbers() {
        for (given, trigger) in [
            ("1", PerfettoTrigger::TimeInterval),
            ("2", PerfettoTrigger::Http),
        ] {
            let text = format!(r#"{{"trigger": {given}}}"#);
            let json: Json = serde_json::from_str(&text).unwrap();
            let mut report = Report::default();
            let daemon = PerfettoDaemon::read(&json, &DocumentPath::top(), &mut report).unwrap();
            assert_eq!(daemon.trigger, Some(trigger));
            let written = daemon.to_json().to_string();
            assert!(written.contains("PERFETTO_TRIGGER_"), "{written}");
        }
    }
}
