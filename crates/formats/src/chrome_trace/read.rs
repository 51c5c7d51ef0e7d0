//! Trace events to a profile.

use std::io::BufRead;

use candela_model::FrameKind;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::StringId;
use hashbrown::HashMap;

use crate::chrome_trace::NAME;
use crate::chrome_trace::cpu_profiles::CpuProfiles;
use crate::chrome_trace::event::Event;
use crate::chrome_trace::event::plain;
use crate::chrome_trace::spans::ThreadEvents;
use crate::chrome_trace::stack_samples::StackSamples;
use crate::chrome_trace::threads::Threads;
use crate::count::Count;
use crate::epoch::start_of;
use crate::error::ReadError;
use crate::json_cursor::JsonCursor;
use crate::json_cursor::contains;
use crate::json_input::read_json_text;
use crate::json_limits::ValueBudget;
use crate::named_stacks::NamedStacks;
use crate::naming;
use crate::open_frames::Disorder;
use crate::options::ReadOptions;
use crate::report::Report;
use crate::v8::Target;
use crate::v8::Timeline;

/// What is found in a trace.
struct Reader<'o> {
    options: &'o ReadOptions,
    stacks: NamedStacks<'o>,
    threads: Threads,
    events: HashMap<usize, ThreadEvents>,
    /// Events with a duration.
    event_count: u64,
    cpu_profiles: CpuProfiles,
    /// Of the pieces of CPU profiles.
    values: ValueBudget,
    samples: StackSamples,
}

/// The place of a function that Hermes tells in an event's arguments.
#[derive(Debug, Default)]
struct Place {
    url: String,
    start_line: u32,
    line: u32,
    column: u32,
}

/// From the first to the last moment of all threads.
type Window = Option<(i64, i64)>;

/// Reads a trace: the CPU profiles inside of it, or else its samples, or else its events with a
/// duration, each with the time that no event inside of it took. All are wall time, as
/// [`ReadOptions::profile_name`] does not say `cpu`. Threads are told apart by labels. A list that
/// breaks off is a whole trace by the rules of the format.
///
/// # Errors
/// When the input cannot be read, is no such JSON, has nothing that took time, or exceeds a limit.
pub fn read_chrome_trace(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut stacks = NamedStacks::new(&options.limits);
    let bytes = read_json_text(input, &options.limits, &mut stacks.report)?;
    let mut reader = Reader {
        options,
        stacks,
        threads: Threads::new(&options.limits),
        events: HashMap::new(),
        event_count: 0,
        cpu_profiles: CpuProfiles::default(),
        values: ValueBudget::new(&options.limits),
        samples: StackSamples::default(),
    };
    reader.read_file(&bytes)?;
    if !reader.cpu_profiles.is_empty() {
        return reader.finish_cpu_profiles();
    }
    if !reader.samples.is_empty() {
        return reader.finish_samples();
    }
    if reader.events.is_empty() {
        return Err(ReadError::Invalid {
            format: NAME,
            problem: "the trace has no events with a duration, no samples and no CPU profile"
                .to_owned(),
        });
    }
    reader.finish_events()
}

