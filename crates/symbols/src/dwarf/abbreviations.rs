//! The little that finding units needs of an abbreviation table (DWARF 5, 7.5.3), read without
//! building the table: a unit has hundreds of declarations, and the unit's own range needs only the
//! first.

use std::ops::Range;

const DW_FORM_IMPLICIT_CONST: u64 = 0x21;

/// A table of abbreviations, from its first declaration on; it ends with a zero code.
#[derive(Debug, Clone, Copy)]
pub(super) struct AbbreviationTable<'data>(pub(super) &'data [u8]);

/// Where a declaration lies in the table.
#[derive(Debug)]
struct Declaration {
    code: u64,
    range: Range<usize>,
}

impl AbbreviationTable<'_> {
    /// A table with nothing but the declaration of `code`, which is the first one in practice.
    pub(super) fn single(self, code: u64) -> Option<Vec<u8>> {
        let declaration = self
            .declarations()
            .find(|declaration| declaration.code == code)?;
        let mut table = self.0[declaration.range].to_vec();
        table.push(0);
        Some(table)
    }

    fn declarations(self) -> impl Iterator<Item = Declaration> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let declaration = self.declaration(at)?;
            at = declaration.range.end;
            Some(declaration)
        })
    }

    fn declaration(self, start: usize) -> Option<Declaration> {
        let (code, after_code) = self.number(start)?;
        if code == 0 {
            return None;
        }
        let (_tag, after_tag) = self.number(after_code)?;
        // One byte says whether there are children.
        let mut at = after_tag + 1;
        loop {
            let (attribute, after_attribute) = self.number(at)?;
            let (form, after_form) = self.number(after_attribute)?;
            at = after_form;
            if form == DW_FORM_IMPLICIT_CONST {
                (_, at) = self.number(at)?;
            }
            if attribute == 0 && form == 0 {
                return Some(Declaration {
                    code,
                    range: start..at,
                });
            }
        }
    }

    /// A LEB128 number, signed ones as their bits, and the offset behind it.
    fn number(self, mut at: usize) -> Option<(u64, usize)> {
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = *self.0.get(at)?;
            at += 1;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Some((value, at));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code 1: compile unit with name (string) and an implicit constant; code 2: subprogram with
    /// `origin` as `form`.
    fn table(attribute: u8, form: &[u8]) -> Vec<u8> {
        let mut table = vec![1, 0x11, 1, 0x03, 0x08, 0x13, 0x21, 0x7f, 0, 0];
        table.extend([2, 0x2e, 0, attribute]);
        table.extend(form);
        table.extend([0, 0, 0]);
        table
    }

    #[test]
    fn one_declaration_is_cut_out() {
        let table = table(0x31, &[0x13]);
        let only = AbbreviationTable(&table).single(1).expect("it is there");
        assert_eq!(only, [1, 0x11, 1, 0x03, 0x08, 0x13, 0x21, 0x7f, 0, 0, 0]);
        assert_eq!(
            AbbreviationTable(&table)
                .single(2)
                .expect("it is there")
                .len(),
            8
        );
        assert_eq!(AbbreviationTable(&table).single(3), None);
    }

    #[test]
    fn cut_tables_are_no_panic() {
        let table = table(0x47, &[0xa0, 0x3e]);
        for end in 0..table.len() {
            let cut = AbbreviationTable(&table[..end]);
            cut.single(2);
        }
    }
}
