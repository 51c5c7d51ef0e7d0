//! From what a sample holds to its frames.

use crate::perf_data::bytes::Words;
use crate::perf_data::machine::CPU_MODE_MASK;
use crate::perf_data::machine::MODE_GUEST_KERNEL;
use crate::perf_data::machine::MODE_GUEST_USER;
use crate::perf_data::machine::MODE_HYPERVISOR;
use crate::perf_data::machine::MODE_KERNEL;
use crate::perf_data::resolver::CopiedStack;
use crate::perf_data::sample::PerfSample;
use crate::perf_data::sample::UserRegisters;

/// Whose code an address is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Context {
    User,
    Kernel,
    Hypervisor,
    GuestUser,
    GuestKernel,
}

/// An address to symbolize: of callers the one inside of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameAddress {
    pub(crate) address: u64,
    pub(crate) context: Context,
}

/// Numbers from here on are no addresses but say whose the next ones are (`PERF_CONTEXT_MAX`).
const FIRST_MARKER: u64 = -4095_i64 as u64;

/// Markers (`enum perf_callchain_context`).
const MARKERS: [(i64, Context); 6] = [
    (-32, Context::Hypervisor),
    (-128, Context::Kernel),
    (-512, Context::User),
    (-2048, Context::GuestUser),
    (-2176, Context::GuestKernel),
    (-2560, Context::GuestUser),
];

/// Numbers of the instruction pointer: of x86, and of 64-bit Arm, which has more registers.
const X86_IP: u32 = 8;
const ARM64_PC: u32 = 32;

/// perf's number of each register of x86-64 in the order of DWARF.
const X86_BY_DWARF: [u32; 16] = [0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23];

impl Context {
    fn of_mode(misc: u16) -> Self {
        match misc & CPU_MODE_MASK {
            MODE_KERNEL => Self::Kernel,
            MODE_HYPERVISOR => Self::Hypervisor,
            MODE_GUEST_KERNEL => Self::GuestKernel,
            MODE_GUEST_USER => Self::GuestUser,
            _ => Self::User,
        }
    }
}

/// The frames that the kernel recorded, leaf first: `frames` is overwritten.
pub(crate) fn recorded_frames(sample: &PerfSample<'_>, misc: u16, frames: &mut Vec<FrameAddress>) {
    frames.clear();
    let at_sample = Context::of_mode(misc);
    if let Some(chain) = sample.callchain {
        push_chain(chain, at_sample, frames);
    }
    let is_complete = has_user_frames(frames);
    if frames.is_empty() {
        frames.push(FrameAddress {
            address: sample.ip,
            context: at_sample,
        });
    }
    if is_complete {
        return;
    }
    if let Some(branches) = sample.branches {
        push_branches(branches, frames);
    }
    let interrupted = sample
        .user_registers
        .and_then(|registers| instruction_pointer(&registers));
    if let Some(address) = interrupted
        && !has_user_frames(frames)
        && !is_guest(at_sample)
    {
        frames.push(FrameAddress {
            address,
            context: Context::User,
        });
    }
}

pub(crate) fn has_user_frames(frames: &[FrameAddress]) -> bool {
    frames.iter().any(|frame| frame.context == Context::User)
}

fn is_guest(context: Context) -> bool {
    matches!(context, Context::GuestUser | Context::GuestKernel)
}

fn push_chain(chain: Words<'_>, at_sample: Context, frames: &mut Vec<FrameAddress>) {
    let mut context = Some(at_sample);
    let mut is_first_of_context = true;
    for word in chain.iter() {
        if word >= FIRST_MARKER {
            let marker = MARKERS.iter().find(|(marker, _)| *marker as u64 == word);
            context = marker.map(|(_, context)| *context);
            is_first_of_context = true;
            continue;
        }
        // Behind a marker that nobody knows there may be anything.
        let Some(known) = context else {
            continue;
        };
        // Where a chain of frame pointers ends there is often a zero.
        if word == 0 {
            continue;
        }
        let address = if is_first_of_context { word } else { word - 1 };
        is_first_of_context = false;
        frames.push(FrameAddress {
            address,
            context: known,
        });
    }
}

/// The calls that the processor recorded: the last one leads to the function that runs, and each
/// stands at its own address.
fn push_branches(branches: Words<'_>, frames: &mut Vec<FrameAddress>) {
    const WORDS_EACH: usize = 3;
    let user = |address| FrameAddress {
        address,
        context: Context::User,
    };
    if !has_user_frames(frames) {
        frames.extend(branches.get(1).map(user));
    }
    let count = branches.len() / WORDS_EACH;
    let calls = (0..count).filter_map(|position| branches.get(WORDS_EACH * position));
    frames.extend(calls.filter(|from| *from != 0).map(user));
}

fn instruction_pointer(registers: &UserRegisters<'_>) -> Option<u64> {
    let number = if registers.is_x86() { X86_IP } else { ARM64_PC };
    registers.get(number).filter(|address| *address != 0)
}

/// The copied stack, where it is one of x86-64.
pub(crate) fn copied_stack<'a>(sample: &PerfSample<'a>) -> Option<CopiedStack<'a>> {
    let registers = sample.user_registers?;
    if !registers.is_x86() || !registers.is_64_bit {
        return None;
    }
    Some(CopiedStack {
        registers: X86_BY_DWARF.map(|number| registers.get(number).unwrap_or(0)),
        rip: registers.get(X86_IP)?,
        bytes: sample.user_stack?,
    })
}
