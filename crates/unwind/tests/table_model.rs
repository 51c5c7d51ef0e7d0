//! The packed table against the obvious one.

use candela_unwind::{CfaKind, FpKind, Rule, RuleSet, TableBuilder};
use proptest::prelude::*;

fn rule(number: u8) -> Rule {
    match number {
        0 => Rule::NO_RULE,
        _ => Rule::new(CfaKind::Rsp, i32::from(number) * 8, FpKind::CfaOffset, -16),
    }
}

/// Rows close together, with now and then a jump over several pages.
fn rows() -> impl Strategy<Value = Vec<(u64, u8)>> {
    let step = prop_oneof![8 => 0..64u64, 1 => 0x8000..0x5_0000u64];
    (
        0..0x100_0000u64,
        prop::collection::vec((step, 0..6u8), 1..200),
    )
        .prop_map(|(start, steps)| {
            let mut address = start;
            steps
                .into_iter()
                .map(|(step, rule)| {
                    address += step;
                    (address, rule)
                })
                .collect()
        })
}

proptest! {
    #[test]
    fn lookup_is_the_last_row_at_or_before(rows in rows(), probes in prop::collection::vec(any::<prop::sample::Index>(), 50)) {
        let mut rules = RuleSet::new();
        let mut builder = TableBuilder::new();
        for (address, number) in &rows {
            builder.push(*address, rule(*number), &mut rules).expect("ascending rows");
        }
        let Ok(table) = builder.finish() else {
            // Only gaps: there is nothing to look up.
            let only_gaps = rows.iter().all(|(address, number)| {
                *number == 0 || rows.iter().any(|later| later.0 == *address && later.1 == 0)
            });
            prop_assert!(only_gaps);
            return Ok(());
        };
        let model = |address: u64| {
            let row = rows.iter().rev().find(|(start, _)| *start <= address);
            row.map_or(Rule::NO_RULE, |(_, number)| rule(*number))
        };
        let last = rows[rows.len() - 1].0;
        for probe in probes {
            let (near, _) = rows[probe.index(rows.len())];
            for address in [near.saturating_sub(1), near, near + 1, near + 0x7fff, near + 0x1_0000] {
                // The table ends with the page of its last row; real tables end with a gap there.
                if address >> 16 > last >> 16 {
                    continue;
                }
                let found = table.lookup(address, &rules);
                let page_is_covered = address >> 16 <= last_page(table.words());
                if page_is_covered {
                    prop_assert_eq!(found, model(address), "at {:#x}", address);
                }
            }
        }
        prop_assert_eq!(table.words().len() % 2, 0);
        prop_assert_eq!(table.statistics().bytes, table.words().len() * 4);
    }

    #[test]
    fn rows_are_ascending_and_never_repeat_a_rule(rows in rows()) {
        let mut rules = RuleSet::new();
        let mut builder = TableBuilder::new();
        for (address, number) in &rows {
            builder.push(*address, rule(*number), &mut rules).expect("ascending rows");
        }
        let Ok(table) = builder.finish() else { return Ok(()) };
        let packed: Vec<(u64, u16)> = table.rows().collect();
        for pair in packed.windows(2) {
            prop_assert!(pair[0].0 < pair[1].0);
            prop_assert_ne!(pair[0].1, pair[1].1);
        }
        prop_assert_eq!(packed.len(), table.statistics().rows);
    }
}

fn last_page(words: &[u32]) -> u64 {
    u64::from(words[0]) + u64::from(words[1]) - 1
}

#[test]
fn going_backwards_is_refused() {
    let mut rules = RuleSet::new();
    let mut builder = TableBuilder::new();
    builder
        .push(0x2000, Rule::END, &mut rules)
        .expect("the first row");
    let error = builder
        .push(0x1fff, Rule::END, &mut rules)
        .expect_err("out of order");
    assert_eq!(
        error.to_string(),
        "row at 0x1fff comes after one at 0x2000; push rows in ascending order"
    );
}

#[test]
fn a_table_without_rows_is_an_error() {
    assert!(TableBuilder::new().finish().is_err());
}
