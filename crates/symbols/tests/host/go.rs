//! Go programs without DWARF and without symbols, compared with what DWARF and `go tool addr2line`
//! say of the full ones.

use super::workshop::{Workshop, addr2line, has_tool};
use candela_symbols::{
    FrameLanguage, GoMemoryProfile, ObjectFile, SymbolSource, Symbolizer, SymbolizerOptions,
};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const PROGRAM: &str = r#"
package main

import "os"

type pile struct{ stones []int }

//go:noinline
func (p *pile) weigh(n int) int { return middle(n) + len(p.stones) }

func middle(n int) int {
	return inner(n) * 3
}

func inner(n int) int {
	sum := 0
	for i := 0; i < n; i++ {
		sum += i * i
	}
	return sum
}

func main() {
	p := &pile{stones: make([]int, len(os.Args))}
	func() {
		os.Exit(p.weigh(len(os.Args)) & 1)
	}()
}
"#;

fn symbolizer(path: &Path) -> Symbolizer {
    let object = ObjectFile::open(path).expect("the linker wrote an ELF file");
    assert!(object.is_go());
    Symbolizer::new(Arc::new(object), SymbolizerOptions::default())
}

fn heap_profile(path: &Path) -> Option<GoMemoryProfile> {
    let object = ObjectFile::open(path).expect("the linker wrote an ELF file");
    object.go_memory_profile()
}

/// Addresses of functions whose name starts with one of `prefixes`, as `go tool nm -size` prints
/// them.
fn go_functions(shop: &Workshop, program: &str, prefixes: &[&str]) -> Vec<(u64, u64)> {
    let text = shop.run("go", &["tool", "nm", "-size", program]);
    let lines = text.lines().filter_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [address, size, "T" | "t", name] = words[..] else {
            return None;
        };
        prefixes
            .iter()
            .any(|prefix| name.starts_with(prefix))
            .then_some(())?;
        Some((u64::from_str_radix(address, 16).ok()?, size.parse().ok()?))
    });
    lines.collect()
}

fn compare(go: &str, build_flags: &[&str]) {
    let shop = Workshop::new();
    shop.write("main.go", PROGRAM);
    shop.write("go.mod", "module example\n\ngo 1.18\n");
    let build = |output: &str, linker_flags: &str| {
        let mut arguments = vec!["build", "-o", output, "-ldflags", linker_flags];
        arguments.extend_from_slice(build_flags);
        shop.run(go, &arguments);
    };
    build("full", "");
    build("stripped", "-s -w");
    let (full, stripped) = (shop.path("full"), shop.path("stripped"));
    let ranges = go_functions(
        &shop,
        "full",
        &["main.", "os.Exit", "runtime.mallocgc", "runtime.(*mspan)"],
    );
    assert!(ranges.len() > 5, "{ranges:?}");
    let same_text = |path: &Path| shop.run("readelf", &["-SW", &path.to_string_lossy()]);
    assert!(
        same_text(&stripped).contains(".gopclntab")
            && !same_text(&stripped).contains(".debug_info")
    );

    // Where the heap profile is, instructions tell as symbols do. The program with symbols is linked
    // by flags of the same length: `.go.buildinfo` keeps their text, and data lies behind it.
    build("named", "-w -w");
    let by_symbols = heap_profile(&shop.path("named"));
    assert!(by_symbols.is_some());
    assert_eq!(heap_profile(&stripped), by_symbols);

    let (by_dwarf, by_table) = (symbolizer(&full), symbolizer(&stripped));
    let (mut compared, mut inlined) = (0, 0);
    for (start, size) in ranges {
        for address in (start..start + size).step_by(3) {
            let expected = by_dwarf.resolve(address);
            let found = by_table.resolve(address);
            assert_eq!(
                (expected.source, found.source),
                (SymbolSource::Dwarf, SymbolSource::GoPclntab)
            );
            let frames = |resolution: &candela_symbols::Resolution| -> Vec<_> {
                let frames = resolution.frames.iter();
                frames
                    .map(|frame| (frame.function.to_string(), frame.file.clone(), frame.line))
                    .collect()
            };
            let found_names: Vec<_> = found.frames.iter().map(|frame| &*frame.function).collect();
            let expected_names: Vec<_> = expected
                .frames
                .iter()
                .map(|frame| &*frame.function)
                .collect();
            assert_eq!(found_names, expected_names, "{address:#x}");
            assert_eq!(frames(&found)[0], frames(&expected)[0], "{address:#x}");
            assert!(
                found
                    .frames
                    .iter()
                    .all(|frame| frame.language == FrameLanguage::Go)
            );
            compared += 1;
            inlined += usize::from(found.frames.len() > 1);
        }
    }
    assert!(
        compared > 100 && inlined > 20,
        "{compared} addresses, {inlined} inlined"
    );
}

