//! From keys of constants to stacks and texts of the profile.

use std::borrow::Cow;

use candela_model::FrameKind;
use candela_model::FunctionId;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::StackId;
use candela_model::StringId;

use crate::jfr::chunk::Chunk;
use crate::jfr::cursor::Damage;
use crate::jfr::cursor::Text;
use crate::jfr::frame_cache::FrameCache;
use crate::jfr::frame_cache::FrameKey;
use crate::jfr::layout::Layouts;
use crate::jfr::layout::Plan;
use crate::jfr::layout::SLOTS;
use crate::jfr::layout::Shape;
use crate::jfr::losses::Losses;
use crate::jfr::metadata::Field;
use crate::jfr::metadata::Metadata;
use crate::jfr::names::push_method_name;
use crate::jfr::pools::PoolKind;
use crate::jfr::pools::Pools;
use crate::options::Limits;

/// What a frame is called whose method is not among the constants.
const UNKNOWN_METHOD: &str = "[unknown]";

/// What a thread did when it was sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadState {
    Sleeping,
    Runnable,
    Other,
}

/// Decodes constants of one chunk when a sample uses them, each once.
#[derive(Debug)]
pub(crate) struct Resolver<'a> {
    chunk: Chunk<'a>,
    layouts: Layouts,
    pools: Pools,
    plans: Plans,
    limits: Limits,
    frame_cache: FrameCache,
    // Scratch memory, so that stacks and names cost no allocations.
    frames: Vec<LocationId>,
    name: String,
}

/// Where the parts of constants are.
#[derive(Debug)]
struct Plans {
    /// Whether the stack was truncated, and where its frames are.
    stack: Plan,
    /// Method, line and type.
    frame: Plan,
    /// Class and name.
    method: Plan,
    class: Plan,
    /// The first text of symbols, states and the like.
    texts: [Plan; TEXT_POOLS.len()],
    /// The name in Java and that in the operating system.
    thread: Plan,
}

const TEXT_POOLS: [PoolKind; 5] = [
    PoolKind::Symbol,
    PoolKind::FrameType,
    PoolKind::ThreadState,
    PoolKind::GcName,
    PoolKind::GcCause,
];

impl<'a> Resolver<'a> {
    pub(crate) fn new(
        chunk: Chunk<'a>,
        metadata: &Metadata<'_>,
        layouts: Layouts,
        pools: Pools,
        limits: Limits,
    ) -> Self {
        Self {
            chunk,
            plans: Plans::new(metadata, &layouts),
            layouts,
            frame_cache: FrameCache::new(pools.of(PoolKind::Method).len()),
            pools,
            limits,
            frames: Vec::new(),
            name: String::new(),
        }
    }

    pub(crate) fn layouts(&self) -> &Layouts {
        &self.layouts
    }

    /// The stack with this key; the empty one where there is none.
    #[inline]
    pub(crate) fn stack(
        &mut self,
        key: i64,
        profile: &mut Profile,
        losses: &mut Losses,
    ) -> StackId {
        let pool = self.pools.of(PoolKind::StackTrace);
        let Some(position) = pool.find(key as u64) else {
            losses.no_stack(key);
            return StackId(0);
        };
        if let Some(stack) = pool.resolved(position) {
            return StackId(stack);
        }
        let offset = pool.offset(position);
        let stack = self
            .read_stack(offset, profile, losses)
            .unwrap_or_else(|_| {
                losses.damaged_stacks += 1;
                StackId(0)
            });
        let pool = self.pools.of_mut(PoolKind::StackTrace);
        pool.resolve(position, stack.0);
        stack
    }

    /// A collection as a stack: the collector, and on top of it why it ran.
    pub(crate) fn collection(
        &mut self,
        collector: i64,
        cause: i64,
        profile: &mut Profile,
        losses: &mut Losses,
    ) -> StackId {
        self.frames.clear();
        for (kind, key) in [(PoolKind::GcCause, cause), (PoolKind::GcName, collector)] {
            let pool = self.pools.of(kind);
            let Some(position) = pool.find(key as u64) else {
                continue;
            };
            let location = match pool.resolved(position) {
                Some(location) => LocationId(location),
                None => {
                    let text = self.text_of(kind, position, losses);
                    let function = profile.symbols.intern_function(&text, "", "", 0);
                    let location = Location::new(FrameKind::Jvm, 0);
                    let lines = [(function, 0, 0)];
                    profile.symbols.intern_location(&location, &lines)
                }
            };
            self.pools.of_mut(kind).resolve(position, location.0);
            self.frames.push(location);
        }
        profile.stacks.intern(&self.frames)
    }

