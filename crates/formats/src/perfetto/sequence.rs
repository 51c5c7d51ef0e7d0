//! What packets of one sequence refer to by number.

use candela_model::FrameKind;
use candela_model::LocationId;
use candela_model::StackId;
use candela_model::StringId;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::named_stacks::NamedStacks;
use crate::options::Limits;
use crate::perfetto::counters::Descriptor;
use crate::perfetto::counters::Measure;
use crate::perfetto::counters::MeasuredSeries;
use crate::perfetto::fields::bytes;
use crate::perfetto::fields::fields;
use crate::perfetto::fields::number;
use crate::perfetto::stacks::build_id_text;
use crate::protobuf::reader::Span;
use crate::protobuf::reader::Value;
use crate::protobuf::reader::WireError;
use crate::protobuf::reader::numbers;

/// The state of a sequence.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    pub(crate) tables: Tables,
    /// Whether it began with a clean state and lost no packet since.
    pub(crate) is_whole: bool,
    pub(crate) default_clock: Option<u32>,
    /// How the values of its samples are to be taken.
    pub(crate) measure: Option<Box<Measure>>,
    /// The series that follow from it, once there is a sample.
    pub(crate) measured: Option<MeasuredSeries>,
    pub(crate) primary: Option<Descriptor>,
    pub(crate) followers: Vec<Descriptor>,
    pub(crate) descriptors: HashMap<u64, Descriptor>,
    pub(crate) tasks: HashMap<u64, Task>,
    /// Of clocks whose times are distances.
    pub(crate) last_times: HashMap<u32, i64>,
    /// The counter at the last sample.
    pub(crate) last_count: u64,
    /// Process and thread of samples that do not say it.
    pub(crate) thread: Task,
    pub(crate) stream_time_us: i64,
    /// What heap profiles refer to besides.
    pub(crate) heap_tables: Tables,
    known: HashMap<u64, StackId>,
    /// What was made of frames since tables changed last.
    pub(crate) made: MadeLocations,
}

/// Locations by the number of the frame, and whether it is of a heap profile.
pub(crate) type MadeLocations = HashMap<(u64, bool), LocationId>;

/// Process and thread, where they are known.
pub(crate) type Task = (Option<i64>, Option<i64>);

/// Texts, frames and stacks by number.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) functions: HashMap<u64, StringId>,
    pub(crate) paths: HashMap<u64, StringId>,
    pub(crate) build_ids: HashMap<u64, BuildId>,
    pub(crate) source_files: HashMap<u64, StringId>,
    pub(crate) mappings: HashMap<u64, FileMapping>,
    pub(crate) frames: HashMap<u64, Frame>,
    /// Frames of each stack, root first.
    pub(crate) callstacks: HashMap<u64, Vec<u64>>,
}

/// As text, which is kept apart as it is of bytes.
pub(crate) type BuildId = StringId;

#[derive(Clone, Debug, Default)]
pub(crate) struct FileMapping {
    pub(crate) build_id: u64,
    pub(crate) path: Vec<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Frame {
    pub(crate) function: u64,
    pub(crate) mapping: u64,
    pub(crate) address: u64,
    pub(crate) source_file: u64,
    pub(crate) line: u32,
    pub(crate) kind: FrameKind,
}

/// Which table a text belongs to.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum TextOf {
    Function,
    Path,
    BuildId,
    SourceFile,
}

/// How many entries there may be, so that two bytes of input do not take hundreds of memory.
#[derive(Debug)]
pub(crate) struct EntryBudget {
    left: usize,
    limit: usize,
    is_exceeded: bool,
}

/// What an entry takes in memory, about.
const BYTES_PER_ENTRY: usize = 64;

impl EntryBudget {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            left: limits.max_messages,
            limit: limits.max_messages,
            is_exceeded: false,
        }
    }

    /// Whether there may be one more. A message is walked over to its end whatever the answer is, so
    /// that who walks needs no other errors than those of the wire; [`check`](Self::check) tells after.
    pub(crate) fn has_taken_one(&mut self) -> bool {
        let left = self.left.checked_sub(1);
        self.is_exceeded |= left.is_none();
        self.left = left.unwrap_or(0);
        !self.is_exceeded
    }

    /// Pays for the state of a sequence, which is as large as many entries.
    pub(crate) fn take_sequence(&mut self) -> Result<(), ReadError> {
        let left = self
            .left
            .checked_sub(size_of::<Sequence>() / BYTES_PER_ENTRY);
        self.is_exceeded |= left.is_none();
        self.left = left.unwrap_or(0);
        self.check()
    }

    /// # Errors
    /// When there were more entries than may be.
    pub(crate) fn check(&self) -> Result<(), ReadError> {
        if !self.is_exceeded {
            return Ok(());
        }
        Err(ReadError::TooLarge {
            what: "the number of interned entries",
            limit: self.limit,
        })
    }
}

impl Sequence {
    /// Forgets all, as a packet says.
    pub(crate) fn clear(&mut self) {
        let heap_tables = std::mem::take(&mut self.heap_tables);
        *self = Self {
            is_whole: true,
            heap_tables,
            thread: self.thread,
            stream_time_us: self.stream_time_us,
            ..Self::default()
        };
    }

    /// The stack that was made of a number before.
    pub(crate) fn known_stack(&self, iid: u64) -> Option<StackId> {
        self.known.get(&iid).copied()
    }

