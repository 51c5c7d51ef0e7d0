//! Which agents have sent something, and what they say of their own work.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use candela_formats::AgentReport;
use candela_formats::AttributeValue;

/// More agents than this are not remembered: the newest win.
const MAX_AGENTS: usize = 10_000;

/// Names of strangers are kept for weeks: longer ones are not names.
const MAX_NAME_BYTES: usize = 256;

/// Agents whose counts are kept apart; those of the oldest beyond are added up.
const MAX_COUNTERS: usize = 1_000;

/// Different codes and reasons of one agent.
const MAX_COUNTS: usize = 128;

const RESULT_PREFIX: &str = "candela.result.";
const DROPS_PREFIX: &str = "candela.drops.";
const COST_PREFIX: &str = "candela.cost.";
const EVENTS_PREFIX: &str = "candela.events.";
const MISSING_PREFIX: &str = "candela.missing.";

/// What is said of each program in the kernel, as the agent's own status calls it.
const PROGRAM_PREFIXES: [(&str, &str); 3] = [
    ("candela.program_ns.", "estimated_run_time_ns"),
    ("candela.program_runs.", "estimated_runs"),
    ("candela.program_refused.", "recursion_misses"),
];

/// The senders of OTLP profiles.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// When each sent last, unix nanoseconds, by tenant and name.
    seen: BTreeMap<(String, AgentName), i64>,
    counters: BTreeMap<Instance, Counters>,
    /// What was counted by agents that are not kept apart any more, by tenant.
    others: BTreeMap<String, BTreeMap<Count, u64>>,
}

/// Who sent: the host, and the name and version of the instrumentation scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AgentName {
    pub(crate) host: String,
    pub(crate) name: String,
    pub(crate) version: String,
}

/// One run of an agent: its tenant, its host and when it started.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Instance {
    tenant: String,
    host: String,
    started_ms: i64,
}

/// What one agent counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Count {
    /// Samples by the result code of their walk.
    Result(String),
    /// What did not make it, by reason.
    Drop(String),
}

/// The totals of one agent.
#[derive(Debug, Default)]
struct Counters {
    /// Start of the latest profile that came with totals.
    start_ns: i64,
    totals: BTreeMap<Count, u64>,
    /// What the agent said of itself with that profile.
    account: Account,
}

/// What an agent says of itself beside its totals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    /// What it costs.
    pub(crate) cost: BTreeMap<String, u64>,
    /// What its programs in the kernel cost, by name.
    pub(crate) programs: BTreeMap<String, BTreeMap<String, u64>>,
    /// What came from its kernel, by kind.
    pub(crate) events: BTreeMap<String, u64>,
    /// Why it does without what was asked for, by the name of that.
    pub(crate) missing: BTreeMap<String, String>,
}

impl Agents {
    /// Remembers that an agent has sent something.
    pub(crate) fn note(&self, tenant: &str, host: &str, name: &str, version: &str, now_ns: i64) {
        if [host, name, version]
            .iter()
            .any(|text| text.len() > MAX_NAME_BYTES)
        {
            return;
        }
        let agent = AgentName {
            host: host.to_owned(),
            name: name.to_owned(),
            version: version.to_owned(),
        };
        let agent = (tenant.to_owned(), agent);
        let seen = &mut self.lock().seen;
        if seen.len() >= MAX_AGENTS && !seen.contains_key(&agent) {
            let oldest = seen.iter().min_by_key(|(_, time)| **time);
            let oldest = oldest.map(|(name, _)| name.clone());
            oldest.and_then(|name| seen.remove(&name));
        }
        seen.insert(agent, now_ns);
    }

