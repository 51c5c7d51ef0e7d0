//! Profiles of Firefox to a profile.

use std::collections::VecDeque;
use std::io::BufRead;

use candela_model::LabelSetId;
use candela_model::Profile;
use candela_model::ProfileType;
use candela_model::StackId;
use serde_json::Number;
use serde_json::Value;

use crate::count::Count;
use crate::epoch::start_of;
use crate::error::ReadError;
use crate::firefox::NAME;
use crate::firefox::cleopatra::add_samples;
use crate::firefox::cleopatra::is_cleopatra;
use crate::firefox::process::MainMeta;
use crate::firefox::process::Process;
use crate::firefox::table::list;
use crate::json_input::parse_json;
use crate::json_limits::ValueBudget;
use crate::named_stacks::NamedStacks;
use crate::options::ReadOptions;
use crate::report::Report;
use crate::series_index::SeriesIndex;
use crate::work::Work;

/// The profile as far as it is built.
pub(crate) struct Sink<'o> {
    pub(crate) options: &'o ReadOptions,
    pub(crate) stacks: NamedStacks<'o>,
    /// For stacks that share their beginnings.
    pub(crate) work: Work,
    /// Of the JSON that stands as text in JSON.
    pub(crate) inner_values: ValueBudget,
    series: Vec<SeriesHead>,
    index: SeriesIndex,
    /// The first and the last moment, nanoseconds since what the start times are since.
    times: Option<(i64, i64)>,
    /// The longest interval between samples.
    pub(crate) interval_ns: i64,
}

/// What is known of a series besides its samples.
struct SeriesHead {
    profile_type: ProfileType,
    period: i64,
    /// Start and duration, where our writer told them.
    window: Option<(i64, i64)>,
}

/// What a value belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) series: usize,
    pub(crate) stack: StackId,
    pub(crate) label_set: LabelSetId,
    /// [`NO_TIME`] when unknown.
    pub(crate) time_ns: i64,
}

/// A time that is not known, as long as 0 may be one.
pub(crate) const NO_TIME: i64 = i64::MIN;

/// Reads a profile of Firefox, raw or processed, of any version or of Cleopatra before them, with those of other processes inside
/// of it. Samples become wall time (their weight in intervals), the CPU time that they carry a series
/// of its own, allocations another. Threads are told apart by labels. Markers and counters are left
/// out and noted.
///
/// # Errors
/// When the input cannot be read, is no such JSON, has no threads or exceeds a limit.
pub fn read_firefox(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut sink = Sink {
        options,
        stacks: NamedStacks::new(&options.limits),
        work: Work::new(&options.limits),
        inner_values: ValueBudget::new(&options.limits),
        series: Vec::new(),
        index: SeriesIndex::new(&options.limits),
        times: None,
        interval_ns: 0,
    };
    let report = &mut sink.stacks.report;
    let mut root: Value = parse_json(NAME, input, &options.limits, report)?;
    if let Some(wrapped) = root.get_mut("profile").filter(|inner| inner.is_object()) {
        root = wrapped.take();
    }
    if is_cleopatra(&root) {
        add_samples(&root, &mut sink)?;
        return Ok(sink.finish());
    }
    if !root.get("threads").is_some_and(Value::is_array) {
        return Err(invalid("the file has no list `threads`".to_owned()));
    }
    let main = MainMeta::new(root.get_mut("meta").map(Value::take).unwrap_or_default());
    let mut pending = VecDeque::from([root]);
    while let Some(mut file) = pending.pop_front() {
        if let Some(Value::Array(processes)) = file.get_mut("processes").map(Value::take) {
            pending.extend(processes);
        }
        let mut process = Process::new(&file, &main, &mut sink)?;
        for thread in list(&file, "threads") {
            match thread {
                // Until 2016 other processes stood among the threads, as text.
                Value::String(text) => {
                    sink.inner_values.take(text.as_bytes())?;
                    match serde_json::from_str(text) {
                        Ok(inner) => pending.push_back(inner),
                        Err(_) => sink.stacks.report.note(
                            "processes_broken",
                            "profiles of processes that are no JSON were left out",
                        ),
                    }
                }
                thread => process.add_thread(thread, &mut sink)?,
            }
        }
    }
    Ok(sink.finish())
}

