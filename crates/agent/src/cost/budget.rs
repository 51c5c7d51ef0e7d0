//! How much may be sampled within a CPU budget: a model of what the agent costs, and small steps by it.
//!
//! Costs are of two parts: what each sample costs, in the kernel and in the threads that handle it, and what
//! comes whatever the rate is. What a rate would cost is predicted from both and from how busy the CPUs have been
//! lately at most, so that the rate is lowered before the budget is exceeded. Where the second part alone is more
//! than the budget, a lower rate cannot keep it: samples are given up only while they are what matters.

use std::collections::VecDeque;

use candela_ebpf::LONGEST_OFF_CPU_MEAN_NS;
use candela_ebpf::Pace;

const SECOND_NS: f64 = 1e9;

/// Windows that a prediction goes by: a minute at ten seconds each, and long enough that the odd large binary, whose
/// names take a second, is one among several.
const REMEMBERED: usize = 5;

/// The first window is not judged: what an agent does when it starts it does once, whatever the rate is.
const WINDOWS_OF_START: u64 = 1;

/// One window alone may be an accident.
const LEAST_WINDOWS: usize = 2;

/// Where a step down aims, so that the next window is not just above the budget again.
const AIM: f64 = 0.9;

/// More is sampled again only when that would cost no more than this part of the budget.
const ROOM: f64 = 0.75;

/// Where the budget cannot be kept whatever the rate is, samples may cost this part of what it is exceeded by: to
/// give them up as well would save next to nothing, and leave no profile.
const NEGLIGIBLE: f64 = 0.1;

/// Windows between a change and the next step up.
const PATIENCE: u32 = 2;

/// A sampled allocation stands for half a megabyte at the usual interval, and for so many times that at most.
const MOST_ALLOCATIONS_PER_SAMPLE: u32 = 1024;

/// The model may be wrong: the rate falls to a quarter at once, and not further.
const LARGEST_STEP: u32 = 4;

/// What the agent did in a window and what that cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct WindowCost {
    pub(super) window_ns: u64,
    /// Ticks of busy CPUs, of which samples were taken.
    pub(super) ticks: u64,
    pub(super) cpu_samples: u64,
    /// Samples of waiting.
    pub(super) wait_samples: u64,
    /// Samples of allocations.
    pub(super) allocation_samples: u64,
    /// All samples.
    pub(super) samples: u64,
    /// CPU time in the kernel of taking `cpu_samples`.
    pub(super) sampling_ns: u64,
    /// CPU time of the threads that samples go through.
    pub(super) handling_ns: u64,
    /// All other CPU time.
    pub(super) other_ns: u64,
}

/// A change of how much is sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) pace: Pace,
    /// What the agent would cost at the pace before and at the new one, in cores.
    pub(super) cost_before: f64,
    pub(super) cost: f64,
}

/// What comes of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// All is well, or nothing is known yet.
    Keep,
    Change(Step),
    /// The budget cannot be kept: the agent costs so much, in cores, and sampling less would not help.
    Exhausted(f64),
}

/// A budget and what is sampled within it.
#[derive(Debug)]
pub(super) struct Budget {
    /// In cores.
    limit: f64,
    /// The most that is sampled, as somebody configured it.
    most: Pace,
    /// A sample a second is the least that makes a profile.
    most_ticks_per_sample: u32,
    pace: Pace,
    windows: u64,
    history: VecDeque<Rates>,
    since_change: u32,
}

/// A window by the second.
#[derive(Clone, Copy, Debug)]
struct Rates {
    samples: f64,
    ticks: f64,
    /// Cores that a CPU sample a second takes; `None` without samples.
    cpu_sample_cost: Option<f64>,
    /// Cores that all samples of waiting took, had each of them stood for a nanosecond at least.
    wait_cost: f64,
    /// Cores that all samples of allocations would have taken, had each been told.
    allocation_cost: f64,
    /// Cores that everything else took.
    rest: f64,
}

