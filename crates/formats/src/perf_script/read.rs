//! Reading the text of `perf script`, a line at a time.

use std::io::BufRead;

use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::ProfileType;
use candela_model::SampleLabel;
use candela_model::StackId;
use candela_model::StringId;
use candela_model::StringTable;
use hashbrown::HashMap;

use crate::ctime::parse_ctime;
use crate::error::ReadError;
use crate::options::ReadOptions;
use crate::perf_script::EVENT_COMMENT;
use crate::perf_script::NAME;
use crate::perf_script::frame::parse_frame;
use crate::perf_script::frame::parse_frame_before_branches;
use crate::perf_script::frame::parse_inline_frame;
use crate::perf_script::frame::parse_source_line;
use crate::perf_script::header::Header;
use crate::perf_script::header::is_event_name;
use crate::perf_script::header::parse_bare_header;
use crate::perf_script::header::parse_header;
use crate::perf_script::known_stacks::KnownStacks;
use crate::perf_script::open_frames::OpenFrames;
use crate::perf_script::samples::Samples;
use crate::report::Report;
use crate::text_lines::TextLines;
use crate::text_lines::decode_prefix;

/// A recording has one command line; some more are of texts put together.
const MAX_COMMENTS: usize = 16;

/// Reads the text of `perf script`, with any of its fields, plain or compressed.
///
/// Each event is a series of its own. A sample counts for its period where the line has one, else
/// for 1. The name of the thread (`comm`) and its numbers become the labels `thread_name`,
/// `thread_id` and `pid`, the CPU `cpu`. Functions have no offsets, arguments stay. Fields of
/// tracepoints, registers and branches are left out.
///
/// Times count from the start of the host most often. They are moved to the time when the recording
/// was written, if `--header` tells it, and else begin at the time of reading.
///
/// # Errors
/// When the input cannot be read, exceeds a limit, or has no sample.
pub fn read_perf_script(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut lines = TextLines::new(input, &options.limits)?;
    let mut reader = Reader {
        samples: Samples::new(&options.limits),
        frames: OpenFrames::new(options.limits.max_stack_depth),
        open: None,
        label_sets: HashMap::new(),
        host: String::new(),
        first_unknown: None,
        line_number: 0,
    };
    let mut known_stacks = KnownStacks::default();
    while let Some(line) = lines.next_line()? {
        reader.line_number += 1;
        match reader.line(line)? {
            Line::Header => {
                if let Some(stack) = known_stacks.take(&mut lines)? {
                    reader.add_sample(stack)?;
                }
            }
            Line::Blank => {
                if let Some(closed) = reader.close_sample()?
                    && closed.is_whole
                {
                    known_stacks.keep(closed.stack, closed.frame_lines, &lines);
                }
            }
            Line::Other => {}
        }
        reader.line_number = lines.number();
    }
    reader.close_sample()?;
    let Reader {
        mut samples,
        host,
        first_unknown,
        ..
    } = reader;
    lines.note_repairs(&mut samples.report);
    if samples.is_empty() {
        let place = first_unknown.map_or(String::new(), |line| format!(", line {line} is another"));
        return Err(ReadError::Invalid {
            format: NAME,
            problem: format!(
                "no line has the form `comm pid/tid [cpu] time: period event:`{place}"
            ),
        });
    }
    Ok(samples.finish(&host, options))
}

/// Whether the start of some input looks like it: the first line behind comments is the header of a
/// sample, or some line is, and a frame stands below it.
pub(crate) fn looks_like_perf_script(prefix: &[u8]) -> bool {
    let text = decode_prefix(prefix);
    let mut lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !is_blank(line));
    let Some(first) = lines.next() else {
        return text.starts_with("# ========\n# captured on");
    };
    let has_thread_and_time = |header: &Header<'_>| {
        let has_thread = header.tid.is_some() || header.pid.is_some();
        has_thread && header.time_ns.is_some()
    };
    let is_likely =
        |header: &Header<'_>| has_thread_and_time(header) || is_event_name(header.event);
    let mut before = parse_header(first);
    let is_sure = |header: &Header<'_>| has_thread_and_time(header) && !header.event.is_empty();
    if before.as_ref().is_some_and(is_sure) {
        return true;
    }
    for line in lines {
        let is_frame = match line.starts_with([' ', '\t']) {
            true => parse_frame(line).is_some(),
            false => parse_inline_frame(line).is_some(),
        };
        if before.as_ref().is_some_and(is_likely) && is_frame {
            return true;
        }
        before = parse_header(line);
    }
    false
}

struct Reader<'o> {
    samples: Samples<'o>,
    frames: OpenFrames,
    /// The sample that frames belong to.
    open: Option<OpenSample>,
    /// Those of the threads so far, which are few beside the samples.
    label_sets: HashMap<Thread, LabelSetId>,
    host: String,
    /// The number of the first line that is nothing known.
    first_unknown: Option<u64>,
    /// The number of the line that is read.
    line_number: u64,
}

