//! C, C++ and Rust programs, compared with binutils' `addr2line` and `nm`.

use crate::workshop::{C_PROGRAM, Workshop, addr2line, functions, has_tool};
use candela_symbols::{
    FrameLanguage, ObjectFile, Resolution, SymbolSource, Symbolizer, SymbolizerOptions,
};
use std::path::Path;
use std::sync::Arc;

const CPP_PROGRAM: &str = r#"
#include <cstdio>
#include <vector>
#include <string>

namespace shop {
template <typename Item> struct Basket {
    std::vector<Item> items;
    __attribute__((noinline)) Item total(const std::string &what) const {
        Item sum{};
        for (const Item &item : items)
            sum += item;
        return sum + static_cast<Item>(what.size());
    }
};
namespace {
__attribute__((noinline)) int hidden(int n) {
    volatile int kept = n;
    return kept * 2;
}
}
}

int main(int argc, char **) {
    shop::Basket<long> basket{{1, 2, argc}};
    return static_cast<int>(basket.total("abc")) + shop::hidden(argc);
}
"#;

const RUST_PROGRAM: &str = r#"
mod work {
    pub trait Weigh { fn weigh(&self) -> u64; }
    pub struct Stone(pub Vec<u64>);
    impl Weigh for Stone {
        #[inline(never)]
        fn weigh(&self) -> u64 { self.0.iter().map(|part| squared(*part)).sum() }
    }
    #[inline(always)]
    fn squared(value: u64) -> u64 { std::hint::black_box(value) * std::hint::black_box(value) }
    #[inline(never)]
    pub fn generic<T: Weigh>(thing: &T) -> u64 { thing.weigh() + 1 }
}
fn main() {
    let parts = std::env::args().map(|argument| argument.len() as u64).collect();
    println!("{}", work::generic(&work::Stone(parts)));
}
"#;

fn symbolizer(path: &Path) -> Symbolizer {
    let object = ObjectFile::open(path).expect("the compiler wrote an ELF file");
    Symbolizer::new(Arc::new(object), SymbolizerOptions::default())
}

fn names(resolution: &Resolution) -> Vec<&str> {
    resolution
        .frames
        .iter()
        .map(|frame| &*frame.function)
        .collect()
}

/// Compares functions, files and lines at every fourth address of `wanted` functions; returns how
/// many were compared.
fn compare_with_addr2line(
    program: &Path,
    reference: &Path,
    wanted: impl Fn(&str) -> bool,
) -> usize {
    let symbolizer = symbolizer(program);
    let mut compared = 0;
    for (start, size, name) in functions(reference) {
        if !wanted(&name) {
            continue;
        }
        for address in (start..start + size).step_by(4) {
            let expected = addr2line(reference, address);
            let found = symbolizer.resolve(address);
            assert_eq!(found.source, SymbolSource::Dwarf, "{name} at {address:#x}");
            let found: Vec<_> = found
                .frames
                .iter()
                .map(|frame| {
                    (
                        &*frame.function,
                        frame.file.as_deref().unwrap_or("??"),
                        frame.line,
                    )
                })
                .collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|frame| (&*frame.function, &*frame.file, frame.line))
                .collect();
            let expected: Vec<_> = expected
                .iter()
                .zip(&found)
                .map(|((function, file, line), (ours, ..))| {
                    let same = is_constructor_template(function)
                        && without_arguments(function) == without_arguments(ours);
                    (if same { *ours } else { *function }, *file, *line)
                })
                .collect();
            assert_eq!(found, expected, "{name} at {address:#x}");
            compared += 1;
        }
    }
    compared
}

/// cpp_demangle 0.5 takes the first argument of a constructor template for a return type and drops
/// it.
fn is_constructor_template(name: &str) -> bool {
    let path = without_arguments(name);
    path.ends_with('>')
        && path.contains("::basic_string<")
        && path.matches("basic_string<").count() > 1
}

fn without_arguments(name: &str) -> &str {
    let mut depth = 0;
    for (at, character) in name.char_indices().rev() {
        match character {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &name[..at];
        }
    }
    name
}