    /// Takes the totals that an agent sent with a profile.
    pub(crate) fn hear(&self, tenant: &str, report: AgentReport) {
        let (totals, account) = (totals_of(&report), Account::of(&report));
        let says_nothing = totals.is_empty() && account == Account::default();
        if says_nothing || report.host.len() > MAX_NAME_BYTES {
            return;
        }
        let instance = Instance {
            tenant: tenant.to_owned(),
            host: report.host,
            started_ms: report.started_ms,
        };
        let mut state = self.lock();
        state.make_room_for(&instance);
        let State {
            counters, others, ..
        } = &mut *state;
        let others = others.entry(room_for(others, tenant)).or_default();
        let counters = counters.entry(instance).or_default();
        counters.take(report.start_ns, totals, account, others);
    }

    /// Everybody of some tenants, by host, with the time of the last request in unix nanoseconds.
    pub(crate) fn list(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<(AgentName, i64)> {
        let state = self.lock();
        let mut latest: BTreeMap<&AgentName, i64> = BTreeMap::new();
        for ((tenant, agent), time) in &state.seen {
            if is_wanted(tenant) {
                let seen_ns = latest.entry(agent).or_insert(*time);
                *seen_ns = (*seen_ns).max(*time);
            }
        }
        let latest = latest.into_iter();
        latest.map(|(agent, time)| (agent.clone(), time)).collect()
    }

    /// What all agents of some tenants have counted together, without those of one host.
    pub(crate) fn totals(
        &self,
        without_host: Option<&str>,
        is_wanted: impl Fn(&str) -> bool,
    ) -> BTreeMap<Count, u64> {
        let state = self.lock();
        let mut sums = BTreeMap::new();
        for (_, totals) in state.others.iter().filter(|(tenant, _)| is_wanted(tenant)) {
            add(&mut sums, totals);
        }
        for (instance, counters) in &state.counters {
            let is_other_host = Some(instance.host.as_str()) != without_host;
            if is_other_host && is_wanted(&instance.tenant) {
                add(&mut sums, &counters.totals);
            }
        }
        sums
    }

    /// What the agents of some tenants said of themselves when they sent last, by host; of several runs on a host
    /// the latest counts.
    pub(crate) fn accounts(&self, is_wanted: impl Fn(&str) -> bool) -> BTreeMap<String, Account> {
        let state = self.lock();
        let mut latest: BTreeMap<&str, &Counters> = BTreeMap::new();
        for (instance, counters) in &state.counters {
            if counters.account == Account::default() || !is_wanted(&instance.tenant) {
                continue;
            }
            let known = latest.entry(&instance.host).or_insert(counters);
            if known.start_ns < counters.start_ns {
                *known = counters;
            }
        }
        let latest = latest.into_iter();
        latest
            .map(|(host, counters)| (host.to_owned(), counters.account.clone()))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Account ===

impl Account {
    fn of(report: &AgentReport) -> Self {
        let mut programs: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for (prefix, figure) in PROGRAM_PREFIXES {
            for (program, value) in figures_of(report, prefix) {
                let program = programs.entry(program).or_default();
                program.insert(figure.to_owned(), value);
            }
        }
        // What is missing has the names of kinds and events, which may be paths: none is of any length.
        let missing = report.attributes.iter().filter_map(|(name, value)| {
            let AttributeValue::Text(reason) = value else {
                return None;
            };
            let what = name.strip_prefix(MISSING_PREFIX)?;
            (!what.is_empty()).then(|| (what.to_owned(), reason.clone()))
        });
        Self {
            cost: figures_of(report, COST_PREFIX),
            programs,
            events: figures_of(report, EVENTS_PREFIX),
            missing: missing.take(MAX_COUNTS).collect(),
        }
    }
}

// === impl State ===

impl State {
    fn make_room_for(&mut self, instance: &Instance) {
        if self.counters.len() < MAX_COUNTERS || self.counters.contains_key(instance) {
            return;
        }
        let oldest = self
            .counters
            .iter()
            .min_by_key(|(_, counters)| counters.start_ns);
        let oldest = oldest.map(|(instance, _)| instance.clone());
        let oldest = oldest.and_then(|oldest| self.counters.remove_entry(&oldest));
        if let Some((instance, counters)) = oldest {
            let room = room_for(&self.others, &instance.tenant);
            add(self.others.entry(room).or_default(), &counters.totals);
        }
    }
}

impl Counters {
    /// Totals only grow, so that a later profile with a smaller one is of the next run of an agent
    /// that does not say when it started. An earlier profile comes late, from a spool, and its
    /// totals are part of those that are known.
    fn take(
        &mut self,
        start_ns: i64,
        totals: BTreeMap<Count, u64>,
        account: Account,
        others: &mut BTreeMap<Count, u64>,
    ) {
        if start_ns < self.start_ns {
            return;
        }
        self.start_ns = start_ns;
        self.account = account;
        let is_new_run = totals
            .iter()
            .any(|(count, total)| self.totals.get(count).is_some_and(|known| total < known));
        if is_new_run {
            add(others, &self.totals);
            self.totals.clear();
        }
        self.totals.extend(totals);
    }
}

/// Where the counts of a tenant's forgotten agents go. Those of too many tenants go together, to a
/// name that is nobody's, so that only who sees all tenants sees them.
fn room_for(others: &BTreeMap<String, BTreeMap<Count, u64>>, tenant: &str) -> String {
    if others.len() < MAX_COUNTERS || others.contains_key(tenant) {
        return tenant.to_owned();
    }
    String::new()
}

fn totals_of(report: &AgentReport) -> BTreeMap<Count, u64> {
    let totals = report.attributes.iter().filter_map(|(name, value)| {
        let AttributeValue::Number(total) = value else {
            return None;
        };
        let count = match (
            name.strip_prefix(RESULT_PREFIX),
            name.strip_prefix(DROPS_PREFIX),
        ) {
            (Some(code), _) if is_word(code) => Count::Result(code.to_owned()),
            (_, Some(reason)) if is_word(reason) => Count::Drop(reason.to_owned()),
            _ => return None,
        };
        Some((count, u64::try_from(*total).ok()?))
    });
    totals.take(MAX_COUNTS).collect()
}

fn figures_of(report: &AgentReport, prefix: &str) -> BTreeMap<String, u64> {
    let figures = report.attributes.iter().filter_map(|(name, value)| {
        let AttributeValue::Number(figure) = value else {
            return None;
        };
        let name = name.strip_prefix(prefix).filter(|name| is_word(name))?;
        Some((name.to_owned(), u64::try_from(*figure).ok()?))
    });
    figures.take(MAX_COUNTS).collect()
}

/// Codes and reasons are words in snake case, and become labels of metrics.
fn is_word(text: &str) -> bool {
    let is_of_words = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=64).contains(&text.len()) && text.bytes().all(is_of_words)
}

fn add(sums: &mut BTreeMap<Count, u64>, totals: &BTreeMap<Count, u64>) {
    for (count, total) in totals {
        // Words that strangers make up find an end.
        if sums.len() < MAX_COUNTS || sums.contains_key(count) {
            let sum = sums.entry(count.clone()).or_default();
            *sum = sum.saturating_add(*total);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(host: &str, started_ms: i64, start_ns: i64, lost: i64) -> AgentReport {
        AgentReport {
            host: host.to_owned(),
            started_ms,
            start_ns,
            attributes: vec![
                (
                    "candela.drops.spool_full".to_owned(),
                    AttributeValue::Number(lost),
                ),
                (
                    "candela.result.Bad Code".to_owned(),
                    AttributeValue::Number(1),
                ),
            ],
        }
    }

    fn lost(agents: &Agents, without_host: Option<&str>) -> u64 {
        let totals = agents.totals(without_host, |_| true);
        assert!(totals.len() <= 1, "{totals:?}");
        totals.values().sum()
    }

    #[test]
    fn the_oldest_gives_way() {
        let agents = Agents::default();
        for index in 0..=MAX_AGENTS {
            agents.note("t", &format!("host-{index}"), "", "", index as i64);
        }
        let list = agents.list(|_| true);
        assert_eq!(list.len(), MAX_AGENTS);
        assert!(list.iter().all(|(agent, _)| agent.host != "host-0"));
        agents.note("t", &"x".repeat(257), "", "", i64::MAX);
        assert_eq!(agents.list(|_| true).len(), MAX_AGENTS);
        assert!(list.iter().all(|(agent, _)| agent.host.len() < 257));
    }

    #[test]
    fn totals_are_counted_once() {
        let agents = Agents::default();
        agents.hear("t", report("a", 1, 10, 5));
        agents.hear("t", report("a", 1, 20, 7));
        assert_eq!(lost(&agents, None), 7, "totals are no differences");
        agents.hear("t", report("a", 1, 10, 5));
        assert_eq!(lost(&agents, None), 7, "a profile from the spool");
        agents.hear("t", report("a", 2, 30, 3));
        assert_eq!(lost(&agents, None), 10, "the next run");
        agents.hear("t", report("b", 1, 30, 1));
        assert_eq!(lost(&agents, None), 11, "another host");
        assert_eq!(lost(&agents, Some("a")), 1);
    }

    #[test]
    fn an_agent_without_a_start_that_counts_less_has_started_anew() {
        let agents = Agents::default();
        agents.hear("t", report("a", 0, 10, 5));
        agents.hear("t", report("a", 0, 20, 2));
        assert_eq!(lost(&agents, None), 7);
        agents.hear("t", report("a", 0, 30, 4));
        assert_eq!(lost(&agents, None), 9);
    }

    #[test]
    fn the_latest_account_of_a_host_counts() {
        let agents = Agents::default();
        let hear = |tenant: &str, started_ms, start_ns, cpu_ns| {
            let attributes = vec![
                (
                    "candela.cost.cpu_ns".to_owned(),
                    AttributeValue::Number(cpu_ns),
                ),
                ("candela.cost.x y".to_owned(), AttributeValue::Number(1)),
                ("candela.cost.minus".to_owned(), AttributeValue::Number(-1)),
            ];
            let report = AgentReport {
                attributes,
                ..report("a", started_ms, start_ns, 0)
            };
            agents.hear(tenant, report);
        };
        hear("t", 1, 10, 500);
        hear("t", 2, 30, 70);
        hear("t", 1, 20, 900);
        hear("u", 1, 40, 1);
        let accounts = agents.accounts(|tenant| tenant == "t");
        let cost = BTreeMap::from([("cpu_ns".to_owned(), 70)]);
        assert_eq!(accounts["a"].cost, cost);
        assert_eq!(accounts.len(), 1);
        assert!(
            agents.totals(None, |_| true).is_empty(),
            "costs are no counts"
        );
    }

    #[test]
    fn tenants_are_kept_apart() {
        let agents = Agents::default();
        for (tenant, lost) in [("a", 1), ("b", 2)] {
            agents.note(tenant, "host", tenant, "", lost);
            agents.hear(tenant, report("host", 1, 10, lost));
        }
        let of = |tenant: &str| {
            let names = agents.list(|name| name == tenant).into_iter();
            let names: Vec<String> = names.map(|(agent, _)| agent.name).collect();
            let totals = agents.totals(None, |name| name == tenant);
            (names, totals.values().sum::<u64>())
        };
        assert_eq!(of("a"), (vec!["a".to_owned()], 1));
        assert_eq!(of("b"), (vec!["b".to_owned()], 2));
        assert_eq!(lost(&agents, None), 3);
    }

    #[test]
    fn counts_of_forgotten_agents_stay_in_the_sum() {
        let agents = Agents::default();
        for index in 0..2 * MAX_COUNTERS as i64 {
            agents.hear("t", report("a", index, index, 1));
        }
        assert_eq!(lost(&agents, None), 2 * MAX_COUNTERS as u64);
    }
}
