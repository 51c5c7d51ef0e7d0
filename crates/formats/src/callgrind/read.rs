//! The lines of a callgrind file.

use std::io::BufRead;

use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Profile;
use candela_model::StringId;

use crate::callgrind::distribute::Distribution;
use crate::callgrind::graph::CALLS;
use crate::callgrind::graph::CostKey;
use crate::callgrind::graph::Function;
use crate::callgrind::graph::Graph;
use crate::callgrind::graph::Place;
use crate::callgrind::graph::invalid;
use crate::callgrind::graph::without_number;
use crate::callgrind::header::Header;
use crate::callgrind::names::Names;
use crate::callgrind::names::is_cut;
use crate::error::ReadError;
use crate::inflate::read_inflated;
use crate::named_stacks::NamedStacks;
use crate::options::ReadOptions;
use crate::report::Report;

/// Reads the parts of a file, each event as a series. Parts are added up, threads told apart by the
/// label `thread_id`.
///
/// The format has costs of places and of calls, but no stacks. They are derived: the own cost of a
/// function is divided among its callers as the inclusive costs of their calls are, and so on up to
/// functions without callers. Own costs stay exact to the last unit. Of calls in a circle those that
/// lead back are not followed, so that a function stands in a stack once. Where there would be more
/// stacks than is of use, the lightest go to the heaviest stack of their function.
///
/// # Errors
/// When the input cannot be read, exceeds a limit, is of a newer version, or has no line with a cost.
/// Lines that make no sense are left out and noted.
pub fn read_callgrind(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let bytes = read_inflated(input, options.limits.inflated_bytes())?;
    let mut parser = Parser::new(options);
    for (position, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        parser.line(line.trim_ascii(), position + 1)?;
    }
    parser.finish(options)
}

/// Whether the start of some input is that of a file: the line that says so, or an `events:` line in a
/// header and a position behind it.
pub(crate) fn looks_like_callgrind(prefix: &[u8]) -> bool {
    const HEADER_KEYS: [&str; 12] = [
        "version",
        "creator",
        "cmd",
        "pid",
        "thread",
        "part",
        "desc",
        "positions",
        "event",
        "events",
        "summary",
        "totals",
    ];
    let text = String::from_utf8_lossy(prefix);
    if text.starts_with("# callgrind format") {
        return true;
    }
    let mut has_events = false;
    for line in text.lines() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if ["fl=", "fn=", "ob=", "fi=", "fe="]
            .iter()
            .any(|key| line.starts_with(key))
        {
            return has_events;
        }
        let key = line.split(':').next().filter(|key| key.len() < line.len());
        if !key.is_some_and(|key| HEADER_KEYS.contains(&key)) {
            return false;
        }
        has_events |= key == Some("events");
    }
    false
}

struct Parser<'a> {
    options: &'a ReadOptions,
    stacks: NamedStacks<'a>,
    header: Header,
    graph: Graph,
    thread: Option<usize>,
    objects: Names,
    files: Names,
    functions: Names,
    object: StringId,
    file: StringId,
    function: Option<u32>,
    called_object: Option<StringId>,
    called_file: Option<StringId>,
    called_name: Option<StringId>,
    callee: Option<u32>,
    /// The number of calls that the next cost line is of.
    calls: Option<i64>,
    /// Of the last cost line, what relative numbers refer to.
    address: u64,
    line: u64,
    costs: Vec<i64>,
    has_costs: bool,
}

impl<'a> Parser<'a> {
    fn new(options: &'a ReadOptions) -> Self {
        Self {
            options,
            stacks: NamedStacks::new(&options.limits),
            header: Header::new(options.profile_name.clone()),
            graph: Graph::default(),
            thread: None,
            objects: Names::default(),
            files: Names::default(),
            functions: Names::default(),
            object: StringId(0),
            file: StringId(0),
            function: None,
            called_object: None,
            called_file: None,
            called_name: None,
            callee: None,
            calls: None,
            address: 0,
            line: 0,
            costs: Vec::new(),
            has_costs: false,
        }
    }

    fn line(&mut self, line: &[u8], line_number: usize) -> Result<(), ReadError> {
        let is_understood = match line.first() {
            None | Some(b'#') => true,
            Some(b'0'..=b'9' | b'+' | b'-' | b'*') => self.cost_line(line, line_number)?,
            Some(_) => {
                let key_length = line.iter().position(|&byte| matches!(byte, b'=' | b':'));
                match key_length {
                    Some(length) if line[length] == b'=' => {
                        self.position(&line[..length], line[length + 1..].trim_ascii_start())
                    }
                    Some(_) => {
                        let text = self.stacks.text(line);
                        // What comes before a position is the header of another part.
                        self.thread = None;
                        self.header.take(&text, line_number)?
                    }
                    None => false,
                }
            }
        };
        if !is_understood {
            let report = &mut self.stacks.report;
            report.note(
                "lines_not_understood",
                "lines that make no sense were left out",
            );
        }
        Ok(())
    }

