//! `struct perf_event_attr`: how an event was counted, and what its samples hold.

use crate::perf_data::bytes::Bytes;
use crate::perf_data::bytes::Endian;

/// What a sample holds: bits of `sample_type` (`enum perf_event_sample_format`).
pub(crate) mod sample_bits {
    pub(crate) const IP: u64 = 1 << 0;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const ADDR: u64 = 1 << 3;
    pub(crate) const READ: u64 = 1 << 4;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const ID: u64 = 1 << 6;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const STREAM_ID: u64 = 1 << 9;
    pub(crate) const RAW: u64 = 1 << 10;
    pub(crate) const BRANCH_STACK: u64 = 1 << 11;
    pub(crate) const REGS_USER: u64 = 1 << 12;
    pub(crate) const STACK_USER: u64 = 1 << 13;
    pub(crate) const IDENTIFIER: u64 = 1 << 16;
}

/// Bits of `read_format`.
pub(crate) mod read_bits {
    pub(crate) const TIME_ENABLED: u64 = 1 << 0;
    pub(crate) const TIME_RUNNING: u64 = 1 << 1;
    pub(crate) const ID: u64 = 1 << 2;
    pub(crate) const GROUP: u64 = 1 << 3;
    pub(crate) const LOST: u64 = 1 << 4;
}

/// Bits of `branch_sample_type`.
pub(crate) mod branch_bits {
    pub(crate) const CALL_STACK: u64 = 1 << 11;
    pub(crate) const HARDWARE_INDEX: u64 = 1 << 17;
}

/// Bits of the flags, counted as a little-endian machine lays them out.
mod flag_bits {
    pub(super) const INHERIT: u64 = 1 << 1;
    pub(super) const FREQUENCY: u64 = 1 << 10;
    pub(super) const SAMPLE_ID_ALL: u64 = 1 << 18;
}

/// Kinds of event (`enum perf_type_id`).
pub(crate) const TYPE_HARDWARE: u32 = 0;
pub(crate) const TYPE_SOFTWARE: u32 = 1;
pub(crate) const TYPE_TRACEPOINT: u32 = 2;
pub(crate) const TYPE_HARDWARE_CACHE: u32 = 3;

/// The fields that matter here; those that older kernels did not have are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attr {
    pub(crate) kind: u32,
    /// The size of the structure in bytes.
    pub(crate) size: u32,
    pub(crate) config: u64,
    period_or_frequency: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    flags: u64,
    pub(crate) branch_sample_type: u64,
    /// The user's registers that samples hold, as bits.
    pub(crate) user_registers: u64,
}

impl Attr {
    /// The structure at the start of `bytes`; `None` where they are too few.
    pub(crate) fn parse(mut bytes: Bytes<'_>) -> Option<Self> {
        /// Of the first version.
        const LEAST_SIZE: u32 = 64;
        let kind = bytes.u32()?;
        // Old writers left the size out.
        let size = match bytes.u32()? {
            0 => LEAST_SIZE,
            size => size,
        };
        let header_bytes = 8;
        let mut fields = bytes.part((size as usize).checked_sub(header_bytes)?)?;
        let config = fields.u64()?;
        let period_or_frequency = fields.u64()?;
        let sample_type = fields.u64()?;
        let read_format = fields.u64()?;
        let flags = flags(fields.u64()?, fields.endian());
        let branch_sample_type = branch_sample_type(&mut fields);
        let user_registers = branch_sample_type.and_then(|_| fields.u64());
        Some(Self {
            kind,
            size,
            config,
            period_or_frequency,
            sample_type,
            read_format,
            flags,
            branch_sample_type: branch_sample_type.unwrap_or(0),
            user_registers: user_registers.unwrap_or(0),
        })
    }

    pub(crate) fn has(&self, sample_bit: u64) -> bool {
        self.sample_type & sample_bit != 0
    }

    /// Whether it is `cpu-clock` or `task-clock`, which count nanoseconds.
    pub(crate) fn is_clock(&self) -> bool {
        const CPU_CLOCK: u64 = 0;
        const TASK_CLOCK: u64 = 1;
        self.kind == TYPE_SOFTWARE && matches!(self.config, CPU_CLOCK | TASK_CLOCK)
    }

    pub(crate) fn is_inherited(&self) -> bool {
        self.flags & flag_bits::INHERIT != 0
    }

    /// Whether records that are no samples end with the same ids as samples.
    pub(crate) fn has_ids_in_all_records(&self) -> bool {
        self.flags & flag_bits::SAMPLE_ID_ALL != 0
    }

    /// The fixed distance of samples; `None` where the kernel adapts it to a frequency.
    pub(crate) fn fixed_period(&self) -> Option<u64> {
        (self.flags & flag_bits::FREQUENCY == 0).then_some(self.period_or_frequency)
    }

    /// Samples in a second; `None` where the distance is fixed instead.
    pub(crate) fn frequency(&self) -> Option<u64> {
        (self.flags & flag_bits::FREQUENCY != 0).then_some(self.period_or_frequency)
    }
}

/// What stands behind the flags. The structure of the first version ends before it.
fn branch_sample_type(fields: &mut Bytes<'_>) -> Option<u64> {
    let wakeup_and_breakpoint_type = 8;
    let more_configuration = 2 * 8;
    fields.take(wakeup_and_breakpoint_type + more_configuration)?;
    fields.u64()
}

/// Bit fields begin at the other end of the word on big-endian machines.
fn flags(word: u64, endian: Endian) -> u64 {
    match endian {
        Endian::Little => word,
        Endian::Big => word.reverse_bits(),
    }
}
