//! Frames and stacks of a thread, or of all threads where they share them.

use candela_model::FrameKind;
use candela_model::FunctionId;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::MappingId;
use candela_model::StackId;
use hashbrown::HashMap;
use serde_json::Value;

use crate::error::ReadError;
use crate::firefox::funcs::Funcs;
use crate::firefox::libs::Libs;
use crate::firefox::place::Place;
use crate::firefox::process::OWN_KEY;
use crate::firefox::table::Column;
use crate::firefox::table::Table;
use crate::named_stacks::NamedStacks;
use crate::options::Limits;
use crate::stack_forest::StackForest;
use crate::work::STEPS_PER_LINE;
use crate::work::Work;

/// Where code was, with at most one function: functions inlined into one another are frames of
/// their own.
#[derive(Clone, Copy, Debug)]
struct Frame {
    place: Location,
    line: Option<(FunctionId, u32, u32)>,
    /// How many functions around this one it is inlined into.
    inline_depth: u32,
}

/// The tables from which the stacks of samples are made.
#[derive(Debug)]
pub(crate) struct Frames {
    forest: StackForest,
    /// The frame at the end of each stack.
    frame_of_stack: Vec<Option<u32>>,
    frames: Vec<Frame>,
    known: Vec<Option<StackId>>,
    path: Vec<u32>,
}

/// Where the tables are: those of the thread, else the shared ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources<'a> {
    pub(crate) tables: &'a Value,
    /// Source files, which are shared since version 58 whatever the tables are.
    pub(crate) source_table: &'a Value,
    pub(crate) strings: &'a Value,
    pub(crate) libs: &'a Libs,
    /// What code the categories are.
    pub(crate) categories: &'a [FrameKind],
    /// Whether our writer wrote the tables.
    pub(crate) is_own: bool,
}

