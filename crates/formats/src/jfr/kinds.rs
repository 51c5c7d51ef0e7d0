//! The events that are samples, and what their values are.

use candela_model::ProfileType;

/// An event that becomes samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// A thread that was seen running, or in wall mode any thread.
    Execution,
    /// A thread that was seen running, by the CPU-time sampler of JDK 25.
    CpuTime,
    /// A thread that was seen in native code.
    Native,
    /// A thread that was seen in some state so many times in a row.
    WallClock,
    AllocationInNewTlab,
    AllocationOutsideTlab,
    AllocationSample,
    MonitorEnter,
    MonitorWait,
    Park,
    /// An object of async-profiler's that was still alive at the end.
    LiveObject,
    /// The same of the virtual machine's.
    OldObject,
    Malloc,
    GarbageCollection,
    /// A thread that took so many intervals of CPU time, by Datadog's profiler.
    DatadogExecution,
    /// A thread that the same saw in some state so many times in a row.
    DatadogMethod,
    /// An object that stands for as many as its weight says.
    DatadogObject,
    DatadogLiveObject,
}

/// A column of values; each becomes a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Cpu,
    Wall,
    Native,
    NewTlabObjects,
    NewTlabBytes,
    OutsideTlabObjects,
    OutsideTlabBytes,
    SampledObjects,
    SampledBytes,
    Live,
    MallocObjects,
    MallocBytes,
    MutexContentions,
    MutexDelay,
    BlockContentions,
    BlockDelay,
    WaitCount,
    WaitDelay,
    GcPauses,
    GcDuration,
}

impl EventKind {
    /// All kinds, with the event's name and the field that holds its amount. Names and fields are
    /// those of the recordings' own metadata, which the virtual machine and async-profiler share;
    /// Datadog's profiler is made from async-profiler, and names its events otherwise.
    pub(crate) const ALL: [(Self, &'static str, &'static str); 18] = [
        (Self::Execution, "jdk.ExecutionSample", ""),
        (Self::CpuTime, "jdk.CPUTimeSample", "samplingPeriod"),
        (Self::Native, "jdk.NativeMethodSample", ""),
        (Self::WallClock, "profiler.WallClockSample", "samples"),
        // The event stands for the whole buffer: what fits into it is allocated without events.
        (
            Self::AllocationInNewTlab,
            "jdk.ObjectAllocationInNewTLAB",
            "tlabSize",
        ),
        (
            Self::AllocationOutsideTlab,
            "jdk.ObjectAllocationOutsideTLAB",
            "allocationSize",
        ),
        (
            Self::AllocationSample,
            "jdk.ObjectAllocationSample",
            "weight",
        ),
        (Self::MonitorEnter, "jdk.JavaMonitorEnter", "duration"),
        (Self::MonitorWait, "jdk.JavaMonitorWait", "duration"),
        (Self::Park, "jdk.ThreadPark", "duration"),
        (Self::LiveObject, "profiler.LiveObject", ""),
        (Self::OldObject, "jdk.OldObjectSample", ""),
        (Self::Malloc, "profiler.Malloc", "size"),
        (Self::GarbageCollection, "jdk.GarbageCollection", "duration"),
        (Self::DatadogExecution, "datadog.ExecutionSample", "weight"),
        (Self::DatadogMethod, "datadog.MethodSample", "weight"),
        (Self::DatadogObject, "datadog.ObjectSample", "size"),
        (Self::DatadogLiveObject, "datadog.HeapLiveObject", ""),
    ];

    /// Whether the amount is a time span.
    pub(crate) const fn amount_is_time(self) -> bool {
        matches!(
            self,
            Self::CpuTime
                | Self::MonitorEnter
                | Self::MonitorWait
                | Self::Park
                | Self::GarbageCollection
        )
    }

