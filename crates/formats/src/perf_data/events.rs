//! The events of a recording: what their samples hold, and which record belongs to which.

use hashbrown::HashMap;

use crate::perf_data::attr::Attr;
use crate::perf_data::attr::TYPE_HARDWARE;
use crate::perf_data::attr::TYPE_HARDWARE_CACHE;
use crate::perf_data::attr::TYPE_SOFTWARE;
use crate::perf_data::attr::TYPE_TRACEPOINT;
use crate::perf_data::attr::sample_bits;
use crate::perf_data::bytes::Bytes;

/// `PERF_COUNT_SW_*` in their order.
const SOFTWARE_NAMES: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];

/// `PERF_COUNT_HW_*` in their order.
const HARDWARE_NAMES: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];

/// The caches, operations and results of `PERF_COUNT_HW_CACHE_*` in their order.
const CACHES: [&str; 7] = [
    "L1-dcache",
    "L1-icache",
    "LLC",
    "dTLB",
    "iTLB",
    "branch",
    "node",
];
const CACHE_OPERATIONS: [(&str, &str); 3] = [
    ("loads", "load-misses"),
    ("stores", "store-misses"),
    ("prefetches", "prefetch-misses"),
];

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) attr: Attr,
    /// What perf calls it; empty until the recording says.
    given_name: String,
}

/// All events.
#[derive(Debug, Default)]
pub(crate) struct Events {
    list: Vec<Event>,
    by_id: HashMap<u64, usize>,
}

/// What the end of a record that is no sample says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordIds {
    pub(crate) event: Option<usize>,
    /// On the clock of the recording; `None` in records that perf itself made.
    pub(crate) time: Option<u64>,
}

impl Event {
    /// The name that perf gave, or the usual one.
    pub(crate) fn name(&self) -> String {
        if !self.given_name.is_empty() {
            return self.given_name.clone();
        }
        let Attr { kind, config, .. } = self.attr;
        let number = usize::try_from(config).unwrap_or(usize::MAX);
        let known = match kind {
            TYPE_SOFTWARE => SOFTWARE_NAMES.get(number).map(|name| (*name).to_owned()),
            // Hybrid machines say in the upper half which kind of core is meant.
            TYPE_HARDWARE => HARDWARE_NAMES
                .get(number & u32::MAX as usize)
                .map(|name| (*name).to_owned()),
            TYPE_HARDWARE_CACHE => cache_event(config),
            TYPE_TRACEPOINT => Some(format!("tracepoint {config}")),
            _ => None,
        };
        known.unwrap_or_else(|| format!("raw 0x{config:x}"))
    }
}

fn cache_event(config: u64) -> Option<String> {
    let byte = |number: u64| usize::from((config >> (8 * number)) as u8);
    let cache = CACHES.get(byte(0))?;
    let (access, miss) = CACHE_OPERATIONS.get(byte(1))?;
    let operation = if byte(2) == 0 { access } else { miss };
    Some(format!("{cache}-{operation}"))
}

impl Events {
    pub(crate) fn list(&self) -> &[Event] {
        &self.list
    }

