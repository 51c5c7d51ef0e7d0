//! Pushes that can be told apart, and pushers that send them until the server is gone.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use candela_formats::PprofOptions;
use candela_formats::write_pprof;
use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;

use crate::support;
use crate::support::Running;

pub(crate) const SERVICES: u64 = 3;
/// What each push has at the stack that all share.
pub(crate) const COMMON_VALUE: i64 = 1;
/// One push in so many has thousands of stacks, which takes another way through the store.
const LARGE_EVERY: u64 = 97;
const HOUR_NS: i64 = 3_600_000_000_000;

/// What one push brings: its value at a function that no other has.
#[derive(Clone, Debug)]
pub(crate) struct Push {
    pub(crate) number: u64,
    pub(crate) value: i64,
    /// The sum of all its samples.
    pub(crate) total: i64,
    body: Vec<u8>,
}

/// What became of all pushes so far.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    next: AtomicU64,
    /// Answered with 200. The bodies are dropped.
    pub(crate) acknowledged: Mutex<BTreeMap<u64, Push>>,
    /// Sent and not answered: the server may have them or not. They are sent again, as a client
    /// would, and must then count once.
    pub(crate) unanswered: Mutex<BTreeMap<u64, Push>>,
}

impl Push {
    fn new(number: u64) -> Self {
        let is_large = number % LARGE_EVERY == LARGE_EVERY - 1;
        let value = 2 + (number % 1009) as i64;
        let others = if is_large { 5000 } else { 0 };
        let profile = profile(number, value, others);
        let mut body = Vec::new();
        write_pprof(&profile, &mut body, &PprofOptions::default()).unwrap();
        Self {
            number,
            value,
            total: value + COMMON_VALUE + others,
            body,
        }
    }
}

fn now_ns() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since_epoch.as_nanos() as i64
}

fn profile(number: u64, value: i64, others: i64) -> Profile {
    let mut profile = Profile::default();
    let mut frame = |name: &str| -> LocationId {
        let symbols = &mut profile.symbols;
        let function = symbols.intern_function(name, "", "kills.rs", 1);
        let place = Location::new(FrameKind::Native, 0);
        symbols.intern_location(&place, &[(function, 2, 0)])
    };
    let main = frame("main");
    let common = frame("common");
    let own = frame(&format!("push_{number}"));
    let others: Vec<LocationId> = (0..others)
        .map(|it| frame(&format!("other_{it}")))
        .collect();
    let labels = Labels::from_pairs([("pod", format!("pod-{}", number % 7))]);
    let profile_type = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
    let mut series = ProfileSeries::new(labels, profile_type.parse().unwrap());
    // Some are of windows that are closed, which compaction takes up at once; two days of them, so
    // that a flush makes several blocks.
    let hours_ago = [0, 0, 3, 30][(number % 4) as usize];
    series.start_ns = now_ns() - hours_ago * HOUR_NS;
    series.duration_ns = 1_000_000_000;
    series.period = 1;
    let mut add = |stack: &[LocationId], value| {
        let stack = profile.stacks.intern(stack);
        series.samples.push(Sample::new(stack, value));
    };
    add(&[own, main], value);
    add(&[common, main], COMMON_VALUE);
    for other in others {
        add(&[other, main], 1);
    }
    profile.series.push(series);
    profile
}

impl Ledger {
    /// Sends until the server is gone; first what it did not answer before.
    pub(crate) fn push_until_gone(&self, candela: &Running) {
        loop {
            let again = self.unanswered.lock().unwrap().pop_first();
            let push = again.map_or_else(
                || Push::new(self.next.fetch_add(1, Ordering::Relaxed)),
                |(_, push)| push,
            );
            let service = push.number % SERVICES;
            let url = candela.url(&format!("/api/v1/ingest?service=crash-{service}"));
            match support::try_post(&url, &push.body) {
                Some((200, _)) => self.acknowledge(push),
                Some((status, body)) => panic!("{status}: {}", String::from_utf8_lossy(&body)),
                None => {
                    let mut unanswered = self.unanswered.lock().unwrap();
                    unanswered.insert(push.number, push);
                    return;
                }
            }
        }
    }

    fn acknowledge(&self, mut push: Push) {
        push.body = Vec::new();
        let mut acknowledged = self.acknowledged.lock().unwrap();
        acknowledged.insert(push.number, push);
    }
}
