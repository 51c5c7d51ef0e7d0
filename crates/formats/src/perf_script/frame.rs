//! The lines below a header: `address symbol+offset (file)`, and with `-F +srcline` the source line
//! of the frame before.

use candela_model::FrameKind;

/// A frame as it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrameLine<'t> {
    /// 0 where none is given.
    pub(crate) address: u64,
    /// Without its offset; empty when unknown.
    pub(crate) symbol: &'t str,
    /// Empty when unknown.
    pub(crate) file: &'t str,
    /// Whether it is inlined into the next frame that is not.
    pub(crate) is_inlined: bool,
}

/// Where a frame is in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceLine<'t> {
    /// Empty when unknown.
    pub(crate) file: &'t str,
    /// 0 when unknown.
    pub(crate) line: u32,
    pub(crate) is_inlined: bool,
}

const UNKNOWN: &str = "[unknown]";
const INLINED: &str = "inlined";

/// Takes a frame apart. A line without an address is one only if it names a file.
pub(crate) fn parse_frame(line: &str) -> Option<FrameLine<'_>> {
    let line = line.trim();
    let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let address = address_of(first);
    let (symbol, file) = split_file(rest.trim_start());
    if address.is_none() && file.is_none() {
        return None;
    }
    let file = file.unwrap_or("");
    let is_inlined = file == INLINED;
    Some(FrameLine {
        address: address.unwrap_or(0),
        symbol: known(without_offset(symbol)),
        file: match is_inlined {
            true => "",
            false => known(without_offset(file)),
        },
        is_inlined,
    })
}

/// A frame behind the event of a header, or without indentation. There fields of tracepoints or any
/// text may stand as well, so that all parts are needed.
pub(crate) fn parse_inline_frame(payload: &str) -> Option<FrameLine<'_>> {
    let (first, rest) = payload.split_once(char::is_whitespace)?;
    address_of(first)?;
    split_file(rest.trim()).1?;
    parse_frame(payload)
}

/// A frame behind the event of a header with branches behind it (`-F +brstack`):
/// `address symbol (file) from/to/P/-/-/0 …`. With symbols there is no space in front of them.
pub(crate) fn parse_frame_before_branches(payload: &str) -> Option<FrameLine<'_>> {
    address_of(payload.split_whitespace().next()?)?;
    let (frame, branches) = payload.split_at(file_end(payload)?);
    match has_branch(branches) {
        true => parse_inline_frame(frame),
        false => None,
    }
}

/// `file:line`, behind two spaces. Unknown ones are `??:0` or `file[address]`.
pub(crate) fn parse_source_line(line: &str) -> Option<SourceLine<'_>> {
    let text = line.strip_prefix("  ")?.trim_end();
    if text.starts_with(char::is_whitespace) {
        return None;
    }
    let (text, is_inlined) = match text.strip_suffix(" (inlined)") {
        Some(text) => (text, true),
        None => (text, false),
    };
    let text = match text.split_once(" (discriminator ") {
        Some((text, _)) => text,
        None => text,
    };
    let unknown = SourceLine {
        file: "",
        line: 0,
        is_inlined,
    };
    let is_address_in_file = || {
        let address = text.strip_suffix(']')?.rsplit_once('[')?.1;
        address_of(address)
    };
    let Some((file, number)) = text.rsplit_once(':') else {
        return is_address_in_file().map(|_| unknown);
    };
    let line = number.parse().ok()?;
    if file == "??" || line == 0 {
        return Some(unknown);
    }
    Some(SourceLine {
        file,
        line,
        is_inlined,
    })
}

/// The kind of code of a file. Machine code of programs is native whatever it was written in; what a
/// virtual machine made is known by how it names functions.
pub(crate) fn kind_of(file: &str, symbol: &str) -> FrameKind {
    if is_kernel(file) {
        return FrameKind::Kernel;
    }
    if is_jit(file) {
        return kind_of_jit(symbol);
    }
    match file.is_empty() || file.starts_with("//") || file.starts_with("[heap]") {
        true => FrameKind::Unknown,
        false => FrameKind::Native,
    }
}

/// The kernel, its modules (by file, or by name in brackets) and its BPF programs.
pub(crate) fn is_kernel(file: &str) -> bool {
    /// Memory of processes that perf puts into brackets, too.
    const OF_PROCESSES: [&str; 6] = [
        "[unknown]",
        "[vdso",
        "[vsyscall]",
        "[heap]",
        "[stack",
        "[anon",
    ];
    const MODULES: [&str; 5] = [".ko", ".ko.gz", ".ko.xz", ".ko.zst", ".ko.bz2"];
    if file.starts_with('[') {
        return !OF_PROCESSES.iter().any(|start| file.starts_with(start));
    }
    let name = file.rsplit('/').next().unwrap_or(file);
    name == "vmlinux"
        || name.starts_with("vmlinux-")
        || file.starts_with("bpf_prog_")
        || MODULES.iter().any(|suffix| name.ends_with(suffix))
}