    /// The name of a thread; empty where it has none.
    #[inline]
    pub(crate) fn thread(
        &mut self,
        key: i64,
        profile: &mut Profile,
        losses: &mut Losses,
    ) -> StringId {
        let pool = self.pools.of(PoolKind::Thread);
        let Some(position) = pool.find(key as u64) else {
            return StringId(0);
        };
        if let Some(name) = pool.resolved(position) {
            return StringId(name);
        }
        let name = self.thread_name(pool.offset(position), losses);
        let id = profile.symbols.strings.intern(&name);
        self.pools.of_mut(PoolKind::Thread).resolve(position, id.0);
        id
    }

    #[inline]
    pub(crate) fn thread_state(&mut self, key: i64, losses: &mut Losses) -> ThreadState {
        const STATES: [ThreadState; 3] = [
            ThreadState::Sleeping,
            ThreadState::Runnable,
            ThreadState::Other,
        ];
        let pool = self.pools.of(PoolKind::ThreadState);
        let Some(position) = pool.find(key as u64) else {
            return ThreadState::Other;
        };
        if let Some(&state) = pool
            .resolved(position)
            .and_then(|number| STATES.get(number as usize))
        {
            return state;
        }
        let state = match &*self.text_of(PoolKind::ThreadState, position, losses) {
            "STATE_SLEEPING" => ThreadState::Sleeping,
            "STATE_RUNNABLE" => ThreadState::Runnable,
            _ => ThreadState::Other,
        };
        let pool = self.pools.of_mut(PoolKind::ThreadState);
        pool.resolve(position, state as u32);
        state
    }

