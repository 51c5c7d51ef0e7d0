//! Recordings of a whole machine: what is mapped into its processes, and functions there.

use candela_model::FrameKind;
use candela_model::Function;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::MappingId;
use candela_model::StringId;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::named_stacks::NamedStacks;
use crate::nettrace::cursor::Cursor;
use crate::nettrace::metadata::EventKind;
use crate::work::STEPS_PER_ENTRY;
use crate::work::Work;

/// A range of addresses of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    pid: Option<i64>,
    start: u64,
    end: u64,
}

/// The processes of a machine.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    mappings: Vec<(Range, MappingId)>,
    functions: Vec<(Range, StringId)>,
    locations: HashMap<ProcessAddress, LocationId>,
}

/// An address of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ProcessAddress {
    pid: Option<i64>,
    address: u64,
}

impl ProcessAddress {
    /// Of callers the address is behind the call.
    pub(crate) fn of_frame(pid: Option<i64>, address: u64, is_caller: bool) -> Self {
        Self {
            pid,
            address: address.saturating_sub(u64::from(is_caller)),
        }
    }
}

impl Machine {
    /// From an event about a process; `None` when it is cut off.
    pub(crate) fn take(
        &mut self,
        kind: EventKind,
        pid: Option<i64>,
        payload: &[u8],
        stacks: &mut NamedStacks<'_>,
    ) -> Option<()> {
        let mut cursor = Cursor::new(payload);
        let _id = cursor.varuint()?;
        if kind == EventKind::Symbol {
            let _mapping = cursor.varuint()?;
        }
        let range = Range {
            pid,
            start: cursor.varuint()?,
            end: cursor.varuint()?,
        };
        let file_offset = match kind {
            EventKind::Mapping => cursor.varuint()?,
            _ => 0,
        };
        let text = cursor.short_utf8()?;
        let text = stacks.cut(&text);
        let symbols = &mut stacks.profile.symbols;
        let text = symbols.strings.intern(text);
        if kind == EventKind::Symbol {
            self.functions.push((range, text));
            return Some(());
        }
        let mapping = symbols.intern_mapping(Mapping {
            memory_start: range.start,
            memory_limit: range.end,
            file_offset,
            file: text,
            build_id: StringId(0),
        });
        self.mappings.push((range, mapping));
        Some(())
    }

    /// Makes ranges findable.
    pub(crate) fn sort(&mut self) {
        self.mappings.sort_by_key(|mapping| mapping.0);
        self.functions.sort_by_key(|function| function.0);
    }

    /// Where an address is. A stack that threads of several processes name is of other addresses in
    /// each, for which the input has no bytes.
    pub(crate) fn location(
        &mut self,
        at: ProcessAddress,
        work: &mut Work,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<LocationId, ReadError> {
        if let Some(&known) = self.locations.get(&at) {
            return Ok(known);
        }
        work.spend(STEPS_PER_ENTRY)?;
        let (pid, looked_up) = (at.pid, at.address);
        let mapping = found(&self.mappings, pid, looked_up).unwrap_or_default();
        let symbols = &mut stacks.profile.symbols;
        let lines = found(&self.functions, pid, looked_up).map(|name| {
            let function = symbols.intern_function_ids(Function {
                name,
                ..Function::default()
            });
            (function, 0, 0)
        });
        let location = Location::new(FrameKind::Unknown, looked_up).in_mapping(mapping);
        let id = symbols.intern_location(&location, lines.as_slice());
        self.locations.insert(at, id);
        Ok(id)
    }
}

/// The last range that begins at or before an address, if the address is inside.
fn found<T: Copy>(ranges: &[(Range, T)], pid: Option<i64>, address: u64) -> Option<T> {
    let behind = ranges.partition_point(|(range, _)| (range.pid, range.start) <= (pid, address));
    let (range, value) = ranges.get(behind.checked_sub(1)?)?;
    (range.pid == pid && address < range.end).then_some(*value)
}