/// What the agent costs, in cores, by what changes it.
#[derive(Clone, Copy, Debug)]
struct Model {
    /// If each tick were a sample.
    cpu: f64,
    /// If each sample of waiting stood for a nanosecond at least.
    wait: f64,
    /// If each sampled allocation were told.
    allocations: f64,
    rest: f64,
}

// === impl Rates ===

impl Rates {
    fn of(window: &WindowCost, pace: Pace) -> Self {
        let seconds = (window.window_ns.max(1)) as f64 / SECOND_NS;
        let cores = |time_ns: f64| time_ns / SECOND_NS / seconds;
        let ratio = |part: f64, whole: u64| (whole > 0).then(|| part / whole as f64);
        let handling = ratio(window.handling_ns as f64, window.samples);
        let sampling = ratio(window.sampling_ns as f64, window.cpu_samples);
        let per_sample = handling.unwrap_or_default();
        let paced = window.cpu_samples + window.wait_samples + window.allocation_samples;
        let unpaced = window.samples.saturating_sub(paced);
        let unpaced_ns = match handling {
            Some(per_sample) => per_sample * unpaced as f64,
            // Nothing was sampled: the threads had other things to do.
            None => window.handling_ns as f64,
        };
        let waiting_ns = per_sample * window.wait_samples as f64;
        let allocating_ns = per_sample * window.allocation_samples as f64;
        Self {
            samples: window.samples as f64 / seconds,
            ticks: window.ticks as f64 / seconds,
            cpu_sample_cost: sampling.map(|sampling| (sampling + per_sample) / SECOND_NS),
            wait_cost: cores(waiting_ns) * pace.off_cpu_mean_ns as f64,
            allocation_cost: cores(allocating_ns) * f64::from(pace.allocations_per_sample),
            rest: cores(window.other_ns as f64 + unpaced_ns),
        }
    }
}

// === impl Model ===

impl Model {
    fn of(history: &VecDeque<Rates>) -> Self {
        let most = |value: fn(&Rates) -> f64| history.iter().map(value).fold(0.0, f64::max);
        // In a window of few samples what comes anyway looks like the price of a sample.
        let telling = most(|rates| rates.samples) / 2.0;
        let telling = history.iter().filter(|rates| rates.samples >= telling);
        let cpu_sample_cost = lower_median(telling.filter_map(|rates| rates.cpu_sample_cost));
        Self {
            cpu: cpu_sample_cost * most(|rates| rates.ticks),
            wait: lower_median(history.iter().map(|rates| rates.wait_cost)),
            allocations: lower_median(history.iter().map(|rates| rates.allocation_cost)),
            rest: lower_median(history.iter().map(|rates| rates.rest)),
        }
    }

    fn cpu_at(&self, pace: Pace) -> f64 {
        self.cpu / f64::from(pace.ticks_per_sample)
    }

    fn wait_at(&self, pace: Pace) -> f64 {
        self.wait / (pace.off_cpu_mean_ns.max(1)) as f64
    }

    fn allocations_at(&self, pace: Pace) -> f64 {
        self.allocations / f64::from(pace.allocations_per_sample)
    }

    /// What can be given up.
    fn samples_at(&self, pace: Pace) -> f64 {
        self.cpu_at(pace) + self.wait_at(pace) + self.allocations_at(pace)
    }

    fn at(&self, pace: Pace) -> f64 {
        self.samples_at(pace) + self.rest
    }

    /// What samples may cost so that all together stays within `part` of the budget; of one that cannot be kept,
    /// so that it is not they that exceed it. Below zero where only fewer of them could keep it.
    fn for_samples(&self, limit: f64, part: f64) -> f64 {
        let excess = self.rest - limit;
        match excess > 0.0 {
            true => part * NEGLIGIBLE * excess,
            false => part * limit - self.rest,
        }
    }
}

// === impl Budget ===

