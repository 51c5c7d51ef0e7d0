//! Profiles of CPU time: what is sampled of a replica in a window.

use candela_model::Link;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;

use crate::day::Window;
use crate::day::load;
use crate::fleet::Replica;
use crate::palette::CpuChoice;
use crate::palette::Palette;
use crate::random::Random;
use crate::random::hash_of;
use crate::truths::PERTURBATION;
use crate::truths::REGRESSION;
use crate::truths::SLOW_REGION;

/// Samples a second and core, an agent's default.
const RATE_HZ: i64 = 19;
/// Nanoseconds of CPU time that a sample stands for.
pub const PERIOD_NS: i64 = 1_000_000_000 / RATE_HZ;
/// How far the work of a replica in a window is from the load.
const WORK_DEVIATION: f64 = 0.06;
/// Whose samples have times, in the last hour.
const TIMED_SERVICE: &str = PERTURBATION.service;
/// Who knows the spans it works for, in the last hour.
const TRACED_SERVICES: [&str; 2] = ["checkout", "payments"];
/// Traces that are seen in a window.
const TRACES: u64 = 3;
/// The share of stacks, in percent, of which a sample is of a trace.
const TRACED_PERCENT: u64 = 12;

/// What decides about the samples of one profile.
pub(crate) struct Sampled<'a> {
    pub(crate) service: &'static str,
    pub(crate) palette: &'a Palette,
    pub(crate) replica: &'a Replica,
    /// How many replicas share the work.
    pub(crate) replicas: usize,
    pub(crate) window: Window,
    pub(crate) seed: u64,
}

impl Sampled<'_> {
    /// Draws the samples of `series`; links go to `profile`.
    pub(crate) fn draw(&self, profile: &mut Profile, series: &mut ProfileSeries) {
        let mut random = self.random("cpu");
        let counts = self.counts(&mut random);
        series.period = PERIOD_NS;
        if self.service == TIMED_SERVICE && self.window.is_recent() {
            series.samples = self.timed(&counts, &mut random, series.start_ns);
            return;
        }
        let is_traced = TRACED_SERVICES.contains(&self.service) && self.window.is_recent();
        for (choice, &count) in self.palette.cpu.iter().zip(&counts) {
            if count == 0 {
                continue;
            }
            let mut sample = self.sample(choice, &mut random);
            let mut left = count;
            if is_traced && choice.has_route && random.next() % 100 < TRACED_PERCENT {
                let mut of_trace = sample;
                of_trace.value = PERIOD_NS;
                of_trace.link = profile.intern_link(self.link(&mut random));
                series.samples.push(of_trace);
                left -= 1;
            }
            sample.value = PERIOD_NS * i64::from(left);
            if left > 0 {
                series.samples.push(sample);
            }
        }
    }

    pub(crate) fn random(&self, purpose: &str) -> Random {
        let key = [
            hash_of(purpose),
            hash_of(self.service),
            self.replica.number as u64,
            self.window.key(),
        ];
        Random::keyed(self.seed, &key)
    }

    /// How much of its usual work at a load of 1 this replica has.
    pub(crate) fn work(&self) -> f64 {
        load(self.window) * self.perturbation()
    }

    fn perturbation(&self) -> f64 {
        let truth = &PERTURBATION;
        let is_meant = self.service == truth.service
            && self.window.is_within(truth.before_end, truth.duration);
        if !is_meant {
            return 1.0;
        }
        if self.replica.number != truth.replica {
            return truth.left_to_others;
        }
        let others = self.replicas as f64 - 1.0;
        1.0 + others * (1.0 - truth.left_to_others)
    }

    /// Samples by stack.
    fn counts(&self, random: &mut Random) -> Vec<u32> {
        let choices = &self.palette.cpu;
        let usual: f64 = choices.iter().map(|choice| choice.weight).sum();
        let mut upto = 0.0;
        let cumulated: Vec<f64> = (0..)
            .zip(choices)
            .map(|(index, choice)| {
                upto += choice.weight * self.cost(index, choice);
                upto
            })
            .collect();
        let cores = self.replica.cores * self.work() * random.factor(WORK_DEVIATION);
        let ticks = (RATE_HZ * self.window.seconds) as f64;
        let samples = random.poisson(ticks * cores * upto / usual);
        let mut counts = vec![0; choices.len()];
        for _ in 0..samples {
            let at = random.unit() * upto;
            let chosen = cumulated.partition_point(|&upto| upto < at);
            counts[chosen.min(choices.len() - 1)] += 1;
        }
        counts
    }

    /// What the truths and the machine make of the cost of a stack.
    fn cost(&self, index: usize, choice: &CpuChoice) -> f64 {
        let mut cost = self.replica.machine_factors[index];
        if choice.is_regressed && self.replica.is_changed(self.window) {
            cost *= REGRESSION.factor;
        }
        if choice.is_slow_in_region && self.replica.region == SLOW_REGION.region {
            cost *= SLOW_REGION.factor;
        }
        cost
    }

    fn sample(&self, choice: &CpuChoice, random: &mut Random) -> Sample {
        let label_sets = &choice.choice.label_sets;
        let thread = random.next() as usize % label_sets.len();
        Sample {
            stack: choice.choice.stack(self.replica.is_changed(self.window)),
            label_set: label_sets[thread],
            ..Sample::default()
        }
    }

    /// Each sample with its time. A thread goes from stack to stack in the order in which they stand in
    /// the program, so that it is seen to work on one thing after the other.
    fn timed(&self, counts: &[u32], random: &mut Random, start_ns: i64) -> Vec<Sample> {
        let mut samples: Vec<Sample> = Vec::new();
        for (choice, &count) in self.palette.cpu.iter().zip(counts) {
            samples.extend((0..count).map(|_| Sample {
                value: PERIOD_NS,
                ..self.sample(choice, random)
            }));
        }
        samples.sort_by_key(|sample| sample.label_set);
        for of_thread in samples.chunk_by_mut(|left, right| left.label_set == right.label_set) {
            let step_ns = self.window.duration_ns() / of_thread.len() as i64;
            for (position, sample) in (0..).zip(of_thread) {
                let within_ns = (random.unit() * step_ns as f64) as i64;
                sample.time_ns = start_ns + position * step_ns + within_ns;
            }
        }
        samples
    }

    /// A span of one of the traces that go through all services in this window.
    fn link(&self, random: &mut Random) -> Link {
        let number = random.next() % TRACES;
        let purpose = [hash_of("trace"), self.window.key(), number];
        let mut trace = Random::keyed(self.seed, &purpose);
        let mut link = Link::default();
        link.trace_id[..8].copy_from_slice(&trace.next().to_be_bytes());
        link.trace_id[8..].copy_from_slice(&trace.next().to_be_bytes());
        let span = Random::keyed(trace.next(), &[hash_of(self.service)]).next();
        link.span_id = span.to_be_bytes();
        link
    }
}
