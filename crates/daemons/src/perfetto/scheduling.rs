//! What runs on which CPU, as packets: every switch of the scheduler, in batches that stand on their own.

use std::collections::HashMap;
use std::collections::HashSet;
use std::fs;

use candela_agent::AgentError;
use candela_agent::Clock;
use candela_agent::Switch;
use candela_agent::SwitchRecorder;
use candela_model::LabelValue;
use candela_model::Profile;

use crate::error::DaemonError;
use crate::perfetto::switch_packets::Arrival;
use crate::perfetto::switch_packets::SwitchBatch;
use crate::perfetto::switch_packets::Thread;
use crate::perfetto::switch_packets::loss_packets;
use crate::perfetto::switch_packets::system_packet;

/// What gives way at once when the ring is full.
const LONGEST_BATCH_NS: u64 = 1_000_000_000;
/// A batch is a part of its ring as small as this, so that a small ring is not emptied by one, and no larger than
/// `MOST_BATCH_BYTES`.
const RING_SHARE: usize = 8;
const LEAST_BATCH_BYTES: usize = 512;
const MOST_BATCH_BYTES: usize = 1 << 20;

/// Names of processes that are remembered.
const MOST_NAMES: usize = 16_384;

/// The switches of all CPUs since the start.
#[derive(Debug)]
pub(crate) struct Scheduling {
    recorder: SwitchRecorder,
    batches: Batches,
    lost_by_cpu: Vec<u64>,
    recorded_until_ns: i64,
}

/// Switches on their way into packets.
#[derive(Debug)]
struct Batches {
    batch: SwitchBatch,
    most_bytes: usize,
    began_ns: Option<u64>,
    /// CPUs whose next switch comes after some that found no room. That another thread leaves than the one that came
    /// tells no loss: the kernel's own tracepoint misses a switch now and then.
    after_loss: HashSet<u32>,
    /// What the sampler calls processes, so that both do.
    process_names: HashMap<u32, String>,
}

impl Scheduling {
    /// Records from now on, into a ring with so much room.
    ///
    /// # Errors
    /// [`DaemonError::Agent`].
    pub(crate) fn start(ring_bytes: usize) -> Result<Self, DaemonError> {
        let recorder = SwitchRecorder::start().map_err(AgentError::from)?;
        Ok(Self {
            recorder,
            batches: Batches::new(ring_bytes),
            lost_by_cpu: Vec::new(),
            recorded_until_ns: 0,
        })
    }

    /// Reads what has happened, and hands over each batch that is whole; with `is_last` the one that is begun, too.
    ///
    /// # Errors
    /// [`DaemonError::Agent`].
    pub(crate) fn collect(
        &mut self,
        is_last: bool,
        push: &mut dyn FnMut(Vec<u8>),
    ) -> Result<(), DaemonError> {
        let now = Clock::now();
        let until_ns = now.unix_ns(candela_agent::monotonic_ns());
        let batches = &mut self.batches;
        self.recorder
            .read(&mut |switch| batches.add(&switch, now, push));
        if is_last {
            self.batches.end(push);
        }
        // What was lost came when the ring was full of what was just read.
        let lost = self.recorder.lost_by_cpu().map_err(AgentError::from)?;
        for (cpu, &count) in (0..).zip(&lost) {
            let known = self.lost_by_cpu.get(cpu as usize);
            if count > known.copied().unwrap_or_default() {
                self.batches.after_loss.insert(cpu);
            }
        }
        self.lost_by_cpu = lost;
        self.recorded_until_ns = until_ns;
        Ok(())
    }

    /// Until when every switch was collected, nanoseconds since the epoch.
    pub(crate) fn recorded_until_ns(&self) -> i64 {
        self.recorded_until_ns
    }

    /// Takes the names of processes that were sampled.
    pub(crate) fn learn_names(&mut self, window: &Profile) {
        self.batches.learn_names(window);
    }

    /// What stands before the batches of a snapshot: the kernel, whose states the reader is to understand, and how
    /// many switches were lost.
    pub(crate) fn facts(&self) -> Vec<u8> {
        let lost = &self.lost_by_cpu;
        let all_lost = lost.iter().sum::<u64>() + self.recorder.undecodable();
        if all_lost > 0 {
            tracing::warn!(
                all_lost,
                "switches of the scheduler were lost since the start: their ring was full"
            );
        }
        let fact = |name: &str| {
            let text = fs::read_to_string(format!("/proc/sys/kernel/{name}"));
            text.unwrap_or_default().trim().to_owned()
        };
        let mut packets = Vec::new();
        system_packet(&fact("osrelease"), &fact("version"), &mut packets);
        loss_packets(lost, &mut packets);
        packets
    }
}

