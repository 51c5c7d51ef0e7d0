//! The registers a walk starts from.

/// DWARF numbers of the x86-64 registers that rules name (System V psABI, figure 3.36).
pub mod dwarf {
    /// rax
    pub const RAX: u8 = 0;
    /// rdx
    pub const RDX: u8 = 1;
    /// rcx
    pub const RCX: u8 = 2;
    /// rbx
    pub const RBX: u8 = 3;
    /// rsi
    pub const RSI: u8 = 4;
    /// rdi
    pub const RDI: u8 = 5;
    /// rbp
    pub const RBP: u8 = 6;
    /// rsp
    pub const RSP: u8 = 7;
    /// The return address column.
    pub const RETURN_ADDRESS: u8 = 16;
}

/// The registers of a thread at the moment of the sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// The sixteen general registers by DWARF number: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 … r15.
    pub general: [u64; 16],
    /// The instruction pointer.
    pub rip: u64,
}

impl Registers {
    /// The stack pointer.
    pub fn rsp(&self) -> u64 {
        self.general[usize::from(dwarf::RSP)]
    }

    /// The frame pointer.
    pub fn rbp(&self) -> u64 {
        self.general[usize::from(dwarf::RBP)]
    }
}
