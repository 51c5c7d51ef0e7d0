//! Where a frame of a stored profile is, and whether it has a name.

use candela_model::FrameKind;
use candela_model::LocationId;
use candela_model::SymbolTables;

use crate::missing_frames::stored::causes::StoredCause;

/// What is shown of frames in no file.
const KERNEL: &str = "[kernel]";
const COMPILED: &str = "[compiled at run time]";
const NO_ADDRESS: &str = "[no address]";

/// What perf, Java's profilers and others write of a frame that they know nothing of.
const NO_NAMES: [&str; 8] = [
    "",
    "??",
    "(unknown)",
    "<unknown>",
    "[unknown]",
    "[unresolved]",
    "unknown",
    "unknown_Java",
];

/// How names of memory begin that is no file of code; that of runtimes, mostly.
const NO_FILES: [&str; 10] = [
    "//anon",
    "[anon",
    "[heap]",
    "[stack",
    "[unknown]",
    "/SYSV",
    "/dev/zero",
    "/memfd:",
    "/tmp/perf-",
    "anon_inode:",
];

/// Where a frame is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    /// A path, or what stands for it, in brackets.
    pub(super) path: String,
    /// As hexadecimal digits; empty where it is not known.
    pub(super) build_id: String,
    /// Why a frame there has no name, if it has none.
    pub(super) cause: StoredCause,
}

/// Whether a frame has a name that says what it is.
pub(super) fn is_named(symbols: &SymbolTables, id: LocationId) -> bool {
    symbols.lines(id).iter().any(|line| {
        let name = symbols.function(line.function).name;
        unnamed_file(symbols.strings.get(name)).is_none()
    })
}

/// Where a frame is.
pub(super) fn place_of(symbols: &SymbolTables, id: LocationId) -> Place {
    let location = symbols.location(id);
    let mapping = symbols.mapping(location.mapping);
    let file = symbols.strings.get(mapping.file);
    let path = file.strip_suffix(" (deleted)").unwrap_or(file);
    let build_id = symbols.strings.get(mapping.build_id);
    let of = |path: &str, cause| Place {
        path: path.to_owned(),
        build_id: String::new(),
        cause,
    };
    if location.kind == FrameKind::Kernel || is_kernel(path) {
        return of(KERNEL, StoredCause::Kernel);
    }
    if matches!(path, "[vdso]" | "[vsyscall]" | "linux-vdso.so.1") {
        return of(path, StoredCause::Vdso);
    }
    let is_compiled = NO_FILES.iter().any(|start| path.starts_with(start)) || is_jit_dump(path);
    if is_compiled || (path.is_empty() && build_id.is_empty() && location.address != 0) {
        return of(COMPILED, StoredCause::Compiled);
    }
    if location.address == 0 {
        let written = symbols.lines(id).first().map(|line| {
            let name = symbols.function(line.function).name;
            unnamed_file(symbols.strings.get(name)).unwrap_or_default()
        });
        let path = written.filter(|file| !file.is_empty()).unwrap_or(path);
        let path = if path.is_empty() { NO_ADDRESS } else { path };
        return of(path, StoredCause::NoAddress);
    }
    let cause = match build_id {
        "" => StoredCause::NoBuildId,
        _ => StoredCause::NotSymbolized,
    };
    let build_id = build_id.to_owned();
    Place {
        build_id,
        ..of(path, cause)
    }
}

/// The file in a text that stands where a name should; `None` for a name.
///
/// Texts are what profilers write: `[unknown]`, an address, `file+0xaddress`, `[file.so]`.
fn unnamed_file(text: &str) -> Option<&str> {
    if NO_NAMES.contains(&text) || is_address(text) {
        return Some("");
    }
    if let Some((file, address)) = text.rsplit_once('+')
        && is_address(address)
        && !file.contains([' ', '('])
    {
        return Some(file);
    }
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    (inner.contains(".so") && !inner.contains(' ')).then_some(inner)
}

fn is_address(text: &str) -> bool {
    let digits = text.strip_prefix("0x").unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_kernel(path: &str) -> bool {
    path.starts_with("[kernel") || path.starts_with("[guest.kernel") || path.ends_with("vmlinux")
}

/// What `perf inject --jit` makes of compiled code: `jitted-PID-NUMBER.so`.
fn is_jit_dump(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with("jitted-") && name.ends_with(".so")
}

#[cfg(test)]
mod tests {
    use candela_model::Location;
    use candela_model::Mapping;

    use super::*;

    #[test]
    fn what_stands_for_a_name_is_none() {
        for (text, file) in [
            ("[unknown]", Some("")),
            ("0x7f12ab", Some("")),
            ("libc.so.6+0x2a1f0", Some("libc.so.6")),
            ("[libc-2.31.so]", Some("libc-2.31.so")),
            ("operator+", None),
            ("std::operator+(a, b)+0x1f", None),
            ("[GC active]", None),
            ("0xg", None),
            ("main", None),
        ] {
            assert_eq!(unnamed_file(text), file, "{text}");
        }
    }

    #[test]
    fn frames_are_where_their_mapping_says() {
        let place = |file: &str, build_id: &str, address: u64, kind: FrameKind| {
            let mut symbols = SymbolTables::default();
            let mapping = Mapping {
                file: symbols.strings.intern(file),
                build_id: symbols.strings.intern(build_id),
                ..Mapping::default()
            };
            let mapping = symbols.intern_mapping(mapping);
            let location = Location::new(kind, address).in_mapping(mapping);
            let id = symbols.intern_location(&location, &[]);
            assert!(!is_named(&symbols, id));
            place_of(&symbols, id)
        };
        let native = FrameKind::Native;
        for (file, build_id, address, kind, path, cause) in [
            (
                "/bin/app",
                "abcd",
                1,
                native,
                "/bin/app",
                StoredCause::NotSymbolized,
            ),
            (
                "/bin/app (deleted)",
                "abcd",
                1,
                native,
                "/bin/app",
                StoredCause::NotSymbolized,
            ),
            (
                "/bin/app",
                "",
                1,
                native,
                "/bin/app",
                StoredCause::NoBuildId,
            ),
            ("", "abcd", 1, native, "", StoredCause::NotSymbolized),
            ("", "", 1, native, COMPILED, StoredCause::Compiled),
            (
                "/tmp/perf-7.map",
                "",
                1,
                native,
                COMPILED,
                StoredCause::Compiled,
            ),
            (
                "/x/jitted-7-1.so",
                "ab",
                1,
                native,
                COMPILED,
                StoredCause::Compiled,
            ),
            ("[vdso]", "ab", 1, native, "[vdso]", StoredCause::Vdso),
            (
                "[kernel.kallsyms]",
                "",
                1,
                native,
                KERNEL,
                StoredCause::Kernel,
            ),
            ("", "", 1, FrameKind::Kernel, KERNEL, StoredCause::Kernel),
            ("", "", 0, native, NO_ADDRESS, StoredCause::NoAddress),
            (
                "/bin/app",
                "",
                0,
                native,
                "/bin/app",
                StoredCause::NoAddress,
            ),
        ] {
            let found = place(file, build_id, address, kind);
            assert_eq!((found.path.as_str(), found.cause), (path, cause), "{file}");
        }
    }
}
