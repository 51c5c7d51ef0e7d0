//! The stack walk in user space: the testable twin of the BPF walk.

use crate::{CfaKind, FpKind, Registers, Rule, RuleSet, Table};

/// How a walk ended. The numbers are shared with the BPF walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum WalkResult {
    /// The outermost frame was reached.
    Complete = 0,
    /// The frame limit was reached.
    TruncatedDepth = 1,
    /// The copy of the stack ended before the stack did.
    TruncatedStack = 2,
    /// An address in no known mapping, and no frame pointer led on.
    NoMapping = 3,
    /// The mapping is known, its table is not there (yet).
    NoTable = 4,
    /// The table says nothing about the address.
    NoRule = 5,
    /// Stack memory could not be read.
    BadRead = 6,
    /// The caller's frame would lie below this one: the stack is damaged or the rule wrong.
    NoProgress = 7,
    /// A kernel thread: there is no user stack.
    KernelOnly = 8,
}

impl WalkResult {
    /// The result with this number, as BPF reports it.
    pub fn from_code(code: u8) -> Option<WalkResult> {
        const ALL: [WalkResult; 9] = [
            WalkResult::Complete,
            WalkResult::TruncatedDepth,
            WalkResult::TruncatedStack,
            WalkResult::NoMapping,
            WalkResult::NoTable,
            WalkResult::NoRule,
            WalkResult::BadRead,
            WalkResult::NoProgress,
            WalkResult::KernelOnly,
        ];
        ALL.get(usize::from(code)).copied()
    }

    /// The name used in metrics and in the quality counters.
    pub fn name(self) -> &'static str {
        match self {
            WalkResult::Complete => "complete",
            WalkResult::TruncatedDepth => "truncated_depth",
            WalkResult::TruncatedStack => "truncated_stack",
            WalkResult::NoMapping => "no_mapping",
            WalkResult::NoTable => "no_table",
            WalkResult::NoRule => "no_rule",
            WalkResult::BadRead => "bad_read",
            WalkResult::NoProgress => "no_progress",
            WalkResult::KernelOnly => "kernel_only",
        }
    }
}

/// A copy of the upper end of a thread's stack.
#[derive(Clone, Copy, Debug)]
pub struct StackCopy<'a> {
    /// The address the first byte was read from, usually rsp.
    pub base: u64,
    /// The bytes from `base` upwards.
    pub bytes: &'a [u8],
}

/// What lies at an address of the process.
#[derive(Clone, Copy, Debug)]
pub enum Region<'a> {
    /// No known mapping.
    Unmapped,
    /// Code that keeps frame pointers: JIT code and anonymous executable memory.
    FramePointer,
    /// A mapped binary whose table is not there.
    NoTable,
    /// A mapped binary.
    Table {
        /// The binary's table.
        table: &'a Table,
        /// Process address minus ELF virtual address.
        bias: u64,
    },
}

/// The address space of the process that is walked.
pub trait AddressSpace {
    /// What lies at `address`.
    fn region(&self, address: u64) -> Region<'_>;

    /// The dictionary that the tables were built with.
    fn rules(&self) -> &RuleSet;

    /// Reads memory outside the stack copy (another stack, after a signal or a stack switch).
    fn read_word(&self, address: u64) -> Option<u64> {
        let _ = address;
        None
    }
}

