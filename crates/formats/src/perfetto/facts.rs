//! What holds for all of a trace, wherever it stands: names of processes and threads, clocks, symbols.

use candela_model::StringId;
use hashbrown::HashMap;

use crate::named_stacks::NamedStacks;
use crate::options::Limits;
use crate::perfetto::clocks::Clocks;
use crate::perfetto::fields::bytes;
use crate::perfetto::fields::fields;
use crate::perfetto::fields::number;
use crate::perfetto::packets::Packet;
use crate::perfetto::packets::content;
use crate::perfetto::sequence::EntryBudget;
use crate::perfetto::stacks::build_id_text;
use crate::protobuf::reader::Span;
use crate::protobuf::reader::Value;
use crate::protobuf::reader::WireError;

/// A source line of an address: function, file, line.
pub(crate) type SymbolLine = (StringId, StringId, u32);

#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) clocks: Clocks,
    /// By process id.
    pub(crate) processes: HashMap<i64, StringId>,
    /// By thread id.
    pub(crate) threads: HashMap<i64, StringId>,
    /// Process of each thread.
    pub(crate) thread_pids: HashMap<i64, i64>,
    /// Lines of addresses, innermost first, by build id.
    pub(crate) symbols: HashMap<(StringId, u64), Vec<SymbolLine>>,
    /// To be checked after each packet.
    pub(crate) budget: EntryBudget,
}

impl Facts {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            clocks: Clocks::default(),
            processes: HashMap::new(),
            threads: HashMap::new(),
            thread_pids: HashMap::new(),
            symbols: HashMap::new(),
            budget: EntryBudget::new(limits),
        }
    }

    pub(crate) fn take(
        &mut self,
        data: &[u8],
        packet: &Packet,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<(), WireError> {
        for &(kind, span) in &packet.content {
            match kind {
                content::CLOCK_SNAPSHOT => {
                    self.clocks.take_snapshot(data, span, packet.sequence)?;
                }
                content::PROCESS_TREE => self.take_process_tree(data, span, stacks)?,
                content::PROCESS_DESCRIPTOR => self.take_process(data, span, 6, stacks)?,
                content::THREAD_DESCRIPTOR => self.take_thread(data, span, DESCRIPTOR, stacks)?,
                content::TRACK_DESCRIPTOR => {
                    fields(data, span, |field, value| match (field, value) {
                        (3, Value::Bytes(span)) => self.take_process(data, span, 6, stacks),
                        (4, Value::Bytes(span)) => self.take_thread(data, span, DESCRIPTOR, stacks),
                        _ => Ok(()),
                    })?;
                }
                content::MODULE_SYMBOLS => self.take_symbols(data, span, stacks)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn take_process_tree(
        &mut self,
        data: &[u8],
        span: Span,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<(), WireError> {
        fields(data, span, |field, value| match (field, value) {
            (1, Value::Bytes(span)) => self.take_process(data, span, 3, stacks),
            (2, Value::Bytes(span)) => self.take_thread(data, span, TREE, stacks),
            _ => Ok(()),
        })
    }

    /// A process; the first text of the field `name` is what it is called.
    fn take_process(
        &mut self,
        data: &[u8],
        span: Span,
        name: u32,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<(), WireError> {
        let mut pid = 0;
        let mut text = None;
        fields(data, span, |field, value| {
            match (field, value) {
                (1, value) => pid = number(value) as i64,
                (field, Value::Bytes(span)) if field == name && text.is_none() => text = Some(span),
                _ => {}
            }
            Ok(())
        })?;
        if let Some(text) = text.filter(|_| self.budget.has_taken_one()) {
            let text = stacks.text(bytes(data, text));
            let program = text.split_whitespace().next().unwrap_or("");
            let program = program.rsplit('/').next().unwrap_or(program);
            let program = stacks.cut(program);
            let id = stacks.profile.symbols.strings.intern(program);
            self.processes.insert(pid, id);
        }
        Ok(())
    }

    fn take_thread(
        &mut self,
        data: &[u8],
        span: Span,
        shape: ThreadFields,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<(), WireError> {
        let (mut pid, mut tid, mut name) = (0, 0, None);
        fields(data, span, |field, value| {
            match value {
                value if field == shape.pid => pid = number(value) as i64,
                value if field == shape.tid => tid = number(value) as i64,
                Value::Bytes(span) if field == shape.name => name = Some(span),
                _ => {}
            }
            Ok(())
        })?;
        if !self.budget.has_taken_one() {
            return Ok(());
        }
        self.thread_pids.insert(tid, pid);
        if let Some(name) = name {
            let name = stacks.text(bytes(data, name));
            let name = stacks.cut(&name);
            let id = stacks.profile.symbols.strings.intern(name);
            self.threads.insert(tid, id);
        }
        Ok(())
    }

    fn take_symbols(
        &mut self,
        data: &[u8],
        span: Span,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<(), WireError> {
        let mut build_id = StringId(0);
        fields(data, span, |field, value| {
            if let (2, Value::Bytes(span)) = (field, value) {
                let text = build_id_text(bytes(data, span));
                let text = stacks.cut(&text);
                build_id = stacks.profile.symbols.strings.intern(text);
            }
            Ok(())
        })?;
        fields(data, span, |field, value| {
            let (3, Value::Bytes(span)) = (field, value) else {
                return Ok(());
            };
            let mut address = 0;
            let mut lines = Vec::new();
            fields(data, span, |field, value| {
                match (field, value) {
                    (1, value) => address = number(value),
                    (2, Value::Bytes(span)) => lines.push(symbol_line(data, span, stacks)?),
                    _ => {}
                }
                Ok(())
            })?;
            if self.budget.has_taken_one() {
                self.symbols.insert((build_id, address), lines);
            }
            Ok(())
        })
    }
}

/// The numbers of fields of two messages for threads.
#[derive(Clone, Copy)]
struct ThreadFields {
    pid: u32,
    tid: u32,
    name: u32,
}

const TREE: ThreadFields = ThreadFields {
    pid: 3,
    tid: 1,
    name: 2,
};

const DESCRIPTOR: ThreadFields = ThreadFields {
    pid: 1,
    tid: 2,
    name: 5,
};

/// Name, file and line of a function, as symbols of modules and inline stacks have them.
pub(crate) fn symbol_line(
    data: &[u8],
    span: Span,
    stacks: &mut NamedStacks<'_>,
) -> Result<SymbolLine, WireError> {
    let mut line = (StringId(0), StringId(0), 0);
    fields(data, span, |field, value| {
        match (field, value) {
            (1 | 2, Value::Bytes(span)) => {
                let text = stacks.text(bytes(data, span));
                let text = stacks.cut(&text);
                let id = stacks.profile.symbols.strings.intern(text);
                if field == 1 {
                    line.0 = id;
                } else {
                    line.1 = id;
                }
            }
            (3, value) => line.2 = u32::try_from(number(value)).unwrap_or(0),
            _ => {}
        }
        Ok(())
    })?;
    Ok(line)
}