    /// The text at a position, wherever it stands.
    pub(crate) fn text_at(&self, position: usize, losses: &mut Losses) -> Cow<'a, str> {
        let max_bytes = self.limits.max_string_bytes;
        let mut read = |position| {
            let mut cursor = self.chunk.cursor(position);
            let text = cursor.text(max_bytes, &mut losses.repaired_texts);
            text.unwrap_or(Text::Here(Cow::Borrowed("")))
        };
        let pool = self.pools.of(PoolKind::Text);
        let text = match read(position) {
            Text::Here(text) => text,
            Text::Constant(key) => {
                let constant = pool.find(key).map(|position| read(pool.offset(position)));
                match constant {
                    Some(Text::Here(text)) => text,
                    // No recorder writes constants that are keys of others.
                    Some(Text::Constant(_)) | None => Cow::Borrowed(""),
                }
            }
        };
        losses.budget.pay_text(text.len());
        if text.len() <= max_bytes {
            return text;
        }
        losses.cut_texts += 1;
        match text {
            Cow::Borrowed(text) => Cow::Borrowed(self.limits.cut(text)),
            Cow::Owned(text) => Cow::Owned(self.limits.cut(&text).to_owned()),
        }
    }

    fn read_stack(
        &mut self,
        offset: usize,
        profile: &mut Profile,
        losses: &mut Losses,
    ) -> Result<StackId, Damage> {
        let mut slots = [0; SLOTS];
        let mut cursor = self.chunk.cursor(offset);
        self.layouts
            .read(&self.plans.stack, &mut cursor, &mut slots)?;
        let [truncated, frames, ..] = slots;
        if frames == 0 {
            return Err(cursor.damage("stack traces have no frames"));
        }
        let mut cursor = self.chunk.cursor(frames as usize);
        let count = cursor.count()?;
        let is_truncated = self.chunk.data.get(truncated as usize) == Some(&1);
        losses.truncated_stacks += u64::from(truncated != 0 && is_truncated);
        // The leaf comes first, so what is too deep for us is cut in front: stacks stay rooted.
        let cut = count.saturating_sub(self.limits.max_stack_depth);
        losses.cut_stacks += u64::from(cut > 0);
        self.frames.clear();
        for index in 0..count {
            self.layouts
                .read(&self.plans.frame, &mut cursor, &mut slots)?;
            if index < cut {
                continue;
            }
            let [method, line, frame_type, ..] = slots;
            let key = FrameKey {
                method,
                line,
                frame_type,
            };
            let location = match self.frame_cache.get(key) {
                Some(location) => location,
                None => self.location(key, profile, losses),
            };
            self.frames.push(location);
        }
        Ok(profile.stacks.intern(&self.frames))
    }

    fn location(
        &mut self,
        key: FrameKey,
        profile: &mut Profile,
        losses: &mut Losses,
    ) -> LocationId {
        let location = Location::new(self.frame_kind(key.frame_type, losses), 0);
        let function = self.function(key.method, profile, losses);
        // Native methods have the line -1.
        let line = u32::try_from(key.line).unwrap_or(0);
        let lines = [(function, line, 0)];
        let location = profile.symbols.intern_location(&location, &lines);
        losses.budget.check_locations(location.index());
        self.frame_cache.insert(key, location);
        location
    }

    fn function(&mut self, key: i64, profile: &mut Profile, losses: &mut Losses) -> FunctionId {
        let symbols = &mut profile.symbols;
        let pool = self.pools.of(PoolKind::Method);
        let Some(position) = pool.find(key as u64) else {
            losses.unknown_methods += 1;
            return symbols.intern_function(UNKNOWN_METHOD, "", "", 0);
        };
        if let Some(function) = pool.resolved(position) {
            return FunctionId(function);
        }
        let offset = pool.offset(position);
        self.name_method(offset, losses);
        let whole = match &*self.name {
            "" => UNKNOWN_METHOD,
            name => name,
        };
        let name = self.limits.cut(whole);
        losses.cut_texts += u64::from(name.len() < whole.len());
        losses.budget.pay_text(name.len());
        let function = symbols.intern_function(name, "", "", 0);
        let pool = self.pools.of_mut(PoolKind::Method);
        pool.resolve(position, function.0);
        function
    }

    /// Puts the name of a method into `self.name`.
    fn name_method(&mut self, offset: usize, losses: &mut Losses) {
        let [class, method, ..] = self.fields(&self.plans.method, offset);
        let pool = self.pools.of(PoolKind::Class);
        let class = pool.find(class as u64).map(|position| {
            let [name, ..] = self.fields(&self.plans.class, pool.offset(position));
            self.symbol(name, losses)
        });
        let method = self.symbol(method, losses);
        self.name.clear();
        push_method_name(&mut self.name, &class.unwrap_or_default(), &method);
    }

    fn symbol(&self, key: i64, losses: &mut Losses) -> Cow<'a, str> {
        match self.pools.of(PoolKind::Symbol).find(key as u64) {
            Some(position) => self.text_of(PoolKind::Symbol, position, losses),
            None => Cow::Borrowed(""),
        }
    }

    #[inline]
    fn frame_kind(&mut self, key: i64, losses: &mut Losses) -> FrameKind {
        let pool = self.pools.of(PoolKind::FrameType);
        let Some(position) = pool.find(key as u64) else {
            return FrameKind::Unknown;
        };
        if let Some(number) = pool.resolved(position) {
            return FrameKind::from_number(number as u8);
        }
        let kind = match &*self.text_of(PoolKind::FrameType, position, losses) {
            "Interpreted" | "JIT compiled" | "Inlined" | "C1 compiled" => FrameKind::Jvm,
            "Native" | "C++" => FrameKind::Native,
            "Kernel" => FrameKind::Kernel,
            _ => FrameKind::Unknown,
        };
        let pool = self.pools.of_mut(PoolKind::FrameType);
        pool.resolve(position, kind as u32);
        kind
    }

    /// The text of a constant that has one.
    fn text_of(&self, kind: PoolKind, position: usize, losses: &mut Losses) -> Cow<'a, str> {
        let plan = TEXT_POOLS.iter().position(|&known| known == kind);
        let Some(plan) = plan.map(|plan| &self.plans.texts[plan]) else {
            return Cow::Borrowed("");
        };
        match self.fields(plan, self.pools.of(kind).offset(position)) {
            [0, ..] => Cow::Borrowed(""),
            [text, ..] => self.text_at(text as usize, losses),
        }
    }

    fn thread_name(&self, offset: usize, losses: &mut Losses) -> Cow<'a, str> {
        let [java, system, ..] = self.fields(&self.plans.thread, offset);
        // Threads of the virtual machine itself have no name in Java.
        for position in [java, system] {
            if position != 0 {
                let name = self.text_at(position as usize, losses);
                if !name.is_empty() {
                    return name;
                }
            }
        }
        Cow::Borrowed("")
    }

    /// What a plan asks for of the constant at `offset`, which was stepped over once already, so
    /// that it is as its type says.
    fn fields(&self, plan: &Plan, offset: usize) -> [i64; SLOTS] {
        let mut slots = [0; SLOTS];
        let mut cursor = self.chunk.cursor(offset);
        match self.layouts.read(plan, &mut cursor, &mut slots) {
            Ok(()) => slots,
            Err(_) => [0; SLOTS],
        }
    }
}

