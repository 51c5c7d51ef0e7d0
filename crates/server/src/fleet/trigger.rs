//! Which daemon takes a snapshot that is asked for: that of a trigger's name.

use std::collections::BTreeSet;

use candela_fleet::DaemonBody;
use candela_fleet::FleetDocument;
use candela_fleet::PerfettoDaemon;
use candela_fleet::PerfettoTrigger;
use candela_fleet::wanted_daemons;

use crate::api_error::ApiError;

/// A trigger, and the daemons that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trigger {
    pub(super) name: String,
    /// By their ids.
    pub(super) daemons: BTreeSet<String>,
}

/// The trigger that is pulled: the wanted one, else that of the daemon that waits for it, else that of
/// the first daemon.
///
/// # Errors
/// 422 when no daemon that runs has it.
pub(super) fn trigger_of(
    document: &FleetDocument,
    wanted: Option<&str>,
) -> Result<Trigger, ApiError> {
    let running = wanted_daemons(document);
    let running: Vec<(String, &PerfettoDaemon)> = running
        .iter()
        .filter_map(|it| match &it.daemon.body {
            DaemonBody::PerfettoDaemon(daemon) => Some((it.id.to_string(), daemon)),
            DaemonBody::PerfCollector(_) => None,
        })
        .collect();
    let daemons: Vec<&PerfettoDaemon> = running.iter().map(|(_, daemon)| *daemon).collect();
    let waits = |daemon: &&&PerfettoDaemon| daemon.trigger == Some(PerfettoTrigger::Http);
    let names = || daemons.iter().filter_map(|it| it.trigger_name.as_deref());
    let found = match wanted {
        Some(wanted) => names().find(|name| *name == wanted),
        None => {
            let waiting = daemons.iter().find(waits);
            let waiting = waiting.and_then(|daemon| daemon.trigger_name.as_deref());
            waiting.or_else(|| names().next())
        }
    };
    let has = |daemon: &PerfettoDaemon, name: &str| daemon.trigger_name.as_deref() == Some(name);
    let trigger = found.map(|name| Trigger {
        name: name.to_owned(),
        daemons: running
            .iter()
            .filter(|(_, daemon)| has(daemon, name))
            .map(|(id, _)| id.clone())
            .collect(),
    });
    trigger.ok_or_else(|| {
        let known: Vec<&str> = names().collect();
        let message = match wanted {
            Some(wanted) if !known.is_empty() => {
                let shown: String = wanted.chars().take(100).collect();
                format!("no perfetto_daemon that runs has the trigger {shown:?}")
            }
            _ => "no perfetto_daemon of the fleet's document runs".to_owned(),
        };
        let hint = match known[..] {
            [] if document.is_suspended() => "the document is suspended".to_owned(),
            [] => "apply a document that has one".to_owned(),
            _ => format!("there are {}", known.join(", ")),
        };
        ApiError::unprocessable("no_perfetto_daemon", message).hint(hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn daemon(trigger: &str, name: &str, more: &str) -> String {
        let config = format!(
            "buffers {{ size_kb: 1024 }} data_sources {{ config {{ name: \\\"linux.perf\\\" }} }} \
             trigger_config {{ trigger_mode: CLONE_SNAPSHOT trigger_timeout_ms: 1000 \
             triggers {{ name: \\\"{name}\\\" stop_delay_ms: 1 }} }}"
        );
        format!(
            r#"{{"perfetto_daemon": {{"config_text": "{config}", "export_to": "s3://bucket", "bucket_subdirectory": "{name}", "trigger": "{trigger}", "trigger_name": "{name}"{more}}}}}"#
        )
    }

    fn document(daemons: &[String], more: &str) -> FleetDocument {
        let text = format!(
            r#"{{"observability_daemons": [{}]{more}}}"#,
            daemons.join(",")
        );
        let accepted = FleetDocument::read(&text);
        accepted
            .unwrap_or_else(|problems| panic!("{problems}"))
            .document
    }

    #[test]
    fn the_daemon_that_waits_for_it_is_triggered_first() {
        let timed = |name| {
            daemon(
                "PERFETTO_TRIGGER_TIME_INTERVAL",
                name,
                r#", "interval": 60000"#,
            )
        };
        let waiting = daemon("PERFETTO_TRIGGER_HTTP", "asked", "");
        let of = |document: &FleetDocument, wanted| {
            let trigger = trigger_of(document, wanted);
            trigger
                .map(|trigger| (trigger.name, trigger.daemons.len()))
                .map_err(|error| error.code)
        };
        let both = document(&[timed("first"), waiting.clone()], "");
        assert_eq!(of(&both, None), Ok(("asked".to_owned(), 1)));
        assert_eq!(of(&both, Some("first")), Ok(("first".to_owned(), 1)));
        let error = trigger_of(&both, Some("other")).expect_err("there is none");
        assert!(error.hint.contains("first, asked"), "{}", error.hint);
        let timed = document(&[timed("first"), timed("second")], "");
        assert_eq!(of(&timed, None), Ok(("first".to_owned(), 1)));
        let suspended = document(&[waiting], r#", "suspended": true"#);
        let error = trigger_of(&suspended, None).expect_err("it rests");
        assert!(error.hint.contains("suspended"), "{}", error.hint);
        assert_eq!(
            of(&FleetDocument::default(), None),
            Err("no_perfetto_daemon")
        );
    }
}
