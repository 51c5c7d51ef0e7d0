//! The frames of a sample while its lines come in. Inlined frames stand before the one that they are
//! inlined into, all with its address: together they are one location.

use std::ops::Range;

use candela_model::FunctionId;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::Profile;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::perf_script::frame::FrameLine;
use crate::perf_script::frame::SourceLine;
use crate::perf_script::frame::is_jit;
use crate::perf_script::frame::kind_of;
use crate::perf_script::samples::Samples;

/// Functions at one address. Compilers inline some dozens.
const MAX_INLINED: usize = 1000;

/// Frames come again and again, and most texts have fewer than these that differ.
const MAX_KNOWN: usize = 1 << 17;
const MAX_KNOWN_LINE_BYTES: usize = 512;

/// What the frames of a sample are made into.
#[derive(Debug)]
pub(crate) struct OpenFrames {
    max_depth: usize,
    leaf_first: Vec<LocationId>,
    /// Of one location, innermost first. The last may still get its source line.
    group: Vec<GroupFrame>,
    /// The texts of the group.
    text: String,
    /// The lines of the location that is made.
    lines: Vec<(FunctionId, u32, u32)>,
    is_cut: bool,
    /// Locations by their lines, of frames that stand alone. Unused (and empty) in texts that say
    /// where frames are in the source: there a line does not tell the location.
    known: HashMap<Box<str>, LocationId>,
    has_sources: bool,
    /// The line of the group, if it may become known.
    line: String,
}

#[derive(Clone, Debug)]
struct GroupFrame {
    address: u64,
    is_inlined: bool,
    symbol: Range<usize>,
    file: Range<usize>,
    source: Range<usize>,
    line: u32,
}

impl OpenFrames {
    pub(crate) fn new(max_depth: usize) -> Self {
        Self {
            max_depth,
            leaf_first: Vec::new(),
            group: Vec::new(),
            text: String::new(),
            lines: Vec::new(),
            is_cut: false,
            known: HashMap::new(),
            has_sources: false,
            line: String::new(),
        }
    }

    /// Takes a line that was a frame before; `false` for any other. It is what makes reading quick.
    pub(crate) fn push_known(
        &mut self,
        line: &str,
        samples: &mut Samples<'_>,
    ) -> Result<bool, ReadError> {
        let may_be_grouped = self.group.last().is_some_and(|last| last.is_inlined);
        if may_be_grouped {
            return Ok(false);
        }
        let Some(&location) = self.known.get(line) else {
            return Ok(false);
        };
        self.close_group(samples)?;
        self.push_location(location);
        Ok(true)
    }

    /// Whether the sample has no frame so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.group.is_empty() && self.leaf_first.is_empty()
    }

    /// Takes the next frame, which called the one before.
    pub(crate) fn push(
        &mut self,
        frame: &FrameLine<'_>,
        line: &str,
        samples: &mut Samples<'_>,
    ) -> Result<(), ReadError> {
        let is_of_group = self.group.last().is_none_or(|last| {
            last.is_inlined && last.address == frame.address && self.group.len() < MAX_INLINED
        });
        if !is_of_group {
            self.close_group(samples)?;
        }
        self.line.clear();
        let may_be_known = !self.has_sources && self.known.len() < MAX_KNOWN;
        if may_be_known && self.group.is_empty() && line.len() <= MAX_KNOWN_LINE_BYTES {
            self.line.push_str(line);
        }
        let symbol = self.keep(samples.cut(frame.symbol));
        let file = self.keep(samples.cut(frame.file));
        self.group.push(GroupFrame {
            address: frame.address,
            is_inlined: frame.is_inlined,
            symbol,
            file,
            source: 0..0,
            line: 0,
        });
        Ok(())
    }

    /// Says where the last frame is in the source; `false` if that frame was a known line, as before
    /// the first source line of a text.
    pub(crate) fn set_source(&mut self, source: &SourceLine<'_>) -> bool {
        self.has_sources = true;
        self.known.clear();
        self.line.clear();
        let range = self.keep(source.file);
        let Some(last) = self.group.last_mut() else {
            return false;
        };
        last.source = range;
        last.line = source.line;
        last.is_inlined |= source.is_inlined;
        true
    }

    /// All frames of the sample, leaf first, of too many those at the root; and whether these are all.
    pub(crate) fn close(
        &mut self,
        samples: &mut Samples<'_>,
    ) -> Result<(&[LocationId], bool), ReadError> {
        self.close_group(samples)?;
        let surplus = self.leaf_first.len().saturating_sub(self.max_depth);
        let is_whole = surplus == 0 && !self.is_cut;
        if !is_whole {
            samples.report.note(
                "stacks_cut",
                "stacks deeper than the limit were cut at the leaf",
            );
        }
        Ok((&self.leaf_first[surplus..], is_whole))
    }

    pub(crate) fn clear(&mut self) {
        self.leaf_first.clear();
        self.is_cut = false;
    }

    fn keep(&mut self, text: &str) -> Range<usize> {
        let start = self.text.len();
        self.text.push_str(text);
        start..self.text.len()
    }

    fn close_group(&mut self, samples: &mut Samples<'_>) -> Result<(), ReadError> {
        if self.group.is_empty() {
            return Ok(());
        }
        let (group, text, lines) = (&self.group, &self.text, &mut self.lines);
        let location = samples.made(text.len(), |profile| {
            intern_group(group, text, lines, profile)
        })?;
        let is_inlined = group.last().is_some_and(|last| last.is_inlined);
        if !self.line.is_empty() && !is_inlined {
            self.known.insert(self.line.as_str().into(), location);
        }
        self.line.clear();
        self.group.clear();
        self.text.clear();
        self.push_location(location);
        Ok(())
    }

    fn push_location(&mut self, location: LocationId) {
        self.leaf_first.push(location);
        // Those at the root come last, and any number before.
        if self.leaf_first.len() > self.max_depth.saturating_mul(2).max(1 << 12) {
            let surplus = self.leaf_first.len().saturating_sub(self.max_depth);
            self.leaf_first.drain(..surplus);
            self.is_cut = true;
        }
    }
}

fn intern_group(
    group: &[GroupFrame],
    text: &str,
    lines: &mut Vec<(FunctionId, u32, u32)>,
    profile: &mut Profile,
) -> LocationId {
    let symbols = &mut profile.symbols;
    let outermost = group.last().expect("groups with frames are closed only");
    let file = &text[outermost.file.clone()];
    let kind = kind_of(file, &text[outermost.symbol.clone()]);
    let is_jit = is_jit(file);
    lines.clear();
    for frame in group {
        let symbol = &text[frame.symbol.clone()];
        let source = &text[frame.source.clone()];
        if symbol.is_empty() {
            continue;
        }
        // Java's agent for perf writes what is inlined behind the function, outermost first.
        if is_jit && symbol.contains("->") {
            for name in symbol.rsplit("->") {
                lines.push((symbols.intern_function(name, "", "", 0), 0, 0));
            }
            continue;
        }
        let function = symbols.intern_function(symbol, "", source, 0);
        lines.push((function, frame.line, 0));
    }
    let mut location = Location::new(kind, outermost.address);
    if !file.is_empty() {
        let file = symbols.strings.intern(file);
        let mapping = symbols.intern_mapping(Mapping {
            file,
            ..Mapping::default()
        });
        location = location.in_mapping(mapping);
    }
    symbols.intern_location(&location, lines)
}