    /// `fn=main` and the like.
    fn position(&mut self, key: &[u8], value: &[u8]) -> bool {
        if is_cut(value) {
            // What follows is not of the function before.
            match key {
                b"fn" => self.function = None,
                b"cfn" => self.called_name = None,
                _ => {}
            }
            return false;
        }
        let stacks = &mut self.stacks;
        match key {
            b"ob" => self.object = self.objects.resolve(value, stacks),
            b"fl" | b"fi" | b"fe" => self.file = self.files.resolve(value, stacks),
            b"fn" => {
                let name = self.functions.resolve(value, stacks);
                self.function = Some(self.graph.function(Function {
                    object: self.object,
                    file: self.file,
                    name,
                }));
            }
            b"cob" => self.called_object = Some(self.objects.resolve(value, stacks)),
            b"cfi" | b"cfl" => self.called_file = Some(self.files.resolve(value, stacks)),
            b"cfn" => self.called_name = Some(self.functions.resolve(value, stacks)),
            b"calls" => return self.calls(value),
            // They have no cost; but names may be explained there.
            b"jfi" => drop(self.files.resolve(value, stacks)),
            b"jfn" => drop(self.functions.resolve(value, stacks)),
            b"jump" | b"jcnd" => {}
            _ => return false,
        }
        true
    }

    /// `calls=3 51`: what is called is known, its cost stands in the next line.
    fn calls(&mut self, value: &[u8]) -> bool {
        if let Some(name) = self.called_name.take() {
            let function = Function {
                object: self.called_object.unwrap_or(self.object),
                file: self.called_file.unwrap_or(self.file),
                name,
            };
            self.callee = Some(self.graph.function(function));
        }
        self.called_object = None;
        self.called_file = None;
        let count = value.split(u8::is_ascii_whitespace).next();
        // The count is only asked for where costs tell nothing.
        let count = count.and_then(number).unwrap_or(0);
        self.calls = Some(i64::try_from(count).unwrap_or(i64::MAX));
        self.callee.is_some()
    }

    fn cost_line(&mut self, line: &[u8], line_number: usize) -> Result<bool, ReadError> {
        if self.header.columns.is_empty() {
            return Err(invalid(format!(
                "line {line_number} has costs, and no `events:` line before says of what"
            )));
        }
        let calls = self.calls.take();
        let mut words = line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        if self.header.has_address {
            let Some(address) = words.next().and_then(|word| position(word, self.address)) else {
                return Ok(false);
            };
            self.address = address;
        }
        if self.header.has_line {
            let Some(line) = words.next().and_then(|word| position(word, self.line)) else {
                return Ok(false);
            };
            self.line = line;
        }
        let columns = self.header.columns.len();
        let mut costs = std::mem::take(&mut self.costs);
        costs.resize(columns, 0);
        let has_negative = self.header.has_negative_costs();
        let mut is_understood = true;
        for cost in &mut costs {
            let word = words.next().unwrap_or(b"0");
            match cost_of(word, *cost, has_negative) {
                Some(value) => *cost = value,
                None => {
                    *cost = 0;
                    is_understood = false;
                }
            }
        }
        // More numbers than events.
        is_understood &= words.next().is_none();
        let result = self.add_costs(&costs, calls);
        self.costs = costs;
        result.map(|()| is_understood)
    }

    fn add_costs(&mut self, costs: &[i64], calls: Option<i64>) -> Result<(), ReadError> {
        let limits = &self.options.limits;
        let function = match self.function {
            Some(function) => function,
            None => self.graph.function(Function {
                object: self.object,
                file: self.file,
                name: StringId(0),
            }),
        };
        let number = self.header.thread;
        let graph = &mut self.graph;
        let thread = *self.thread.get_or_insert_with(|| graph.thread(number));
        if self.graph.threads.len() > limits.max_samples {
            return Err(ReadError::TooLarge {
                what: "the number of threads",
                limit: limits.max_samples,
            });
        }
        let key = CostKey {
            function,
            callee: self.callee.filter(|_| calls.is_some()),
            place: Place {
                file: self.file,
                line: u32::try_from(self.line).unwrap_or(0),
                address: if self.header.has_address {
                    self.address
                } else {
                    0
                },
            },
            event: CALLS,
        };
        if let Some(calls) = calls {
            if key.callee.is_none() {
                return Ok(());
            }
            // One at least, so that the call is known of when it cost nothing.
            self.graph.add(thread, key, calls.max(1), limits)?;
        }
        for (&event, &cost) in self.header.columns.iter().zip(costs) {
            let factor = self
                .header
                .events
                .get(event)
                .map_or(1, |event| event.1.factor);
            let key = CostKey {
                event: event as u32,
                ..key
            };
            self.graph
                .add(thread, key, cost.saturating_mul(factor), limits)?;
        }
        self.has_costs = true;
        Ok(())
    }

