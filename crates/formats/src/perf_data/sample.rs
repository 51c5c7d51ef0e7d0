//! What a sample holds, field by field in the order of `perf_event_open(2)`.

use crate::perf_data::attr::Attr;
use crate::perf_data::attr::branch_bits;
use crate::perf_data::attr::read_bits;
use crate::perf_data::attr::sample_bits;
use crate::perf_data::bytes::Bytes;
use crate::perf_data::bytes::Words;

/// The fields that matter here.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PerfSample<'a> {
    pub(crate) ip: u64,
    pub(crate) pid: Option<u32>,
    pub(crate) tid: Option<u32>,
    /// On the clock of the recording.
    pub(crate) time: Option<u64>,
    pub(crate) period: Option<u64>,
    pub(crate) counters: Option<Counters<'a>>,
    pub(crate) callchain: Option<Words<'a>>,
    /// The calls that the processor keeps a record of: from where to where, leaf first.
    pub(crate) branches: Option<Words<'a>>,
    pub(crate) user_registers: Option<UserRegisters<'a>>,
    pub(crate) user_stack: Option<&'a [u8]>,
}

/// Counters that were read with the sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counters<'a> {
    words: Words<'a>,
    /// Never 0.
    words_each: usize,
    id_at: Option<usize>,
}

/// The registers of the thread in user space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserRegisters<'a> {
    /// Whether the thread runs code of 64 bits.
    pub(crate) is_64_bit: bool,
    /// Which registers there are.
    mask: u64,
    values: Words<'a>,
}

/// How many bytes a branch takes: from, to, flags.
const BRANCH_WORDS: u64 = 3;

const ABI_NONE: u64 = 0;
const ABI_64: u64 = 2;

impl<'a> PerfSample<'a> {
    /// The sample in the body of a record; `None` where that ends too early.
    pub(crate) fn parse(attr: &Attr, mut body: Bytes<'a>) -> Option<Self> {
        let mut sample = Self::default();
        let has = |bit| attr.has(bit);
        if has(sample_bits::IDENTIFIER) {
            body.u64()?;
        }
        if has(sample_bits::IP) {
            sample.ip = body.u64()?;
        }
        if has(sample_bits::TID) {
            sample.pid = Some(body.u32()?);
            sample.tid = Some(body.u32()?);
        }
        if has(sample_bits::TIME) {
            sample.time = Some(body.u64()?);
        }
        for bit in [
            sample_bits::ADDR,
            sample_bits::ID,
            sample_bits::STREAM_ID,
            sample_bits::CPU,
        ] {
            if has(bit) {
                body.u64()?;
            }
        }
        if has(sample_bits::PERIOD) {
            sample.period = Some(body.u64()?);
        }
        if has(sample_bits::READ) {
            sample.counters = Some(Counters::parse(attr.read_format, &mut body)?);
        }
        if has(sample_bits::CALLCHAIN) {
            let count = body.u64()?;
            sample.callchain = Some(body.words(count)?);
        }
        if has(sample_bits::RAW) {
            let size = body.u32()?;
            body.take(size as usize)?;
        }
        if has(sample_bits::BRANCH_STACK) {
            let branches = parse_branches(attr, &mut body)?;
            let is_call_stack = attr.branch_sample_type & branch_bits::CALL_STACK != 0;
            sample.branches = is_call_stack.then_some(branches);
        }
        if has(sample_bits::REGS_USER) {
            sample.user_registers = parse_registers(attr.user_registers, &mut body)?;
        }
        if has(sample_bits::STACK_USER) {
            sample.user_stack = parse_stack(&mut body)?;
        }
        Some(sample)
    }
}

fn parse_branches<'a>(attr: &Attr, body: &mut Bytes<'a>) -> Option<Words<'a>> {
    let count = body.u64()?;
    if attr.branch_sample_type & branch_bits::HARDWARE_INDEX != 0 {
        body.u64()?;
    }
    body.words(count.checked_mul(BRANCH_WORDS)?)
}

/// The outer option is whether they could be read, the inner one whether there are some.
fn parse_registers<'a>(mask: u64, body: &mut Bytes<'a>) -> Option<Option<UserRegisters<'a>>> {
    let abi = body.u64()?;
    if abi == ABI_NONE {
        return Some(None);
    }
    let values = body.words(u64::from(mask.count_ones()))?;
    Some(Some(UserRegisters {
        is_64_bit: abi == ABI_64,
        mask,
        values,
    }))
}

fn parse_stack<'a>(body: &mut Bytes<'a>) -> Option<Option<&'a [u8]>> {
    let size = usize::try_from(body.u64()?).ok()?;
    if size == 0 {
        return Some(None);
    }
    let bytes = body.take(size)?;
    // Of the room that was kept, so much was filled.
    let filled = usize::try_from(body.u64()?).unwrap_or(usize::MAX);
    Some(bytes.get(..filled.min(size)))
}

impl<'a> Counters<'a> {
    fn parse(format: u64, body: &mut Bytes<'a>) -> Option<Self> {
        let has = |bit| format & bit != 0;
        let count_if = |bit| usize::from(has(bit));
        let times = count_if(read_bits::TIME_ENABLED) + count_if(read_bits::TIME_RUNNING);
        let ids_and_losses = count_if(read_bits::ID) + count_if(read_bits::LOST);
        // In a group the times stand once before the counters, else between value and id.
        let (count, words_each, id_at) = if has(read_bits::GROUP) {
            let count = body.u64()?;
            body.words(times as u64)?;
            (count, 1 + ids_and_losses, 1)
        } else {
            (1, 1 + times + ids_and_losses, 1 + times)
        };
        Some(Self {
            words: body.words(count.checked_mul(words_each as u64)?)?,
            words_each,
            id_at: has(read_bits::ID).then_some(id_at),
        })
    }

    /// The ids of events with what they counted so far; none where counters have no ids.
    pub(crate) fn values(self) -> impl Iterator<Item = (u64, u64)> + 'a {
        let count = self.words.len() / self.words_each;
        let id_at = self.id_at.into_iter();
        id_at.flat_map(move |id_at| {
            (0..count).filter_map(move |position| {
                let first = position * self.words_each;
                Some((self.words.get(first + id_at)?, self.words.get(first)?))
            })
        })
    }
}

impl UserRegisters<'_> {
    /// The value of the register with this number of the architecture.
    pub(crate) fn get(&self, number: u32) -> Option<u64> {
        let bit = 1_u64.checked_shl(number)?;
        if self.mask & bit == 0 {
            return None;
        }
        let before = (self.mask & (bit - 1)).count_ones();
        self.values.get(before as usize)
    }

    /// Whether the registers are those of x86: 24 numbers, of which those above are of others.
    pub(crate) fn is_x86(&self) -> bool {
        const X86_REGISTERS: u32 = 24;
        self.mask >> X86_REGISTERS == 0
    }
}
