//! What kinds of events a trace has.

use hashbrown::HashMap;

use crate::nettrace::cursor::Cursor;

/// The kinds of events that profiles are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// A stack of a thread, taken at intervals.
    ThreadSample,
    /// So and so many bytes were allocated since the last one.
    AllocationTick,
    /// A method with its addresses and its name.
    Method,
    /// A module with its path.
    Module,
    /// A sample of a processor, of a machine that is recorded as a whole.
    CpuSample,
    /// A file mapped into a process of such a machine.
    Mapping,
    /// A function of one.
    Symbol,
    Other,
}

/// The kinds by the number that events refer to them by.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    kinds: HashMap<u32, (EventKind, u32)>,
}

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
const MACHINE: &str = "Universal.System";
const MACHINE_EVENTS: &str = "Universal.Events";
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";

impl Metadata {
    /// The kind and the version of events of a number.
    pub(crate) fn kind(&self, number: u32) -> (EventKind, u32) {
        let known = self.kinds.get(&(number & 0x7fff_ffff));
        known.copied().unwrap_or((EventKind::Other, 0))
    }

    /// Takes the payload of a metadata event, up to version 5.
    pub(crate) fn take_event(&mut self, payload: &[u8]) -> Option<()> {
        let mut cursor = Cursor::new(payload);
        let number = cursor.u32()?;
        let provider = cursor.utf16()?;
        let event = cursor.u32()?;
        let name = cursor.utf16()?;
        let _keywords = cursor.u64()?;
        let version = cursor.u32()?;
        self.kinds
            .insert(number, (kind(&provider, event, &name), version));
        Some(())
    }

    /// Takes a metadata block of version 6.
    pub(crate) fn take_block(&mut self, data: &[u8]) -> Option<()> {
        let mut cursor = Cursor::new(data);
        let header_bytes = usize::from(cursor.u16()?);
        cursor.bytes(header_bytes)?;
        while !cursor.at_end() {
            let size = usize::from(cursor.u16()?);
            let mut row = Cursor::new(cursor.bytes(size)?);
            let number = row.varuint32()?;
            let provider = row.utf8()?;
            let event = row.varuint32()?;
            let name = row.utf8()?;
            // The version stands behind all fields, and newer ones only add to older ones.
            self.kinds
                .insert(number, (kind(&provider, event, &name), u32::MAX));
        }
        Some(())
    }
}

fn kind(provider: &str, event: u32, name: &str) -> EventKind {
    match (provider, event) {
        (MACHINE_EVENTS, _) if name == "cpu" => EventKind::CpuSample,
        (MACHINE, 3) => EventKind::Mapping,
        (MACHINE, 4) => EventKind::Symbol,
        (SAMPLER, 0) => EventKind::ThreadSample,
        (RUNTIME, 10) => EventKind::AllocationTick,
        // Loaded and unloaded methods, and those that were there at the start and at the end.
        (RUNTIME | RUNDOWN, 143 | 144) => EventKind::Method,
        (RUNTIME, 152 | 153) | (RUNDOWN, 153 | 154) => EventKind::Module,
        _ => EventKind::Other,
    }
}
