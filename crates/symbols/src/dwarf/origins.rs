//! Who a function is: its name and first line, which may stand in another entry, unit or file.

use super::DwarfUnits;
use super::sections::Slice;
use gimli::{AttributeValue, DebugInfoOffset, UnitOffset, UnitRef};

/// How many references from one entry to another are followed; real chains have three.
const LONGEST_CHAIN: usize = 16;

/// Which file an entry is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Main,
    /// The file that `dwz` moved shared parts to.
    Supplement,
}

/// An entry in some unit of some file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct EntryAddress {
    pub(super) place: Place,
    pub(super) unit: u32,
    pub(super) entry: UnitOffset,
}

/// What the chain of entries says.
#[derive(Debug, Default)]
pub(super) struct Origin<'data> {
    /// The linkage name, or where there is none the plain name.
    pub(super) name: Option<Slice<'data>>,
    /// 0 is unknown.
    pub(super) first_line: u32,
}

/// What one entry says.
#[derive(Default)]
struct Facts<'data> {
    linkage_name: Option<Slice<'data>>,
    name: Option<Slice<'data>>,
    line: Option<u32>,
    next: Option<Reference>,
}

#[derive(Clone, Copy)]
enum Reference {
    SameUnit(UnitOffset),
    SameFile(usize),
    Supplement(usize),
}

impl<'data> DwarfUnits<'data> {
    /// Follows `DW_AT_abstract_origin` and `DW_AT_specification` until a linkage name is found. A
    /// damaged or endless chain ends with what was found before.
    pub(super) fn origin(&mut self, mut at: EntryAddress) -> Origin<'data> {
        let mut origin = Origin::default();
        for _ in 0..LONGEST_CHAIN {
            let Some(facts) = self.facts(at) else {
                return origin;
            };
            if origin.first_line == 0 {
                origin.first_line = facts.line.unwrap_or(0);
            }
            if facts.linkage_name.is_some() {
                origin.name = facts.linkage_name;
                return origin;
            }
            origin.name = origin.name.or(facts.name);
            let Some(next) = facts.next.and_then(|next| self.follow(at, next)) else {
                return origin;
            };
            at = next;
        }
        origin
    }

    fn facts(&mut self, at: EntryAddress) -> Option<Facts<'data>> {
        let (dwarf, parsed) = self.file(at.place)?.unit(at.unit)?;
        let unit = UnitRef::new(dwarf, &parsed.unit);
        let mut entries = unit.entries_raw(Some(at.entry)).ok()?;
        let abbreviation = entries.read_abbreviation().ok()??;
        let mut facts = Facts::default();
        for specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(*specification).ok()?;
            match attribute.name() {
                gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                    facts.linkage_name = dwarf.attr_string(&parsed.unit, attribute.value()).ok();
                }
                gimli::DW_AT_name => {
                    facts.name = dwarf.attr_string(&parsed.unit, attribute.value()).ok();
                }
                gimli::DW_AT_decl_line => {
                    facts.line = attribute
                        .udata_value()
                        .and_then(|line| u32::try_from(line).ok());
                }
                gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                    facts.next = match attribute.value() {
                        AttributeValue::UnitRef(offset) => Some(Reference::SameUnit(offset)),
                        AttributeValue::DebugInfoRef(DebugInfoOffset(offset)) => {
                            Some(Reference::SameFile(offset))
                        }
                        AttributeValue::DebugInfoRefSup(DebugInfoOffset(offset)) => {
                            Some(Reference::Supplement(offset))
                        }
                        _ => None,
                    };
                }
                _ => {}
            }
        }
        Some(facts)
    }

    fn follow(&mut self, from: EntryAddress, reference: Reference) -> Option<EntryAddress> {
        let (place, offset) = match reference {
            Reference::SameUnit(entry) => return Some(EntryAddress { entry, ..from }),
            Reference::SameFile(offset) => (from.place, offset),
            Reference::Supplement(offset) => (Place::Supplement, offset),
        };
        let file = self.file(place)?;
        let unit = file.index.holding(offset)?;
        let entry = UnitOffset(offset - file.index.start(unit));
        Some(EntryAddress { place, unit, entry })
    }
}