#[test]
fn a_stripped_program_names_as_its_dwarf_does() {
    if has_tool("go", "version") && has_tool("readelf", "--version") {
        compare("go", &[]);
    }
}

#[test]
fn a_position_independent_program_too() {
    if has_tool("go", "version") && has_tool("readelf", "--version") {
        compare("go", &["-buildmode=pie"]);
    }
}

#[test]
fn an_older_toolchain_too() {
    // Debian's golang-1.19-go, the last with the layout of Go 1.18.
    let older = "/usr/lib/go-1.19/bin/go";
    if has_tool("go", "version") && has_tool(older, "version") {
        compare(older, &[]);
    }
}

#[test]
fn a_table_that_the_external_linker_folded_away_is_found() {
    let older = "/usr/lib/go-1.19/bin/go";
    let has_tools = has_tool("go", "version")
        && has_tool(older, "version")
        && has_tool("gcc", "--version")
        && has_tool("readelf", "--version");
    if !has_tools {
        return;
    }
    let shop = Workshop::new();
    shop.write(
        "main.go",
        &PROGRAM.replace("import \"os\"", "import \"C\"\nimport \"os\""),
    );
    shop.write("go.mod", "module example\n\ngo 1.18\n");
    for (output, linker_flags) in [("full", ""), ("stripped", "-s -w")] {
        let flags = [
            "build",
            "-buildmode=pie",
            "-o",
            output,
            "-ldflags",
            linker_flags,
        ];
        shop.run(older, &flags);
    }
    let sections = shop.run("readelf", &["-SW", "stripped"]);
    assert!(sections.contains(".go.buildinfo") && !sections.contains(".gopclntab"));
    let (full, stripped) = (shop.path("full"), shop.path("stripped"));
    let (by_dwarf, by_table) = (symbolizer(&full), symbolizer(&stripped));
    let mut compared = 0;
    for (start, size) in go_functions(&shop, "full", &["main.", "os.Exit"]) {
        for address in start..start + size {
            let (expected, found) = (by_dwarf.resolve(address), by_table.resolve(address));
            assert_eq!(found.source, SymbolSource::GoPclntab, "{address:#x}");
            // The old toolchain's DWARF leaves out some inlined calls when another linker is used.
            let function_and_line = |resolution: &candela_symbols::Resolution| {
                let outermost = resolution.frames.last().expect("a frame");
                (outermost.function.to_string(), resolution.frames[0].line)
            };
            assert_eq!(
                function_and_line(&found),
                function_and_line(&expected),
                "{address:#x}"
            );
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared} addresses");
}

fn is_before_1_20() -> bool {
    let output = Command::new("go").args(["env", "GOVERSION"]).output();
    let version = String::from_utf8(output.expect("go runs").stdout).expect("a version");
    let minor = version.trim().strip_prefix("go1.").unwrap_or_default();
    let minor = minor
        .split(|character: char| !character.is_ascii_digit())
        .next();
    minor
        .and_then(|minor| minor.parse().ok())
        .is_some_and(|minor: u32| minor < 20)
}

#[test]
fn first_lines_and_calls_are_those_of_the_source() {
    if !has_tool("go", "version") || !has_tool("addr2line", "--version") {
        return;
    }
    let shop = Workshop::new();
    shop.write("main.go", PROGRAM);
    shop.write("go.mod", "module example\n\ngo 1.18\n");
    shop.run("go", &["build", "-o", "full"]);
    shop.run("go", &["build", "-o", "stripped", "-ldflags", "-s -w"]);
    let symbolizer = symbolizer(&shop.path("stripped"));
    let ranges = go_functions(&shop, "full", &["main.(*pile).weigh"]);
    let (start, size) = ranges[0];
    let deepest = (start..start + size)
        .map(|address| (address, symbolizer.resolve(address)))
        .find(|(_, resolution)| resolution.frames.len() == 3)
        .expect("middle and inner are inlined");
    let (address, resolution) = deepest;
    let frames: Vec<_> = resolution
        .frames
        .iter()
        .map(|frame| (&*frame.function, frame.start_line, frame.inlined))
        .collect();
    // Programs tell the first lines of their functions since Go 1.20.
    let first_line = |line| if is_before_1_20() { 0 } else { line };
    assert_eq!(
        frames,
        [
            ("main.inner", first_line(15), true),
            ("main.middle", first_line(11), true),
            ("main.(*pile).weigh", first_line(9), false)
        ]
    );
    assert_eq!(
        (resolution.frames[1].line, resolution.frames[2].line),
        (12, 9)
    );
    // binutils does not show the inlined calls of Go's DWARF 5; the function itself it knows.
    let expected = addr2line(&shop.path("full"), address);
    let outermost = expected
        .last()
        .expect("addr2line prints at least one frame");
    assert_eq!(outermost.function, "main.(*pile).weigh");
}

#[test]
fn damaged_tables_are_no_panic() {
    if !has_tool("go", "version") || !has_tool("readelf", "--version") {
        return;
    }
    let shop = Workshop::new();
    shop.write("main.go", PROGRAM);
    shop.write("go.mod", "module example\n\ngo 1.18\n");
    shop.run("go", &["build", "-o", "full"]);
    shop.run("go", &["build", "-o", "stripped", "-ldflags", "-s -w"]);
    let addresses: Vec<_> = go_functions(&shop, "full", &["main."])
        .into_iter()
        .flat_map(|(start, size)| [start, start + size - 1])
        .collect();
    let sections = shop.run("readelf", &["-SW", "stripped"]);
    let table = sections
        .lines()
        .find(|line| line.contains(".gopclntab"))
        .expect("Go writes it");
    let words: Vec<_> = table.split_whitespace().collect();
    let progbits = words
        .iter()
        .position(|word| *word == "PROGBITS")
        .expect("it has a type");
    let hexadecimal =
        |word: &str| usize::from_str_radix(word, 16).expect("readelf prints hexadecimal");
    let (offset, size) = (
        hexadecimal(words[progbits + 2]),
        hexadecimal(words[progbits + 3]),
    );
    let bytes = std::fs::read(shop.path("stripped")).expect("the linker wrote it");
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |bound: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let mut named = 0;
    for round in 0..200 {
        let mut damaged = bytes.clone();
        // The header once in four rounds, always much of the rest: one byte in a megabyte hits
        // nothing.
        for _ in 0..5000 {
            damaged[offset + 80 + next(size - 80)] = next(256) as u8;
        }
        if round % 4 == 0 {
            damaged[offset + 8 + next(72)] = next(256) as u8;
        }
        let object =
            ObjectFile::from_bytes(damaged, Path::new("damaged")).expect("its headers are whole");
        let symbolizer = Symbolizer::new(Arc::new(object), SymbolizerOptions::default());
        named += addresses
            .iter()
            .filter(|address| symbolizer.resolve(**address).source == SymbolSource::GoPclntab)
            .count();
    }
    assert!(named > 0, "some tables survive enough to name something");
}
