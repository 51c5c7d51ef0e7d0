//! Every row of `.eh_frame` of real programs and libraries against our table at the same address; gimli evaluates
//! the rows for itself.

use crate::support;
use candela_unwind::{CfaKind, FpKind, Rule, RuleSet, Table, dwarf};
use gimli::{
    BaseAddresses, CfaRule, EhFrame, LittleEndian, Register, RegisterRule, UnwindContext,
    UnwindSection as _,
};
use object::{Object as _, ObjectSection as _};

const LIBC: &str = "/lib/x86_64-linux-gnu/libc.so.6";

/// What each distribution has where it wants is looked for by `*` in one folder of the path. Our own executable is
/// Rust.
const FILES: [&str; 14] = [
    LIBC,
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/x86_64-linux-gnu/libm.so.6",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
    "/usr/lib/x86_64-linux-gnu/libperl.so.5.36",
    "/usr/bin/python3",
    "/usr/bin/node",
    "/usr/lib/jvm/*/lib/server/libjvm.so",
    "/usr/lib/postgresql/*/bin/postgres",
    "/usr/lib/chromium/chrome_crashpad_handler",
    "/usr/lib/gcc/x86_64-linux-gnu/*/cc1",
    "/usr/bin/git",
    "/proc/self/exe",
];

/// The file of that path, or the first whose folder matches the star.
fn find(path: &str) -> Option<std::path::PathBuf> {
    let Some((folder, rest)) = path.split_once("/*/") else {
        return Some(path.into());
    };
    let folders = std::fs::read_dir(folder).ok()?.flatten();
    let mut files = folders.map(|folder| folder.path().join(rest));
    files.find(|file| file.is_file())
}

/// What was compared.
#[derive(Debug, Default)]
struct Compared {
    rows: usize,
    /// Rows that need an expression or another register, of which gimli has no plain word to compare with.
    other: usize,
}

/// What gimli says in the cases that need no expression; `None` for the others.
fn expected(row: &gimli::UnwindTableRow<usize>) -> Option<Rule> {
    if row.register(Register(16)) == Some(RegisterRule::Undefined) {
        return Some(Rule::END);
    }
    let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else {
        return None;
    };
    let kind = match register.0 as u8 {
        dwarf::RSP => CfaKind::Rsp,
        dwarf::RBP => CfaKind::Rbp,
        _ => return None,
    };
    if row.register(Register(16)) != Some(RegisterRule::Offset(-8)) {
        return Some(Rule::NO_RULE);
    }
    let (fp_kind, fp_offset) = match row.register(Register(6)) {
        None => (FpKind::Same, 0),
        // Already popped: the table says so.
        Some(RegisterRule::Offset(slot)) if kind == CfaKind::Rsp && slot + offset < 0 => {
            (FpKind::Same, 0)
        }
        Some(RegisterRule::Offset(slot)) => (FpKind::CfaOffset, slot as i16),
        _ => return None,
    };
    Some(Rule::new(kind, *offset as i32, fp_kind, fp_offset))
}

#[test]
fn rows_equal_gimlis_evaluation() {
    let mut total = Compared::default();
    for pattern in FILES {
        let bytes = find(pattern).and_then(|path| std::fs::read(path).ok());
        let Some(bytes) = bytes else {
            eprintln!("skipped: {pattern} is not here");
            continue;
        };
        let compared = compare(pattern, &bytes);
        eprintln!("{pattern}: {compared:?}");
        assert!(compared.rows > 1000, "{pattern}: {compared:?}");
        total.rows += compared.rows;
        total.other += compared.other;
    }
    eprintln!("{total:?}");
    // PLT stubs are most of the others.
    assert!(total.other * 50 < total.rows, "{total:?}");
}

/// Compares the first and the last byte of each row.
fn compare(path: &str, bytes: &[u8]) -> Compared {
    let mut rules = RuleSet::new();
    let table = Table::build(bytes, &mut rules).expect("a system library has a table");
    let file = object::File::parse(bytes).expect("ELF");
    let section = file.section_by_name(".eh_frame").expect("a section");
    let eh_frame = EhFrame::new(section.data().expect("data"), LittleEndian);
    let address_of = |name| {
        file.section_by_name(name)
            .map_or(0, |section| section.address())
    };
    let bases = BaseAddresses::default()
        .set_eh_frame(section.address())
        .set_text(address_of(".text"))
        .set_got(address_of(".got"));
    let mut context = UnwindContext::new();
    let mut compared = Compared::default();
    let mut entries = eh_frame.entries(&bases);
    while let Some(entry) = entries.next().expect("system libraries are sound") {
        let gimli::CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let fde = partial
            .parse(EhFrame::cie_from_offset)
            .expect("a sound FDE");
        let mut rows = fde
            .rows(&eh_frame, &bases, &mut context)
            .expect("a sound FDE");
        while let Some(row) = rows.next_row().expect("a sound row") {
            let addresses = row.start_address()..row.end_address().min(fde.end_address());
            if addresses.is_empty() {
                continue;
            }
            let Some(expected) = expected(row) else {
                compared.other += 1;
                continue;
            };
            for address in [addresses.start, addresses.end - 1] {
                let found = table.lookup(address, &rules);
                // The trampoline's FDE starts one byte early, in the padding before it.
                if found == Rule::SIGNAL {
                    continue;
                }
                assert_eq!(found, expected, "{path} at {address:#x}");
            }
            compared.rows += 1;
        }
    }
    compared
}

#[test]
fn special_rules_of_the_c_library_are_found() {
    let path = LIBC;
    let Ok(bytes) = std::fs::read(path) else {
        eprintln!("skipped: {path} is not here");
        return;
    };
    let mut rules = RuleSet::new();
    let table = Table::build(&bytes, &mut rules).expect("a table");
    let has = |kind: CfaKind| {
        table
            .rows()
            .any(|(_, index)| rules.get(index).cfa_kind == kind as u8)
    };
    assert!(has(CfaKind::Signal), "__restore_rt");
    assert!(has(CfaKind::Plt), ".plt");
    assert!(has(CfaKind::End), "clone");
}

#[test]
fn the_vdso_has_a_table() {
    let table =
        Table::build(&support::vdso(), &mut RuleSet::new()).expect("the vDSO has .eh_frame");
    assert!(table.statistics().fdes > 3);
}

/// Stacks end where programs start, even where no compiler said so.
#[test]
fn entries_end_stacks() {
    let mut rules = RuleSet::new();
    for path in [
        "/proc/self/exe",
        "/lib64/ld-linux-x86-64.so.2",
        "/usr/lib/x86_64-linux-musl/libc.so",
        "/usr/local/go/bin/go",
    ] {
        let Ok(bytes) = std::fs::read(path) else {
            eprintln!("skipped: {path} is not here");
            continue;
        };
        let table = Table::build(&bytes, &mut rules).expect("a program has a table");
        let entry = object::File::parse(&*bytes).expect("ELF").entry();
        assert_eq!(table.lookup(entry, &rules), Rule::END, "{path}");
    }
}