impl Budget {
    /// A budget of `limit` cores; `most` is sampled while there is room.
    pub(super) fn new(limit: f64, most: Pace, rate_hz: u32) -> Self {
        Self {
            limit,
            most,
            most_ticks_per_sample: rate_hz.max(1),
            pace: most,
            windows: 0,
            history: VecDeque::with_capacity(REMEMBERED),
            since_change: 0,
        }
    }

    /// Takes the cost of a window, all of which was sampled at the pace of the last verdict.
    pub(super) fn judge(&mut self, window: &WindowCost) -> Verdict {
        self.windows += 1;
        self.since_change = self.since_change.saturating_add(1);
        if self.windows <= WINDOWS_OF_START {
            return Verdict::Keep;
        }
        if self.history.len() == REMEMBERED {
            self.history.pop_front();
        }
        let rates = Rates::of(window, self.pace);
        self.history.push_back(rates);
        if self.history.len() < LEAST_WINDOWS {
            return Verdict::Keep;
        }
        let model = Model::of(&self.history);
        let cost_before = model.at(self.pace);
        let next = match model.samples_at(self.pace) > model.for_samples(self.limit, 1.0) {
            true => self.less(&model),
            false => self.more(&model),
        };
        match next {
            Some(pace) => {
                self.pace = pace;
                self.since_change = 0;
                Verdict::Change(Step {
                    pace,
                    cost_before,
                    cost: model.at(pace),
                })
            }
            None if cost_before > self.limit => Verdict::Exhausted(cost_before),
            None => Verdict::Keep,
        }
    }

    fn less(&self, model: &Model) -> Option<Pace> {
        let longer_waits = Pace {
            off_cpu_mean_ns: (self.pace.off_cpu_mean_ns * 2).min(LONGEST_OFF_CPU_MEAN_NS),
            ..self.pace
        };
        let helps = longer_waits != self.pace && model.wait_at(self.pace) > 0.0;
        let longer_waits = helps.then_some(longer_waits);
        let fewer_allocations = Pace {
            allocations_per_sample: (self.pace.allocations_per_sample * 2)
                .min(MOST_ALLOCATIONS_PER_SAMPLE),
            ..self.pace
        };
        let helps = fewer_allocations != self.pace && model.allocations_at(self.pace) > 0.0;
        let fewer_allocations = helps.then_some(fewer_allocations);
        let of_cpu = model.cpu_at(self.pace);
        let of_waits = model.wait_at(self.pace);
        let of_allocations = model.allocations_at(self.pace);
        if of_allocations > of_cpu.max(of_waits) && fewer_allocations.is_some() {
            return fewer_allocations;
        }
        if of_waits > of_cpu && longer_waits.is_some() {
            return longer_waits;
        }
        let ticks = self.pace.ticks_per_sample;
        let slowest = ticks
            .saturating_mul(LARGEST_STEP)
            .min(self.most_ticks_per_sample);
        let slower = |ticks_per_sample| Pace {
            ticks_per_sample,
            ..self.pace
        };
        let room = model.for_samples(self.limit, AIM);
        let fits = |pace: &Pace| model.samples_at(*pace) <= room;
        let mut slower_paces = (ticks + 1..=slowest).map(slower);
        let slowest_pace = slower_paces.clone().next_back();
        let fitting = slower_paces.find(fits).or(slowest_pace);
        fitting.or(longer_waits).or(fewer_allocations)
    }

    fn more(&self, model: &Model) -> Option<Pace> {
        if self.since_change < PATIENCE {
            return None;
        }
        let next = if self.pace.ticks_per_sample > self.most.ticks_per_sample {
            Pace {
                ticks_per_sample: self.pace.ticks_per_sample.div_ceil(2),
                ..self.pace
            }
        } else if self.pace.off_cpu_mean_ns > self.most.off_cpu_mean_ns {
            let half_ns = self.pace.off_cpu_mean_ns / 2;
            Pace {
                off_cpu_mean_ns: half_ns.max(self.most.off_cpu_mean_ns),
                ..self.pace
            }
        } else {
            let half = self.pace.allocations_per_sample / 2;
            Pace {
                allocations_per_sample: half.max(self.most.allocations_per_sample),
                ..self.pace
            }
        };
        let has_room = model.samples_at(next) <= model.for_samples(self.limit, ROOM);
        (next != self.pace && has_room).then_some(next)
    }
}