    pub(crate) fn remember_stack(&mut self, iid: u64, stack: StackId) {
        self.known.insert(iid, stack);
    }

    /// Makes locations anew from now on, as tables change.
    pub(crate) fn forget_locations(&mut self) {
        // A new table and not a cleared one: to clear takes as long as the table was ever large.
        self.made = HashMap::new();
    }

    /// Takes a message `InternedData`.
    pub(crate) fn take_interned(
        &mut self,
        data: &[u8],
        span: Span,
        stacks: &mut NamedStacks<'_>,
        budget: &mut EntryBudget,
    ) -> Result<(), WireError> {
        self.forget_locations();
        fields(data, span, |field, value| {
            let Value::Bytes(span) = value else {
                return Ok(());
            };
            let is_known = matches!(field, 5..=7 | 16..=19 | 48 | 50);
            if !is_known || !budget.has_taken_one() {
                return Ok(());
            }
            let tables = &mut self.tables;
            match field {
                5 => tables.take_text(data, span, &[TextOf::Function], stacks)?,
                6 => tables.take_frame(data, span)?,
                7 => tables.take_callstack(data, span)?,
                16 => tables.take_text(data, span, &[TextOf::BuildId], stacks)?,
                17 => tables.take_text(data, span, &[TextOf::Path], stacks)?,
                18 => tables.take_text(data, span, &[TextOf::SourceFile], stacks)?,
                19 => tables.take_mapping(data, span)?,
                48 => {
                    let (iid, task) = task_context(data, span)?;
                    self.tasks.insert(iid, task);
                }
                50 => {
                    let (iid, descriptor) = Descriptor::read(data, span, stacks)?;
                    self.descriptors.insert(iid, descriptor);
                }
                _ => {}
            }
            Ok(())
        })
    }
}

impl Tables {
    /// An interned text, into one table or several.
    pub(crate) fn take_text(
        &mut self,
        data: &[u8],
        span: Span,
        targets: &[TextOf],
        stacks: &mut NamedStacks<'_>,
    ) -> Result<(), WireError> {
        let (mut iid, mut content) = (0, None);
        fields(data, span, |field, value| {
            match (field, value) {
                (1, value) => iid = number(value),
                (2, Value::Bytes(span)) => content = Some(span),
                _ => {}
            }
            Ok(())
        })?;
        let content = content.map_or(&[][..], |span| bytes(data, span));
        for target in targets {
            let text = if *target == TextOf::BuildId {
                build_id_text(content).into()
            } else {
                stacks.text(content)
            };
            let text = stacks.cut(&text);
            let id = stacks.profile.symbols.strings.intern(text);
            let table = match target {
                TextOf::Function => &mut self.functions,
                TextOf::Path => &mut self.paths,
                TextOf::BuildId => &mut self.build_ids,
                TextOf::SourceFile => &mut self.source_files,
            };
            table.insert(iid, id);
        }
        Ok(())
    }

    pub(crate) fn take_mapping(&mut self, data: &[u8], span: Span) -> Result<(), WireError> {
        let mut iid = 0;
        let mut mapping = FileMapping::default();
        fields(data, span, |field, value| {
            match field {
                1 => iid = number(value),
                2 => mapping.build_id = number(value),
                7 => numbers(data, 7, value, |part| mapping.path.push(part))?,
                _ => {}
            }
            Ok(())
        })?;
        self.mappings.insert(iid, mapping);
        Ok(())
    }

    pub(crate) fn take_frame(&mut self, data: &[u8], span: Span) -> Result<(), WireError> {
        let mut iid = 0;
        let mut frame = Frame::default();
        fields(data, span, |field, value| {
            match (field, value) {
                (1, value) => iid = number(value),
                (2, value) => frame.function = number(value),
                (3, value) => frame.mapping = number(value),
                (4, value) => frame.address = number(value),
                (5, value) => frame.source_file = number(value),
                (6, value) => frame.line = u32::try_from(number(value)).unwrap_or(0),
                (7, value) => {
                    frame.kind = match number(value) {
                        1 => FrameKind::Native,
                        2 => FrameKind::Kernel,
                        _ => FrameKind::Unknown,
                    };
                }
                (8, Value::Bytes(span)) => {
                    let name = String::from_utf8_lossy(bytes(data, span));
                    frame.kind = FrameKind::from_name(&name);
                }
                _ => {}
            }
            Ok(())
        })?;
        self.frames.insert(iid, frame);
        Ok(())
    }

    pub(crate) fn take_callstack(&mut self, data: &[u8], span: Span) -> Result<(), WireError> {
        let mut iid = 0;
        let mut frames = Vec::new();
        fields(data, span, |field, value| {
            match field {
                1 => iid = number(value),
                2 => numbers(data, 2, value, |frame| frames.push(frame))?,
                _ => {}
            }
            Ok(())
        })?;
        self.callstacks.insert(iid, frames);
        Ok(())
    }
}

/// The number of a task context, its process and its thread.
pub(crate) fn task_context(data: &[u8], span: Span) -> Result<(u64, Task), WireError> {
    let (mut iid, mut pid, mut tid) = (0, None, None);
    fields(data, span, |field, value| {
        match field {
            1 => iid = number(value),
            2 => pid = Some(number(value) as i64),
            3 => tid = Some(number(value) as i64),
            _ => {}
        }
        Ok(())
    })?;
    Ok((iid, (pid, tid)))
}
