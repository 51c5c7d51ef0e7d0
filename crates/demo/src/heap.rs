//! Profiles of memory: what is allocated, and what of it is in use.

use candela_model::LabelSetId;
use candela_model::ProfileSeries;
use candela_model::Sample;

use crate::calls::Heap;
use crate::calls::Program;
use crate::day::DAY;
use crate::day::seconds;
use crate::sampling::Sampled;
use crate::truths::LEAK;

const MIB: f64 = 1_048_576.0;
/// Bytes between two samples of allocations.
const SAMPLED_BYTES: i64 = 512 << 10;
const DEVIATION: f64 = 0.02;

impl Sampled<'_> {
    pub(crate) fn allocate(&self, program: &Program, series: &mut ProfileSeries) {
        let mut random = self.random("alloc");
        series.period = SAMPLED_BYTES;
        for (heap, choice) in program.heaps.iter().zip(&self.palette.heaps) {
            let bytes = heap.allocated * MIB * self.work() * self.window.seconds as f64;
            let count = random.poisson(bytes / SAMPLED_BYTES as f64);
            if count > 0 {
                let value = SAMPLED_BYTES * i64::try_from(count).unwrap_or(i64::MAX);
                series
                    .samples
                    .push(self.waiting(choice, value, &mut random));
            }
        }
    }

    /// What is in use belongs to no thread.
    pub(crate) fn hold(&self, program: &Program, series: &mut ProfileSeries) {
        let mut random = self.random("inuse");
        series.period = SAMPLED_BYTES;
        for (heap, choice) in program.heaps.iter().zip(&self.palette.heaps) {
            let usual = heap.in_use * MIB * random.factor(DEVIATION);
            let value = usual as i64 + self.leaked(program, heap);
            let sample = self.waiting(choice, value, &mut random);
            series.samples.push(Sample {
                label_set: LabelSetId(0),
                ..sample
            });
        }
    }

    fn leaked(&self, program: &Program, heap: &Heap) -> i64 {
        let mut stack = program.stack(heap.call);
        let is_leak = self.service == LEAK.service && stack.any(|call| call.name == LEAK.function);
        if !is_leak {
            return 0;
        }
        let since_s = seconds(DAY) + self.window.offset_s;
        LEAK.bytes_per_hour * since_s / 3600
    }
}
