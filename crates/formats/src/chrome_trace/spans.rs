//! Events that last, and what runs inside of what.

use std::cmp::Reverse;

use candela_model::LocationId;
use candela_model::StringId;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::open_frames::Disorder;
use crate::open_frames::OpenFrames;
use crate::options::Limits;
use crate::report::Report;

/// What one thread did.
#[derive(Debug, Default)]
pub(crate) struct ThreadEvents {
    marks: Vec<Mark>,
    spans: Vec<Span>,
}

/// Something begins or ends.
#[derive(Clone, Copy, Debug)]
struct Mark {
    time_ns: i64,
    name: StringId,
    /// `None` where it ends.
    begins: Option<LocationId>,
    order: usize,
}

/// Something from its beginning to its end.
#[derive(Clone, Copy, Debug)]
struct Span {
    start_ns: i64,
    end_ns: i64,
    frame: LocationId,
    /// Of what begins and ends at the same times, what comes first in the file is outside.
    order: usize,
}

/// Ends that came before the beginnings of the same moment.
#[derive(Debug, Default)]
struct EarlyEnds {
    now: i64,
    /// How many of each name there are now.
    counts: HashMap<StringId, u64>,
    /// Those without a beginning so far.
    unmatched: u64,
}

impl EarlyEnds {
    /// What ends before this moment gets no beginning any more.
    fn pass(&mut self, time_ns: i64) {
        if self.now == time_ns {
            return;
        }
        self.now = time_ns;
        if !self.counts.is_empty() {
            // A new table and not a cleared one: to clear takes as long as the table was ever large.
            self.counts = HashMap::new();
        }
    }

    fn add(&mut self, name: StringId) {
        *self.counts.entry(name).or_default() += 1;
        self.unmatched += 1;
    }

    /// Whether what begins has ended already, which is then forgotten.
    fn is_ended(&mut self, name: StringId) -> bool {
        let Some(count) = self.counts.get_mut(&name).filter(|count| **count > 0) else {
            return false;
        };
        *count -= 1;
        self.unmatched -= 1;
        true
    }
}

impl ThreadEvents {
    pub(crate) fn begin(&mut self, time_ns: i64, name: StringId, frame: LocationId) {
        self.mark(time_ns, name, Some(frame));
    }

    /// The end of the innermost event of this name, or of any where it has none.
    pub(crate) fn end(&mut self, time_ns: i64, name: StringId) {
        self.mark(time_ns, name, None);
    }

    pub(crate) fn complete(&mut self, start_ns: i64, duration_ns: i64, frame: LocationId) {
        let order = self.marks.len() + self.spans.len();
        self.spans.push(Span {
            start_ns,
            end_ns: start_ns.saturating_add(duration_ns.max(0)),
            frame,
            order,
        });
    }

    fn mark(&mut self, time_ns: i64, name: StringId, begins: Option<LocationId>) {
        let order = self.marks.len() + self.spans.len();
        self.marks.push(Mark {
            time_ns,
            name,
            begins,
            order,
        });
    }

    /// The first and the last moment.
    pub(crate) fn window(&self) -> Option<(i64, i64)> {
        let marks = self.marks.iter().map(|mark| (mark.time_ns, mark.time_ns));
        let spans = self.spans.iter().map(|span| (span.start_ns, span.end_ns));
        marks
            .chain(spans)
            .reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    }

    /// The stacks that were open and for how long, in nanoseconds.
    pub(crate) fn nested<'l>(
        mut self,
        limits: &'l Limits,
        disorder: &mut Disorder,
        report: &mut Report,
    ) -> Result<OpenFrames<'l>, ReadError> {
        let (first, last) = self.window().unwrap_or((0, 0));
        self.pair(last, report);
        // What takes no time is no part of any sum.
        let mut spans = self.spans;
        spans.retain(|span| span.end_ns > span.start_ns);
        spans.sort_by_key(|span| (span.start_ns, Reverse(span.end_ns), span.order));
        let mut ends: Vec<usize> = (0..spans.len()).collect();
        ends.sort_by_key(|&span| (spans[span].end_ns, Reverse(span)));
        // Since the first event: that is less than 2^53 nanoseconds, so the sums stay exact.
        let since = |time: i64| time.saturating_sub(first) as f64;
        let mut open = OpenFrames::new(0.0, limits);
        let mut ends = ends.into_iter().map(|span| &spans[span]).peekable();
        for span in &spans {
            while let Some(ended) = ends.next_if(|ended| ended.end_ns <= span.start_ns) {
                open.pass(since(ended.end_ns), report);
                open.close(ended.frame.0, disorder, report)?;
            }
            open.pass(since(span.start_ns), report);
            open.open(span.frame.0)?;
        }
        for ended in ends {
            open.pass(since(ended.end_ns), report);
            open.close(ended.frame.0, disorder, report)?;
        }
        Ok(open)
    }

    /// Makes spans of beginnings and their ends. An end belongs to the innermost event of its name.
    fn pair(&mut self, last: i64, report: &mut Report) {
        let mut marks = std::mem::take(&mut self.marks);
        marks.sort_by_key(|mark| mark.time_ns);
        let mut open: Vec<Option<Mark>> = Vec::new();
        let mut open_of_name: HashMap<StringId, Vec<usize>> = HashMap::new();
        let mut early = EarlyEnds::default();
        for mark in marks {
            early.pass(mark.time_ns);
            if mark.begins.is_some() {
                if early.is_ended(mark.name) {
                    continue;
                }
                open_of_name.entry(mark.name).or_default().push(open.len());
                open.push(Some(mark));
                continue;
            }
            while open.last().is_some_and(Option::is_none) {
                open.pop();
            }
            let name = match open.last() {
                Some(Some(innermost)) if mark.name == StringId(0) => innermost.name,
                _ => mark.name,
            };
            let place = open_of_name.get_mut(&name).and_then(Vec::pop);
            match place.and_then(|place| open[place].take()) {
                Some(begin) => self.close(begin, mark.time_ns),
                None => early.add(mark.name),
            }
        }
        report.note_many(
            "ends_without_begin",
            "ends of events that had not begun were left out",
            early.unmatched,
        );
        let left: Vec<Mark> = open.into_iter().flatten().collect();
        report.note_many(
            "events_left_open",
            "events that never ended were taken to end with the last event of their thread",
            left.len() as u64,
        );
        for begin in left {
            self.close(begin, last);
        }
    }

    fn close(&mut self, begin: Mark, end_ns: i64) {
        if let Some(frame) = begin.begins {
            self.spans.push(Span {
                start_ns: begin.time_ns,
                end_ns,
                frame,
                order: begin.order,
            });
        }
    }
}
