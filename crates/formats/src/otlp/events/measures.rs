//! What an event measures.

use candela_model::ProfileType;

use crate::otlp::events::fields::Fields;

/// A value and what it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Measure {
    pub(crate) profile_type: ProfileType,
    pub(crate) value: i64,
    /// Distance between samples, nanoseconds; 0 when the event does not tell.
    pub(crate) period: i64,
}

/// An event as far as its values go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amounts<'a> {
    /// `ebpf.CPUSample`, `jdk.ThreadPark` …
    pub(crate) event: &'a str,
    /// `cpu`, `lock` …
    pub(crate) profile: &'a str,
    /// In samples, bytes or nanoseconds, as the kind of event has it.
    pub(crate) weight: i64,
    /// Nanoseconds; 0 when there is none.
    pub(crate) duration_ns: i64,
}

type Parts = [&'static str; 5];

const CPU_TIME: Parts = ["process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds"];
const CPU_SAMPLES: Parts = ["process_cpu", "samples", "count", "cpu", "nanoseconds"];
const WALL_TIME: Parts = ["wall", "wall", "nanoseconds", "wall", "nanoseconds"];
const WALL_SAMPLES: Parts = ["wall", "samples", "count", "wall", "nanoseconds"];
const OFF_CPU: Parts = [
    "off_cpu",
    "off_cpu",
    "nanoseconds",
    "off_cpu",
    "nanoseconds",
];
const NATIVE: Parts = ["native", "samples", "count", "native", "count"];
const GOROUTINE: Parts = ["goroutine", "goroutine", "count", "goroutine", "count"];
const ALLOC_BYTES: Parts = memory("alloc_space", "bytes");
const ALLOC_OBJECTS: Parts = memory("alloc_objects", "count");
const LIVE_BYTES: Parts = memory("inuse_space", "bytes");
const NEW_TLAB: Parts = memory("alloc_in_new_tlab_bytes", "bytes");
const OUTSIDE_TLAB: Parts = memory("alloc_outside_tlab_bytes", "bytes");
const SAMPLED_BYTES: Parts = memory("alloc_sample_bytes", "bytes");
const MUTEX_DELAY: Parts = ["mutex", "delay", "nanoseconds", "contentions", "count"];
const BLOCK_DELAY: Parts = ["block", "delay", "nanoseconds", "contentions", "count"];
// Events of a Java virtual machine have the types that its recordings have when they are read whole.
const JVM_MUTEX: [Parts; 2] = counted("mutex", "contentions", "mutex");
const JVM_BLOCK: [Parts; 2] = counted("block", "contentions", "block");
const JVM_WAIT: [Parts; 2] = counted("wait", "waits", "wait");
const JVM_GC: [Parts; 2] = [
    ["gc", "pauses", "count", "gc", "count"],
    ["gc", "duration", "nanoseconds", "gc", "count"],
];

const fn memory(sample_type: &'static str, unit: &'static str) -> Parts {
    ["memory", sample_type, unit, "space", "bytes"]
}

const fn counted(name: &'static str, count: &'static str, period: &'static str) -> [Parts; 2] {
    [
        [name, count, "count", period, "count"],
        [name, "delay", "nanoseconds", period, "count"],
    ]
}

impl<'a> Amounts<'a> {
    pub(crate) fn of(fields: Fields<'a>) -> Self {
        let weight = fields
            .number(&["sampleWeight", "sample.weight", "sample_weight"])
            .or_else(|| {
                fields.number(&[
                    "tlabSize",
                    "allocationSize",
                    "sample.tlab_size",
                    "sample.allocation_size",
                ])
            });
        Self {
            event: fields
                .text(&["eventType", "event.type", "event_type"])
                .unwrap_or(""),
            profile: fields
                .text(&["profileType", "profile.type", "profile_type"])
                .unwrap_or(""),
            weight: weight.unwrap_or(1),
            duration_ns: fields
                .number(&["durationNs", "sample.duration_ns", "duration_ns"])
                .unwrap_or(0),
        }
    }

    /// The values; empty when the event is of no kind that we know.
    pub(crate) fn measures(&self) -> Vec<Measure> {
        match self.event {
            "ebpf.CPUSample" | "jdk.ExecutionSample" | "jdk.CPUTimeSample" => self.cpu(),
            "ebpf.WallSample" | "jdk.WallClockSample" | "profiler.WallClockSample" => self.wall(),
            "ebpf.OffCPUSample" => self.time(OFF_CPU),
            "ebpf.MutexSample" => self.time(MUTEX_DELAY),
            "ebpf.BlockSample" => self.time(BLOCK_DELAY),
            "ebpf.GoroutineSample" => self.weighed(GOROUTINE),
            "ebpf.AllocationSample" | "ebpf.AllocBytesSample" => self.weighed(ALLOC_BYTES),
            "ebpf.AllocCountSample" | "ebpf.AllocsSample" => self.weighed(ALLOC_OBJECTS),
            "ebpf.HeapSample" => self.weighed(LIVE_BYTES),
            "jdk.NativeMethodSample" => self.weighed(NATIVE),
            "jdk.ObjectAllocationInNewTLAB" => self.weighed(NEW_TLAB),
            "jdk.ObjectAllocationOutsideTLAB" => self.weighed(OUTSIDE_TLAB),
            "jdk.ObjectAllocationSample" => self.weighed(SAMPLED_BYTES),
            "jdk.JavaMonitorEnter" => self.counted(JVM_MUTEX),
            "jdk.ThreadPark" => self.counted(JVM_BLOCK),
            "jdk.JavaMonitorWait" => self.counted(JVM_WAIT),
            "jdk.GarbageCollection" => self.counted(JVM_GC),
            _ => self.by_profile(),
        }
    }

    /// Whether it is of a Java virtual machine.
    pub(crate) fn is_jvm(&self) -> bool {
        self.event.starts_with("jdk.") || self.event.starts_with("profiler.")
    }

    /// Whether it is of the collector of garbage, which runs on no stack.
    pub(crate) fn is_gc(&self) -> bool {
        self.event == "jdk.GarbageCollection" || (self.profile == "gc")
    }

    /// For events that came later than this list.
    fn by_profile(&self) -> Vec<Measure> {
        match self.profile.to_ascii_lowercase().as_str() {
            "cpu" => self.cpu(),
            "wall" => self.wall(),
            "off_cpu" | "offcpu" | "off-cpu" => self.time(OFF_CPU),
            "lock" | "mutex" => self.time(MUTEX_DELAY),
            "block" => self.time(BLOCK_DELAY),
            "goroutine" => self.weighed(GOROUTINE),
            "alloc" | "allocation" | "memory" => self.weighed(ALLOC_BYTES),
            "heap" => self.weighed(LIVE_BYTES),
            "gc" => self.counted(JVM_GC),
            _ => Vec::new(),
        }
    }

    fn cpu(&self) -> Vec<Measure> {
        self.sampled(CPU_TIME, CPU_SAMPLES)
    }

    fn wall(&self) -> Vec<Measure> {
        self.sampled(WALL_TIME, WALL_SAMPLES)
    }

    /// Time where the event says how much it stands for, else samples.
    fn sampled(&self, time: Parts, samples: Parts) -> Vec<Measure> {
        if self.duration_ns == 0 {
            return self.weighed(samples);
        }
        let mut measure = measure(time, self.duration_ns);
        measure.period = self
            .duration_ns
            .checked_div(self.weight)
            .unwrap_or(0)
            .max(0);
        vec![measure]
    }

    /// Time that was waited: the duration, or the weight, which is the same thing where both are.
    fn time(&self, parts: Parts) -> Vec<Measure> {
        vec![measure(parts, self.waited())]
    }

    fn counted(&self, [count, time]: [Parts; 2]) -> Vec<Measure> {
        vec![measure(count, 1), measure(time, self.waited())]
    }

    fn weighed(&self, parts: Parts) -> Vec<Measure> {
        vec![measure(parts, self.weight)]
    }

    fn waited(&self) -> i64 {
        match self.duration_ns {
            0 => self.weight,
            duration => duration,
        }
    }
}

fn measure([name, sample, unit, period, period_unit]: Parts, value: i64) -> Measure {
    Measure {
        profile_type: ProfileType::new(name, sample, unit, period, period_unit),
        value,
        period: 0,
    }
}
