//! Samples of events under construction: memory is bounded by what the profile holds, however long
//! the text is.

use candela_model::LabelSetId;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::Sample;
use candela_model::StackId;
use hashbrown::HashMap;
use hashbrown::HashSet;

use crate::error::ReadError;
use crate::options::Limits;
use crate::options::ReadOptions;
use crate::perf_events::event_type;
use crate::perf_events::second_event_type;
use crate::perf_events::without_modifiers;
use crate::perf_script::clock::Clock;
use crate::report::Report;

/// What an entry of a table takes besides its texts, with its share of the index. Rounded up.
const LOCATION_BYTES: usize = 128;
const STACK_BYTES: usize = 32;
const FRAME_BYTES: usize = 4;
const LABEL_SET_BYTES: usize = 256;
const SERIES_BYTES: usize = 1024;

/// Events that are compared before one is looked up, which takes memory. A text may have hundreds of
/// thousands.
const MOST_COMPARED: usize = 16;

/// The profile and its samples by event.
#[derive(Debug)]
pub(crate) struct Samples<'o> {
    limits: &'o Limits,
    pub(crate) profile: Profile,
    pub(crate) report: Report,
    events: Vec<EventSamples>,
    positions: HashMap<(Box<str>, bool), usize>,
    /// Types that the text itself gives to events.
    given_types: HashMap<Box<str>, ProfileType>,
    rows: usize,
    /// Where the sample is that equal ones are added to, once there are too many to keep each.
    merged: Option<HashMap<Key, usize>>,
    clock: Clock,
    bytes_left: usize,
}

#[derive(Debug)]
struct EventSamples {
    event: Box<str>,
    has_period: bool,
    /// The period of all samples; `None` when they differ.
    period: Option<i64>,
    samples: Vec<Sample>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    event: usize,
    stack: StackId,
    label_set: LabelSetId,
}

impl<'o> Samples<'o> {
    pub(crate) fn new(limits: &'o Limits) -> Self {
        Self {
            limits,
            profile: Profile::default(),
            report: Report::default(),
            events: Vec::new(),
            positions: HashMap::new(),
            given_types: HashMap::new(),
            rows: 0,
            merged: None,
            clock: Clock::default(),
            bytes_left: limits.inflated_bytes(),
        }
    }