impl Reader<'_> {
    fn read_file(&mut self, bytes: &[u8]) -> Result<(), ReadError> {
        let mut cursor = JsonCursor::new(NAME, bytes);
        if cursor.peek() == Some(b'[') {
            return self.read_events(&mut cursor);
        }
        let mut is_first = true;
        cursor.expect(b'{')?;
        while let Some(key) = cursor.next_key(&mut is_first)? {
            match key.as_str() {
                "traceEvents" => self.read_events(&mut cursor)?,
                "samples" if cursor.peek() == Some(b'[') => {
                    self.samples.read_samples(&mut cursor, &mut self.threads)?;
                }
                "stackFrames" if cursor.peek() == Some(b'{') => {
                    let limits = &self.options.limits;
                    self.samples.read_frames(&mut cursor, limits)?;
                }
                _ => {
                    cursor.value()?;
                }
            }
            if cursor.peek().is_none() {
                self.note_cut();
                break;
            }
        }
        Ok(())
    }

    fn read_events(&mut self, cursor: &mut JsonCursor<'_>) -> Result<(), ReadError> {
        cursor.expect(b'[')?;
        loop {
            match cursor.peek() {
                // Writers may stop at any time.
                None => return Ok(()),
                Some(b']') => {
                    cursor.take(b']');
                    return Ok(());
                }
                Some(b'{') if cursor.breaks_off() => {
                    self.note_cut();
                    cursor.skip_rest();
                    return Ok(());
                }
                Some(b'{') => self.add(Event::read(cursor)?)?,
                // Between events, and for what is no event.
                Some(b',') => {
                    cursor.take(b',');
                }
                Some(_) => {
                    cursor.value()?;
                }
            }
        }
    }

    fn note_cut(&mut self) {
        let report = &mut self.stacks.report;
        if report.count("trace_cut") == 0 {
            report.note(
                "trace_cut",
                "the trace breaks off: what comes before is kept",
            );
        }
    }

    fn add(&mut self, event: Event<'_>) -> Result<(), ReadError> {
        match (event.phase, event.time_ns) {
            ("M", _) => self.threads.tell(&event)?,
            ("B" | "E" | "X", Some(time_ns)) => self.add_span(&event, time_ns)?,
            ("P" | "I" | "i", _) => {
                let name = event.name();
                if matches!(name.as_str(), "Profile" | "ProfileChunk" | "CpuProfile") {
                    let limits = &self.options.limits;
                    self.values.take(event.args)?;
                    self.cpu_profiles.add(
                        &event,
                        &name,
                        &mut self.threads,
                        limits,
                        &mut self.stacks,
                    )?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn add_span(&mut self, event: &Event<'_>, time_ns: i64) -> Result<(), ReadError> {
        let name = event.name();
        let thread = self.threads.position(event.pid, event.tid)?;
        self.event_count += 1;
        match event.phase {
            "E" => {
                let name = self.stacks.cut(&name);
                let name = self.stacks.profile.symbols.strings.intern(name);
                let events = self.events.entry(thread).or_default();
                events.end(time_ns, name);
            }
            "B" => {
                let (name, frame) = self.frame(&name, event.args)?;
                let events = self.events.entry(thread).or_default();
                events.begin(time_ns, name, frame);
            }
            _ => {
                let (_, frame) = self.frame(&name, event.args)?;
                let duration_ns = event.duration_ns.unwrap_or(0);
                let events = self.events.entry(thread).or_default();
                events.complete(time_ns, duration_ns, frame);
            }
        }
        Ok(())
    }

    /// The frame of an event. Hermes tells the place of functions in the arguments.
    fn frame(&mut self, name: &str, args: &[u8]) -> Result<(StringId, LocationId), ReadError> {
        let name = self.stacks.cut(name);
        let name_id = self.stacks.profile.symbols.strings.intern(name);
        if !contains(args, "\"funcLine\"") {
            return Ok((name_id, self.stacks.frame(name)?));
        }
        let place = Place::read(args).unwrap_or_default();
        let url = self.stacks.cut(&place.url);
        let symbols = &mut self.stacks.profile.symbols;
        let function = symbols.intern_function(name, "", url, place.start_line);
        let line = (function, place.line, place.column);
        let place = Location::new(FrameKind::Unknown, 0);
        Ok((name_id, symbols.intern_location(&place, &[line])))
    }

    fn finish_cpu_profiles(mut self) -> Result<(Profile, Report), ReadError> {
        self.note_events();
        let limits = &self.options.limits;
        let mut profiles = std::mem::take(&mut self.cpu_profiles).finish(limits, &mut self.stacks);
        let window = window(profiles.iter().map(|(.., timeline)| timeline));
        for (thread, tree, timeline) in &mut profiles {
            let target = self.target(*thread, window)?;
            timeline.add_times(tree, target, &mut self.stacks)?;
        }
        Ok(self.finish(window))
    }

    fn finish_samples(mut self) -> Result<(Profile, Report), ReadError> {
        self.note_events();
        let limits = &self.options.limits;
        let samples = std::mem::take(&mut self.samples);
        let (mut tree, timelines) = samples.finish(limits, &mut self.stacks);
        let window = window(timelines.iter().map(|(_, timeline)| timeline));
        for (thread, timeline) in &timelines {
            let target = self.target(*thread, window)?;
            timeline.add_times(&mut tree, target, &mut self.stacks)?;
        }
        Ok(self.finish(window))
    }

    fn finish_events(mut self) -> Result<(Profile, Report), ReadError> {
        let mut threads: Vec<(usize, ThreadEvents)> = self.events.drain().collect();
        threads.sort_by_key(|(thread, _)| *thread);
        let windows = threads.iter().filter_map(|(_, events)| events.window());
        let window = windows.reduce(joined);
        let frames = 0..self.stacks.profile.symbols.locations().len();
        let frames: Vec<LocationId> = frames.map(LocationId::from_index).collect();
        let mut root_first: Vec<LocationId> = Vec::new();
        let limits = &self.options.limits;
        let mut disorder = Disorder::new(limits);
        for (thread, events) in threads {
            let label_set = self.threads.label_set(thread, &mut self.stacks)?;
            let open = events.nested(limits, &mut disorder, &mut self.stacks.report)?;
            for (stack, &duration) in open.durations.iter().enumerate() {
                let Some(duration) = Count::from_f64(duration).filter(|_| duration != 0.0) else {
                    continue;
                };
                open.path(stack, &frames, &mut root_first);
                self.stacks.add(0, &root_first, label_set, duration)?;
            }
        }
        Ok(self.finish(window))
    }

    fn note_events(&mut self) {
        self.stacks.report.note_many(
            "events_left_out",
            "events were left out, as the trace has samples of the same time",
            self.event_count,
        );
    }

    fn target(&mut self, thread: usize, window: Window) -> Result<Target, ReadError> {
        let first = window.map_or(0, |(first, _)| first);
        let start = start_of(first, self.options.now_ns);
        Ok(Target {
            series: 0,
            label_set: self.threads.label_set(thread, &mut self.stacks)?,
            shift_ns: start.saturating_sub(first),
        })
    }

    fn finish(self, window: Window) -> (Profile, Report) {
        let given_name = self.options.profile_name.as_deref();
        let profile_type = naming::sampled_type(given_name, true);
        let (mut profile, report) = self.stacks.finish(vec![profile_type], self.options);
        let (first, last) = window.unwrap_or((0, 0));
        for series in &mut profile.series {
            series.start_ns = start_of(first, self.options.now_ns);
            let duration = last.saturating_sub(first);
            series.duration_ns = duration.clamp(0, i64::MAX - series.start_ns);
        }
        (profile, report)
    }
}

impl Place {
    /// Piece by piece: what else the arguments hold may be a hundred times as large in memory.
    fn read(args: &[u8]) -> Result<Self, ReadError> {
        let mut place = Self::default();
        let mut cursor = JsonCursor::new(NAME, args);
        let mut is_first = true;
        cursor.expect(b'{')?;
        while let Some(key) = cursor.next_key(&mut is_first)? {
            let value = cursor.value()?;
            let number = || plain(value).parse().unwrap_or(0);
            match key.as_str() {
                "url" => place.url = serde_json::from_slice(value).unwrap_or_default(),
                "funcLine" => place.start_line = number(),
                "line" => place.line = number(),
                "column" => place.column = number(),
                _ => {}
            }
        }
        Ok(place)
    }
}

fn window<'t>(timelines: impl Iterator<Item = &'t Timeline>) -> Window {
    timelines.filter_map(Timeline::window).reduce(joined)
}

fn joined(one: (i64, i64), other: (i64, i64)) -> (i64, i64) {
    (one.0.min(other.0), one.1.max(other.1))
}