impl Sink<'_> {
    /// The series of a type, which is made when it is new.
    ///
    /// # Errors
    /// When there are as many series as there may be.
    pub(crate) fn series(
        &mut self,
        profile_type: &ProfileType,
        period: i64,
        window: Option<(i64, i64)>,
    ) -> Result<usize, ReadError> {
        if let Some(position) = self.index.get(profile_type) {
            let known = self.series.get_mut(position);
            let known = known.and_then(|known| known.window.as_mut());
            if let (Some(known), Some(other)) = (known, window) {
                *known = joined(*known, other);
            }
            return Ok(position);
        }
        let position = self.index.add(profile_type)?;
        self.series.push(SeriesHead {
            profile_type: profile_type.clone(),
            period,
            window,
        });
        Ok(position)
    }

    pub(crate) fn add(&mut self, moment: Moment, value: Count) -> Result<(), ReadError> {
        let time_ns = moment.time_ns;
        if time_ns != NO_TIME {
            let (first, last) = self.times.unwrap_or((time_ns, time_ns));
            self.times = Some((first.min(time_ns), last.max(time_ns)));
        }
        self.stacks.add_at(
            moment.series,
            moment.stack,
            moment.label_set,
            time_ns,
            value,
        )
    }

    fn finish(self) -> (Profile, Report) {
        let options = self.options;
        let types = self.series.iter().map(|head| head.profile_type.clone());
        let (mut profile, report) = self.stacks.finish(types.collect(), options);
        let is_own = self.series.iter().any(|head| head.window.is_some());
        let (first, last) = self.times.unwrap_or((0, 0));
        let start = start_of(first, options.now_ns);
        let shift = if is_own {
            0
        } else {
            start.saturating_sub(first)
        };
        let duration = match self.times {
            Some(_) => last.saturating_sub(first).saturating_add(self.interval_ns),
            None => 0,
        };
        for (series, head) in profile.series.iter_mut().zip(self.series) {
            let (start, duration) = head.window.unwrap_or((start, duration));
            series.period = head.period;
            series.start_ns = start.max(0);
            series.duration_ns = duration.clamp(0, i64::MAX - series.start_ns);
            for sample in &mut series.samples {
                sample.time_ns = match sample.time_ns {
                    NO_TIME => 0,
                    time => time.saturating_add(shift).max(0),
                };
            }
        }
        (profile, report)
    }
}

/// The window from the earlier start to the later end.
fn joined(one: (i64, i64), other: (i64, i64)) -> (i64, i64) {
    let start = one.0.min(other.0);
    let end = |window: (i64, i64)| window.0.saturating_add(window.1);
    (start, end(one).max(end(other)).saturating_sub(start))
}

/// Milliseconds in nanoseconds. Whole ones stay exact: time since 1970 has more digits than fit.
pub(crate) fn nanoseconds(milliseconds: f64) -> i64 {
    const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;
    let whole = milliseconds.trunc();
    let fraction = (milliseconds - whole) * NANOSECONDS_PER_MILLISECOND as f64;
    (whole as i64)
        .saturating_mul(NANOSECONDS_PER_MILLISECOND)
        .saturating_add(fraction.round() as i64)
}

/// A weight in other units. What is less than a nanosecond is an error of decimal places.
pub(crate) fn weighed(weight: &Number, factor: i64) -> Result<Count, ReadError> {
    let count = Count::scaled(weight, factor)
        .ok_or_else(|| invalid(format!("the value {weight} does not fit into 64 bits")))?;
    Ok(match factor {
        1 => count,
        _ => Count::whole(count.rounded().0),
    })
}

pub(crate) fn invalid(problem: String) -> ReadError {
    ReadError::Invalid {
        format: NAME,
        problem,
    }
}
