//! Whose samples a filter keeps, among processes that come and go.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use candela_agent::command_line;
use candela_agent::parse_cgroup;
use candela_fleet::ProcessFacts;
use candela_fleet::ProcessFilter;

/// How often `/proc` is looked at.
const INTERVAL: Duration = Duration::from_secs(1);
/// A process is what it executes by then.
const YOUNG_LOOKS: u32 = 3;

/// What was seen of processes. perf tells the names of threads and nothing else of a process, so a filter asks the
/// system while they run.
#[derive(Debug)]
pub(super) struct Processes {
    filter: ProcessFilter,
    seen: BTreeMap<u32, Seen>,
    next_look: Duration,
}

/// Verdicts of one moment.
#[derive(Clone, Debug)]
pub(super) struct Verdicts {
    filter: ProcessFilter,
    verdicts: BTreeMap<u32, bool>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    is_kept: bool,
    looks: u32,
    is_gone: bool,
}

impl Processes {
    pub(super) fn new(filter: ProcessFilter) -> Self {
        Self {
            filter,
            seen: BTreeMap::new(),
            next_look: Duration::ZERO,
        }
    }

    /// Looks at those that are new, once a second.
    pub(super) fn look(&mut self, now: Duration) {
        if now < self.next_look || self.keeps_all() {
            return;
        }
        self.next_look = now + INTERVAL;
        let mut gone = std::mem::take(&mut self.seen);
        for pid in running() {
            let before = gone.remove(&pid).filter(|before| !before.is_gone);
            let seen = match before {
                Some(seen) if seen.looks >= YOUNG_LOOKS => seen,
                _ => Seen {
                    is_kept: self.keeps(pid),
                    looks: before.map_or(0, |before| before.looks) + 1,
                    is_gone: false,
                },
            };
            self.seen.insert(pid, seen);
        }
        for (pid, seen) in gone {
            self.seen.insert(
                pid,
                Seen {
                    is_gone: true,
                    ..seen
                },
            );
        }
    }

    /// What is known for a file that is finished; those that have ended are needed no longer.
    pub(super) fn verdicts(&mut self) -> Verdicts {
        let verdicts = self.seen.iter().map(|(pid, seen)| (*pid, seen.is_kept));
        let verdicts = Verdicts {
            filter: self.filter.clone(),
            verdicts: verdicts.collect(),
        };
        self.seen.retain(|_, seen| !seen.is_gone);
        verdicts
    }

    fn keeps_all(&self) -> bool {
        keeps_all(&self.filter)
    }

    fn keeps(&self, pid: u32) -> bool {
        let read = |name: &str| {
            let text = fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
            String::from_utf8_lossy(&text).into_owned()
        };
        self.filter.keeps(&ProcessFacts {
            cgroup: &parse_cgroup(&read("cgroup")).path,
            cmdline: command_line(pid).join(" ").trim_end(),
            comm: read("comm").trim_end(),
            pod_labels: &[],
        })
    }
}

impl Verdicts {
    /// Whether a sample is kept. Of a process that came and went between two looks only what perf tells is known.
    pub(super) fn keeps(&self, pid: u32, thread_name: &str) -> bool {
        if let Some(is_kept) = self.verdicts.get(&pid) {
            return *is_kept;
        }
        self.filter.keeps(&ProcessFacts {
            comm: thread_name,
            ..ProcessFacts::default()
        })
    }

    pub(super) fn keeps_all(&self) -> bool {
        keeps_all(&self.filter)
    }
}

fn keeps_all(filter: &ProcessFilter) -> bool {
    let lists = [&filter.cgroup, &filter.cmdline, &filter.comm];
    lists
        .iter()
        .all(|list| list.as_ref().is_none_or(Vec::is_empty))
}

fn running() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(pattern: &str) -> Option<Vec<String>> {
        Some(vec![pattern.to_owned()])
    }

    #[test]
    fn running_processes_are_judged_by_what_they_are() {
        let own = fs::read_to_string("/proc/self/comm").expect("our name");
        let filter = ProcessFilter {
            comm: list(own.trim_end()),
            cmdline: list("*daemons*"),
            ..ProcessFilter::default()
        };
        let mut processes = Processes::new(filter);
        processes.look(Duration::ZERO);
        let verdicts = processes.verdicts();
        assert!(verdicts.keeps(std::process::id(), "a thread of another name"));
        assert!(!verdicts.keeps(1, own.trim_end()), "it is not ours");
        // Its command line is not known.
        assert!(!verdicts.keeps(u32::MAX, own.trim_end()));
    }

    #[test]
    fn one_that_came_and_went_has_the_name_of_its_thread() {
        let mut processes = Processes::new(ProcessFilter {
            comm: list("sho*"),
            ..ProcessFilter::default()
        });
        let verdicts = processes.verdicts();
        assert!(verdicts.keeps(u32::MAX, "short") && !verdicts.keeps(u32::MAX, "other"));
        assert!(
            Processes::new(ProcessFilter::default())
                .verdicts()
                .keeps_all()
        );
    }
}