/// Walks a stack from `registers` outwards and appends the frames to `out`, innermost first.
///
/// Each frame is the address to symbolize: the sampled pc itself for the innermost frame and for a
/// frame interrupted by a signal, the return address minus one (inside the call) for all others.
/// `max_frames` bounds the frames appended.
///
/// # Example
///
/// ```
/// use candela_unwind::{
///     AddressSpace, Region, Registers, Rule, RuleSet, StackCopy, Table, TableBuilder, WalkResult,
/// };
///
/// struct OneBinary(Table, RuleSet);
///
/// impl AddressSpace for OneBinary {
///     fn region(&self, address: u64) -> Region<'_> {
///         match address {
///             0x5000..0x6000 => Region::Table { table: &self.0, bias: 0x4000 },
///             _ => Region::Unmapped,
///         }
///     }
///     fn rules(&self) -> &RuleSet {
///         &self.1
///     }
/// }
///
/// let mut rules = RuleSet::new();
/// let mut builder = TableBuilder::new();
/// builder.push(0x1000, Rule::AT_ENTRY, &mut rules)?;
/// builder.push(0x1100, Rule::END, &mut rules)?;
/// let space = OneBinary(builder.finish()?, rules);
///
/// let mut registers = Registers { rip: 0x5008, ..Registers::default() };
/// registers.general[7] = 0x7000; // rsp
/// let return_address = 0x5123u64.to_le_bytes();
/// let stack = StackCopy { base: 0x7000, bytes: &return_address };
/// let mut frames = Vec::new();
/// let result = candela_unwind::walk(&registers, &stack, &space, 256, &mut frames);
/// assert_eq!(result, WalkResult::Complete);
/// assert_eq!(frames, [0x5008, 0x5122]);
/// # Ok::<(), candela_unwind::Error>(())
/// ```
pub fn walk(
    registers: &Registers,
    stack: &StackCopy<'_>,
    space: &dyn AddressSpace,
    max_frames: usize,
    out: &mut Vec<u64>,
) -> WalkResult {
    let mut walker = Walker {
        leaf: registers,
        stack,
        space,
        pc: registers.rip,
        rsp: registers.rsp(),
        rbp: registers.rbp(),
        is_leaf: true,
        is_exact: true,
    };
    for _ in 0..max_frames {
        let address = walker.lookup_address();
        out.push(address);
        if let Err(result) = walker.step(address) {
            return result;
        }
    }
    WalkResult::TruncatedDepth
}

/// The frame a walk has come to.
struct Walker<'a> {
    leaf: &'a Registers,
    stack: &'a StackCopy<'a>,
    space: &'a dyn AddressSpace,
    pc: u64,
    rsp: u64,
    rbp: u64,
    /// Whether `leaf` still describes this frame.
    is_leaf: bool,
    /// Whether `pc` is an interrupted instruction rather than a return address.
    is_exact: bool,
}

