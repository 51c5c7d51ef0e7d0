//! Files that people take for profiles and that are none, and what helps with them.

use std::fmt;

use crate::error::ReadError;
use crate::inflate::inflate_prefix;
use crate::nettrace::is_gc_dump;

/// What some input is, when it is no profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What it is, with its article.
    pub what: &'static str,
    /// What to do.
    pub instead: &'static str,
}

/// A kind of file that is refused.
struct Refused {
    begins: fn(&[u8]) -> bool,
    refusal: Refusal,
}

/// Known kinds, the stricter ones first.
const REFUSED: [Refused; 9] = [
    Refused {
        begins: is_hprof,
        refusal: Refusal {
            what: "a heap dump of a JVM (hprof)",
            instead: "open it with Eclipse MAT or VisualVM; for a profile of allocations record \
                      with JFR or async-profiler",
        },
    },
    Refused {
        begins: is_gc_dump,
        refusal: Refusal {
            what: "a heap dump of .NET (gcdump)",
            instead: "look at it with PerfView, Visual Studio or `dotnet-gcdump report`; for a \
                      profile of allocations collect with `dotnet-trace --profile gc-verbose`",
        },
    },
    Refused {
        begins: |prefix| prefix.starts_with(b"JAVA PROFILE 1.0."),
        refusal: Refusal {
            what: "the text of the JVM's old hprof agent",
            instead: "record with JFR or async-profiler",
        },
    },
    Refused {
        begins: is_go_trace,
        refusal: Refusal {
            what: "an execution trace of Go",
            instead: "look at it with `go tool trace`, which makes profiles of it, too: \
                      `go tool trace -pprof=sync FILE > FILE.pprof`",
        },
    },
    Refused {
        begins: |prefix| elf_type(prefix) == Some(ELF_CORE),
        refusal: Refusal {
            what: "a core dump (ELF)",
            instead: "look at it with gdb, `dlv core`, `jhsdb` or `dotnet-dump analyze`; to see a \
                      running process use `candela record`",
        },
    },
    Refused {
        begins: |prefix| elf_type(prefix).is_some(),
        refusal: Refusal {
            what: "a program or a library (ELF)",
            instead: "profile it with `candela record`; for its symbols use `candela symbols upload`",
        },
    },
    Refused {
        begins: |prefix| prefix.starts_with(b"MDMP\x93\xa7"),
        refusal: Refusal {
            what: "a memory dump of Windows",
            instead: "look at it with WinDbg or `dotnet-dump analyze`",
        },
    },
    Refused {
        begins: is_mach_core,
        refusal: Refusal {
            what: "a core dump (Mach-O)",
            instead: "look at it with lldb",
        },
    },
    Refused {
        begins: is_v8_snapshot,
        refusal: Refusal {
            what: "a heap snapshot of V8",
            instead: "open it in the Memory panel of Chrome's DevTools; for a profile of \
                      allocations take an allocation sampling (.heapprofile)",
        },
    },
];

/// The type of an ELF file that is a core dump.
const ELF_CORE: u16 = 4;

/// What some input is by its first bytes, where it is of a kind that is known to be no profile. They
/// may be compressed. For what [`detect`](crate::detect) does not know.
#[must_use]
pub fn refusal(first_bytes: &[u8]) -> Option<Refusal> {
    const ENOUGH: usize = 64 << 10;
    let prefix = inflate_prefix(&first_bytes[..first_bytes.len().min(ENOUGH)]);
    let mut kinds = REFUSED.iter();
    let refused = kinds.find(|kind| (kind.begins)(&prefix))?;
    Some(refused.refusal)
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} is no profile: {}", self.what, self.instead)
    }
}

impl From<Refusal> for ReadError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// `JAVA PROFILE 1.0.` with a digit and a zero, where the text of old agents goes on.
fn is_hprof(prefix: &[u8]) -> bool {
    let rest = prefix.strip_prefix(b"JAVA PROFILE 1.0.");
    matches!(rest, Some([digit, 0, ..]) if digit.is_ascii_digit())
}

