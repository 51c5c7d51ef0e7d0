//! Rules by reading machine code, for functions without any unwind information.
//!
//! musl's libraries, some linkers' PLT stubs and hand-written assembly come without call frame
//! information and without frame pointers. What compilers do to the stack in a function is
//! simple, though: pushes, pops, constants added to rsp, sometimes a frame pointer. Following
//! these instructions gives the height of the stack at every address.
//!
//! What makes it safe to guess: a function whose `ret` does not find the stack as it was at the
//! function's entry was misread, and gets no rows.

mod bottom;
mod function;
mod references;
mod stack_state;
mod sweep;

pub(crate) use bottom::end_of_bottom;
pub(crate) use references::References;
pub(crate) use sweep::Sweep;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::Elf;
    use crate::{CfaKind, Rule, RuleSet, Table, TableBuilder};

    mod host_tests {
        use super::*;

        /// Where a library has both, what is read from its code must be what its compiler said. The
        /// libraries are C, as is code without call frame information: C++ landing pads are reached by
        /// no jump that could be followed.
        #[test]
        fn rules_from_code_agree_with_call_frame_information() {
            for name in ["libc.so.6", "libm.so.6", "libcrypto.so.3", "libz.so.1"] {
                let path = format!("/usr/lib/x86_64-linux-gnu/{name}");
                let Ok(bytes) = std::fs::read(&path) else {
                    eprintln!("skipped: {path} is not here");
                    continue;
                };
                let mut rules = RuleSet::new();
                let truth = Table::build(&bytes, &mut rules).expect("a system library has a table");
                let elf = Elf::parse(&bytes).expect("ELF");
                let mut builder = TableBuilder::new();
                for code in elf.code() {
                    let mut references = References::default();
                    references.collect(code.bytes, code.addresses.start);
                    let sweep = Sweep::new(code.addresses.clone(), code.bytes, &references);
                    sweep
                        .push_rows(&mut rules, &mut builder)
                        .expect("ascending rows");
                    builder
                        .push(code.addresses.end, Rule::NO_RULE, &mut rules)
                        .expect("ascending");
                }
                let found = builder.finish().expect("rows");
                let (mut equal, mut different, mut silent) = (0u32, 0u32, 0u32);
                for (address, index) in truth.rows() {
                    let expected = rules.get(index);
                    if expected.cfa_kind != CfaKind::Rsp as u8
                        && expected.cfa_kind != CfaKind::Rbp as u8
                    {
                        continue;
                    }
                    let found_rule = found.lookup(address, &rules);
                    if found_rule == expected {
                        equal += 1;
                    } else if found_rule == Rule::NO_RULE {
                        silent += 1;
                    } else {
                        different += 1;
                    }
                }
                eprintln!("{name}: {equal} equal, {different} different, {silent} without a rule");
                assert!(
                    different * 50 < equal,
                    "{name}: {equal} equal, {different} different"
                );
            }
        }
    }
}
