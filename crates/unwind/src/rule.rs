//! One unwind rule: how to get from a frame to its caller.

/// How the canonical frame address (CFA) is found. The numbers are shared with the BPF walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CfaKind {
    /// Nothing is known about this address.
    NoRule = 0,
    /// CFA = rsp + offset.
    Rsp = 1,
    /// CFA = rbp + offset.
    Rbp = 2,
    /// CFA = rsp + 8, and 8 more where the low four bits of pc reach the offset: a PLT stub.
    Plt = 3,
    /// CFA = *(rbp + offset): gcc's stack realignment.
    DerefRbp = 4,
    /// CFA = *(rsp + low half) + high half: hand-written assembly that saved the old rsp.
    DerefRsp = 5,
    /// The outermost frame: there is no caller.
    End = 6,
    /// The `rt_sigreturn` trampoline: the caller's registers are in the ucontext at rsp.
    Signal = 7,
    /// Follow the frame pointer: CFA = rbp + 16. May move to another stack (Go's `systemstack`).
    FramePointer = 8,
    /// CFA = a register that is known in the leaf frame only, plus an offset.
    Register = 9,
}

/// Where the caller's rbp is. The numbers are shared with the BPF walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FpKind {
    /// rbp is unchanged.
    Same = 0,
    /// rbp is at CFA + offset.
    CfaOffset = 1,
    /// rbp is lost; the walk goes on with 0.
    Undefined = 2,
    /// rbp is at (this frame's) rbp + offset.
    RbpOffset = 3,
}

/// How to get from a frame to its caller; 8 bytes, the element of the BPF rule array.
///
/// The return address is at CFA - 8 for every kind except `End` and `Signal`. The fields hold
/// plain bytes rather than the enums because the value crosses into BPF as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Rule {
    /// A [`CfaKind`].
    pub cfa_kind: u8,
    /// A [`FpKind`].
    pub fp_kind: u8,
    /// Offset of the [`FpKind`], in bytes.
    pub fp_offset: i16,
    /// Offset of the [`CfaKind`], in bytes; packed for `DerefRsp` and `Register`.
    pub cfa_offset: i32,
}

impl Rule {
    /// Nothing is known: the walk ends with [`crate::WalkResult::NoRule`].
    pub const NO_RULE: Rule = Rule::bare(CfaKind::NoRule);
    /// The outermost frame.
    pub const END: Rule = Rule::bare(CfaKind::End);
    /// The signal trampoline.
    pub const SIGNAL: Rule = Rule::bare(CfaKind::Signal);
    /// One step of the frame-pointer chain.
    pub const FRAME_POINTER: Rule = Rule::bare(CfaKind::FramePointer);
    /// A function that has only been entered: the return address is on top of the stack.
    pub const AT_ENTRY: Rule = Rule::new(CfaKind::Rsp, 8, FpKind::Same, 0);

    /// A rule of its four parts.
    pub const fn new(cfa_kind: CfaKind, cfa_offset: i32, fp_kind: FpKind, fp_offset: i16) -> Rule {
        Rule {
            cfa_kind: cfa_kind as u8,
            fp_kind: fp_kind as u8,
            fp_offset,
            cfa_offset,
        }
    }

    /// The rule CFA = *(rsp + `slot`) + `addend`.
    pub const fn deref_rsp(slot: i16, addend: i16, fp_kind: FpKind, fp_offset: i16) -> Rule {
        let packed = (slot as u16 as u32) | ((addend as u16 as u32) << 16);
        Rule::new(CfaKind::DerefRsp, packed as i32, fp_kind, fp_offset)
    }

    /// The rule CFA = register + `offset`; `register` is a DWARF number below 16 and `offset` has
    /// at most 24 bits.
    pub const fn register(register: u8, offset: i32, fp_kind: FpKind, fp_offset: i16) -> Rule {
        Rule::new(
            CfaKind::Register,
            (offset << 8) | register as i32,
            fp_kind,
            fp_offset,
        )
    }

    /// The eight bytes as one little-endian number, as the BPF rule array holds them.
    pub const fn to_bits(self) -> u64 {
        (self.cfa_kind as u64)
            | ((self.fp_kind as u64) << 8)
            | ((self.fp_offset as u16 as u64) << 16)
            | ((self.cfa_offset as u32 as u64) << 32)
    }

    /// The inverse of [`Rule::to_bits`].
    pub const fn from_bits(bits: u64) -> Rule {
        Rule {
            cfa_kind: bits as u8,
            fp_kind: (bits >> 8) as u8,
            fp_offset: (bits >> 16) as u16 as i16,
            cfa_offset: (bits >> 32) as u32 as i32,
        }
    }

    const fn bare(cfa_kind: CfaKind) -> Rule {
        Rule::new(cfa_kind, 0, FpKind::Same, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_the_memory_layout() {
        let rule = Rule::new(CfaKind::Rbp, -16, FpKind::CfaOffset, -24);
        assert_eq!(
            rule.to_bits().to_le_bytes(),
            [2, 1, 0xe8, 0xff, 0xf0, 0xff, 0xff, 0xff]
        );
        assert_eq!(Rule::from_bits(rule.to_bits()), rule);
    }

    #[test]
    fn packed_offsets_keep_their_signs() {
        let rule = Rule::deref_rsp(-8, 120, FpKind::Same, 0);
        assert_eq!(
            (rule.cfa_offset as i16, (rule.cfa_offset >> 16) as i16),
            (-8, 120)
        );
        let rule = Rule::register(10, -24, FpKind::Same, 0);
        assert_eq!((rule.cfa_offset & 0xff, rule.cfa_offset >> 8), (10, -24));
    }
}