impl Batches {
    fn new(ring_bytes: usize) -> Self {
        let share = ring_bytes / RING_SHARE;
        Self {
            batch: SwitchBatch::default(),
            most_bytes: share.clamp(LEAST_BATCH_BYTES, MOST_BATCH_BYTES),
            began_ns: None,
            after_loss: HashSet::new(),
            process_names: HashMap::new(),
        }
    }

    fn add(&mut self, switch: &Switch<'_>, clock: Clock, push: &mut dyn FnMut(Vec<u8>)) {
        let began_ns = *self.began_ns.get_or_insert(switch.time_ns);
        let is_whole = switch.time_ns.saturating_sub(began_ns) >= LONGEST_BATCH_NS
            || self.batch.bytes() >= self.most_bytes;
        if is_whole {
            self.end(push);
            self.began_ns = Some(switch.time_ns);
        }
        let is_after_loss = self.after_loss.remove(&switch.cpu);
        let sampled_name = self.process_names.get(&switch.pid);
        let comm = switch.process_comm.to_string_lossy();
        let thread = Thread {
            tid: switch.tid,
            pid: switch.pid,
            name: &switch.comm.to_string_lossy(),
            process_name: sampled_name.map_or(&comm, String::as_str),
            is_process_comm: sampled_name.is_none(),
        };
        let arrival = Arrival {
            unix_ns: u64::try_from(clock.unix_ns(switch.time_ns)).unwrap_or_default(),
            previous_state: switch.previous_state,
            priority: switch.priority,
            thread,
        };
        self.batch.add(switch.cpu, &arrival, is_after_loss);
    }

    fn end(&mut self, push: &mut dyn FnMut(Vec<u8>)) {
        self.began_ns = None;
        let batch = std::mem::take(&mut self.batch);
        if batch.bytes() > 0 {
            push(batch.packets());
        }
    }

    fn learn_names(&mut self, window: &Profile) {
        let strings = &window.symbols.strings;
        for labels in window.label_sets.iter() {
            let (mut pid, mut name) = (None, None);
            for label in labels {
                match (strings.get(label.key), label.value) {
                    ("pid", LabelValue::Number { value, .. }) => pid = u32::try_from(value).ok(),
                    ("process_executable_name", LabelValue::Text(text)) => {
                        name = Some(strings.get(text));
                    }
                    _ => {}
                }
            }
            let (Some(pid), Some(name)) = (pid, name) else {
                continue;
            };
            if self.process_names.get(&pid).is_some_and(|it| it == name) {
                continue;
            }
            // The next windows tell again what is still needed.
            if self.process_names.len() >= MOST_NAMES {
                self.process_names.clear();
            }
            self.process_names.insert(pid, name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn switch(time_ns: u64, previous_tid: u32, tid: u32) -> Switch<'static> {
        Switch {
            time_ns,
            cpu: 0,
            previous_tid,
            previous_state: 1,
            tid,
            pid: tid,
            priority: 120,
            comm: OsStr::new("thread"),
            process_comm: OsStr::new("process"),
        }
    }

    #[test]
    fn batches_end_by_time_and_by_size() {
        let mut ended = Vec::new();
        let mut batches = Batches::new(1 << 20);
        let clock = Clock::now();
        let second = LONGEST_BATCH_NS;
        for (time_ns, tid) in [(0, 1), (second - 1, 2), (second, 3), (second + 1, 4)] {
            batches.add(&switch(time_ns, tid - 1, tid), clock, &mut |packets| {
                ended.push(packets);
            });
        }
        assert_eq!(ended.len(), 1);
        batches.end(&mut |packets| ended.push(packets));
        batches.end(&mut |packets| ended.push(packets));
        assert_eq!(ended.len(), 2, "an empty one is none");

        let mut small = Batches::new(4096);
        let mut sizes = Vec::new();
        for number in 1..1000_u32 {
            let switch = switch(number.into(), number - 1, number);
            small.add(&switch, clock, &mut |packets| sizes.push(packets.len()));
        }
        assert!(sizes.len() > 3, "{sizes:?}");
        assert!(sizes.iter().all(|size| *size <= 4096), "{sizes:?}");
    }

    #[test]
    fn a_bundle_says_that_switches_before_it_were_lost() {
        let mut batches = Batches::new(1 << 20);
        let mut none = |_: Vec<u8>| panic!("it is not whole");
        batches.add(&switch(5, 0, 1), Clock::now(), &mut none);
        assert!(!batches.batch.is_after_loss(0));
        batches.after_loss.insert(0);
        batches.add(&switch(6, 1, 2), Clock::now(), &mut none);
        assert!(batches.batch.is_after_loss(0));
        batches.end(&mut |_| {});
        batches.add(&switch(7, 2, 3), Clock::now(), &mut none);
        assert!(!batches.batch.is_after_loss(0), "it is said once");
    }
}