#[test]
fn inlined_c_functions_equal_addr2line() {
    if !has_tool("gcc", "--version") || !has_tool("addr2line", "--version") {
        return;
    }
    let shop = Workshop::new();
    shop.write("program.c", C_PROGRAM);
    for (name, flags) in [
        ("v5", "-gdwarf-5"),
        ("v4", "-gdwarf-4"),
        ("compressed", "-gz=zlib"),
    ] {
        shop.run("gcc", &["-O2", "-g", flags, "program.c", "-o", name]);
        let program = shop.path(name);
        let ours = ["main", "outer", "local"];
        let compared = compare_with_addr2line(&program, &program, |name| ours.contains(&name));
        assert!(compared > 10, "{name}: {compared} addresses");
    }
}

#[test]
fn inlined_frames_know_where_they_start() {
    if !has_tool("gcc", "--version") {
        return;
    }
    let shop = Workshop::new();
    shop.write("program.c", C_PROGRAM);
    shop.run("gcc", &["-O2", "-g", "program.c", "-o", "program"]);
    let program = shop.path("program");
    let symbolizer = symbolizer(&program);
    let (start, size, _) = functions(&program)
        .into_iter()
        .find(|(_, _, name)| name == "outer")
        .expect("it is not inlined");
    let inlined = (start..start + size)
        .map(|address| symbolizer.resolve(address))
        .find(|resolution| resolution.frames.len() == 3)
        .expect("two calls are inlined into outer");
    let frames: Vec<_> = inlined
        .frames
        .iter()
        .map(|frame| (&*frame.function, frame.start_line, frame.inlined))
        .collect();
    assert_eq!(
        frames,
        [
            ("innermost", 5, true),
            ("between", 12, true),
            ("outer", 16, false)
        ]
    );
    assert_eq!(
        inlined.frames[1].line, 13,
        "the line of the call to innermost"
    );
    assert_eq!(
        inlined.frames[2].line, 17,
        "the line of the call to between"
    );
    assert!(inlined.frames[2].column > 0);
}

#[test]
fn cpp_names_equal_addr2line() {
    if !has_tool("g++", "--version") || !has_tool("addr2line", "--version") {
        return;
    }
    let shop = Workshop::new();
    shop.write("program.cc", CPP_PROGRAM);
    shop.run("g++", &["-O2", "-g", "program.cc", "-o", "program"]);
    let program = shop.path("program");
    let compared = compare_with_addr2line(&program, &program, |name| {
        name == "main" || name.contains("4shop")
    });
    assert!(compared > 20, "{compared} addresses");
}

#[test]
fn stripped_programs_are_named_from_their_debug_file() {
    if !has_tool("gcc", "--version") || !has_tool("objcopy", "--version") {
        return;
    }
    for (name, build_id) in [
        ("with-id", "-Wl,--build-id"),
        ("without-id", "-Wl,--build-id=none"),
    ] {
        let shop = Workshop::new();
        shop.write("program.c", C_PROGRAM);
        shop.run("gcc", &["-O2", "-g", build_id, "program.c", "-o", "full"]);
        shop.run("objcopy", &["--only-keep-debug", "full", "stripped.debug"]);
        shop.run("strip", &["-o", "stripped", "full"]);
        shop.run(
            "objcopy",
            &["--add-gnu-debuglink=stripped.debug", "stripped"],
        );
        let stripped = shop.path("stripped");
        let (outer, ..) = functions(&shop.path("full"))
            .into_iter()
            .find(|(_, _, name)| name == "outer")
            .expect("it is not inlined");

        let found = symbolizer(&stripped).resolve(outer);
        assert_eq!(found.source, SymbolSource::Dwarf, "{name}");
        assert_eq!(names(&found).last(), Some(&"outer"), "{name}");
        let full = shop.path("full");
        let compared =
            compare_with_addr2line(&stripped, &full, |name| name == "outer" || name == "main");
        assert!(compared > 5, "{name}: {compared} addresses");

        // A debug file of another build must not be believed.
        std::fs::create_dir(shop.path(".debug")).expect("a directory beside the program");
        shop.write(
            "other.c",
            "int outer(int n) { return n; } int main(void) { return outer(1); }",
        );
        shop.run("gcc", &["-O0", "-g", build_id, "other.c", "-o", "other"]);
        shop.run("objcopy", &["--only-keep-debug", "other", "stripped.debug"]);
        let refused = symbolizer(&stripped).resolve(outer);
        assert_eq!(refused.source, SymbolSource::None, "{name}: {refused:?}");

        shop.run(
            "objcopy",
            &["--only-keep-debug", "full", ".debug/stripped.debug"],
        );
        assert_eq!(
            symbolizer(&stripped).resolve(outer).source,
            SymbolSource::Dwarf,
            "{name}"
        );
    }
}

