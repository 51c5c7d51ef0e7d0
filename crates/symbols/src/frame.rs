//! The answer of this crate: source frames, and where they were found.

use std::sync::Arc;

/// The language (or rather the kind of code) of a frame, as far as names and debug information
/// tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FrameLanguage {
    /// Compiled code of no language told apart here: C, C++, assembly, Fortran, Zig, …
    #[default]
    Native,
    /// Rust, known from the mangling or from DWARF.
    Rust,
    /// Go, known from the pclntab or from DWARF.
    Go,
    /// The Linux kernel, its modules and BPF programs.
    Kernel,
    /// A JVM method, named by a perf map.
    Jvm,
    /// A JavaScript or WebAssembly function of V8, named by a perf map.
    V8,
    /// A Python function of CPython's perf trampoline, named by a perf map.
    Cpython,
}

impl FrameLanguage {
    /// The name that OpenTelemetry has for frames of it (`profile.frame.type`).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Rust => "rust",
            Self::Go => "go",
            Self::Kernel => "kernel",
            Self::Jvm => "jvm",
            Self::V8 => "v8js",
            Self::Cpython => "cpython",
        }
    }
}

/// One function at one source position. A missing number is 0, as in DWARF and pprof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFrame {
    /// The name for readers: demangled, and without the hash of Rust's mangling.
    pub function: Arc<str>,
    /// The name as the object file has it (mangled).
    pub system_name: Arc<str>,
    /// The source file with its directory, as the compiler wrote it.
    pub file: Option<Arc<str>>,
    /// Line of the instruction, or of the call for a frame that inlined another; 0 is unknown.
    pub line: u32,
    /// Column, counted from 1; 0 is unknown.
    pub column: u32,
    /// Line of the function's declaration; 0 is unknown.
    pub start_line: u32,
    /// Whether this function was inlined into the next frame.
    pub inlined: bool,
    /// Language of the function.
    pub language: FrameLanguage,
}

impl SourceFrame {
    /// A frame of which only the name is known, demangled from `system_name`.
    pub fn named(system_name: &str, language: FrameLanguage) -> Self {
        let demangled = crate::demangle::demangle(system_name);
        let language = match language {
            FrameLanguage::Native => demangled.language,
            known => known,
        };
        let raw: Arc<str> = Arc::from(system_name);
        let function = if demangled.name == system_name {
            Arc::clone(&raw)
        } else {
            Arc::from(demangled.name.as_ref())
        };
        Self {
            function,
            system_name: raw,
            file: None,
            line: 0,
            column: 0,
            start_line: 0,
            inlined: false,
            language,
        }
    }
}

/// Where a name was found; the order is the order of trust in which sources are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SymbolSource {
    /// DWARF of the object or of its separate debug file, with inlined frames.
    Dwarf,
    /// `.symtab` of the object or of its separate debug file.
    Symtab,
    /// The xz-compressed symbol table in `.gnu_debugdata`.
    MiniDebugInfo,
    /// Go's pclntab.
    GoPclntab,
    /// The exported symbols in `.dynsym`.
    Dynsym,
    /// Nothing names the address; a caller shows binary and offset.
    None,
}

/// What is known of one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// Frames, innermost first; empty when nothing names the address.
    pub frames: Arc<[SourceFrame]>,
    /// What answered.
    pub source: SymbolSource,
    /// Whether debuginfod is still asked, so that a later answer may be better.
    pub pending: bool,
}

impl Resolution {
    /// The answer when nothing names an address.
    pub fn unknown(pending: bool) -> Self {
        Self {
            frames: Arc::from([]),
            source: SymbolSource::None,
            pending,
        }
    }
}
