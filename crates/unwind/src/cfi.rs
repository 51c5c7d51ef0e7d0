//! Rows from call frame information (`.eh_frame`, `.debug_frame`), parsed by gimli.

use crate::expression::{Shape, Slice};
use crate::registers::dwarf;
use crate::unit::{Origin, Unit};
use crate::{CfaKind, Error, FpKind, Rule, RuleSet, Statistics, TableBuilder};
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, CommonInformationEntry, Register, RegisterRule,
    UnwindContext, UnwindExpression, UnwindSection, UnwindTableRow,
};
use std::ops::Range;

/// Each FDE evaluates the instructions of its CIE again, so a long CIE shared by many FDEs would
/// cost quadratic time. Real ones have about twenty bytes.
const MAX_CIE_BYTES: usize = 4096;

/// rsp before a signal, in the ucontext that the kernel leaves at rsp of the trampoline.
const UCONTEXT_RSP: i64 = 0xa0;

type Cie<'data> = CommonInformationEntry<Slice<'data>>;

/// One section of call frame information with what is needed to read it quickly.
pub(crate) struct Cfi<'data, Section> {
    section: Section,
    bases: BaseAddresses,
    origin: Origin,
    context: UnwindContext<usize>,
    /// The CIE of the last FDE: neighbours nearly always share it.
    last_cie: Option<(usize, Cie<'data>)>,
}

impl<'data, Section> Cfi<'data, Section>
where
    Section: UnwindSection<Slice<'data>>,
    Section::Offset: gimli::UnwindOffset<usize>,
{
    pub(crate) fn new(section: Section, bases: BaseAddresses, origin: Origin) -> Self {
        Cfi {
            section,
            bases,
            origin,
            context: UnwindContext::new(),
            last_cie: None,
        }
    }

    /// Reads the address range of every FDE. `accepts` says which ranges are wanted.
    pub(crate) fn collect_units(
        &mut self,
        statistics: &mut Statistics,
        mut accepts: impl FnMut(&Range<u64>) -> bool,
        units: &mut Vec<Unit>,
    ) {
        let section = self.section.clone();
        let bases = self.bases.clone();
        let mut entries = section.entries(&bases);
        loop {
            let entry = match entries.next() {
                Ok(Some(entry)) => entry,
                Ok(None) => return,
                // The entry's length is unreadable, so there is no way to find the next one.
                Err(_) => {
                    statistics.malformed += 1;
                    return;
                }
            };
            let CieOrFde::Fde(partial) = entry else {
                continue;
            };
            let last_cie = &mut self.last_cie;
            let fde = partial
                .parse(|section, bases, offset| cached_cie(last_cie, section, bases, offset));
            let Ok(fde) = fde else {
                statistics.malformed += 1;
                continue;
            };
            let addresses = fde.initial_address()..fde.end_address();
            if addresses.is_empty() {
                continue;
            }
            if !accepts(&addresses) {
                statistics.outside_code += 1;
                continue;
            }
            units.push(Unit {
                addresses,
                origin: self.origin,
                offset: fde.offset() as u64,
            });
        }
    }

    /// Pushes the rows of the FDE at `offset`, which describes `addresses`. Where it cannot be read
    /// there is a row without a rule: the rule of the function before would be wrong there.
    pub(crate) fn push_rows(
        &mut self,
        offset: u64,
        addresses: Range<u64>,
        rules: &mut RuleSet,
        builder: &mut TableBuilder,
    ) -> Result<(), Error> {
        let Cfi {
            section,
            bases,
            context,
            last_cie,
            ..
        } = self;
        let offset = Section::Offset::from(offset as usize);
        let fde = section.fde_from_offset(bases, offset, |section, bases, offset| {
            cached_cie(last_cie, section, bases, offset)
        });
        let Ok(fde) = fde else {
            builder.statistics_mut().malformed += 1;
            return builder.push(addresses.start, Rule::NO_RULE, rules);
        };
        let encoding = fde.cie().encoding();
        let is_signal_trampoline = fde.is_signal_trampoline();
        let Ok(mut table) = fde.rows(section, bases, context) else {
            builder.statistics_mut().malformed += 1;
            return builder.push(addresses.start, Rule::NO_RULE, rules);
        };
        builder.statistics_mut().fdes += 1;
        let mut known_until = addresses.start;
        loop {
            let row = match table.next_row() {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(()),
                // Rows already pushed are right; what follows them is not known.
                Err(_) => {
                    builder.statistics_mut().malformed += 1;
                    return match addresses.contains(&known_until) {
                        true => builder.push(known_until, Rule::NO_RULE, rules),
                        false => Ok(()),
                    };
                }
            };
            let address = row.start_address();
            known_until = row.end_address();
            if !addresses.contains(&address) {
                return Ok(());
            }
            let translation = Translation { section, encoding };
            let rule = translation.rule(row, is_signal_trampoline, builder.statistics_mut());
            builder.push(address, rule, rules)?;
        }
    }
}