    /// Columns of an event that counts once in the first and with its amount in the second.
    pub(crate) const fn columns(self) -> Option<(Column, Column)> {
        let columns = match self {
            Self::AllocationInNewTlab => (Column::NewTlabObjects, Column::NewTlabBytes),
            Self::AllocationOutsideTlab => (Column::OutsideTlabObjects, Column::OutsideTlabBytes),
            Self::AllocationSample => (Column::SampledObjects, Column::SampledBytes),
            Self::MonitorEnter => (Column::MutexContentions, Column::MutexDelay),
            Self::MonitorWait => (Column::WaitCount, Column::WaitDelay),
            Self::Park => (Column::BlockContentions, Column::BlockDelay),
            Self::Malloc => (Column::MallocObjects, Column::MallocBytes),
            Self::GarbageCollection => (Column::GcPauses, Column::GcDuration),
            _ => return None,
        };
        Some(columns)
    }
}

impl Column {
    /// All columns in the order of their series, with the parts of their profile types. Those of
    /// events that Pyroscope reads are its own: its users' dashboards name them.
    pub(crate) const ALL: [(Self, [&'static str; 5]); 20] = [
        (
            Self::Cpu,
            ["process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds"],
        ),
        (
            Self::Wall,
            ["wall", "wall", "nanoseconds", "wall", "nanoseconds"],
        ),
        // The virtual machine samples one thread in native code each time, and most of them wait
        // there: a sample is neither time on a CPU nor a known part of a thread's time, so it is
        // only counted, and apart from both.
        (
            Self::Native,
            ["native", "samples", "count", "native", "count"],
        ),
        (
            Self::NewTlabObjects,
            memory("alloc_in_new_tlab_objects", "count"),
        ),
        (
            Self::NewTlabBytes,
            memory("alloc_in_new_tlab_bytes", "bytes"),
        ),
        (
            Self::OutsideTlabObjects,
            memory("alloc_outside_tlab_objects", "count"),
        ),
        (
            Self::OutsideTlabBytes,
            memory("alloc_outside_tlab_bytes", "bytes"),
        ),
        (
            Self::SampledObjects,
            memory("alloc_sample_objects", "count"),
        ),
        (Self::SampledBytes, memory("alloc_sample_bytes", "bytes")),
        (Self::Live, ["memory", "live", "count", "objects", "count"]),
        (
            Self::MallocObjects,
            ["memory", "malloc_objects", "count", "", ""],
        ),
        (
            Self::MallocBytes,
            ["memory", "malloc_bytes", "bytes", "", ""],
        ),
        (
            Self::MutexContentions,
            ["mutex", "contentions", "count", "mutex", "count"],
        ),
        (
            Self::MutexDelay,
            ["mutex", "delay", "nanoseconds", "mutex", "count"],
        ),
        (
            Self::BlockContentions,
            ["block", "contentions", "count", "block", "count"],
        ),
        (
            Self::BlockDelay,
            ["block", "delay", "nanoseconds", "block", "count"],
        ),
        // `Object.wait` blocks too, but Pyroscope's `block` does not have it: figures of those who
        // come from there would change.
        (Self::WaitCount, ["wait", "waits", "count", "wait", "count"]),
        (
            Self::WaitDelay,
            ["wait", "delay", "nanoseconds", "wait", "count"],
        ),
        (Self::GcPauses, ["gc", "pauses", "count", "gc", "count"]),
        (
            Self::GcDuration,
            ["gc", "duration", "nanoseconds", "gc", "count"],
        ),
    ];
}

const fn memory(sample_type: &'static str, unit: &'static str) -> [&'static str; 5] {
    ["memory", sample_type, unit, "space", "bytes"]
}

/// A profile type from its parts.
pub(crate) fn profile_type([name, sample, unit, period, period_unit]: [&str; 5]) -> ProfileType {
    ProfileType::new(name, sample, unit, period, period_unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_the_order_of_their_kinds() {
        for (position, (kind, _, _)) in EventKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, position);
        }
        for (position, (column, parts)) in Column::ALL.into_iter().enumerate() {
            assert_eq!(column as usize, position);
            assert!(profile_type(parts).has_identifier());
        }
    }
}