impl Walker<'_> {
    /// A return address may be the first byte of the next function (after a call that does not
    /// return), so the call itself is what is looked up.
    fn lookup_address(&self) -> u64 {
        if self.is_exact {
            self.pc
        } else {
            self.pc.wrapping_sub(1)
        }
    }

    /// Goes to the caller; `Err` says how the walk ended.
    fn step(&mut self, address: u64) -> Result<(), WalkResult> {
        match self.space.region(address) {
            Region::Table { table, bias } => {
                let rule = table.lookup(address.wrapping_sub(bias), self.space.rules());
                self.apply(rule, address)
            }
            Region::NoTable => Err(WalkResult::NoTable),
            Region::FramePointer => {
                if self.rbp == 0 {
                    return Err(WalkResult::Complete);
                }
                self.follow_frame_pointer(true)
            }
            // Memory we were not told about is most often fresh JIT code, which keeps frame
            // pointers. Where they lead nowhere, the missing mapping is the cause to report.
            Region::Unmapped => self
                .follow_frame_pointer(true)
                .map_err(|result| match result {
                    WalkResult::Complete => WalkResult::Complete,
                    _ => WalkResult::NoMapping,
                }),
        }
    }

    fn apply(&mut self, rule: Rule, address: u64) -> Result<(), WalkResult> {
        let offset = rule.cfa_offset as i64 as u64;
        let cfa = match rule.cfa_kind {
            kind if kind == CfaKind::Rsp as u8 => self.rsp.wrapping_add(offset),
            kind if kind == CfaKind::Rbp as u8 => self.rbp.wrapping_add(offset),
            kind if kind == CfaKind::Plt as u8 => {
                let pushed = if (address & 15) as i64 >= i64::from(rule.cfa_offset) {
                    8
                } else {
                    0
                };
                self.rsp.wrapping_add(8 + pushed)
            }
            kind if kind == CfaKind::DerefRbp as u8 => self.read(self.rbp.wrapping_add(offset))?,
            kind if kind == CfaKind::DerefRsp as u8 => {
                let slot = rule.cfa_offset as i16 as i64 as u64;
                let addend = (rule.cfa_offset >> 16) as i64 as u64;
                self.read(self.rsp.wrapping_add(slot))?.wrapping_add(addend)
            }
            kind if kind == CfaKind::End as u8 => return Err(WalkResult::Complete),
            kind if kind == CfaKind::Signal as u8 => return self.leave_signal_frame(),
            kind if kind == CfaKind::FramePointer as u8 => {
                if self.rbp == 0 {
                    return Err(WalkResult::Complete);
                }
                return self.follow_frame_pointer(false);
            }
            kind if kind == CfaKind::Register as u8 && self.is_leaf => {
                let register = (rule.cfa_offset & 15) as usize;
                let register_offset = (rule.cfa_offset >> 8) as i64 as u64;
                self.leaf.general[register].wrapping_add(register_offset)
            }
            _ => return Err(WalkResult::NoRule),
        };
        if cfa <= self.rsp {
            return Err(WalkResult::NoProgress);
        }
        let return_address = self.read(cfa.wrapping_sub(8))?;
        let fp_offset = rule.fp_offset as i64 as u64;
        let rbp = match rule.fp_kind {
            kind if kind == FpKind::Same as u8 => self.rbp,
            kind if kind == FpKind::CfaOffset as u8 => self.read(cfa.wrapping_add(fp_offset))?,
            kind if kind == FpKind::RbpOffset as u8 => {
                self.read(self.rbp.wrapping_add(fp_offset))?
            }
            _ => 0,
        };
        self.enter_caller(return_address, cfa, rbp, false)
    }

    /// `must_grow`: the chain stays on this stack. A [`CfaKind::FramePointer`] row is exempt,
    /// because the runtimes that need it (Go) switch stacks there.
    fn follow_frame_pointer(&mut self, must_grow: bool) -> Result<(), WalkResult> {
        let cfa = self.rbp.wrapping_add(16);
        if must_grow && cfa <= self.rsp {
            return Err(WalkResult::NoProgress);
        }
        let return_address = self.read(self.rbp.wrapping_add(8))?;
        let rbp = self.read(self.rbp)?;
        self.enter_caller(return_address, cfa, rbp, false)
    }

    /// Offsets of x86-64 Linux `struct ucontext`: uc_mcontext at 40, in it rbp, rsp and rip.
    fn leave_signal_frame(&mut self) -> Result<(), WalkResult> {
        let rbp = self.read(self.rsp.wrapping_add(0x78))?;
        let rsp = self.read(self.rsp.wrapping_add(0xa0))?;
        let rip = self.read(self.rsp.wrapping_add(0xa8))?;
        self.enter_caller(rip, rsp, rbp, true)
    }

    fn enter_caller(
        &mut self,
        pc: u64,
        rsp: u64,
        rbp: u64,
        is_exact: bool,
    ) -> Result<(), WalkResult> {
        // Coroutine libraries and thread entries put a zero where the return address would be.
        if pc == 0 {
            return Err(WalkResult::Complete);
        }
        self.pc = pc;
        self.rsp = rsp;
        self.rbp = rbp;
        self.is_leaf = false;
        self.is_exact = is_exact;
        Ok(())
    }

    fn read(&self, address: u64) -> Result<u64, WalkResult> {
        let stack = self.stack;
        if let Some(offset) = address.checked_sub(stack.base)
            && let Ok(offset) = usize::try_from(offset)
            && let Some(end) = offset.checked_add(8)
            && let Some(word) = stack.bytes.get(offset..end)
        {
            let word: [u8; 8] = word.try_into().expect("the slice above has eight bytes");
            return Ok(u64::from_le_bytes(word));
        }
        if let Some(word) = self.space.read_word(address) {
            return Ok(word);
        }
        Err(if address >= stack.base {
            WalkResult::TruncatedStack
        } else {
            WalkResult::BadRead
        })
    }
}