/// Whether a file is the list of functions that a virtual machine made: `/tmp/perf-PID.map`.
pub(crate) fn is_jit(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    let digits = name
        .strip_prefix("perf-")
        .and_then(|rest| rest.strip_suffix(".map"));
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

fn kind_of_jit(symbol: &str) -> FrameKind {
    /// The tags that V8 puts before what it compiled.
    const V8: [&str; 9] = [
        "LazyCompile:",
        "Function:",
        "Builtin:",
        "Stub:",
        "RegExp:",
        "Script:",
        "Eval:",
        "JS:",
        "BytecodeHandler:",
    ];
    if V8.iter().any(|tag| symbol.starts_with(tag)) {
        return FrameKind::V8js;
    }
    // A class as the virtual machine writes it: `Ljava/io/PrintStream;::println`.
    let is_java_method = symbol.starts_with('L') && symbol.contains(";::");
    match is_java_method || symbol == "Interpreter" {
        true => FrameKind::Jvm,
        false => FrameKind::Unknown,
    }
}

fn address_of(word: &str) -> Option<u64> {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

/// The symbol and what stands in the parentheses at the end. Both may hold parentheses.
fn split_file(rest: &str) -> (&str, Option<&str>) {
    let Some(body) = rest.strip_suffix(')') else {
        return (rest, None);
    };
    let mut depth = 1;
    let opening = body.bytes().enumerate().rev().find(|(_, byte)| {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    let is_field =
        |position: &usize| *position == 0 || body[..*position].ends_with(char::is_whitespace);
    let balanced = opening.map(|(position, _)| position).filter(is_field);
    let position = balanced.or_else(|| body.rfind(" (").map(|space| space + 1));
    match position {
        Some(position) => (body[..position].trim_end(), Some(&body[position + 1..])),
        None => (rest, None),
    }
}

/// Where the first parentheses end that stand alone as those of a file do. Symbols may have such, too:
/// `(anonymous namespace)::f`, `f(int) (.part.0)`.
fn file_end(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut is_field = false;
    let mut before = b' ';
    for (position, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => {
                is_field = if depth == 0 { before == b' ' } else { is_field };
                depth += 1;
            }
            b')' => {
                depth = depth.saturating_sub(1);
                let rest = &text[position + 1..];
                let goes_on = rest.starts_with("::") || rest.trim_start().starts_with('(');
                if depth == 0 && is_field && !goes_on {
                    return Some(position + 1);
                }
            }
            _ => {}
        }
        before = byte;
    }
    None
}

/// Whether there is `/P/-/-/0`: predicted or not, in a transaction, aborted, cycles.
fn has_branch(text: &str) -> bool {
    text.as_bytes().windows(8).any(|window| {
        matches!(
            window,
            [
                b'/',
                b'P' | b'M' | b'N' | b'-',
                b'/',
                b'X' | b'-',
                b'/',
                b'A' | b'-',
                b'/',
                b'0'..=b'9'
            ]
        )
    })
}

fn without_offset(text: &str) -> &str {
    match text.rsplit_once("+0x") {
        Some((name, digits)) if address_of(digits).is_some() && !name.is_empty() => name,
        _ => text,
    }
}

fn known(text: &str) -> &str {
    match text {
        UNKNOWN => "",
        text => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(line: &str) -> Option<(u64, &str, &str, bool)> {
        let frame = parse_frame(line)?;
        Some((frame.address, frame.symbol, frame.file, frame.is_inlined))
    }

    #[test]
    fn frames_are_taken_apart() {
        let cases = [
            (
                "\t     11aa work+0x11 (/tmp/t prog)",
                (0x11aa, "work", "/tmp/t prog", false),
            ),
            ("\t     11aa inl+0x11 (inlined)", (0x11aa, "inl", "", true)),
            ("\t     11aa inl+0x11", (0x11aa, "inl", "", false)),
            ("\tffff [unknown] ([unknown])", (0xffff, "", "", false)),
            (
                "\t7f f(int (*)(), A) (/memfd:x (deleted))",
                (0x7f, "f(int (*)(), A)", "/memfd:x (deleted)", false),
            ),
            ("\t7f f (/a)b)", (0x7f, "f", "/a)b", false)),
            ("\t7f f", (0x7f, "f", "", false)),
            ("\t7f", (0x7f, "", "", false)),
            ("\t7f (/bin/x)", (0x7f, "", "/bin/x", false)),
            (
                "\taddress type [module] f(param[]) (some.map)",
                (0, "type [module] f(param[])", "some.map", false),
            ),
            (
                " 7f _start+0xffff018fd5dce000 (/usr/lib/ld.so+0x1000)",
                (0x7f, "_start", "/usr/lib/ld.so", false),
            ),
            (" 7f operator+ (/x)", (0x7f, "operator+", "/x", false)),
        ];
        for (line, expected) in cases {
            assert_eq!(parts(line), Some(expected), "{line}");
        }
        for line in [
            "",
            "\tTHIS_IS_A_WEIRD_LINE",
            "  t.c:4",
            "\t12345678901234567890 x",
        ] {
            assert_eq!(parts(line), None, "{line:?}");
        }
    }

    #[test]
    fn fields_of_tracepoints_are_no_frames() {
        assert!(parse_inline_frame("ffffffff9b201293 [unknown] ([unknown])").is_some());
        assert!(parse_inline_frame("fd: 0x00000003 (x)").is_none());
        assert!(parse_inline_frame("3 bytes").is_none());
    }

    #[test]
    fn frames_before_branches_are_found() {
        let found = |payload| {
            let frame = parse_frame_before_branches(payload)?;
            Some((frame.address, frame.symbol, frame.file))
        };
        let cases = [
            (
                "7f [unknown] ([k]) 0x8e([k])/0x71([k])/P/-/-/4/  0x0([u])/0x0([u])/M/X/A/0/ ",
                (0x7f, "", "[k]"),
            ),
            ("7f f+0x1 (/x) 0x8e/0x71/-/-/-/12", (0x7f, "f", "/x")),
            (
                "7f [unknown] ([k])[unknown]([k])/[unknown]([k])/P/-/-/4/ ",
                (0x7f, "", "[k]"),
            ),
            (
                "7f (anonymous namespace)::f(int (*)()) const (/x y)g(int)(/x)/h(/x)/P/-/-/4/",
                (0x7f, "(anonymous namespace)::f(int (*)()) const", "/x y"),
            ),
        ];
        for (payload, expected) in cases {
            assert_eq!(found(payload), Some(expected), "{payload}");
        }
        for payload in [
            "",
            "fd: 3 (x) 0x1/0x2/P/-/-/0",
            "7f f (/x) more",
            "7f f 0x1/0x2/P/-/-/0",
        ] {
            assert_eq!(found(payload), None, "{payload}");
        }
    }

    #[test]
    fn source_lines_are_told_from_frames() {
        let found = |line| parse_source_line(line).map(|at| (at.file, at.line, at.is_inlined));
        assert_eq!(found("  t.c:4 (inlined)"), Some(("t.c", 4, true)));
        assert_eq!(found("  a b.c:12"), Some(("a b.c", 12, false)));
        assert_eq!(
            found("  a.c:12 (discriminator 3)"),
            Some(("a.c", 12, false))
        );
        assert_eq!(found("  ??:0"), Some(("", 0, false)));
        assert_eq!(found("  libc.so.6[1098eb]"), Some(("", 0, false)));
        assert_eq!(found("\t  401b97 main (x)"), None);
        assert_eq!(found("   401b97 main (x)"), None);
        assert_eq!(found("  401b97 main (x)"), None);
    }

    #[test]
    fn kinds_are_told_by_the_file() {
        let cases = [
            ("[kernel.kallsyms]", FrameKind::Kernel),
            ("[guest.kernel.kallsyms]", FrameKind::Kernel),
            ("[nf_conntrack]", FrameKind::Kernel),
            ("/lib/modules/5.4/mlx5_core.ko.zst", FrameKind::Kernel),
            ("/usr/lib/debug/boot/vmlinux-5.4.14", FrameKind::Kernel),
            ("bpf_prog_2b956549c660136a_uni_l4lb", FrameKind::Kernel),
            ("[vdso]", FrameKind::Native),
            ("/usr/lib/libc.so.6", FrameKind::Native),
            ("//anon", FrameKind::Unknown),
            ("", FrameKind::Unknown),
            ("/tmp/perf-12.map", FrameKind::Unknown),
        ];
        for (file, kind) in cases {
            assert_eq!(kind_of(file, "work"), kind, "{file}");
        }
        let map = "/tmp/perf-12.map";
        assert_eq!(kind_of(map, "LazyCompile:*f x.js:1"), FrameKind::V8js);
        assert_eq!(kind_of(map, "LCounter;::countTo"), FrameKind::Jvm);
    }
}
