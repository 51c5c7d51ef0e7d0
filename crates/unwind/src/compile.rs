//! From the bytes of an object to its table.

use crate::analysis::Sweep;
use crate::cfi::Cfi;
use crate::elf::{Elf, Section};
use crate::go::GoFunctions;
use crate::landmarks::{self, Landmark};
use crate::unit::{self, Origin, Unit};
use crate::{Error, Rule, RuleSet, Statistics, Table, TableBuilder};
use gimli::{BaseAddresses, DebugFrame, EhFrame, LittleEndian};

/// Most functions of one object; a unit takes 32 bytes while the table is built.
const MAX_UNITS: usize = 8 << 20;

/// Functions are aligned to 16 bytes. A shorter gap before an aligned start is padding that no
/// pc ever lies in, so it gets no row of its own, which saves a row per function.
const FUNCTION_ALIGNMENT: u64 = 16;

impl Table {
    /// Builds the table of an ELF object from its bytes.
    ///
    /// Sources, best first: `.eh_frame`, Go's pclntab, `.debug_frame`, and for the few functions
    /// that end or interrupt stacks (`_start`, signal return) their code.
    /// Rules are added to `rules`, the dictionary that all tables of a host share.
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
    let debug_frame = elf.section(".debug_frame").or_else(|| {
        debug_elf
            .as_ref()
            .and_then(|debug_elf| debug_elf.section(".debug_frame"))
    });
    let sources = Sources::open(&elf, eh_frame.as_ref(), debug_frame.as_ref());
    sources.compile(&elf, rules)
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

    fn compile(mut self, elf: &Elf<'_>, rules: &mut RuleSet) -> Result<Table, Error> {
        let mut statistics = Statistics::default();
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
        let mut gaps = Gaps::new(elf);
        gaps.push_before_first(units, rules, builder)?;
        for (number, unit) in units.iter().enumerate() {
            let next_start = units.get(number + 1).map(|next| next.addresses.start);
            let limit = unit.addresses.end.min(next_start.unwrap_or(u64::MAX));
            if limit > unit.addresses.start {
                self.push_unit(elf, unit, limit, rules, builder)?;
                gaps.push(limit, next_start, rules, builder)?;
            }
        }
        Ok(())
    }

    fn push_unit(
        &mut self,
        elf: &Elf<'_>,
        unit: &Unit,
        limit: u64,
        rules: &mut RuleSet,
        builder: &mut TableBuilder,
    ) -> Result<(), Error> {
        match unit.origin {
            Origin::EhFrame => match &mut self.eh_frame {
                Some(eh_frame) => eh_frame.push_rows(unit.offset, limit, rules, builder),
                None => Ok(()),
            },
            Origin::DebugFrame => match &mut self.debug_frame {
                Some(debug_frame) => debug_frame.push_rows(unit.offset, limit, rules, builder),
                None => Ok(()),
            },
            Origin::Go => match &self.go {
                Some(go) => {
                    let start = unit.addresses.start;
                    go.push_rows(elf, unit.offset, start, limit, rules, builder)
                }
                None => Ok(()),
            },
            Origin::Landmark => {
                let rule = self.landmarks[unit.offset as usize].rule;
                builder.push(unit.addresses.start, rule, rules)
            }
        }
    }
}

/// The stretches of code between units.
struct Gaps<'elf, 'data> {
    elf: &'elf Elf<'data>,
    function_symbols: Option<Vec<u64>>,
}

impl<'elf, 'data> Gaps<'elf, 'data> {
    fn new(elf: &'elf Elf<'data>) -> Self {
        Gaps {
            elf,
            function_symbols: None,
        }
    }

    /// Code segments that end before the first unit, and the start of the one it lies in.
    fn push_before_first(
        &mut self,
        units: &[Unit],
        rules: &mut RuleSet,
        builder: &mut TableBuilder,
    ) -> Result<(), Error> {
        let first_start = units.first().map_or(u64::MAX, |unit| unit.addresses.start);
        self.push_code(0, first_start, rules, builder)
    }

    /// The gap from `start` to the next unit, or to the end of all code.
    fn push(
        &mut self,
        start: u64,
        next_start: Option<u64>,
        rules: &mut RuleSet,
        builder: &mut TableBuilder,
    ) -> Result<(), Error> {
        let end = next_start.unwrap_or(u64::MAX);
        let is_padding = end - start < FUNCTION_ALIGNMENT && end.is_multiple_of(FUNCTION_ALIGNMENT);
        if is_padding || start == end {
            return Ok(());
        }
        builder.push(start, Rule::NO_RULE, rules)?;
        self.push_code(start, end, rules, builder)
    }

    fn push_code(
        &mut self,
        start: u64,
        end: u64,
        rules: &mut RuleSet,
        builder: &mut TableBuilder,
    ) -> Result<(), Error> {
        for segment in self.elf.code() {
            let code_end = segment
                .addresses
                .start
                .saturating_add(segment.bytes.len() as u64);
            let gap = start.max(segment.addresses.start)..end.min(code_end);
            if gap.start >= gap.end {
                continue;
            }
            let offset = (gap.start - segment.addresses.start) as usize;
            let code = &segment.bytes[offset..][..(gap.end - gap.start) as usize];
            let symbols = self
                .function_symbols
                .get_or_insert_with(|| self.elf.function_symbols());
            let first = symbols.partition_point(|symbol| *symbol < gap.start);
            let mut sweep = Sweep::new(gap.clone(), code);
            sweep.add_function_starts(
                symbols[first..]
                    .iter()
                    .copied()
                    .take_while(|symbol| *symbol < gap.end),
            );
            sweep.push_rows(rules, builder)?;
            builder.push(gap.end, Rule::NO_RULE, rules)?;
        }
        Ok(())
    }
}