/// `go 1.NUMBER trace`, filled with zeros to 16 bytes.
fn is_go_trace(prefix: &[u8]) -> bool {
    let Some(rest) = prefix.strip_prefix(b"go 1.") else {
        return false;
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (1..=3).contains(&digits) && rest[digits..].starts_with(b" trace\0")
}

/// The type of an ELF file.
fn elf_type(prefix: &[u8]) -> Option<u16> {
    let rest = prefix.strip_prefix(b"\x7fELF")?;
    let is_big_endian = *rest.get(1)? == 2;
    let bytes = [*rest.get(12)?, *rest.get(13)?];
    Some(if is_big_endian {
        u16::from_be_bytes(bytes)
    } else {
        u16::from_le_bytes(bytes)
    })
}

/// The magic number of either byte order and word size, and file type 4.
fn is_mach_core(prefix: &[u8]) -> bool {
    let is_little = matches!(prefix, [0xce | 0xcf, 0xfa, 0xed, 0xfe, ..]);
    let is_big = matches!(prefix, [0xfe, 0xed, 0xfa, 0xce | 0xcf, ..]);
    let file_type = prefix.get(12..16);
    is_little && file_type == Some(&[4, 0, 0, 0]) || is_big && file_type == Some(&[0, 0, 0, 4])
}

fn is_v8_snapshot(prefix: &[u8]) -> bool {
    let start: Vec<u8> = prefix
        .iter()
        .copied()
        .filter(|byte| !byte.is_ascii_whitespace())
        .take(20)
        .collect();
    start == b"{\"snapshot\":{\"meta\":"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::detect;

    fn elf(class: u8, data: u8, file_type: [u8; 2]) -> Vec<u8> {
        let mut bytes = vec![0x7f, b'E', b'L', b'F', class, data, 1];
        bytes.resize(16, 0);
        bytes.extend(file_type);
        bytes.resize(64, 0);
        bytes
    }

    #[test]
    fn what_is_no_profile_is_told() {
        let cases = [
            (b"JAVA PROFILE 1.0.2\0\0\0\0\x08".to_vec(), "hprof)"),
            (
                b"JAVA PROFILE 1.0.1, created Thu".to_vec(),
                "old hprof agent",
            ),
            (b"go 1.22 trace\0\0\0\x02".to_vec(), "trace of Go"),
            (b"go 1.5 trace\0\0\0\0".to_vec(), "trace of Go"),
            (elf(2, 1, [4, 0]), "a core dump (ELF)"),
            (elf(1, 2, [0, 4]), "a core dump (ELF)"),
            (elf(2, 1, [3, 0]), "a program or a library"),
            (b"MDMP\x93\xa7\0\0".to_vec(), "Windows"),
            (
                b"\xcf\xfa\xed\xfe\x07\0\0\x01\x03\0\0\0\x04\0\0\0".to_vec(),
                "a core dump (Mach-O)",
            ),
            (b"{ \"snapshot\": {\"meta\" :{}}}".to_vec(), "V8"),
            (
                b"\x14\0\0\0!FastSerialization.1\x04\x04\x01\x0a\0\0\0\x08\0\0\0\x0a\0\0\0GCHeapDump\x06"
                    .to_vec(),
                "gcdump",
            ),
        ];
        for (bytes, what) in cases {
            let refusal = refusal(&bytes).expect(what);
            assert!(refusal.what.contains(what), "{}", refusal.what);
            assert_eq!(detect(&bytes), None);
        }
    }

    #[test]
    fn the_rest_is_not_refused() {
        for bytes in [
            &b""[..],
            b"JAVA",
            b"go 1.22 build",
            b"\x7fELF",
            b"main;work 3\n",
            b"{}",
        ] {
            assert_eq!(refusal(bytes), None);
        }
    }

    #[test]
    fn a_refusal_is_an_error_in_one_line() {
        let refusal = refusal(b"go 1.22 trace\0\0\0").expect("a trace");
        let message = ReadError::from(refusal).to_string();
        assert!(
            message.starts_with("an execution trace of Go is no profile: look at it with"),
            "{message}"
        );
    }
}