impl Frames {
    pub(crate) fn new(
        sources: Sources<'_>,
        limits: &Limits,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<Self, ReadError> {
        let table = |name: &str| {
            let value = sources.tables.get(name).unwrap_or(&Value::Null);
            Table::new(value)
        };
        let stack_table = table("stackTable");
        let (prefix, offset) = (
            stack_table.column("prefix"),
            stack_table.column("prefixOffset"),
        );
        let last_frames = stack_table.column("frame");
        let parents: Vec<Option<u32>> = (0..last_frames.len())
            .map(|stack| match offset {
                Column::Missing => prefix.index(stack),
                _ => parent_by_offset(stack, offset.index(stack)),
            })
            .collect();
        let frame_table = table("frameTable");
        let frames = match frame_table.column("func") {
            Column::Missing => raw_frames(frame_table, sources, stacks)?,
            _ => {
                let funcs = Funcs::new(table("funcTable"), sources);
                let resource_table = table("resourceTable");
                processed_frames(frame_table, funcs, resource_table, sources, stacks)?
            }
        };
        let forest = StackForest::new(&parents, limits);
        stacks.report.note_many(
            "nodes_in_circles",
            "nodes that are their own callers were taken as roots",
            forest.broken_nodes,
        );
        let count = frames.len();
        let frame_of_stack = (0..last_frames.len()).map(|stack| {
            let frame = last_frames.index(stack);
            frame.filter(|&frame| (frame as usize) < count)
        });
        Ok(Self {
            forest,
            frame_of_stack: frame_of_stack.collect(),
            frames,
            known: vec![None; parents.len()],
            path: Vec::new(),
        })
    }

    /// The stack at a position; `None` when there is none.
    pub(crate) fn stack(
        &mut self,
        position: u32,
        work: &mut Work,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<Option<StackId>, ReadError> {
        match self.known.get(position as usize) {
            None => return Ok(None),
            Some(&Some(known)) => return Ok(Some(known)),
            Some(None) => {}
        }
        self.forest.path(position, &mut self.path);
        // What is on the path may be missing or one location together, and no frame of the stack then.
        work.spend(self.path.len())?;
        let mut root_first: Vec<LocationId> = Vec::with_capacity(self.path.len());
        let mut lines: Vec<(FunctionId, u32, u32)> = Vec::new();
        let frames = self.path.iter().map(|&stack| {
            let frame = self.frame_of_stack[stack as usize]?;
            Some(self.frames[frame as usize])
        });
        let frames: Vec<Option<Frame>> = frames.collect();
        for (index, frame) in frames.iter().enumerate() {
            let Some(frame) = frame else {
                stacks.report.note(
                    "frames_missing",
                    "frames that are not in the file were left out of their stacks",
                );
                continue;
            };
            lines.extend(frame.line);
            let next = frames.get(index + 1).copied().flatten();
            if !next.is_some_and(|next| next.is_inlined_into(frame)) {
                if lines.len() > 1 {
                    work.spend(lines.len().saturating_mul(STEPS_PER_LINE))?;
                }
                // Innermost first.
                lines.reverse();
                let symbols = &mut stacks.profile.symbols;
                root_first.push(symbols.intern_location(&frame.place, &lines));
                lines.clear();
            }
        }
        let stack = stacks.stack(&root_first)?;
        self.known[position as usize] = Some(stack);
        Ok(Some(stack))
    }
}

impl Frame {
    /// The same at a line, where one is known.
    fn at(self, line: u32, column: u32) -> Self {
        let position = self.line.filter(|_| line != 0);
        Self {
            line: position.map_or(self.line, |(function, ..)| Some((function, line, column))),
            ..self
        }
    }

    fn is_inlined_into(&self, caller: &Self) -> bool {
        self.inline_depth > caller.inline_depth
            && self.place.address == caller.place.address
            && self.place.mapping == caller.place.mapping
            && self.line.is_some()
            && caller.line.is_some()
    }
}

/// 0 is a root. What leads outside is itself its parent, so that it is noted as broken.
fn parent_by_offset(stack: usize, offset: Option<u32>) -> Option<u32> {
    match offset {
        None | Some(0) => None,
        Some(offset) => Some((stack as u32).checked_sub(offset).unwrap_or(stack as u32)),
    }
}

fn raw_frames(
    frame_table: Table<'_>,
    sources: Sources<'_>,
    stacks: &mut NamedStacks<'_>,
) -> Result<Vec<Frame>, ReadError> {
    let locations = frame_table.column("location");
    let (line, column) = (frame_table.column("line"), frame_table.column("column"));
    // Each text once: many frames have the same one.
    let mut known: HashMap<Option<u32>, Frame> = HashMap::new();
    let mut frames = Vec::with_capacity(locations.len());
    for frame in 0..locations.len() {
        let text = locations.index(frame);
        let place = match known.get(&text) {
            Some(known) => *known,
            None => {
                let full_text = text.map_or("", |text| string(sources.strings, text));
                let made = raw_frame(full_text, sources.libs, stacks)?;
                known.insert(text, made);
                made
            }
        };
        frames.push(place.at(line.line(frame), column.line(frame)));
    }
    Ok(frames)
}

/// A frame at the place that its text tells.
fn raw_frame(text: &str, libs: &Libs, stacks: &mut NamedStacks<'_>) -> Result<Frame, ReadError> {
    let text = stacks.cut(text);
    // Threads may share their strings.
    stacks.count_name(text)?;
    let symbols = &mut stacks.profile.symbols;
    let (place, line) = match Place::parse(text) {
        Place::Address(address) => {
            let (mapping, address) = libs.at(address).unwrap_or((MappingId(0), address));
            let place = Location::new(FrameKind::Native, address).in_mapping(mapping);
            (place, None)
        }
        Place::Native {
            name,
            library,
            line,
        } => {
            let mapping = libs.named(library).unwrap_or(MappingId(0));
            let function = symbols.intern_function(name, "", "", 0);
            let place = Location::new(FrameKind::Native, 0).in_mapping(mapping);
            (place, Some((function, line, 0)))
        }
        Place::Script {
            name,
            url,
            line,
            column,
        } => {
            let function = if name.is_empty() {
                let name = format!("(root scope) {url}");
                symbols.intern_function(&name, "", url, line)
            } else {
                symbols.intern_function(name, "", url, line)
            };
            let place = Location::new(FrameKind::Unknown, 0);
            (place, Some((function, line, column)))
        }
        Place::Label(label) => {
            let function = symbols.intern_function(label, "", "", 0);
            (Location::new(FrameKind::Unknown, 0), Some((function, 0, 0)))
        }
    };
    Ok(Frame {
        place,
        line,
        inline_depth: 0,
    })
}

fn processed_frames(
    frame_table: Table<'_>,
    mut funcs: Funcs<'_>,
    resource_table: Table<'_>,
    sources: Sources<'_>,
    stacks: &mut NamedStacks<'_>,
) -> Result<Vec<Frame>, ReadError> {
    let func = frame_table.column("func");
    let (line, column) = (frame_table.column("line"), frame_table.column("column"));
    let (address, lib) = (frame_table.column("address"), frame_table.column("lib"));
    let own_address = frame_table.column(OWN_KEY);
    let category = frame_table.column("category");
    let depth = frame_table.column("inlineDepth");
    let resource_lib = resource_table.column("lib");
    let mut frames = Vec::with_capacity(func.len());
    for frame in 0..func.len() {
        let func = funcs.get(func.index(frame), stacks)?;
        // Until version 69 a frame's library was that of its function's resource.
        let lib = match lib {
            Column::Missing => {
                let resource = func.resource.map(|resource| resource as usize);
                resource.and_then(|resource| resource_lib.index(resource))
            }
            lib => lib.index(frame),
        };
        let mapping = lib.and_then(|lib| sources.libs.mapping(lib));
        let address = own_address
            .get(frame)
            .as_u64()
            .or_else(|| address.get(frame).as_u64());
        let category = category.index(frame).map(|category| category as usize);
        let kind = category.and_then(|category| sources.categories.get(category));
        let kind = match kind {
            Some(&kind) if kind != FrameKind::Unknown => kind,
            _ if mapping.is_some() && !sources.is_own => FrameKind::Native,
            _ => FrameKind::Unknown,
        };
        let place = Location::new(kind, address.unwrap_or(0));
        // What was not symbolicated has its address as name.
        let is_named = address.is_none() || !func.is_address;
        let position = match line.line(frame) {
            // Our writer leaves out what is not known.
            0 if !sources.is_own => func.position,
            line => (line, column.line(frame)),
        };
        frames.push(Frame {
            place: place.in_mapping(mapping.unwrap_or(MappingId(0))),
            line: is_named.then_some((func.function, position.0, position.1)),
            inline_depth: depth.line(frame),
        });
    }
    Ok(frames)
}

/// A string of the table; empty when there is none.
pub(crate) fn string(strings: &Value, index: u32) -> &str {
    let string = strings.get(index as usize).and_then(Value::as_str);
    string.unwrap_or("")
}