#[test]
fn build_id_directories_are_searched_in_the_target_and_on_the_host() {
    if !has_tool("gcc", "--version") || !has_tool("objcopy", "--version") {
        return;
    }
    let shop = Workshop::new();
    shop.write("program.c", C_PROGRAM);
    shop.run(
        "gcc",
        &["-O2", "-g", "-Wl,--build-id", "program.c", "-o", "full"],
    );
    shop.run("strip", &["-o", "stripped", "full"]);
    let (outer, ..) = functions(&shop.path("full"))
        .into_iter()
        .find(|(_, _, name)| name == "outer")
        .expect("it is not inlined");
    let object = ObjectFile::open(&shop.path("stripped")).expect("an ELF file");
    let id = object
        .build_id()
        .gnu_hex()
        .expect("the linker was told to write one");
    let in_container = format!(
        "container/usr/lib/debug/.build-id/{}/{}.debug",
        &id[..2],
        &id[2..]
    );
    shop.write(&in_container, "");
    shop.run("objcopy", &["--only-keep-debug", "full", &in_container]);

    let outside = Symbolizer::new(Arc::new(object), SymbolizerOptions::default()).resolve(outer);
    assert_eq!(outside.source, SymbolSource::None);
    let object = ObjectFile::open(&shop.path("stripped")).expect("an ELF file");
    let object = object.with_root(shop.path("container"));
    let inside = Symbolizer::new(Arc::new(object), SymbolizerOptions::default()).resolve(outer);
    assert_eq!(inside.source, SymbolSource::Dwarf);
    assert_eq!(names(&inside).last(), Some(&"outer"));
}

#[test]
fn symbol_tables_equal_nm() {
    if !has_tool("gcc", "--version") || !has_tool("nm", "--version") {
        return;
    }
    let shop = Workshop::new();
    shop.write("program.c", C_PROGRAM);
    shop.run("gcc", &["-O2", "-rdynamic", "program.c", "-o", "program"]);
    let program = shop.path("program");
    let symbolizer = symbolizer(&program);
    let symbols = functions(&program);
    assert!(symbols.len() >= 4, "{symbols:?}");
    for (start, size, name) in &symbols {
        for address in [*start, start + size - 1] {
            let found = symbolizer.resolve(address);
            assert_eq!(
                (found.source, names(&found)),
                (SymbolSource::Symtab, vec![&**name]),
                "{address:#x}"
            );
        }
    }
    shop.run("strip", &["program"]);
    let symbolizer = self::symbolizer(&program);
    let (outer, ..) = symbols
        .iter()
        .find(|(_, _, name)| name == "outer")
        .expect("it is exported");
    let found = symbolizer.resolve(*outer);
    assert_eq!(
        (found.source, names(&found)),
        (SymbolSource::Dynsym, vec!["outer"])
    );
    let (local, ..) = symbols
        .iter()
        .find(|(_, _, name)| name == "local")
        .expect("it is not inlined");
    assert_eq!(
        symbolizer.resolve(*local).source,
        SymbolSource::None,
        "dynsym has no local names"
    );
}

