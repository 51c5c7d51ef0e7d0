//! Files, threads and events, which stand behind the samples that refer to them.

use candela_model::FrameKind;
use candela_model::FunctionId;
use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::SampleLabel;
use candela_model::StringId;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::options::Limits;
use crate::protobuf::reader::Reader;
use crate::protobuf::reader::Span;
use crate::protobuf::reader::Value;
use crate::protobuf::reader::WireError;
use crate::simpleperf::read::MOST_EVENTS;
use crate::work::STEPS_PER_ENTRY;
use crate::work::Work;

/// What runs in the virtual machine, interpreted or compiled when needed.
const EXECUTION_OF_JVM: [u64; 2] = [1, 2];

/// Files of bytecode.
const BYTECODE: [&str; 4] = [".jar", ".dex", ".vdex", ".apk"];

/// A file with its symbols by their numbers.
#[derive(Debug, Default)]
struct File {
    path: StringId,
    is_kernel: bool,
    is_bytecode: bool,
    symbols: Vec<Span>,
    mangled: Vec<Span>,
}

/// A thread and its process.
#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    process: u64,
    name: StringId,
}

/// One frame of a call chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    pub(crate) address: u64,
    pub(crate) file: u64,
    /// -1 as an unsigned number where no symbol is known.
    pub(crate) symbol: u64,
    pub(crate) execution: u64,
}

/// All that samples refer to.
#[derive(Debug)]
pub(crate) struct Tables<'a> {
    data: &'a [u8],
    limits: Limits,
    files: HashMap<u64, File>,
    threads: HashMap<u64, Thread>,
    pub(crate) events: Vec<String>,
    pub(crate) lost: u64,
    functions: HashMap<(u64, u64), Option<FunctionId>>,
    locations: HashMap<Frame, LocationId>,
    label_sets: HashMap<u64, LabelSetId>,
    work: Work,
}

impl<'a> Tables<'a> {
    pub(crate) fn new(data: &'a [u8], limits: Limits) -> Self {
        Self {
            data,
            limits,
            files: HashMap::new(),
            threads: HashMap::new(),
            events: Vec::new(),
            lost: 0,
            functions: HashMap::new(),
            locations: HashMap::new(),
            label_sets: HashMap::new(),
            work: Work::new(&limits),
        }
    }

    pub(crate) fn read_lost(&mut self, message: Span) -> Result<(), WireError> {
        let mut reader = Reader::of(self.data, message);
        while let Some((field, value)) = reader.field()? {
            if let (2, Value::Varint(lost)) = (field, value) {
                self.lost = lost;
            }
        }
        Ok(())
    }

    pub(crate) fn read_file(
        &mut self,
        message: Span,
        profile: &mut Profile,
    ) -> Result<(), WireError> {
        let mut reader = Reader::of(self.data, message);
        let mut number = 0;
        let mut file = File::default();
        while let Some((field, value)) = reader.field()? {
            match (field, value) {
                (1, Value::Varint(id)) => number = id,
                (2, Value::Bytes(path)) => {
                    let path = self.text(path);
                    let bytecode = BYTECODE.iter().any(|end| path.ends_with(end));
                    file.is_bytecode = bytecode;
                    file.is_kernel = path.starts_with("[kernel") || path.ends_with(".ko");
                    file.path = profile.symbols.strings.intern(&path);
                }
                (3, Value::Bytes(symbol)) => file.symbols.push(symbol),
                (4, Value::Bytes(symbol)) => file.mangled.push(symbol),
                _ => {}
            }
        }
        self.files.insert(number, file);
        Ok(())
    }

    pub(crate) fn read_thread(
        &mut self,
        message: Span,
        profile: &mut Profile,
    ) -> Result<(), WireError> {
        let mut reader = Reader::of(self.data, message);
        let mut number = 0;
        let mut thread = Thread::default();
        while let Some((field, value)) = reader.field()? {
            match (field, value) {
                (1, Value::Varint(id)) => number = id,
                (2, Value::Varint(process)) => thread.process = process,
                (3, Value::Bytes(name)) => {
                    let name = self.text(name);
                    thread.name = profile.symbols.strings.intern(&name);
                }
                _ => {}
            }
        }
        self.threads.insert(number, thread);
        Ok(())
    }