struct OpenSample {
    event: usize,
    period: Option<i64>,
    time_ns: Option<i64>,
    label_set: LabelSetId,
    /// Whether the whole sample stands on one line.
    is_complete: bool,
    /// Whether it is one only if frames follow.
    is_bare: bool,
    /// The number of its header.
    line_number: u64,
    /// Lines of frames that left nothing to report.
    frame_lines: u64,
}

/// What a sample became.
struct ClosedSample {
    stack: StackId,
    frame_lines: u64,
    /// Whether no frame was cut off.
    is_whole: bool,
}

/// What a line was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// Of a sample whose frames follow, or may follow.
    Header,
    /// The end of a sample, if it has frames.
    Blank,
    Other,
}

/// What the labels of a sample tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Thread {
    /// The empty one where the thread has no name.
    name: StringId,
    id: Option<i64>,
    pid: Option<i64>,
    cpu: Option<i64>,
}

impl Reader<'_> {
    fn line(&mut self, line: &str) -> Result<Line, ReadError> {
        if let Some(comment) = line.strip_prefix('#') {
            self.comment(comment)?;
            return Ok(Line::Other);
        }
        if is_blank(line) {
            // One between header and frames is a slip.
            return Ok(match self.frames.is_empty() {
                true => Line::Other,
                false => Line::Blank,
            });
        }
        if let Some(open) = self.open.as_mut().filter(|open| !open.is_complete)
            && self.frames.push_known(line, &mut self.samples)?
        {
            open.frame_lines += 1;
            return Ok(Line::Other);
        }
        // Headers of samples on one line are padded, and a padded comm may look like an address.
        let header = match line.starts_with('\t') {
            true => None,
            false => parse_header(line),
        };
        if let Some(header) = header {
            self.header(&header, false)?;
            let has_frames = self.open.as_ref().is_some_and(|open| !open.is_complete);
            return Ok(match has_frames {
                true => Line::Header,
                false => Line::Other,
            });
        }
        if self.frame(line)? {
            return Ok(Line::Other);
        }
        // Within a sample any text is left out, as it would take the sample's other frames.
        let is_between = match &self.open {
            Some(open) => open.is_bare && self.frames.is_empty(),
            None => true,
        };
        if is_between && let Some(header) = parse_bare_header(line) {
            self.header(&header, true)?;
            return Ok(match self.open.is_some() {
                true => Line::Header,
                false => Line::Other,
            });
        }
        self.note_not_understood(self.line_number);
        Ok(Line::Other)
    }

    fn note_not_understood(&mut self, line_number: u64) {
        self.first_unknown.get_or_insert(line_number);
        self.samples.report.note(
            "lines_not_understood",
            "lines that are neither a header nor a frame were left out",
        );
    }

    fn comment(&mut self, comment: &str) -> Result<(), ReadError> {
        if let Some(event) = comment.strip_prefix(EVENT_COMMENT) {
            let parsed = event.rsplit_once(" = ");
            let parsed = parsed.and_then(|(event, id)| Some((event, id.parse().ok()?)));
            if let Some((event, profile_type)) = parsed {
                let profile_type: ProfileType = profile_type;
                self.samples.give_type(event, profile_type)?;
            }
            return Ok(());
        }
        let Some((key, value)) = comment.split_once(':') else {
            return Ok(());
        };
        match key.trim() {
            "captured on" => {
                if let Some(end_ns) = parse_ctime(value) {
                    self.samples.set_end(end_ns);
                }
            }
            "cmdline" => {
                let command = self.samples.cut(value.trim()).to_owned();
                let comments = &mut self.samples.report.comments;
                if comments.len() < MAX_COMMENTS {
                    comments.push(command);
                }
            }
            "hostname" => self.host = self.samples.cut(value.trim()).to_owned(),
            _ => {}
        }
        Ok(())
    }

    fn header(&mut self, header: &Header<'_>, is_bare: bool) -> Result<(), ReadError> {
        self.close_sample()?;
        let is_record = |text: &str| text.starts_with("PERF_RECORD_");
        if is_record(header.event) || is_record(header.payload) {
            let text = "records that are no samples (mappings, threads, switches) were left out";
            self.samples.report.note("records_left_out", text);
            return Ok(());
        }
        let period = header.period.map(|period| self.period(period));
        let label_set = self.label_set(header)?;
        let whole = parse_inline_frame(header.payload);
        if whole.is_none() && !header.payload.is_empty() {
            let text = "fields of events (of tracepoints, addresses, branches) were left out";
            self.samples.report.note("event_fields_left_out", text);
        }
        let frame = whole.or_else(|| parse_frame_before_branches(header.payload));
        let event = self.samples.cut(header.event);
        self.open = Some(OpenSample {
            event: self.samples.event(event, period)?,
            period,
            time_ns: header.time_ns,
            label_set,
            is_complete: frame.is_some(),
            is_bare,
            line_number: self.line_number,
            frame_lines: 0,
        });
        if let Some(frame) = frame {
            self.frames.push(&frame, "", &mut self.samples)?;
        }
        Ok(())
    }

    /// A frame of the open sample, or the source line of one.
    fn frame(&mut self, line: &str) -> Result<bool, ReadError> {
        let is_indented = line.starts_with([' ', '\t']);
        let open = self.open.as_mut().filter(|open| !open.is_complete);
        // Tools that clean texts up take the indentation off, and then any text may stand here.
        if !is_indented && (open.is_none() || parse_inline_frame(line).is_none()) {
            return Ok(false);
        }
        // What is cut is reported each time.
        let is_short = line.len() <= self.samples.max_string_bytes();
        if is_indented
            && !self.frames.is_empty()
            && let Some(source) = parse_source_line(line)
        {
            let is_taken = self.frames.set_source(&source);
            if let Some(open) = open {
                open.frame_lines += u64::from(is_taken && is_short);
            }
            return Ok(true);
        }
        let Some(frame) = parse_frame(line) else {
            return Ok(false);
        };
        let Some(open) = open else {
            let text = "frames that belong to no sample were left out";
            self.samples.report.note("frames_without_sample", text);
            return Ok(true);
        };
        open.frame_lines += u64::from(is_short);
        self.frames.push(&frame, line, &mut self.samples)?;
        Ok(true)
    }

    fn close_sample(&mut self) -> Result<Option<ClosedSample>, ReadError> {
        let Some(open) = &self.open else {
            return Ok(None);
        };
        if open.is_bare && self.frames.is_empty() {
            let line_number = open.line_number;
            self.open = None;
            self.note_not_understood(line_number);
            return Ok(None);
        }
        let frame_lines = open.frame_lines;
        let (leaf_first, is_whole) = self.frames.close(&mut self.samples)?;
        let stack = self.samples.stack(leaf_first)?;
        self.frames.clear();
        self.add_sample(stack)?;
        Ok(Some(ClosedSample {
            stack,
            frame_lines,
            is_whole,
        }))
    }

    /// Ends the open sample.
    fn add_sample(&mut self, stack: StackId) -> Result<(), ReadError> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        let OpenSample {
            event,
            period,
            label_set,
            time_ns,
            ..
        } = open;
        self.samples.add(event, period, stack, label_set, time_ns)
    }

    fn period(&mut self, period: u64) -> i64 {
        i64::try_from(period).unwrap_or_else(|_| {
            let text = "values beyond 63 bits were cut";
            self.samples.report.note("values_cut", text);
            i64::MAX
        })
    }

    fn label_set(&mut self, header: &Header<'_>) -> Result<LabelSetId, ReadError> {
        let comm = self.samples.cut(header.comm);
        // `:7` stands in for a name that perf does not know, and 0 for a thread: it is the idle one
        // only if it is called so.
        let number = comm.strip_prefix(':').map(str::parse::<i64>);
        let is_named = !comm.is_empty() && !matches!(number, Some(Ok(_)));
        let is_idle = comm.starts_with("swapper");
        let known = |number: Option<i64>| number.filter(|number| *number != 0 || is_idle);
        let name = match is_named {
            true => self.samples.profile.symbols.strings.intern(comm),
            false => StringId::default(),
        };
        let thread = Thread {
            name,
            id: known(header.tid),
            pid: known(header.pid),
            cpu: header.cpu,
        };
        if let Some(label_set) = self.label_sets.get(&thread) {
            return Ok(*label_set);
        }
        let made = self.samples.made(comm.len(), |profile| {
            let strings = &mut profile.symbols.strings;
            let mut set: Vec<SampleLabel> = Vec::with_capacity(4);
            if is_named {
                set.push(SampleLabel::text(
                    strings.intern("thread_name"),
                    thread.name,
                ));
            }
            let numbers = [
                ("thread_id", thread.id),
                ("pid", thread.pid),
                ("cpu", thread.cpu),
            ];
            for (name, value) in numbers {
                set.extend(value.map(|value| number_label(name, value, strings)));
            }
            profile.label_sets.intern(set)
        })?;
        self.label_sets.insert(thread, made);
        Ok(made)
    }
}

fn number_label(name: &str, value: i64, strings: &mut StringTable) -> SampleLabel {
    SampleLabel {
        key: strings.intern(name),
        value: LabelValue::Number {
            value,
            unit: StringId::default(),
        },
    }
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}
