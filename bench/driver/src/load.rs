//! Profiles like those of a fleet, pushed at a steady rate.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;
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

use crate::latency::Latencies;

pub(crate) const SERIES: u64 = 1_000;
pub(crate) const SERVICES: u64 = 20;
/// Functions of a service.
const FUNCTIONS: u64 = 2_000;
/// Samples of a profile: 19 a second for ten seconds.
const SAMPLES: u64 = 190;
const DEPTH: u64 = 24;
/// Pushers at a time: one that waits for its answer must not hold up the next push.
const PUSHERS: u64 = 8;

/// Pushes to a server, one after another by the clock, whatever the answers take.
#[derive(Debug)]
pub(crate) struct Load {
    url: String,
    per_second: u64,
    start: Instant,
    next: AtomicU64,
    pub(crate) is_over: AtomicBool,
    pub(crate) refused: AtomicU64,
    pub(crate) pushes: Latencies,
    /// The first profiles, if they were made before the first push.
    prepared: Vec<(u64, Vec<u8>)>,
}

/// Numbers that depend on the seed alone (SplitMix64).
pub(crate) fn mixed(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

impl Load {
    pub(crate) fn new(url: &str, per_second: u64) -> Self {
        Self {
            url: url.to_owned(),
            per_second,
            start: Instant::now(),
            next: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            pushes: Latencies::default(),
            prepared: Vec::new(),
        }
    }

    /// Makes the profiles of so long before the first push: programs that push do it beside their
    /// work on their own cores, and to make them on those of the server would measure that.
    pub(crate) fn prepared_for(mut self, duration: Duration) -> Self {
        let count = (duration.as_secs_f64() * self.per_second as f64) as u64 + PUSHERS;
        self.prepared = (0..count).map(profile).collect();
        self.start = Instant::now();
        self
    }

    /// Pushes until it is over.
    pub(crate) fn run(&self) {
        std::thread::scope(|scope| {
            for _ in 0..PUSHERS {
                scope.spawn(|| self.push_until_over());
            }
        });
    }

    fn push_until_over(&self) {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(30)))
            .build()
            .into();
        // Clients keep their connection, so opening it is not part of a push.
        let opening = agent.get(format!("{}/ready", self.url)).call();
        self.check(opening);
        while !self.is_over.load(Ordering::SeqCst) {
            let number = self.next.fetch_add(1, Ordering::SeqCst);
            let made;
            let (series, body) = match self.prepared.get(number as usize) {
                Some((series, body)) => (*series, body),
                None => {
                    made = profile(number);
                    (made.0, &made.1)
                }
            };
            let (service, pod) = (series % SERVICES, series / SERVICES);
            let url = format!(
                "{}/api/v1/ingest?service=service-{service:02}&label=pod=pod-{pod}",
                self.url
            );
            let due = self.start + Duration::from_nanos(1_000_000_000 / self.per_second * number);
            while let Some(rest) = due.checked_duration_since(Instant::now()) {
                std::thread::park_timeout(rest);
            }
            let sent = Instant::now();
            let answer = agent.post(&url).send(&body[..]);
            self.pushes.add(sent.elapsed());
            self.check(answer);
        }
    }

    /// Counts an answer that is no 200, and reads it to its end: only then is its connection used
    /// for the next.
    fn check(&self, answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) {
        let is_good = answer.is_ok_and(|mut response| {
            let is_read = response.body_mut().read_to_vec().is_ok();
            is_read && response.status().as_u16() == 200
        });
        if !is_good {
            self.refused.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// The profile of this number as pprof, and its series. Every series comes round after all others.
pub(crate) fn profile(number: u64) -> (u64, Vec<u8>) {
    profile_at(number, now_ns())
}

/// Nanoseconds since the Unix epoch.
pub(crate) fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |elapsed| elapsed.as_nanos() as i64)
}

/// The same, begun at another time.
pub(crate) fn profile_at(number: u64, start_ns: i64) -> (u64, Vec<u8>) {
    let series_number = number % SERIES;
    let service = series_number % SERVICES;
    let mut profile = Profile::default();
    let profile_type = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
        .parse()
        .expect("five parts");
    let mut series = ProfileSeries::new(Labels::default(), profile_type);
    series.start_ns = start_ns;
    series.duration_ns = 10_000_000_000;
    series.period = 52_631_578;
    for sample in 0..SAMPLES {
        // Skewed: the product of two even draws prefers small numbers, so that stacks repeat.
        let draw = mixed(number << 16 | sample);
        let shape = (draw % 71) * (draw >> 32) % 53;
        let leaf_first: Vec<LocationId> = (0..DEPTH)
            .rev()
            .map(|depth| {
                // The outer frames are shared, the inner ones are those of the stack.
                let own = if depth < DEPTH / 2 { 0 } else { shape + 1 };
                let function = mixed(service << 40 | own << 16 | depth) % FUNCTIONS;
                frame(&mut profile, service, function)
            })
            .collect();
        let stack = profile.stacks.intern(&leaf_first);
        series.samples.push(Sample::new(stack, series.period));
    }
    profile.series.push(series);
    let mut body = Vec::new();
    write_pprof(&profile, &mut body, &PprofOptions::default()).expect("a sound profile");
    (series_number, body)
}

fn frame(profile: &mut Profile, service: u64, function: u64) -> LocationId {
    let symbols = &mut profile.symbols;
    let name = format!(
        "acme::service_{service:02}::module_{}::method_{function}",
        function % 40
    );
    let file = format!("src/module_{}.rs", function % 40);
    let function_id = symbols.intern_function(&name, "", &file, 10);
    let place = Location::new(FrameKind::Native, 0x40_0000 + function * 16);
    symbols.intern_location(&place, &[(function_id, 12 + function as u32 % 90, 0)])
}
