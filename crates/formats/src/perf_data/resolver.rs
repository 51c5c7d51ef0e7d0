//! What a reader of addresses asks its caller for, as this crate opens no file.

use candela_model::FrameKind;

/// Knows the files that a recording's processes had mapped: names for their addresses, and how to
/// walk stacks through them.
pub trait AddressResolver {
    /// What is known of the code byte at `file_offset` of a mapped file; `None` when the file is not
    /// there, or is another one by its build id.
    fn resolve(&mut self, file: &MappedBinary<'_>, file_offset: u64) -> Option<ResolvedCode>;

    /// The functions at an address of a kernel, innermost first; empty when nothing names it.
    fn resolve_kernel(&mut self, kernel: &KernelIdentity<'_>, address: u64) -> Vec<ResolvedFrame>;

    /// The functions at an address of a process where no file is mapped (JIT code).
    fn resolve_anonymous(&mut self, pid: u32, address: u64) -> Vec<(FrameKind, ResolvedFrame)>;

    /// What people call a function whose name the recording itself has, where that is mangled.
    fn demangle(&self, _name: &str) -> Option<String> {
        None
    }

    /// Walks a stack of x86-64 and appends the addresses to symbolize, leaf first: of callers the
    /// address inside of the call. What cannot be walked stays as short as it came out; `false` says
    /// that the outermost frame was not reached.
    fn walk<'a>(
        &mut self,
        stack: &CopiedStack<'_>,
        code_at: &dyn Fn(u64) -> MappedCode<'a>,
        frames: &mut Vec<u64>,
    ) -> bool;
}

/// A file that is mapped into a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MappedBinary<'a> {
    /// The path as the process saw it.
    pub path: &'a str,
    /// Hexadecimal digits; empty when the recording does not tell it, or not yet.
    pub build_id: &'a str,
    /// First address of the mapping.
    pub start: u64,
    /// End of the mapping, exclusive.
    pub end: u64,
    /// Offset of `start` in the file, bytes.
    pub file_offset: u64,
}

/// What lies at an address of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappedCode<'a> {
    /// No mapping that the recording tells of.
    Unmapped,
    /// Memory without file.
    Anonymous,
    /// A file.
    Binary(MappedBinary<'a>),
}

/// Which kernel an address is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelIdentity<'a> {
    /// Hexadecimal digits; empty when unknown.
    pub build_id: &'a str,
    /// A symbol and the address that it had: another one after the next start of the machine.
    pub reference: Option<(&'a str, u64)>,
}

/// The registers and the copied part of a stack of x86-64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedStack<'a> {
    /// By their DWARF numbers: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 … r15.
    pub registers: [u64; 16],
    /// The instruction pointer.
    pub rip: u64,
    /// The bytes from rsp upwards.
    pub bytes: &'a [u8],
}

/// What is known of a code byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedCode {
    /// The address as linked.
    pub address: u64,
    /// The linked addresses of all code of the file: start, end (exclusive) and the offset of the
    /// start in the file.
    pub code_range: (u64, u64, u64),
    /// Hexadecimal digits of the file's build id; empty when it has none.
    pub build_id: String,
    /// The kind of code.
    pub kind: FrameKind,
    /// The functions, innermost first; empty when nothing names them.
    pub frames: Vec<ResolvedFrame>,
}

/// A function and a place in its source; missing numbers are 0, missing texts empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedFrame {
    /// The readable name.
    pub function: String,
    /// The name in the object file where it is another one (mangled).
    pub system_name: String,
    /// The source file.
    pub file: String,
    /// The first line of the function.
    pub start_line: u32,
    /// The line of the instruction or call.
    pub line: u32,
    /// Its column.
    pub column: u32,
}