#[test]
fn symbols_without_size_stay_in_their_section() {
    if !has_tool("gcc", "--version") {
        return;
    }
    let shop = Workshop::new();
    let assembly = r#"
.section first_code,"ax"
.globl sizeless_one
sizeless_one: nop
  nop
.globl sizeless_two
sizeless_two: nop
  nop
.section second_code,"ax"
  .skip 8, 0x90
.globl in_second
in_second: ret
"#;
    shop.write("code.s", assembly);
    shop.write("main.c", "int main(void) { return 0; }");
    shop.run("gcc", &["main.c", "code.s", "-o", "program"]);
    let program = shop.path("program");
    let listing = shop.run("nm", &["program"]);
    let address = |name: &str| {
        let line = listing
            .lines()
            .find(|line| line.ends_with(name))
            .expect("it is a global symbol");
        u64::from_str_radix(&line[..16], 16).expect("nm prints hexadecimal")
    };
    let symbolizer = symbolizer(&program);
    let name = |address| {
        symbolizer
            .resolve(address)
            .frames
            .first()
            .map(|frame| frame.function.to_string())
    };
    let (one, two, other) = (
        address("sizeless_one"),
        address("sizeless_two"),
        address("in_second"),
    );
    assert_eq!(
        [one + 1, two, two + 1].map(name),
        ["sizeless_one", "sizeless_two", "sizeless_two"].map(|name| Some(name.into()))
    );
    assert_eq!(
        [two + 2, other - 1, other].map(name),
        [None, None, Some("in_second".into())]
    );
}

#[test]
fn parts_that_dwz_moved_away_are_found() {
    if !has_tool("gcc", "--version")
        || !has_tool("dwz", "--version")
        || !has_tool("addr2line", "--version")
    {
        return;
    }
    let shop = Workshop::new();
    shop.write("program.cc", CPP_PROGRAM);
    for name in ["one", "two"] {
        shop.run(
            "g++",
            &[
                "-O2",
                "-g",
                "-gdwarf-4",
                "-Wl,--build-id",
                "program.cc",
                "-o",
                name,
            ],
        );
    }
    shop.run(
        "dwz",
        &["-m", "shared.debug", "-M", "shared.debug", "one", "two"],
    );
    let program = shop.path("one");
    let compared = compare_with_addr2line(&program, &program, |name| {
        name == "main" || name.contains("4shop")
    });
    assert!(compared > 20, "{compared} addresses");
    std::fs::remove_file(shop.path("shared.debug")).expect("dwz wrote it");
    let (main, ..) = functions(&program)
        .into_iter()
        .find(|(_, _, name)| name == "main")
        .expect("every program has it");
    assert_eq!(
        names(&symbolizer(&program).resolve(main)).last(),
        Some(&"main"),
        "the symbol table remains"
    );
}

#[test]
fn mini_debug_info_names_local_functions() {
    if !has_tool("gcc", "--version")
        || !has_tool("objcopy", "--version")
        || !has_tool("xz", "--version")
    {
        return;
    }
    let shop = Workshop::new();
    shop.write("program.c", C_PROGRAM);
    shop.run("gcc", &["-O2", "-g", "program.c", "-o", "full"]);
    shop.run("objcopy", &["--only-keep-debug", "full", "symbols"]);
    shop.run("strip", &["--strip-debug", "symbols"]);
    shop.run("xz", &["--keep", "symbols"]);
    shop.run("strip", &["-o", "stripped", "full"]);
    shop.run(
        "objcopy",
        &["--add-section", ".gnu_debugdata=symbols.xz", "stripped"],
    );
    let (local, ..) = functions(&shop.path("full"))
        .into_iter()
        .find(|(_, _, name)| name == "local")
        .expect("it is not inlined");
    let found = symbolizer(&shop.path("stripped")).resolve(local);
    assert_eq!(
        (found.source, names(&found)),
        (SymbolSource::MiniDebugInfo, vec!["local"])
    );
}

