//! What kind of code a frame runs.

use std::fmt;

/// The kind of code of a frame; names are those of the OpenTelemetry attribute
/// `profile.frame.type` (semantic conventions 1.44), plus `other` for a pruned remainder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum FrameKind {
    /// Not known: most file formats do not say.
    #[default]
    Unknown = 0,
    /// Machine code of C, C++ and whatever has no kind of its own.
    Native = 1,
    /// The operating system's kernel.
    Kernel = 2,
    /// Go.
    Go = 3,
    /// Rust.
    Rust = 4,
    /// Java virtual machine, interpreted or compiled.
    Jvm = 5,
    /// CPython.
    Cpython = 6,
    /// JavaScript on V8.
    V8js = 7,
    /// .NET.
    Dotnet = 8,
    /// PHP.
    Php = 9,
    /// Ruby.
    Ruby = 10,
    /// Perl.
    Perl = 11,
    /// Erlang and Elixir.
    Beam = 12,
    /// LuaJIT.
    Luajit = 13,
    /// The pruned remainder of a tree; never a frame that ran.
    Other = 14,
}

impl FrameKind {
    /// Every kind, in the order of its number.
    pub const ALL: [Self; 15] = [
        Self::Unknown,
        Self::Native,
        Self::Kernel,
        Self::Go,
        Self::Rust,
        Self::Jvm,
        Self::Cpython,
        Self::V8js,
        Self::Dotnet,
        Self::Php,
        Self::Ruby,
        Self::Perl,
        Self::Beam,
        Self::Luajit,
        Self::Other,
    ];

    /// The attribute value; empty when unknown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::Native => "native",
            Self::Kernel => "kernel",
            Self::Go => "go",
            Self::Rust => "rust",
            Self::Jvm => "jvm",
            Self::Cpython => "cpython",
            Self::V8js => "v8js",
            Self::Dotnet => "dotnet",
            Self::Php => "php",
            Self::Ruby => "ruby",
            Self::Perl => "perl",
            Self::Beam => "beam",
            Self::Luajit => "luajit",
            Self::Other => "other",
        }
    }

    /// The kind with this attribute value; what is not listed is unknown.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == name)
            .unwrap_or(Self::Unknown)
    }

    /// The kind with this number; what is not listed is unknown.
    #[must_use]
    pub fn from_number(number: u8) -> Self {
        Self::ALL
            .get(usize::from(number))
            .copied()
            .unwrap_or(Self::Unknown)
    }
}

impl fmt::Display for FrameKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_round_trip() {
        for (number, kind) in FrameKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
            assert_eq!(FrameKind::from_number(number as u8), kind);
            assert_eq!(FrameKind::from_name(kind.as_str()), kind);
        }
        assert_eq!(FrameKind::from_name("cobol"), FrameKind::Unknown);
        assert_eq!(FrameKind::from_number(200), FrameKind::Unknown);
    }
}
