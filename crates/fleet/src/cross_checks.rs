//! Rules that several parts of the document break together.

use crate::daemon::DaemonBody;
use crate::daemon::ObservabilityDaemon;
use crate::destination::BucketKind;
use crate::document::CommonPersistenceSpecs;
use crate::path::DocumentPath;
use crate::perfetto_daemon::PerfettoTrigger;
use crate::report::Report;

/// Daemons with their index in the document.
pub(crate) fn check_daemons_together(
    daemons: Option<&[(usize, ObservabilityDaemon)]>,
    common: Option<&CommonPersistenceSpecs>,
    report: &mut Report,
) {
    let daemons = daemons.unwrap_or_default();
    check_one_http_trigger(daemons, report);
    refuse_shared_folders(daemons, report);
    warn_of_missing_project(daemons, common, report);
}

fn body_path(index: usize, daemon: &ObservabilityDaemon) -> DocumentPath {
    let daemons = DocumentPath::top().key("observability_daemons");
    daemons.index(index).key(daemon.body.name())
}

/// They would share the one port (CH-27).
fn check_one_http_trigger(daemons: &[(usize, ObservabilityDaemon)], report: &mut Report) {
    let is_http = |body: &DaemonBody| matches!(body, DaemonBody::PerfettoDaemon(perfetto) if perfetto.trigger == Some(PerfettoTrigger::Http));
    let mut paths = daemons
        .iter()
        .filter(|(_, daemon)| is_http(&daemon.body))
        .map(|(index, daemon)| body_path(*index, daemon).key("trigger"));
    let Some(first) = paths.next() else { return };
    for path in paths {
        let message = format!(
            "is PERFETTO_TRIGGER_HTTP, and so is {first}: only one daemon can answer at port 3565; \
             write PERFETTO_TRIGGER_TIME_INTERVAL in one of them, or remove it"
        );
        report.problem(path, message);
    }
}

/// Keys are folder, node and second: two daemons of a kind would write over each other's objects. Kinds share a folder
/// well, as their names end otherwise.
///
/// Not kept apart by a number in the name: its form is that of the published document, and who reads an hour of a bucket
/// could not tell the files of the one daemon from those of the other.
fn refuse_shared_folders(daemons: &[(usize, ObservabilityDaemon)], report: &mut Report) {
    let mut seen = Vec::new();
    for (index, daemon) in daemons {
        let Some(destination) = daemon.body.destination() else {
            continue;
        };
        let path = body_path(*index, daemon);
        let key = (daemon.body.name(), destination);
        if let Some((_, first)) = seen.iter().find(|(other, _)| *other == key) {
            let message = format!(
                "{} is where {first} writes, too: of two objects of one second only one would stay; \
                 give each a folder of its own",
                key.1
            );
            report.problem_unless_applied(path.key("bucket_subdirectory"), message);
            continue;
        }
        seen.push((key, path));
    }
}

/// The published guide asks for both with a bucket of Google's (CH-50). A warning, because credentials
/// of the node may do without them.
fn warn_of_missing_project(
    daemons: &[(usize, ObservabilityDaemon)],
    common: Option<&CommonPersistenceSpecs>,
    report: &mut Report,
) {
    let goes_to_google = |(_, daemon): &&(usize, ObservabilityDaemon)| {
        let destination = daemon.body.destination();
        destination.is_some_and(|destination| destination.kind == BucketKind::Gcs)
    };
    let Some((index, daemon)) = daemons.iter().find(goes_to_google) else {
        return;
    };
    let user = body_path(*index, daemon).key("export_to");
    let common_path = DocumentPath::top().key("common_persistence_specs");
    let project = common.and_then(|common| common.google_cloud_project.as_deref());
    let account = common.and_then(|common| common.service_account_name.as_deref());
    for (name, value) in [
        ("google_cloud_project", project),
        ("service_account_name", account),
    ] {
        if value.unwrap_or_default().is_empty() {
            let message = format!(
                "is not set, and {user} is a bucket of Google's; set it unless the credentials of the nodes suffice"
            );
            report.warning(common_path.key(name), message);
        }
    }
}
