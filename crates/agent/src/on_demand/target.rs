//! Whose samples are wanted.

use std::sync::Arc;

use candela_model::Labels;
use candela_model::SERVICE_NAME_LABEL;
use serde::Deserialize;

use crate::on_demand::host_processes::HostProcess;

/// The processes of a request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    /// What the postmasters of PostgreSQL have started: the processes that do its work. They
    /// themselves only wait for connections.
    Postgres,
    /// What one process has started, one of several postmasters for example.
    ChildrenOf(u32),
    /// One process.
    Pid(u32),
    /// Some processes.
    Pids(Vec<u32>),
    /// All processes whose main thread or executable has this name.
    Comm(String),
    /// All processes of a service, by the name that the agent gives it.
    Service(String),
    /// The whole host; the value must be true.
    All(bool),
}

/// What a target is at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resolved {
    Pids(Vec<u32>),
    Host,
}

// === impl Target ===

impl Target {
    /// Whether there can be such processes.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Self::Pids(pids) if pids.is_empty() => Err("target pids is empty; name one".to_owned()),
            Self::Pid(0) | Self::ChildrenOf(0) => Err("target 0 is no process".to_owned()),
            Self::Pids(pids) if pids.contains(&0) => Err("target 0 is no process".to_owned()),
            Self::Comm(name) | Self::Service(name) if name.is_empty() => {
                Err("target has an empty name".to_owned())
            }
            Self::All(false) => Err("target all is false; leave it out, or say true".to_owned()),
            _ => Ok(()),
        }
    }

    /// The processes as they are now; `name_of` gives their labels.
    ///
    /// # Errors
    /// When there are none, with what was looked for, as a sentence.
    pub(crate) fn resolve(
        &self,
        processes: &[HostProcess],
        name_of: impl Fn(&HostProcess) -> Arc<Labels>,
    ) -> Result<Resolved, String> {
        let (pids, missing) = match self {
            Self::All(_) => return Ok(Resolved::Host),
            Self::Postgres => {
                let postmasters = postmasters(processes);
                if postmasters.is_empty() {
                    return Err(
                        "no PostgreSQL runs on this host; name another target in the request"
                            .to_owned(),
                    );
                }
                let is_child = |process: &HostProcess| postmasters.contains(&process.parent);
                let missing = "PostgreSQL runs without any process of its own work".to_owned();
                (pids_of(processes, is_child), missing)
            }
            Self::ChildrenOf(parent) => (
                pids_of(processes, |process| process.parent == *parent),
                format!("process {parent} has no children, or does not run"),
            ),
            Self::Pid(pid) => (
                pids_of(processes, |process| process.pid == *pid),
                format!("process {pid} does not run"),
            ),
            Self::Pids(pids) => (
                pids_of(processes, |process| pids.contains(&process.pid)),
                format!("none of the processes {pids:?} runs"),
            ),
            Self::Comm(name) => (
                pids_of(processes, |process| process.is_called(name)),
                format!("no process is called {name:?}"),
            ),
            Self::Service(name) => {
                let is_of_service = |process: &HostProcess| {
                    let labels = name_of(process);
                    labels.get(SERVICE_NAME_LABEL) == Some(name.as_str())
                };
                let missing = format!("no process is of the service {name:?}");
                (pids_of(processes, is_of_service), missing)
            }
        };
        if pids.is_empty() {
            return Err(missing);
        }
        Ok(Resolved::Pids(pids))
    }
}

fn pids_of(processes: &[HostProcess], is_wanted: impl Fn(&HostProcess) -> bool) -> Vec<u32> {
    let wanted = processes.iter().filter(|process| is_wanted(process));
    wanted.map(|process| process.pid).collect()
}

/// PostgreSQL's processes that are not children of one.
fn postmasters(processes: &[HostProcess]) -> Vec<u32> {
    let all = pids_of(processes, HostProcess::is_postgres);
    pids_of(processes, |process| {
        process.is_postgres() && !all.contains(&process.parent)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Labeler;

    fn host() -> Vec<HostProcess> {
        let process = |pid, parent, command: &str, executable: &str| HostProcess {
            pid,
            parent,
            command: command.to_owned(),
            executable: executable.to_owned(),
        };
        vec![
            process(1, 0, "init", "/sbin/init"),
            process(10, 1, "postgres", "/usr/lib/postgresql/15/bin/postgres"),
            process(11, 10, "postgres", "/usr/lib/postgresql/15/bin/postgres"),
            // A backend that runs a program (COPY … TO PROGRAM).
            process(12, 11, "sh", "/bin/dash"),
            process(13, 10, "logger", "/usr/bin/logger"),
            // Another user's, whose executable cannot be read.
            process(20, 1, "postmaster", ""),
            process(21, 20, "postgres", ""),
            process(30, 1, "postgrest", "/usr/bin/postgrest"),
        ]
    }

    fn labels_of(process: &HostProcess) -> Arc<Labels> {
        Arc::new(Labeler::default().labels(&process.facts()))
    }

    fn resolve(target: &Target) -> Result<Resolved, String> {
        target.resolve(&host(), labels_of)
    }

    #[test]
    fn postgres_is_what_its_postmasters_have_started() {
        let resolved = resolve(&Target::Postgres).expect("they run");
        assert_eq!(resolved, Resolved::Pids(vec![11, 13, 21]));
        let one = resolve(&Target::ChildrenOf(20)).expect("it runs");
        assert_eq!(one, Resolved::Pids(vec![21]));
        let without = Target::Postgres.resolve(&host()[..1], labels_of);
        assert!(without.expect_err("none").contains("no PostgreSQL runs"));
        let idle = Target::Postgres.resolve(&host()[..2], labels_of);
        assert!(idle.expect_err("no child").contains("own work"));
    }

    #[test]
    fn other_targets_are_found_by_number_and_name() {
        let cases = [
            (Target::Pid(30), vec![30]),
            (Target::Pids(vec![30, 99, 1]), vec![1, 30]),
            (Target::Comm("postgrest".to_owned()), vec![30]),
            (Target::Comm("dash".to_owned()), vec![12]),
        ];
        for (target, pids) in cases {
            assert_eq!(resolve(&target), Ok(Resolved::Pids(pids)), "{target:?}");
        }
        assert_eq!(resolve(&Target::All(true)), Ok(Resolved::Host));
        for missing in [
            Target::Pid(99),
            Target::Pids(vec![98, 99]),
            Target::ChildrenOf(30),
            Target::Comm("nginx".to_owned()),
            Target::Service("shop".to_owned()),
        ] {
            assert!(resolve(&missing).is_err(), "{missing:?}");
        }
    }

    #[test]
    fn targets_that_cannot_be_are_told() {
        for target in [
            Target::Pid(0),
            Target::Pids(vec![3, 0]),
            Target::Comm(String::new()),
            Target::All(false),
        ] {
            assert!(target.check().is_err(), "{target:?}");
        }
        assert!(Target::All(true).check().is_ok());
    }
}
