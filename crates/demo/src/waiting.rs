//! Profiles of waiting: off the CPU, and for locks.

use candela_model::ProfileSeries;
use candela_model::Sample;

use crate::calls::Program;
use crate::palette::Choice;
use crate::random::Random;
use crate::sampling::Sampled;

const DEVIATION: f64 = 0.08;
/// Who waits for work has less of it when there is more to do.
const IDLE: &str = "poll";

impl Sampled<'_> {
    pub(crate) fn wait(&self, program: &Program, series: &mut ProfileSeries) {
        let mut random = self.random("wait");
        for (wait, choice) in program.waits.iter().zip(&self.palette.waits) {
            let work = if wait.reason == IDLE {
                (1.3 - self.work()).max(0.1)
            } else {
                self.work()
            };
            let seconds = wait.seconds * work * self.window.seconds as f64;
            let value = (seconds * random.factor(DEVIATION) * 1e9) as i64;
            series
                .samples
                .push(self.waiting(choice, value, &mut random));
        }
    }

    /// How often, and how long.
    pub(crate) fn contend(
        &self,
        program: &Program,
        contentions: &mut ProfileSeries,
        delay: &mut ProfileSeries,
    ) {
        let mut random = self.random("lock");
        contentions.period = 1;
        delay.period = 1;
        for (lock, choice) in program.locks.iter().zip(&self.palette.locks) {
            let mean = lock.contentions * self.work() * self.window.seconds as f64;
            let count = random.poisson(mean);
            if count == 0 {
                continue;
            }
            let times = i64::try_from(count).unwrap_or(i64::MAX);
            let nanoseconds = lock.delay * 1e6 * count as f64 * random.factor(DEVIATION);
            let sample = self.waiting(choice, times, &mut random);
            contentions.samples.push(sample);
            delay.samples.push(Sample {
                value: nanoseconds as i64,
                ..sample
            });
        }
    }

    pub(crate) fn waiting(&self, choice: &Choice, value: i64, random: &mut Random) -> Sample {
        let thread = random.next() as usize % choice.label_sets.len();
        Sample {
            stack: choice.stack(self.replica.is_changed(self.window)),
            value,
            label_set: choice.label_sets[thread],
            ..Sample::default()
        }
    }
}