    pub(crate) fn id_count(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn get(&self, event: usize) -> Option<&Event> {
        self.list.get(event)
    }

    /// Adds an event, or ids to the same one: recordings of pipes tell of each once more when perf
    /// knows its name.
    pub(crate) fn add(&mut self, attr: Attr, ids: impl Iterator<Item = u64>) {
        let mut ids = ids.peekable();
        let known = ids.peek().and_then(|id| self.by_id.get(id).copied());
        let event = known.unwrap_or(self.list.len());
        if known.is_none() {
            self.list.push(Event {
                attr,
                given_name: String::new(),
            });
        }
        for id in ids {
            self.by_id.entry(id).or_insert(event);
        }
    }

    /// Says what the event with an id is called.
    pub(crate) fn set_name(&mut self, id: u64, name: &str) {
        let event = self.by_id.get(&id).copied();
        self.set_name_at(event.unwrap_or(usize::MAX), name);
    }

    /// The same for the event at a position, where events have no ids.
    pub(crate) fn set_name_at(&mut self, event: usize, name: &str) {
        if let Some(event) = self.list.get_mut(event) {
            name.clone_into(&mut event.given_name);
        }
    }

    /// Says what all events of a kind are called that have no name of their own.
    pub(crate) fn set_missing_names(&mut self, kind: u32, config: u64, name: &str) {
        for event in &mut self.list {
            let is_meant = (event.attr.kind, event.attr.config) == (kind, config);
            if is_meant && event.given_name.is_empty() {
                name.clone_into(&mut event.given_name);
            }
        }
    }

    /// The event that counts under an id.
    pub(crate) fn find(&self, id: u64) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// The event that a sample is of, by the body of its record.
    pub(crate) fn of_sample(&self, body: Bytes<'_>) -> Option<usize> {
        if self.list.len() <= 1 {
            return self.list.first().map(|_| 0);
        }
        let attr = &self.list.first()?.attr;
        let before = if attr.has(sample_bits::IDENTIFIER) {
            0
        } else if attr.has(sample_bits::ID) {
            let earlier = [
                sample_bits::IP,
                sample_bits::TID,
                sample_bits::TIME,
                sample_bits::ADDR,
            ];
            earlier.iter().filter(|bit| attr.has(**bit)).count()
        } else {
            return Some(0);
        };
        let mut body = body;
        body.take(8 * before)?;
        self.by_id(body.u64()?)
    }

    /// The time of a sample of an event, by the body of its record.
    pub(crate) fn sample_time(&self, event: usize, body: Bytes<'_>) -> Option<u64> {
        let attr = &self.list.get(event)?.attr;
        if !attr.has(sample_bits::TIME) {
            return None;
        }
        let earlier = [sample_bits::IDENTIFIER, sample_bits::IP, sample_bits::TID];
        let before = earlier.iter().filter(|bit| attr.has(**bit)).count();
        let mut body = body;
        body.take(8 * before)?;
        body.u64()
    }

    /// What stands at the end of a record that is no sample; `body` is then without it.
    pub(crate) fn take_record_ids(&self, body: &mut Bytes<'_>) -> RecordIds {
        let event = self.of_record(*body);
        let Some(attr) = event.and_then(|event| self.list.get(event)) else {
            return RecordIds::default();
        };
        let attr = &attr.attr;
        if !attr.has_ids_in_all_records() {
            return RecordIds::default();
        }
        let fields = [
            sample_bits::TID,
            sample_bits::TIME,
            sample_bits::ID,
            sample_bits::STREAM_ID,
            sample_bits::CPU,
            sample_bits::IDENTIFIER,
        ];
        let count = fields.iter().filter(|bit| attr.has(**bit)).count();
        let Some(mut ids) = body.take_last(8 * count) else {
            return RecordIds::default();
        };
        if attr.has(sample_bits::TID) {
            ids.u64();
        }
        let time = attr.has(sample_bits::TIME).then(|| ids.u64()).flatten();
        RecordIds { event, time }
    }

    fn of_record(&self, body: Bytes<'_>) -> Option<usize> {
        let attr = &self.list.first()?.attr;
        if self.list.len() == 1 || !attr.has_ids_in_all_records() {
            return Some(0);
        }
        let behind = if attr.has(sample_bits::IDENTIFIER) {
            0
        } else if attr.has(sample_bits::ID) {
            let later = [sample_bits::STREAM_ID, sample_bits::CPU];
            later.iter().filter(|bit| attr.has(**bit)).count()
        } else {
            return Some(0);
        };
        let mut body = body;
        let mut last = body.take_last(8 * (behind + 1))?;
        self.by_id(last.u64()?)
    }

    /// Records that perf itself made have the id 0 and are laid out like those of the first event.
    fn by_id(&self, id: u64) -> Option<usize> {
        if id == 0 {
            return Some(0);
        }
        self.find(id)
    }
}