fn cached_cie<'data, Section>(
    last_cie: &mut Option<(usize, Cie<'data>)>,
    section: &Section,
    bases: &BaseAddresses,
    offset: Section::Offset,
) -> gimli::Result<Cie<'data>>
where
    Section: UnwindSection<Slice<'data>>,
    Section::Offset: gimli::UnwindOffset<usize>,
{
    let position: usize = gimli::UnwindOffset::into(offset);
    if let Some((cached_position, cie)) = last_cie
        && *cached_position == position
    {
        return Ok(cie.clone());
    }
    let cie = section.cie_from_offset(bases, offset)?;
    if cie.entry_len() > MAX_CIE_BYTES {
        return Err(gimli::Error::TooManyRegisterRules);
    }
    *last_cie = Some((position, cie.clone()));
    Ok(cie)
}

/// Whether the slot of rbp lies below rsp. In epilogues compilers go on naming the slot after
/// `pop %rbp`. The register has the same value, costs no read, and is there even if a stack
/// copy starts at rsp.
fn is_popped(cfa: &CfaRule<usize>, fp_kind: FpKind, fp_offset: i16) -> bool {
    let CfaRule::RegisterAndOffset { register, offset } = cfa else {
        return false;
    };
    register.0 == u16::from(dwarf::RSP)
        && fp_kind == FpKind::CfaOffset
        && offset.saturating_add(i64::from(fp_offset)) < 0
}

/// Translates gimli's rows to rules.
struct Translation<'a, Section> {
    section: &'a Section,
    encoding: gimli::Encoding,
}