/// The value in the middle, of two the lower one; 0 of none.
fn lower_median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        length => values[(length - 1) / 2],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: f64 = 0.005;
    const MEAN_NS: u64 = 1_000_000_000;

    /// An agent whose samples cost 15 µs in the kernel and as much outside.
    struct Host {
        budget: Budget,
        pace: Pace,
        rate_hz: u64,
    }

    impl Host {
        fn new(rate_hz: u32) -> Self {
            let pace = Pace {
                off_cpu_mean_ns: MEAN_NS,
                ..Pace::default()
            };
            Self {
                budget: Budget::new(LIMIT, pace, rate_hz),
                pace,
                rate_hz: rate_hz.into(),
            }
        }

        /// What a window costs with so many busy CPUs and short waits a second, in which nothing else is done than
        /// what takes `other_ns`.
        fn window(&self, busy: u64, waits_ns: u64, other_ns: u64) -> WindowCost {
            let ticks = 10 * busy * self.rate_hz;
            let cpu_samples = ticks / u64::from(self.pace.ticks_per_sample);
            let wait_samples = 10 * waits_ns / self.pace.off_cpu_mean_ns;
            WindowCost {
                window_ns: 10_000_000_000,
                ticks,
                cpu_samples,
                wait_samples,
                allocation_samples: 0,
                samples: cpu_samples + wait_samples,
                sampling_ns: 15_000 * cpu_samples,
                handling_ns: 15_000 * (cpu_samples + wait_samples),
                other_ns,
            }
        }

        /// Judges windows until nothing changes any more; what the last one costs, in cores.
        fn settle(&mut self, busy: u64, waits_ns: u64, other_ns: u64) -> f64 {
            for _ in 0..50 {
                let window = self.window(busy, waits_ns, other_ns);
                self.judge(&window);
            }
            let window = self.window(busy, waits_ns, other_ns);
            (window.sampling_ns + window.handling_ns + window.other_ns) as f64 / 1e10
        }

        fn judge(&mut self, window: &WindowCost) -> Verdict {
            let verdict = self.budget.judge(window);
            if let Verdict::Change(step) = verdict {
                self.pace = step.pace;
            }
            verdict
        }
    }

    #[test]
    fn what_costs_little_stays_as_it_is() {
        let mut host = Host::new(19);
        // 4 × 19 × 30 µs are 0.23 %.
        host.settle(4, 0, 0);
        assert_eq!(host.pace.ticks_per_sample, 1);
    }

    #[test]
    fn the_rate_falls_below_the_budget_and_comes_back() {
        let mut host = Host::new(99);
        let cost = host.settle(8, 0, 3_000_000);
        assert!(host.pace.ticks_per_sample > 4, "{:?}", host.pace);
        assert!(cost <= LIMIT, "{cost}");
        assert!(cost > LIMIT / 2.0, "no lower than needed: {cost}");
        host.settle(1, 0, 3_000_000);
        assert_eq!(host.pace.ticks_per_sample, 1, "there is room");
    }

    #[test]
    fn allocations_are_told_less_often_until_they_fit_and_more_often_again() {
        let mut host = Host::new(19);
        let mut settle = |allocations: u64| {
            let mut cost = 0.0;
            for _ in 0..50 {
                let mut window = host.window(1, 0, 3_000_000);
                let told = allocations / u64::from(host.pace.allocations_per_sample);
                window.allocation_samples = told;
                window.samples += told;
                window.handling_ns += 15_000 * told;
                host.judge(&window);
                cost = (window.sampling_ns + window.handling_ns + window.other_ns) as f64 / 1e10;
            }
            (host.pace, cost)
        };
        // 10 000 a second in a window of ten are 15 % of a core.
        let (pace, cost) = settle(100_000);
        assert_eq!(pace.ticks_per_sample, 1, "others are not to blame");
        assert_eq!(pace.allocations_per_sample, 64);
        assert!(cost <= LIMIT, "{cost}");
        let (pace, _) = settle(100);
        assert_eq!(pace.allocations_per_sample, 1, "there is room");
    }

    #[test]
    fn a_budget_of_nothing_leaves_a_sample_a_second() {
        let mut host = Host::new(19);
        let waits_ns = 10_000_000_000;
        host.settle(2, waits_ns, 60_000_000);
        assert_eq!(host.pace.ticks_per_sample, 19);
        assert_eq!(host.pace.off_cpu_mean_ns, LONGEST_OFF_CPU_MEAN_NS);
        let window = host.window(2, waits_ns, 60_000_000);
        assert!(matches!(host.judge(&window), Verdict::Exhausted(_)));
    }

    #[test]
    fn samples_that_cost_little_beside_the_rest_are_kept() {
        let mut host = Host::new(19);
        // The rest takes 4.7 %, samples of two busy CPUs 0.11 %: without them the budget is exceeded ninefold, too.
        host.settle(2, 0, 470_000_000);
        assert_eq!(host.pace.ticks_per_sample, 1);
        let window = host.window(2, 0, 470_000_000);
        assert!(matches!(host.judge(&window), Verdict::Exhausted(_)));
    }

    #[test]
    fn samples_that_add_to_a_lost_budget_are_given_up_until_they_do_not() {
        let mut host = Host::new(99);
        // 16 × 99 × 30 µs are 4.8 %, and a tenth of what the rest is too much by is 0.42 %.
        host.settle(16, 0, 470_000_000);
        assert_eq!(host.pace.ticks_per_sample, 13);
        let window = host.window(16, 0, 470_000_000);
        assert!(matches!(host.judge(&window), Verdict::Exhausted(_)));
    }

    #[test]
    fn samples_given_up_come_back_when_they_turn_out_not_to_matter() {
        let mut host = Host::new(19);
        // Beside 0.49 % there is room for next to nothing; beside 4.7 % all of them are next to nothing.
        host.settle(2, 0, 49_000_000);
        assert_eq!(host.pace.ticks_per_sample, 16);
        host.settle(2, 0, 470_000_000);
        assert_eq!(host.pace.ticks_per_sample, 1);
    }

    #[test]
    fn one_window_alone_changes_nothing() {
        let mut host = Host::new(19);
        host.settle(2, 0, 0);
        let mut window = host.window(2, 0, 900_000_000);
        window.handling_ns += 900_000_000;
        assert_eq!(host.judge(&window), Verdict::Keep, "a large binary");
    }

    #[test]
    fn busier_cpus_are_met_before_their_windows_cost_too_much() {
        let mut host = Host::new(99);
        host.settle(1, 0, 0);
        assert_eq!(host.pace.ticks_per_sample, 1);
        // The window in which it happens is the only one above the budget.
        let window = host.window(4, 0, 0);
        assert!(matches!(host.judge(&window), Verdict::Change(_)));
        let window = host.window(4, 0, 0);
        assert!(window.sampling_ns + window.handling_ns <= 50_000_000);
    }

    #[test]
    fn waits_that_cost_most_stand_for_more() {
        let mut host = Host::new(19);
        // 500 samples of waiting a second, of 15 µs.
        let cost = host.settle(1, 500_000_000_000, 0);
        assert_eq!(host.pace.ticks_per_sample, 1);
        assert!(host.pace.off_cpu_mean_ns > MEAN_NS);
        assert!(cost <= LIMIT, "{cost}");
        host.settle(1, 0, 0);
        assert_eq!(host.pace.off_cpu_mean_ns, MEAN_NS);
    }
}