/// What the frames of a stack are. Not by name: frames are read as they were stepped over, or else
/// the bytes behind a stack would be taken for frames of it, over and over.
fn frame_class(metadata: &Metadata<'_>, layouts: &Layouts) -> Option<usize> {
    let stack_name = PoolKind::ALL[PoolKind::StackTrace as usize].1;
    let fields = &metadata.classes[metadata.find(stack_name)?].fields;
    // The field that gets the place in the plan: several may have the name.
    let is_frames = |field: &&Field| {
        metadata.field_name(field) == "frames" && layouts.shape(field) == Shape::Structs
    };
    let frames = fields.iter().find(is_frames)?;
    layouts.class(frames.class)
}

impl Plans {
    fn new(metadata: &Metadata<'_>, layouts: &Layouts) -> Self {
        let plan = |kind: PoolKind, slot: &dyn Fn(&str, Shape) -> Option<u8>| {
            let class = metadata.find(PoolKind::ALL[kind as usize].1);
            class.map_or_else(Plan::default, |class| layouts.plan(metadata, class, slot))
        };
        let first_text = |_: &str, shape| (shape == Shape::Text).then_some(0);
        let frame_class = frame_class(metadata, layouts);
        Self {
            stack: plan(PoolKind::StackTrace, &|name, shape| match (name, shape) {
                ("truncated", Shape::Byte) => Some(0),
                ("frames", Shape::Structs) if frame_class.is_some() => Some(1),
                _ => None,
            }),
            frame: frame_class.map_or_else(Plan::default, |class| {
                layouts.whole_plan(metadata, class, |name, shape| match (name, shape) {
                    ("method", Shape::Key) => Some(0),
                    ("lineNumber", Shape::Number) => Some(1),
                    ("type", Shape::Key) => Some(2),
                    _ => None,
                })
            }),
            method: plan(PoolKind::Method, &|name, shape| match (name, shape) {
                ("type", Shape::Key) => Some(0),
                ("name", Shape::Key) => Some(1),
                _ => None,
            }),
            class: plan(PoolKind::Class, &|name, shape| match (name, shape) {
                ("name", Shape::Key) => Some(0),
                _ => None,
            }),
            texts: TEXT_POOLS.map(|kind| plan(kind, &first_text)),
            thread: plan(PoolKind::Thread, &|name, shape| match (name, shape) {
                ("javaName", Shape::Text) => Some(0),
                ("osName", Shape::Text) => Some(1),
                _ => None,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jfr::cursor::Cursor;

    #[test]
    fn frames_are_read_as_the_field_that_has_the_name_first() {
        let mut metadata = Metadata::default();
        metadata.add_class("byte", 1);
        let small = metadata.add_class("Small", 2);
        let large = metadata.add_class("Large", 3);
        let stack = metadata.add_class("jdk.types.StackTrace", 4);
        metadata.add_field(small, "a", 1, false);
        metadata.add_field(large, "a", 1, false);
        metadata.add_field(large, "b", 1, false);
        // One that is no array of structs, and two that are.
        metadata.add_field(stack, "frames", 1, false);
        metadata.add_field(stack, "frames", 3, true);
        metadata.add_field(stack, "frames", 2, true);
        let layouts = Layouts::new(&metadata);
        assert_eq!(frame_class(&metadata, &layouts), Some(large));
        let plans = Plans::new(&metadata, &layouts);
        // One byte, one large frame, one small frame.
        let bytes = [9, 1, 5, 6, 1, 7];
        let mut cursor = Cursor::new(&bytes, 0, true);
        let mut slots = [0; SLOTS];
        assert_eq!(layouts.read(&plans.stack, &mut cursor, &mut slots), Ok(()));
        assert_eq!(slots[..2], [0, 1]);
    }
}