impl<'data, Section: UnwindSection<Slice<'data>>> Translation<'_, Section> {
    fn rule(
        &self,
        row: &UnwindTableRow<usize>,
        is_signal_trampoline: bool,
        statistics: &mut Statistics,
    ) -> Rule {
        let return_address = row.register(Register(u16::from(dwarf::RETURN_ADDRESS)));
        if let Some(RegisterRule::Undefined) = return_address {
            return Rule::END;
        }
        if is_signal_trampoline && self.is_ucontext(row.cfa()) {
            return Rule::SIGNAL;
        }
        // The format has the return address at CFA - 8 and nowhere else. Exceptions are stubs
        // like vfork's that keep it in a register for a few instructions.
        if return_address != Some(RegisterRule::Offset(-8)) {
            statistics.unsupported_rules += 1;
            return Rule::NO_RULE;
        }
        let (mut fp_kind, mut fp_offset) = self.frame_pointer(row, statistics);
        if is_popped(row.cfa(), fp_kind, fp_offset) {
            (fp_kind, fp_offset) = (FpKind::Same, 0);
        }
        match self.cfa(row.cfa(), fp_kind, fp_offset) {
            Some(rule) => rule,
            None => {
                statistics.unsupported_rules += 1;
                Rule::NO_RULE
            }
        }
    }

    fn cfa(&self, cfa: &CfaRule<usize>, fp_kind: FpKind, fp_offset: i16) -> Option<Rule> {
        let shape = match cfa {
            CfaRule::RegisterAndOffset { register, offset } if register.0 < 16 => Shape::Register {
                register: register.0 as u8,
                offset: *offset,
            },
            CfaRule::RegisterAndOffset { .. } => return None,
            CfaRule::Expression(expression) => self.shape(expression)?,
        };
        match shape {
            Shape::Register {
                register: dwarf::RSP,
                offset,
            } => Some(Rule::new(
                CfaKind::Rsp,
                i32::try_from(offset).ok()?,
                fp_kind,
                fp_offset,
            )),
            Shape::Register {
                register: dwarf::RBP,
                offset,
            } => Some(Rule::new(
                CfaKind::Rbp,
                i32::try_from(offset).ok()?,
                fp_kind,
                fp_offset,
            )),
            Shape::Register { register, offset } => {
                let fits = register < 16 && (-(1 << 23)..1 << 23).contains(&offset);
                fits.then(|| Rule::register(register, offset as i32, fp_kind, fp_offset))
            }
            Shape::Deref {
                register: dwarf::RBP,
                offset,
                addend: 0,
            } => Some(Rule::new(
                CfaKind::DerefRbp,
                i32::try_from(offset).ok()?,
                fp_kind,
                fp_offset,
            )),
            Shape::Deref {
                register: dwarf::RSP,
                offset,
                addend,
            } => {
                let slot = i16::try_from(offset).ok()?;
                Some(Rule::deref_rsp(
                    slot,
                    i16::try_from(addend).ok()?,
                    fp_kind,
                    fp_offset,
                ))
            }
            Shape::Deref { .. } => None,
            Shape::Plt { threshold } => Some(Rule::new(
                CfaKind::Plt,
                i32::from(threshold),
                fp_kind,
                fp_offset,
            )),
        }
    }

    /// Losing rbp does not spoil the frame itself, so it never costs the whole rule.
    fn frame_pointer(
        &self,
        row: &UnwindTableRow<usize>,
        statistics: &mut Statistics,
    ) -> (FpKind, i16) {
        let found = match row.register(Register(u16::from(dwarf::RBP))) {
            None | Some(RegisterRule::SameValue) => Some((FpKind::Same, 0)),
            Some(RegisterRule::Undefined) => return (FpKind::Undefined, 0),
            Some(RegisterRule::Offset(offset)) => Some((FpKind::CfaOffset, offset)),
            Some(RegisterRule::Expression(expression)) => {
                match (self.shape(&expression), row.cfa()) {
                    (
                        Some(Shape::Register {
                            register: dwarf::RBP,
                            offset,
                        }),
                        _,
                    ) => Some((FpKind::RbpOffset, offset)),
                    (
                        Some(Shape::Register { register, offset }),
                        CfaRule::RegisterAndOffset {
                            register: cfa_register,
                            offset: cfa_offset,
                        },
                    ) if cfa_register.0 == u16::from(register) => offset
                        .checked_sub(*cfa_offset)
                        .map(|offset| (FpKind::CfaOffset, offset)),
                    _ => None,
                }
            }
            Some(_) => None,
        };
        if let Some((kind, offset)) = found
            && let Ok(offset) = i16::try_from(offset)
        {
            return (kind, offset);
        }
        statistics.lost_frame_pointers += 1;
        (FpKind::Undefined, 0)
    }

    fn is_ucontext(&self, cfa: &CfaRule<usize>) -> bool {
        let CfaRule::Expression(expression) = cfa else {
            return false;
        };
        let expected = Shape::Deref {
            register: dwarf::RSP,
            offset: UCONTEXT_RSP,
            addend: 0,
        };
        self.shape(expression) == Some(expected)
    }

    fn shape(&self, expression: &UnwindExpression<usize>) -> Option<Shape> {
        Shape::of(expression.get(self.section).ok()?, self.encoding)
    }
}
