//! Every row of the C library's table against gimli's own evaluation at the same address.

mod support;

use candela_unwind::{CfaKind, FpKind, Rule, RuleSet, Table, dwarf};
use gimli::{
    BaseAddresses, CfaRule, EhFrame, LittleEndian, Register, RegisterRule, UnwindContext,
    UnwindSection as _,
};
use object::{Object as _, ObjectSection as _};

const LIBRARIES: [&str; 5] = [
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/x86_64-linux-gnu/libm.so.6",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
];

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
    for path in LIBRARIES {
        let Ok(bytes) = std::fs::read(path) else {
            eprintln!("skipped: {path} is not here");
            continue;
        };
        let mut rules = RuleSet::new();
        let table = Table::build(&bytes, &mut rules).expect("a system library has a table");
        let file = object::File::parse(&*bytes).expect("ELF");
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
        let mut compared = 0;
        let mut entries = eh_frame.entries(&bases);
        while let Some(entry) = entries.next().expect("system libraries are sound") {
            let gimli::CieOrFde::Fde(partial) = entry else {
                continue;
            };
            let fde = partial
                .parse(EhFrame::cie_from_offset)
                .expect("a sound FDE");
            // Every 16th byte, and the first and last, of each function.
            let addresses = (fde.initial_address()..fde.end_address())
                .step_by(16)
                .chain([fde.end_address() - 1]);
            for address in addresses {
                let row = fde
                    .unwind_info_for_address(&eh_frame, &bases, &mut context, address)
                    .expect("a sound row");
                let Some(expected) = expected(row) else {
                    continue;
                };
                let found = table.lookup(address, &rules);
                // The trampoline's FDE starts one byte early, in the padding before it.
                if found == Rule::SIGNAL {
                    continue;
                }
                assert_eq!(found, expected, "{path} at {address:#x}");
                compared += 1;
            }
        }
        assert!(
            compared > 1000,
            "{path}: only {compared} addresses compared"
        );
    }
}

#[test]
fn special_rules_of_the_c_library_are_found() {
    let path = LIBRARIES[0];
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
