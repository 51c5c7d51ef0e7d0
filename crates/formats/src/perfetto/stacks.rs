//! Stacks from what a sequence refers to.

use candela_model::FrameKind;
use candela_model::Function;
use candela_model::FunctionId;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::MappingId;
use candela_model::StackId;
use candela_model::StringId;

use crate::error::ReadError;
use crate::hex::hex;
use crate::named_stacks::NamedStacks;
use crate::options::Limits;
use crate::perfetto::facts::Facts;
use crate::perfetto::facts::SymbolLine;
use crate::perfetto::sequence::FileMapping;
use crate::perfetto::sequence::Frame;
use crate::perfetto::sequence::MadeLocations;
use crate::perfetto::sequence::Sequence;
use crate::work::STEPS_PER_LINE;
use crate::work::Work;

/// Makes stacks, with bounds on what numbers can repeat.
pub(crate) struct StackMaker<'a> {
    limits: &'a Limits,
    frames_left: usize,
    path_bytes_left: usize,
    pub(crate) work: Work,
    leaf_first: Vec<LocationId>,
}

impl<'a> StackMaker<'a> {
    pub(crate) fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            frames_left: limits.inflated_bytes(),
            path_bytes_left: limits.inflated_bytes(),
            work: Work::new(limits),
            leaf_first: Vec::new(),
        }
    }

    /// The stack with a number; that of heap profiles is looked for in their own tables first. `None`
    /// when it was not explained.
    pub(crate) fn stack(
        &mut self,
        iid: u64,
        is_heap: bool,
        (sequence, made): (&Sequence, &mut MadeLocations),
        facts: &Facts,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<Option<StackId>, ReadError> {
        let own = is_heap
            .then(|| sequence.heap_tables.callstacks.get(&iid))
            .flatten();
        let Some(frames) = own.or_else(|| sequence.tables.callstacks.get(&iid)) else {
            return Ok(None);
        };
        let kept = self.count_frames(frames.len(), stacks)?;
        self.leaf_first.clear();
        for &frame in frames.iter().take(kept).rev() {
            if let Some(&known) = made.get(&(frame, is_heap)) {
                self.leaf_first.push(known);
                continue;
            }
            let location = match self.location(frame, sequence, is_heap, facts, stacks)? {
                Some(location) => *made.entry((frame, is_heap)).insert(location).get(),
                None => missing_frame(stacks),
            };
            self.leaf_first.push(location);
        }
        Ok(Some(stacks.profile.stacks.intern(&self.leaf_first)))
    }

    /// A stack of frames that are described where they stand, root first.
    pub(crate) fn inline_stack(
        &mut self,
        root_first: &[SymbolLine],
        stacks: &mut NamedStacks<'_>,
    ) -> Result<StackId, ReadError> {
        let kept = self.count_frames(root_first.len(), stacks)?;
        self.leaf_first.clear();
        for &(name, file, line) in root_first.iter().take(kept).rev() {
            let function = function(name, file, stacks);
            let symbols = &mut stacks.profile.symbols;
            let location = Location::new(FrameKind::Unknown, 0);
            let id = symbols.intern_location(&location, &[(function, line, 0)]);
            self.leaf_first.push(id);
        }
        Ok(stacks.profile.stacks.intern(&self.leaf_first))
    }

    fn count_frames(
        &mut self,
        count: usize,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<usize, ReadError> {
        let kept = count.min(self.limits.max_stack_depth);
        if kept < count {
            stacks.report.note(
                "stacks_cut",
                "stacks deeper than the limit were cut at the leaf",
            );
        }
        self.frames_left = self
            .frames_left
            .checked_sub(kept)
            .ok_or(ReadError::TooLarge {
                what: "the number of frames of all stacks",
                limit: self.limits.inflated_bytes(),
            })?;
        Ok(kept)
    }

    /// Where a frame is; `None` when it was not explained.
    fn location(
        &mut self,
        iid: u64,
        sequence: &Sequence,
        is_heap: bool,
        facts: &Facts,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<Option<LocationId>, ReadError> {
        let (own, shared) = (&sequence.heap_tables, &sequence.tables);
        let own = is_heap.then_some(own);
        let found = own.and_then(|own| own.frames.get(&iid));
        let Some(frame) = found.or_else(|| shared.frames.get(&iid)) else {
            return Ok(None);
        };
        let found = own.and_then(|own| own.mappings.get(&frame.mapping));
        let file = found.or_else(|| shared.mappings.get(&frame.mapping));
        let build_id = file.and_then(|file| {
            let found = own.and_then(|own| own.build_ids.get(&file.build_id));
            found.or_else(|| shared.build_ids.get(&file.build_id))
        });
        let build_id = build_id.copied().unwrap_or_default();
        let (mapping, is_kernel) = match file {
            Some(file) => self.mapping(file, build_id, sequence, is_heap, stacks)?,
            None => (MappingId(0), false),
        };
        let found = own.and_then(|own| own.functions.get(&frame.function));
        let name = found.or_else(|| shared.functions.get(&frame.function));
        let source = shared.source_files.get(&frame.source_file);
        let lines = self.lines(
            frame,
            name.copied().unwrap_or_default(),
            source.copied().unwrap_or_default(),
            facts.symbols.get(&(build_id, frame.address)),
            stacks,
        )?;
        let kind = match frame.kind {
            FrameKind::Unknown if is_kernel => FrameKind::Kernel,
            kind => kind,
        };
        // The address is of the object file, and so no mapping has a range.
        let location = Location::new(kind, frame.address).in_mapping(mapping);
        let symbols = &mut stacks.profile.symbols;
        Ok(Some(symbols.intern_location(&location, &lines)))
    }

    /// Symbols that came later win over the name that the profiler knew.
    fn lines(
        &mut self,
        frame: &Frame,
        name: StringId,
        source: StringId,
        symbols: Option<&Vec<SymbolLine>>,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<Vec<(FunctionId, u32, u32)>, ReadError> {
        if let Some(symbols) = symbols.filter(|symbols| !symbols.is_empty()) {
            let kept = symbols.len().min(self.limits.max_stack_depth);
            self.work.spend(kept.saturating_mul(STEPS_PER_LINE))?;
            let lines = symbols.iter().take(kept);
            let lines = lines.map(|&(name, file, line)| (function(name, file, stacks), line, 0));
            return Ok(lines.collect());
        }
        if name == StringId(0) {
            return Ok(Vec::new());
        }
        Ok(vec![(function(name, source, stacks), frame.line, 0)])
    }

    fn mapping(
        &mut self,
        file: &FileMapping,
        build_id: StringId,
        sequence: &Sequence,
        is_heap: bool,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<(MappingId, bool), ReadError> {
        self.work.spend(file.path.len())?;
        let mut path = String::new();
        for part in &file.path {
            let own = is_heap
                .then(|| sequence.heap_tables.paths.get(part))
                .flatten();
            let part = own.or_else(|| sequence.tables.paths.get(part));
            let part = stacks
                .profile
                .symbols
                .strings
                .get(part.copied().unwrap_or_default());
            if part.is_empty() {
                continue;
            }
            // Parts are what stands between slashes; some writers give the path as one.
            if !part.starts_with(['/', '[']) {
                path.push('/');
            }
            path.push_str(part);
            if path.len() > self.limits.max_string_bytes {
                break;
            }
        }
        self.path_bytes_left =
            self.path_bytes_left
                .checked_sub(path.len())
                .ok_or(ReadError::TooLarge {
                    what: "the number of bytes of all paths",
                    limit: self.limits.inflated_bytes(),
                })?;
        let is_kernel = ["[kernel", "/kernel", "[guest.kernel"]
            .iter()
            .any(|start| path.starts_with(start))
            || path.ends_with(".ko");
        let path = stacks.cut(&path);
        let symbols = &mut stacks.profile.symbols;
        let mapping = Mapping {
            file: symbols.strings.intern(path),
            build_id,
            ..Mapping::default()
        };
        Ok((symbols.intern_mapping(mapping), is_kernel))
    }
}

/// Build ids are bytes; those of Breakpad and of some writers are text already.
pub(crate) fn build_id_text(bytes: &[u8]) -> String {
    const SHORTEST_TEXT: usize = 32;
    let is_text = bytes.len() >= SHORTEST_TEXT && bytes.iter().all(u8::is_ascii_hexdigit);
    if is_text {
        return String::from_utf8_lossy(bytes).to_ascii_lowercase();
    }
    hex(bytes)
}

fn missing_frame(stacks: &mut NamedStacks<'_>) -> LocationId {
    stacks.report.note(
        "frames_missing",
        "frames that no packet explains stand without a name",
    );
    let unknown = Location::new(FrameKind::Unknown, 0);
    stacks.profile.symbols.intern_location(&unknown, &[])
}

fn function(name: StringId, file: StringId, stacks: &mut NamedStacks<'_>) -> FunctionId {
    stacks.profile.symbols.intern_function_ids(Function {
        name,
        system_name: StringId(0),
        file,
        start_line: 0,
    })
}