    fn finish(mut self, options: &ReadOptions) -> Result<(Profile, Report), ReadError> {
        if !self.has_costs {
            return Err(invalid(
                "no line has a cost; one has the form `LINE COST` below `events:` and `fn=` lines"
                    .to_owned(),
            ));
        }
        self.note_sums();
        self.note_cut();
        for (event, factors) in self.header.derived() {
            self.graph.derive(event, &factors, &options.limits)?;
        }
        let strings = &mut self.stacks.profile.symbols.strings;
        let plain: Vec<Option<StringId>> = (0..strings.len())
            .map(|id| {
                let name = strings.get(StringId::from_index(id));
                let plain = without_number(name)?.to_owned();
                Some(strings.intern(&plain))
            })
            .collect();
        self.graph.join_numbered(
            |name| plain.get(name.index()).copied().flatten(),
            &options.limits,
        )?;
        self.stacks.report.note_many(
            "functions_without_costs",
            "functions that are called at some cost have no lines of their own: that cost has no place",
            self.graph.unknown_callees(),
        );
        let kind = match &self.header.creator {
            creator if creator.starts_with("callgrind") => FrameKind::Native,
            creator if creator.starts_with("xdebug") => FrameKind::Php,
            _ => FrameKind::Unknown,
        };
        let events = &self.header.events;
        Distribution::new(self.graph, kind, &options.limits).add_all(events, &mut self.stacks)?;
        let types = events
            .iter()
            .map(|event| event.1.profile_type.clone())
            .collect();
        let mut labels = Labels::default();
        let program = self.header.command.split_ascii_whitespace().next();
        let program = program.and_then(|path| path.rsplit('/').next());
        labels.set("process_executable_name", program.unwrap_or(""));
        let pid = self.header.pid.map(|pid| pid.to_string());
        labels.set("pid", pid.unwrap_or_default());
        let (mut profile, report) = self.stacks.finish(types, options);
        for series in &mut profile.series {
            series.labels = options.series_labels(labels.clone());
        }
        Ok((profile, report))
    }

    /// Notes a call that the file ends in.
    fn note_cut(&mut self) {
        let is_cut = self.called_name.is_some() || self.calls.is_some();
        self.stacks.report.note_many(
            "file_cut",
            "the file breaks off in a call: what comes behind is missing",
            u64::from(is_cut),
        );
    }

    /// Compares the sums with what the file says they are.
    fn note_sums(&mut self) {
        let header = &self.header;
        let totals = self.graph.totals(header.events.len());
        let differs = |said: &[i64], is_wrong: fn(i64, i64) -> bool| {
            let said = said.iter().enumerate();
            said.filter(|(event, said)| {
                let factor = header.events.get(*event).map_or(1, |event| event.1.factor);
                let total = totals.get(*event).copied().unwrap_or(0);
                **said != 0 && is_wrong(said.saturating_mul(factor), total)
            })
            .count() as u64
        };
        let totals = differs(&header.totals, |said, total| said != total);
        // What is added up for each part may be the whole run's summary, as some parts repeat it.
        let summary = differs(&header.summary, |said, total| said > total);
        let report = &mut self.stacks.report;
        report.note_many(
            "totals_differ",
            "the costs of an event do not add up to what the file says they do",
            totals,
        );
        report.note_many(
            "summary_larger",
            "the summary of an event counts more than the lines do: that cost has no place",
            summary,
        );
    }
}

/// `0x12`, `12`, `+3`, `-3` or `*`.
fn position(word: &[u8], last: u64) -> Option<u64> {
    match word {
        b"*" => Some(last),
        [b'+', rest @ ..] => last.checked_add(number(rest)?),
        [b'-', rest @ ..] => last.checked_sub(number(rest)?),
        _ => number(word),
    }
}

/// Costs are numbers; some writers compress them as positions are.
fn cost_of(word: &[u8], last: i64, has_negative: bool) -> Option<i64> {
    let relative = |rest: &[u8]| i64::try_from(number(rest)?).ok();
    match word {
        b"*" => Some(last),
        [b'-', rest @ ..] if has_negative => Some(-relative(rest)?),
        [b'-', rest @ ..] => last.checked_sub(relative(rest)?),
        [b'+', rest @ ..] => last.checked_add(relative(rest)?),
        _ => relative(word),
    }
}

fn number(word: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(word).ok()?;
    let starts_with_digit = word.first().is_some_and(u8::is_ascii_digit);
    match text.strip_prefix("0x") {
        Some(hex) if hex.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            u64::from_str_radix(hex, 16).ok()
        }
        _ => text.parse().ok().filter(|_| starts_with_digit),
    }
}