    /// As much of a text as may be kept.
    pub(crate) fn cut<'t>(&mut self, text: &'t str) -> &'t str {
        let cut = self.limits.cut(text);
        if cut.len() < text.len() {
            self.report.note(
                "strings_cut",
                "strings longer than the limit were cut at their end",
            );
        }
        cut
    }

    /// What is longer is cut, which is noted.
    pub(crate) fn max_string_bytes(&self) -> usize {
        self.limits.max_string_bytes
    }

    /// The moment when the recording ended, nanoseconds since the Unix epoch.
    pub(crate) fn set_end(&mut self, end_ns: i64) {
        self.clock.end_ns = Some(end_ns);
    }

    /// The type of an event.
    pub(crate) fn give_type(
        &mut self,
        event: &str,
        profile_type: ProfileType,
    ) -> Result<(), ReadError> {
        self.pay(SERIES_BYTES + event.len())?;
        self.given_types.insert(event.into(), profile_type);
        Ok(())
    }

    /// Pays for what `make` adds to the tables.
    pub(crate) fn made<T>(
        &mut self,
        text_bytes: usize,
        make: impl FnOnce(&mut Profile) -> T,
    ) -> Result<T, ReadError> {
        let locations = self.profile.symbols.locations().len();
        let label_sets = self.profile.label_sets.len();
        let made = make(&mut self.profile);
        if self.profile.symbols.locations().len() > locations {
            self.pay(LOCATION_BYTES + text_bytes)?;
        }
        if self.profile.label_sets.len() > label_sets {
            self.pay(LABEL_SET_BYTES + text_bytes)?;
        }
        Ok(made)
    }

    pub(crate) fn stack(&mut self, leaf_first: &[LocationId]) -> Result<StackId, ReadError> {
        let stacks = self.profile.stacks.len();
        let stack = self.profile.stacks.intern(leaf_first);
        if self.profile.stacks.len() > stacks {
            self.pay(STACK_BYTES + FRAME_BYTES * leaf_first.len())?;
        }
        Ok(stack)
    }

    /// Adds a sample of an [`Samples::event`], with its period if it has one.
    pub(crate) fn add(
        &mut self,
        event: usize,
        period: Option<i64>,
        stack: StackId,
        label_set: LabelSetId,
        time_ns: Option<i64>,
    ) -> Result<(), ReadError> {
        let time_ns = time_ns.unwrap_or(0);
        self.clock.see(time_ns);
        let value = period.unwrap_or(1);
        let samples = &mut self.events[event].samples;
        if let Some(merged) = &mut self.merged {
            let key = Key {
                event,
                stack,
                label_set,
            };
            let position = *merged.entry(key).or_insert(samples.len());
            if let Some(known) = samples.get_mut(position) {
                known.value = known.value.saturating_add(value);
                return Ok(());
            }
        }
        samples.push(Sample {
            label_set,
            time_ns,
            ..Sample::new(stack, value)
        });
        self.rows += 1;
        if self.rows > self.limits.max_samples {
            return self.merge();
        }
        Ok(())
    }

    /// Whether nothing was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The profile with a series for each event, in the order in which they came.
    pub(crate) fn finish(mut self, host: &str, options: &ReadOptions) -> (Profile, Report) {
        let window = self.clock.window(options.now_ns);
        let mut found = candela_model::Labels::default();
        found.set("host", host);
        let labels = options.series_labels(found);
        let is_merged = self.merged.is_some();
        let types = self.types();
        for (event, profile_type) in self.events.into_iter().zip(types) {
            let mut samples = event.samples;
            // That of lines that looked like headers and were none.
            if samples.is_empty() {
                continue;
            }
            samples.retain(|sample| sample.value != 0);
            for sample in &mut samples {
                sample.time_ns = match is_merged {
                    true => 0,
                    false => window.unix_ns(sample.time_ns),
                };
            }
            self.profile.series.push(ProfileSeries {
                start_ns: window.start_ns,
                duration_ns: window.duration_ns,
                period: event.period.unwrap_or(0),
                samples,
                ..ProfileSeries::new(labels.clone(), profile_type)
            });
        }
        (self.profile, self.report)
    }

    /// The types of all events. One as it is comes before one of a part of it: `cycles` is what
    /// everybody means, also beside `cycles:u`.
    fn types(&self) -> Vec<ProfileType> {
        let mut taken: HashSet<ProfileType> = HashSet::new();
        let mut number = 0;
        let mut types: Vec<Option<ProfileType>> = vec![None; self.events.len()];
        for is_part in [false, true] {
            for (event, made) in self.events.iter().zip(&mut types) {
                if is_part != (without_modifiers(&event.event) != &*event.event) {
                    continue;
                }
                let given = self.given_types.get(&event.event);
                let profile_type = match given.filter(|_| event.has_period) {
                    Some(given) => given.clone(),
                    None => event_type(&event.event, event.has_period),
                };
                *made = Some(distinct(profile_type, event, &mut taken, &mut number));
            }
        }
        types.into_iter().flatten().collect()
    }

    /// The position of an event of which a sample with this period comes.
    pub(crate) fn event(&mut self, event: &str, period: Option<i64>) -> Result<usize, ReadError> {
        let has_period = period.is_some();
        // Most texts have few events, and the last is likely the next.
        let before = self.events.len().saturating_sub(MOST_COMPARED);
        let known = self.events[before..]
            .iter()
            .rposition(|known| *known.event == *event && known.has_period == has_period);
        let known = match known {
            Some(position) => Some(before + position),
            None if before == 0 => None,
            None => self.positions.get(&(event.into(), has_period)).copied(),
        };
        if let Some(position) = known {
            let known = &mut self.events[position];
            known.period = known.period.filter(|known| Some(*known) == period);
            return Ok(position);
        }
        self.pay(SERIES_BYTES + 2 * event.len())?;
        self.events.push(EventSamples {
            event: event.into(),
            has_period,
            period,
            samples: Vec::new(),
        });
        let position = self.events.len() - 1;
        self.positions.insert((event.into(), has_period), position);
        Ok(position)
    }

    /// Adds equal samples up and forgets their times, so that a long recording is still read.
    fn merge(&mut self) -> Result<(), ReadError> {
        let is_merged_before = self.merged.is_some();
        let too_many = ReadError::TooLarge {
            what: "the number of samples",
            limit: self.limits.max_samples,
        };
        if is_merged_before {
            return Err(too_many);
        }
        let mut positions: HashMap<Key, usize> = HashMap::new();
        self.rows = 0;
        for (event, events) in self.events.iter_mut().enumerate() {
            let mut kept: Vec<Sample> = Vec::new();
            for sample in &events.samples {
                let key = Key {
                    event,
                    stack: sample.stack,
                    label_set: sample.label_set,
                };
                let position = *positions.entry(key).or_insert(kept.len());
                match kept.get_mut(position) {
                    Some(known) => known.value = known.value.saturating_add(sample.value),
                    None => kept.push(*sample),
                }
            }
            self.rows += kept.len();
            events.samples = kept;
        }
        self.merged = Some(positions);
        self.report.note(
            "times_left_out",
            "there are more samples than the limit: equal ones were added up, without their times",
        );
        if self.rows > self.limits.max_samples {
            return Err(too_many);
        }
        Ok(())
    }

    fn pay(&mut self, bytes: usize) -> Result<(), ReadError> {
        let left = self.bytes_left.checked_sub(bytes);
        self.bytes_left = left.ok_or(ReadError::TooLarge {
            what: "the size of the profile in bytes",
            limit: self.limits.inflated_bytes(),
        })?;
        Ok(())
    }
}

/// A type that no other series has: events may count the same, and added up they would count it
/// twice. `number` is the last that was tried: no number is tried twice, so that events whose names
/// are such types already take no quadratic time.
fn distinct(
    mut profile_type: ProfileType,
    event: &EventSamples,
    types: &mut HashSet<ProfileType>,
    number: &mut usize,
) -> ProfileType {
    if types.contains(&profile_type) && !event.event.is_empty() {
        profile_type = second_event_type(&event.event, event.has_period);
    }
    let wanted = profile_type.sample_type.clone();
    while !types.insert(profile_type.clone()) {
        *number = (*number).max(types.len()) + 1;
        profile_type.sample_type = format!("{wanted}_{number}");
    }
    profile_type
}
