//! Machine code as text, beside what binutils' `objdump` says.

use super::workshop::{C_PROGRAM, Workshop, functions, has_tool};
use candela_symbols::{
    DisassembledFunction, DisassemblyError, ObjectFile, Symbolizer, SymbolizerOptions, disassemble,
};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// Short enough that each compiler makes the same of it.
const SHORT_PROGRAM: &str = "\
__attribute__((noinline)) long spin(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++)
        __asm__ volatile(\"add %1, %0\" : \"+r\"(sum) : \"r\"(i));
    return sum;
}
int main(int argc, char **argv) {
    return (int)spin(argc) + argv[0][0];
}
";

fn symbolizer(program: &Path) -> Symbolizer {
    let object = ObjectFile::open(program).expect("an ELF file");
    Symbolizer::new(Arc::new(object), SymbolizerOptions::default())
}

/// The function of this name, and its address.
fn function(program: &Path, name: &str) -> (DisassembledFunction, u64) {
    let symbols = functions(program);
    let (address, ..) = symbols
        .iter()
        .find(|(.., found)| found == name)
        .expect(name);
    let mut found = disassemble(&symbolizer(program), [*address + 1]).expect("code");
    assert_eq!(found.len(), 1);
    (found.remove(0), *address)
}

/// Addresses are told from the start of the function, so that nothing depends on the linker.
fn text_of(found: &DisassembledFunction) -> String {
    let start = found.function.addresses.start;
    let lines = found.instructions.iter().map(|instruction| {
        let at = instruction.frames.first();
        let line = at.map_or(0, |frame| frame.line);
        let text = instruction.text.replace(&format!("{start:#x}"), "START");
        format!("{line:>2} {:>3x} {text}\n", instruction.address - start)
    });
    lines.collect()
}

#[test]
fn a_function_is_disassembled_with_its_lines() {
    if !has_tool("gcc", "--version") {
        return;
    }
    let workshop = Workshop::new();
    workshop.write("short.c", SHORT_PROGRAM);
    workshop.run(
        "gcc",
        &[
            "-O1",
            "-g",
            "-fcf-protection=none",
            "-o",
            "short",
            "short.c",
        ],
    );
    let (spin, start) = function(&workshop.path("short"), "spin");
    assert_eq!(spin.function.name, "spin");
    assert!(!spin.is_cut);
    let relative = text_of(&spin);
    // Targets of jumps are whole addresses.
    let relative = (0..64).rev().fold(relative, |text, offset| {
        text.replace(&format!("{:#x}", start + offset), &format!("+{offset:#x}"))
    });
    let expected = std::fs::read_to_string("tests/golden/spin.txt").unwrap_or_default();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all("tests/golden").expect("a folder");
        std::fs::write("tests/golden/spin.txt", &relative).expect("written");
        return;
    }
    assert_eq!(relative, expected, "UPDATE_GOLDEN=1 writes it anew");
}

#[test]
fn instructions_are_those_of_objdump() {
    if !has_tool("gcc", "--version") || !has_tool("objdump", "--version") {
        return;
    }
    let workshop = Workshop::new();
    workshop.write("calls.c", C_PROGRAM);
    workshop.run("gcc", &["-O1", "-g", "-o", "calls", "calls.c"]);
    let program = workshop.path("calls");
    let (local, _) = function(&program, "local");
    let addresses = &local.function.addresses;
    let output = Command::new("objdump")
        .args(["-d", "-M", "intel", "--no-show-raw-insn"])
        .arg(format!("--start-address={}", addresses.start))
        .arg(format!("--stop-address={}", addresses.end))
        .arg(&program)
        .output()
        .expect("objdump is in binutils");
    let text = String::from_utf8(output.stdout).expect("text");
    let expected: Vec<(u64, String)> = text
        .lines()
        .filter_map(|line| {
            let (address, code) = line.trim().split_once(":\t")?;
            let address = u64::from_str_radix(address, 16).ok()?;
            Some((address, code.split_whitespace().next()?.to_owned()))
        })
        .collect();
    let found: Vec<(u64, String)> = local
        .instructions
        .iter()
        .map(|instruction| {
            let mnemonic = instruction.text.split(' ').next().unwrap_or_default();
            (instruction.address, mnemonic.to_owned())
        })
        .collect();
    assert!(expected.len() > 4, "{text}");
    assert_eq!(found, expected);
    let targets: Vec<&str> = local
        .instructions
        .iter()
        .filter_map(|instruction| instruction.target.as_deref())
        .collect();
    assert_eq!(targets, ["outer", "outer"]);
    let bytes: usize = local.instructions.iter().map(|it| it.bytes.len()).sum();
    assert_eq!(bytes as u64, addresses.end - addresses.start);
}

#[test]
fn inlined_calls_are_told_at_their_instructions() {
    if !has_tool("gcc", "--version") {
        return;
    }
    let workshop = Workshop::new();
    workshop.write("calls.c", C_PROGRAM);
    workshop.run("gcc", &["-O1", "-g", "-o", "calls", "calls.c"]);
    let (outer, _) = function(&workshop.path("calls"), "outer");
    let names: Vec<Vec<String>> = outer
        .instructions
        .iter()
        .map(|it| {
            it.frames
                .iter()
                .map(|frame| frame.function.to_string())
                .collect()
        })
        .collect();
    assert!(
        names.contains(&vec![
            "innermost".to_owned(),
            "between".to_owned(),
            "outer".to_owned()
        ]),
        "{names:?}"
    );
}

#[test]
fn what_has_no_code_says_so() {
    if !has_tool("gcc", "--version") || !has_tool("objcopy", "--version") {
        return;
    }
    let workshop = Workshop::new();
    workshop.write("short.c", SHORT_PROGRAM);
    workshop.run("gcc", &["-O1", "-g", "-o", "short", "short.c"]);
    workshop.run("objcopy", &["--only-keep-debug", "short", "short.debug"]);
    let (_, address) = function(&workshop.path("short"), "spin");
    let debug_file = symbolizer(&workshop.path("short.debug"));
    let error = disassemble(&debug_file, [address]).expect_err("no code");
    assert!(matches!(error, DisassemblyError::NoCode { .. }), "{error}");
    let program = symbolizer(&workshop.path("short"));
    let error = disassemble(&program, [1]).expect_err("no function");
    assert!(
        matches!(error, DisassemblyError::NoFunction { .. }),
        "{error}"
    );
}