#[test]
fn line_tables_alone_take_the_name_from_the_symbol_table() {
    if !has_tool("gcc", "--version") {
        return;
    }
    let shop = Workshop::new();
    let assembly =
        ".globl spin\n.type spin,@function\nspin:\n  nop\n  nop\n  ret\n.size spin,.-spin\n";
    shop.write("spin.s", assembly);
    shop.write(
        "main.c",
        "void spin(void); int main(void) { spin(); return 0; }",
    );
    shop.run(
        "gcc",
        &["-g", "-Wa,--gdwarf-5", "main.c", "spin.s", "-o", "program"],
    );
    let program = shop.path("program");
    let (start, ..) = functions(&program)
        .into_iter()
        .find(|(_, _, name)| name == "spin")
        .expect("it is a global symbol");
    let found = symbolizer(&program).resolve(start + 1);
    assert_eq!(
        (found.source, names(&found)),
        (SymbolSource::Dwarf, vec!["spin"])
    );
    let frame = &found.frames[0];
    assert_eq!(frame.line, 5);
    assert!(
        frame
            .file
            .as_deref()
            .is_some_and(|file| file.ends_with("spin.s")),
        "{frame:?}"
    );
}

#[test]
fn rust_with_line_tables_shows_inlined_frames() {
    if !has_tool("rustc", "--version") {
        return;
    }
    for mangling in ["legacy", "v0"] {
        let shop = Workshop::new();
        shop.write("program.rs", RUST_PROGRAM);
        let mangling = format!("symbol-mangling-version={mangling}");
        // Choosing the legacy mangling counts as unstable since v0 became the default.
        let arguments = [
            "-O",
            "-C",
            "debuginfo=line-tables-only",
            "-Z",
            "unstable-options",
            "-C",
        ];
        let output = std::process::Command::new("rustc")
            .args(arguments)
            .args([&mangling, "program.rs", "-o", "program"])
            .current_dir(shop.root())
            .env("RUSTC_BOOTSTRAP", "1")
            .output()
            .expect("rustc starts");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let program = shop.path("program");
        let symbolizer = symbolizer(&program);
        let (start, size, _) = functions(&program)
            .into_iter()
            .find(|(_, _, name)| name.contains("weigh") && name.contains("Stone"))
            .expect("it is not inlined");
        let mut seen = Vec::new();
        for address in start..start + size {
            let found = symbolizer.resolve(address);
            assert_eq!(found.source, SymbolSource::Dwarf);
            let outermost = found.frames.last().expect("DWARF covers the function");
            assert_eq!(
                &*outermost.function,
                "<program::work::Stone as program::work::Weigh>::weigh"
            );
            assert_eq!(outermost.language, FrameLanguage::Rust);
            seen.extend(names(&found).into_iter().map(str::to_owned));
        }
        // Line tables have short names of inlined functions; the outermost got its full one from
        // the symbol table.
        assert!(seen.iter().any(|name| name == "squared"), "{mangling}");
    }
}

#[test]
fn hostile_bytes_are_no_panic() {
    if !has_tool("gcc", "--version") {
        return;
    }
    let shop = Workshop::new();
    shop.write("program.c", C_PROGRAM);
    shop.run("gcc", &["-O2", "-g", "program.c", "-o", "program"]);
    let program = shop.path("program");
    let bytes = std::fs::read(&program).expect("the compiler wrote it");
    let addresses: Vec<_> = functions(&program)
        .into_iter()
        .map(|(start, ..)| start)
        .collect();
    // A fixed multiplicative generator: the same damage on every run.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |bound: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    for round in 0..1500 {
        let mut damaged = bytes.clone();
        for _ in 0..=next(24) {
            let at = next(damaged.len());
            damaged[at] = next(256) as u8;
        }
        // Headers decide most, so half of the rounds damage them too.
        if round % 2 == 0 {
            damaged[next(64)] = next(256) as u8;
            let section_headers = damaged.len() - 64 * 30;
            damaged[section_headers + next(64 * 30)] = next(256) as u8;
        }
        if round % 5 == 0 {
            damaged.truncate(next(bytes.len()));
        }
        let Ok(object) = ObjectFile::from_bytes(damaged, Path::new("damaged")) else {
            continue;
        };
        let symbolizer = Symbolizer::new(Arc::new(object), SymbolizerOptions::default());
        for address in addresses
            .iter()
            .copied()
            .chain([0, 1, u64::MAX, u64::MAX - 1])
        {
            symbolizer.resolve(address);
        }
    }
}
