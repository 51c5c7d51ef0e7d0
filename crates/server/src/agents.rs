//! Which agents have sent something.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

/// More hosts than this are not remembered: the newest win.
const MAX_AGENTS: usize = 10_000;

/// The senders of OTLP profiles by host and program.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    seen: Mutex<BTreeMap<AgentName, i64>>,
}

/// Who sent: the host, and the name and version of the instrumentation scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AgentName {
    pub(crate) host: String,
    pub(crate) name: String,
    pub(crate) version: String,
}

impl Agents {
    pub(crate) fn note(&self, agent: AgentName, now_ns: i64) {
        let mut seen = self.lock();
        if seen.len() >= MAX_AGENTS && !seen.contains_key(&agent) {
            let oldest = seen.iter().min_by_key(|(_, time)| **time);
            let oldest = oldest.map(|(name, _)| name.clone());
            oldest.and_then(|name| seen.remove(&name));
        }
        seen.insert(agent, now_ns);
    }

    /// Everybody, by host, with the time of the last request in unix nanoseconds.
    pub(crate) fn list(&self) -> Vec<(AgentName, i64)> {
        let seen = self.lock();
        seen.iter()
            .map(|(agent, time)| (agent.clone(), *time))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AgentName, i64>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_gives_way() {
        let agents = Agents::default();
        for index in 0..=MAX_AGENTS {
            let host = format!("host-{index}");
            let agent = AgentName {
                host,
                ..AgentName::default()
            };
            agents.note(agent, index as i64);
        }
        let list = agents.list();
        assert_eq!(list.len(), MAX_AGENTS);
        assert!(list.iter().all(|(agent, _)| agent.host != "host-0"));
    }
}
