//! The one report where standard output is no terminal.

use std::process::ExitCode;
use std::sync::atomic::Ordering;

use candela_agent::RecordOptions;
use candela_agent::RecordTargets;
use candela_formats::TableFormat;

use super::history::History;
use super::kind::Kind;
use super::local;
use super::remote::Asker;
use super::snapshot::Snapshot;
use crate::args::GlobalArgs;
use crate::args::top::TopArgs;
use crate::commands::signals;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;
use crate::table::Table;

/// Samples for the duration and prints.
pub(super) fn of_host(global: &GlobalArgs, arguments: &TopArgs) -> Result<ExitCode, CliError> {
    let stop = signals::stop_signal()?;
    let agent = local::agent_options(global, arguments)?;
    let targets = || match arguments.pids.is_empty() {
        true => RecordTargets::All,
        false => RecordTargets::Pids(arguments.pids.clone()),
    };
    let (recording, note) = local::with_what_works(|kinds| {
        let options = RecordOptions {
            rate_hz: arguments.rate,
            kinds,
            duration: Some(arguments.duration),
            stop: stop.flag(),
            agent: agent.clone(),
            ..RecordOptions::new(targets())
        };
        candela_agent::record(options, || {})
    })?;
    let note = note.or_else(|| local::why_no_waits(&recording.report.missing));
    if let Some(note) = note.as_ref().filter(|_| !global.quiet) {
        output::note(&format!("note: {note}"));
    }
    let duration_ns = i64::try_from(recording.report.duration_ns).unwrap_or(i64::MAX);
    let start_ns = recording.profile.series.first().map_or(0, |it| it.start_ns);
    let mut history = History::new(duration_ns, start_ns);
    history.add(recording.profile);
    let mut snapshot = history.snapshot(start_ns.saturating_add(duration_ns), None);
    snapshot.has_waits = note.is_none();
    let is_empty = Kind::ALL.iter().all(|&kind| snapshot.tree(kind).is_empty());
    if is_empty && stop.flag().load(Ordering::SeqCst) {
        return Err(CliError::new(
            ExitStatus::Interrupted,
            "interrupted before there was a sample",
        ));
    }
    print(global, "pid", &snapshot)
}

/// Asks once and prints.
pub(super) fn of_server(global: &GlobalArgs, asker: &Asker) -> Result<ExitCode, CliError> {
    print(global, "service", &asker.ask(None)?)
}

fn print(
    global: &GlobalArgs,
    group_heading: &'static str,
    snapshot: &Snapshot,
) -> Result<ExitCode, CliError> {
    if Kind::ALL.iter().all(|&kind| snapshot.tree(kind).is_empty()) {
        return Err(CliError::no_data(match snapshot.has_waits {
            true => "no samples: nothing of this ran or waited in that time",
            false => "no samples: nothing of this ran in that time, and what waits is not seen",
        }));
    }
    let mut text = groups(global, group_heading, snapshot).into_bytes();
    for kind in Kind::ALL {
        let tree = snapshot.tree(kind);
        if tree.is_empty() {
            continue;
        }
        text.push(b'\n');
        let profile_type = kind.profile_type();
        candela_formats::write_top(
            tree,
            &profile_type,
            TableFormat::Text,
            global.limit,
            &mut text,
        )
        .or_exit(ExitStatus::Failed, "table")?;
    }
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn groups(global: &GlobalArgs, heading: &'static str, snapshot: &Snapshot) -> String {
    let rows = snapshot.groups_by(Kind::Cpu);
    let has_names = rows.iter().any(|group| !group.name.is_empty());
    let mut headings = vec![heading, "cpu", "waiting"];
    headings.extend(has_names.then_some("service"));
    let mut table = Table::new(&headings);
    for group in rows {
        let mut row = vec![group.key.clone()];
        row.extend(Kind::ALL.map(|kind| snapshot.figure(group, kind)));
        row.extend(has_names.then(|| group.name.clone()));
        table.push(row);
    }
    let count = table.truncate(global.limit);
    let mut text = table.to_text();
    if table.len() < count {
        let shown = table.len();
        text.push_str(&format!("{shown} of {count} rows; --limit 0 prints all\n"));
    }
    text
}
