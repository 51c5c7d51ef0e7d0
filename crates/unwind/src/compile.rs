//! From the bytes of an object to its table.

use crate::cfi::Cfi;
use crate::elf::{Elf, Section};
use crate::gaps::{self, Gaps};
use crate::go::GoFunctions;
use crate::landmarks::{self, Landmark};
use crate::unit::{self, Origin, Unit};
use crate::{Error, Rule, RuleSet, Statistics, Table, TableBuilder};
use gimli::{BaseAddresses, DebugFrame, EhFrame, LittleEndian};

/// Most functions of one object; a unit takes 32 bytes while the table is built.
const MAX_UNITS: usize = 8 << 20;

impl Table {
    /// Builds the table of an ELF object from its bytes.
    ///
    /// Sources, best first: `.eh_frame`, Go's pclntab, `.debug_frame`, and for the few functions
    /// that end or interrupt stacks (`_start`, signal return) their code.
    /// Rules are added to `rules`, the dictionary that all tables of a host share. Without a table
    /// it stays as it was.
    ///
    /// # Errors
    /// See [`Error`]; damaged parts are skipped and counted in [`Table::statistics`].
    pub fn build(object_bytes: &[u8], rules: &mut RuleSet) -> Result<Table, Error> {
        build(object_bytes, None, rules)
    }

    /// Like [`Table::build`], with `.debug_frame` from a separate debug file of the same build.
    ///
    /// # Errors
    /// As [`Table::build`]; a debug file that cannot be parsed is an error too.
    pub fn build_with_debug_file(
        object_bytes: &[u8],
        debug_file_bytes: &[u8],
        rules: &mut RuleSet,
    ) -> Result<Table, Error> {
        build(object_bytes, Some(debug_file_bytes), rules)
    }
}

fn build(
    object_bytes: &[u8],
    debug_file_bytes: Option<&[u8]>,
    rules: &mut RuleSet,
) -> Result<Table, Error> {
    let elf = Elf::parse(object_bytes)?;
    let debug_elf = debug_file_bytes.map(Elf::parse).transpose()?;
    let eh_frame = elf.eh_frame();
    let mut statistics = Statistics::default();
    let debug_frame = elf.debug_frame(&mut statistics).or_else(|| {
        debug_elf
            .as_ref()
            .and_then(|debug_elf| debug_elf.debug_frame(&mut statistics))
    });
    let sources = Sources::open(&elf, eh_frame.as_ref(), debug_frame.as_ref());
    let known_rules = rules.len();
    let table = sources.compile(&elf, statistics, rules);
    if table.is_err() {
        rules.truncate(known_rules);
    }
    table
}

/// Everything rows are made from.
struct Sources<'data> {
    eh_frame: Option<Cfi<'data, EhFrame<crate::expression::Slice<'data>>>>,
    debug_frame: Option<Cfi<'data, DebugFrame<crate::expression::Slice<'data>>>>,
    go: Option<GoFunctions<'data>>,
    landmarks: Vec<Landmark>,
}

impl<'data> Sources<'data> {
    fn open(
        elf: &Elf<'data>,
        eh_frame: Option<&'data Section<'_>>,
        debug_frame: Option<&'data Section<'_>>,
    ) -> Sources<'data> {
        let mut bases = BaseAddresses::default();
        if let Some(address) = elf.section_address(".text") {
            bases = bases.set_text(address);
        }
        if let Some(address) = elf.section_address(".got") {
            bases = bases.set_got(address);
        }
        let eh_frame = eh_frame.map(|section| {
            let bases = bases.clone().set_eh_frame(section.address);
            Cfi::new(
                EhFrame::new(&section.data, LittleEndian),
                bases,
                Origin::EhFrame,
            )
        });
        let debug_frame = debug_frame.map(|section| {
            let mut frame = DebugFrame::new(&section.data, LittleEndian);
            frame.set_address_size(8);
            Cfi::new(frame, bases, Origin::DebugFrame)
        });
        Sources {
            eh_frame,
            debug_frame,
            go: GoFunctions::find(elf),
            landmarks: Vec::new(),
        }
    }

    fn compile(
        mut self,
        elf: &Elf<'_>,
        mut statistics: Statistics,
        rules: &mut RuleSet,
    ) -> Result<Table, Error> {
        let units = self.collect_units(elf, &mut statistics)?;
        let mut builder = TableBuilder::new();
        *builder.statistics_mut() = statistics;
        self.push_all(elf, &units, rules, &mut builder)?;
        builder.finish()
    }

    /// All units in ascending order, the better source winning where two describe one address.
    fn collect_units(
        &mut self,
        elf: &Elf<'_>,
        statistics: &mut Statistics,
    ) -> Result<Vec<Unit>, Error> {
        let mut units = Vec::new();
        if let Some(eh_frame) = &mut self.eh_frame {
            eh_frame.collect_units(statistics, |addresses| elf.is_code(addresses), &mut units);
        }
        if let Some(go) = &self.go {
            go.collect_units(elf, statistics, &mut units);
        }
        unit::sort(&mut units);
        if let Some(debug_frame) = &mut self.debug_frame {
            let mut more = Vec::new();
            debug_frame.collect_units(statistics, |addresses| elf.is_code(addresses), &mut more);
            more.retain(|unit| !unit::covers(&units, unit.addresses.start));
            units.append(&mut more);
            unit::sort(&mut units);
        }
        self.landmarks = landmarks::find(elf, &units);
        for (number, landmark) in self.landmarks.iter().enumerate() {
            let addresses = landmark.addresses.clone();
            units.push(Unit {
                addresses,
                origin: Origin::Landmark,
                offset: number as u64,
            });
        }
        unit::sort(&mut units);
        if units.len() > MAX_UNITS {
            let value = units.len() as u64;
            return Err(Error::TooLarge {
                what: "functions",
                value,
                limit: MAX_UNITS as u64,
            });
        }
        Ok(units)
    }

    fn push_all(
        &mut self,
        elf: &Elf<'_>,
        units: &[Unit],
        rules: &mut RuleSet,
        builder: &mut TableBuilder,
    ) -> Result<(), Error> {
        let mut gaps = Gaps::between(elf, units);
        for (number, unit) in units.iter().enumerate() {
            gaps.push_rows_below(unit.addresses.start, rules, builder)?;
            let limit = gaps::end_of(number, units);
            if limit == unit.addresses.start {
                continue;
            }
            self.push_unit(elf, unit, limit, rules, builder)?;
            if !gaps::continues(limit, number, units) {
                builder.push(limit, Rule::NO_RULE, rules)?;
            }
        }
        gaps.push_rows_below(u64::MAX, rules, builder)
    }

    fn push_unit(
        &mut self,
        elf: &Elf<'_>,
        unit: &Unit,
        limit: u64,
        rules: &mut RuleSet,
        builder: &mut TableBuilder,
    ) -> Result<(), Error> {
        let addresses = unit.addresses.start..limit;
        match unit.origin {
            Origin::EhFrame => match &mut self.eh_frame {
                Some(eh_frame) => eh_frame.push_rows(unit.offset, addresses, rules, builder),
                None => Ok(()),
            },
            Origin::DebugFrame => match &mut self.debug_frame {
                Some(debug_frame) => debug_frame.push_rows(unit.offset, addresses, rules, builder),
                None => Ok(()),
            },
            Origin::Go => match &self.go {
                Some(go) => go.push_rows(elf, unit.offset, addresses, rules, builder),
                None => Ok(()),
            },
            Origin::Landmark => {
                let rule = self.landmarks[unit.offset as usize].rule;
                builder.push(addresses.start, rule, rules)
            }
        }
    }
}