    pub(crate) fn read_meta(&mut self, message: Span) -> Result<(), WireError> {
        let mut reader = Reader::of(self.data, message);
        while let Some((field, value)) = reader.field()? {
            if let (1, Value::Bytes(name)) = (field, value) {
                if self.events.len() as u64 >= MOST_EVENTS {
                    continue;
                }
                let name = self.text(name);
                self.events.push(name);
            }
        }
        Ok(())
    }

    pub(crate) fn location(
        &mut self,
        frame: Frame,
        profile: &mut Profile,
    ) -> Result<LocationId, ReadError> {
        if let Some(known) = self.locations.get(&frame) {
            return Ok(*known);
        }
        self.work.spend(STEPS_PER_ENTRY)?;
        let empty = File::default();
        let file = self.files.get(&frame.file).unwrap_or(&empty);
        let kind = if file.is_kernel {
            FrameKind::Kernel
        } else if file.is_bytecode || EXECUTION_OF_JVM.contains(&frame.execution) {
            FrameKind::Jvm
        } else {
            FrameKind::Native
        };
        let path = file.path;
        let function = self.function(frame.file, frame.symbol, profile);
        let symbols = &mut profile.symbols;
        let mapping = symbols.intern_mapping(Mapping {
            file: path,
            ..Mapping::default()
        });
        let location = Location::new(kind, frame.address).in_mapping(mapping);
        let made = match function {
            Some(function) => symbols.intern_location(&location, &[(function, 0, 0)]),
            None => symbols.intern_location(&location, &[]),
        };
        self.locations.insert(frame, made);
        Ok(made)
    }

    /// The function of a symbol. Each is looked at once: a long name may stand in millions of frames.
    fn function(&mut self, file: u64, symbol: u64, profile: &mut Profile) -> Option<FunctionId> {
        if let Some(known) = self.functions.get(&(file, symbol)) {
            return *known;
        }
        let names = self.files.get(&file).and_then(|file| {
            let symbol = usize::try_from(symbol).ok()?;
            let name = self.text(*file.symbols.get(symbol)?);
            let mangled = file.mangled.get(symbol).map(|span| self.text(*span));
            Some((name, mangled.unwrap_or_default()))
        });
        let function = names.filter(|(name, _)| !name.is_empty());
        let function = function.map(|(name, mangled)| {
            let system_name = if mangled == name { "" } else { &mangled };
            profile.symbols.intern_function(&name, system_name, "", 0)
        });
        self.functions.insert((file, symbol), function);
        function
    }

    /// The labels of a thread's samples, as the agent names them.
    pub(crate) fn label_set(&mut self, thread_id: u64, profile: &mut Profile) -> LabelSetId {
        if let Some(known) = self.label_sets.get(&thread_id) {
            return *known;
        }
        let thread = self.threads.get(&thread_id).copied();
        let mut labels = Vec::new();
        let strings = &mut profile.symbols.strings;
        let process = thread.map(|thread| thread.process);
        for (name, number) in [("thread_id", Some(thread_id)), ("pid", process)] {
            let value = number.and_then(|number| i64::try_from(number).ok());
            let key = strings.intern(name);
            labels.extend(value.map(|value| SampleLabel {
                key,
                value: LabelValue::Number {
                    value,
                    unit: StringId::default(),
                },
            }));
        }
        let main = process.and_then(|process| self.threads.get(&process));
        for (key, named) in [
            ("thread_name", thread),
            ("process_executable_name", main.copied()),
        ] {
            let name = named.map_or(StringId::default(), |thread| thread.name);
            if name != StringId::default() {
                labels.push(SampleLabel::text(strings.intern(key), name));
            }
        }
        let made = profile.label_sets.intern(labels);
        self.label_sets.insert(thread_id, made);
        made
    }

    fn text(&self, span: Span) -> String {
        let bytes = self.data.get(span.range()).unwrap_or(&[]);
        let text = String::from_utf8_lossy(bytes);
        self.limits.cut(&text).to_owned()
    }
}
