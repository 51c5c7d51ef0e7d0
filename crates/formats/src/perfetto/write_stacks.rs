//! What samples of a sequence refer to, written when it is first needed.

use candela_model::FrameKind;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::MappingId;
use candela_model::Profile;
use candela_model::StackId;
use candela_model::StringId;
use hashbrown::HashMap;

use crate::protobuf::writer::Message;

/// The numbers that a sequence gave to what it has written.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    functions: Texts,
    source_files: Texts,
    paths: Texts,
    build_ids: Texts,
    mappings: HashMap<MappingId, u64>,
    /// The frames of each location, outermost first.
    locations: HashMap<LocationId, Vec<u64>>,
    stacks: HashMap<StackId, u64>,
    frame_count: u64,
}

/// Texts of one kind. Number 0 is none, and the empty text has none.
#[derive(Debug, Default)]
struct Texts {
    numbers: HashMap<StringId, u64>,
}

impl Texts {
    fn number(&mut self, field: u32, id: StringId, content: &[u8], interned: &mut Message) -> u64 {
        if content.is_empty() {
            return 0;
        }
        if let Some(&known) = self.numbers.get(&id) {
            return known;
        }
        let number = self.numbers.len() as u64 + 1;
        self.numbers.insert(id, number);
        let mut message = Message::default();
        message.number(1, number);
        message.bytes(2, content);
        interned.bytes(field, &message.bytes);
        number
    }
}

impl Interner {
    /// The number of a stack. What is not written yet is put into `interned`, a message `InternedData`.
    pub(crate) fn stack(
        &mut self,
        profile: &Profile,
        stack: StackId,
        interned: &mut Message,
    ) -> u64 {
        if let Some(&known) = self.stacks.get(&stack) {
            return known;
        }
        let mut callstack = Message::default();
        let number = self.stacks.len() as u64 + 1;
        self.stacks.insert(stack, number);
        callstack.number(1, number);
        for &id in profile.stacks.get(stack).iter().rev() {
            if !self.locations.contains_key(&id) {
                let made = self.frames(profile, id, interned);
                self.locations.insert(id, made);
            }
            for &frame in &self.locations[&id] {
                callstack.number(2, frame);
            }
        }
        interned.bytes(7, &callstack.bytes);
        number
    }

    fn frames(&mut self, profile: &Profile, id: LocationId, interned: &mut Message) -> Vec<u64> {
        let symbols = &profile.symbols;
        let location = *symbols.location(id);
        let mapping = self.mapping(profile, location.mapping, interned);
        let lines = symbols.lines(id);
        if lines.is_empty() {
            return vec![self.frame(&location, mapping, (0, 0, 0), interned)];
        }
        let outermost_first = lines.iter().rev();
        outermost_first
            .map(|line| {
                let function = symbols.function(line.function);
                let text = |id| symbols.strings.get(id).as_bytes();
                let (name, file) = (function.name, function.file);
                let name = self.functions.number(5, name, text(name), interned);
                let file = self.source_files.number(18, file, text(file), interned);
                self.frame(&location, mapping, (name, file, line.line), interned)
            })
            .collect()
    }

    /// Writes a frame with the numbers of its function and its source file and the line.
    fn frame(
        &mut self,
        location: &Location,
        mapping: u64,
        (function, source_file, line): (u64, u64, u32),
        interned: &mut Message,
    ) -> u64 {
        self.frame_count += 1;
        let mut message = Message::default();
        message.number(1, self.frame_count);
        message.number(2, function);
        message.number(3, mapping);
        message.number(4, location.address);
        message.number(5, source_file);
        message.number(6, u64::from(line));
        match location.kind {
            FrameKind::Unknown => {}
            FrameKind::Native => message.number(7, 1),
            FrameKind::Kernel => message.number(7, 2),
            other => message.bytes(8, other.as_str().as_bytes()),
        }
        interned.bytes(6, &message.bytes);
        self.frame_count
    }

    /// Every frame needs a mapping, or Perfetto's trace processor leaves it out.
    fn mapping(&mut self, profile: &Profile, id: MappingId, interned: &mut Message) -> u64 {
        if let Some(&known) = self.mappings.get(&id) {
            return known;
        }
        let symbols = &profile.symbols;
        let mapping = symbols.mapping(id);
        let path = symbols.strings.get(mapping.file);
        // The slash in front is put there by those who read it.
        let path = path.strip_prefix('/').unwrap_or(path);
        let path = self
            .paths
            .number(17, mapping.file, path.as_bytes(), interned);
        let build_id = build_id_bytes(symbols.strings.get(mapping.build_id));
        let build_id = self
            .build_ids
            .number(16, mapping.build_id, &build_id, interned);
        let number = self.mappings.len() as u64 + 1;
        let mut message = Message::default();
        message.number(1, number);
        message.number(2, build_id);
        message.number(3, mapping.file_offset);
        message.number(4, mapping.memory_start);
        message.number(5, mapping.memory_limit);
        message.number(8, mapping.file_offset);
        if path != 0 {
            message.number(7, path);
        }
        interned.bytes(19, &message.bytes);
        self.mappings.insert(id, number);
        number
    }
}

/// The bytes that hexadecimal digits stand for; other text is written as it is.
fn build_id_bytes(text: &str) -> Vec<u8> {
    let digits = text.as_bytes();
    let pairs = digits.chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16)
            .ok()
            .filter(|_| pair.len() == 2)
    });
    pairs
        .collect::<Option<Vec<u8>>>()
        .unwrap_or(digits.to_vec())
}
