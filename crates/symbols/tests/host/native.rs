//! C, C++ and Rust programs, compared with binutils' `addr2line` and `nm`.

use super::compare::{compare_with_addr2line, names, symbolizer};
use super::workshop::{C_PROGRAM, CPP_PROGRAM, Workshop, functions, has_tool};
use candela_symbols::{FrameLanguage, ObjectFile, SymbolSource, Symbolizer, SymbolizerOptions};
use std::path::Path;
use std::sync::Arc;

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
