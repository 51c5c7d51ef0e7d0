//! Scraped profiles on their way to the exporter.
//!
//! They come one by one, and the exporter's queue is short, as everything in it may be large. So
//! those of a second go together, and while the queue is full they wait here: nobody measures
//! anything meanwhile.

use std::time::Duration;
use std::time::Instant;

use candela_model::Function;
use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::Sample;
use candela_model::SampleLabel;
use candela_model::StackId;
use candela_model::StringId;
use hashbrown::HashMap;

use crate::export::ProfileQueue;

/// How long a profile waits for others.
const PATIENCE: Duration = Duration::from_secs(1);

/// Samples that go together. One message should stay small; a profile that is larger goes alone.
const ENOUGH_SAMPLES: usize = 50_000;

/// Samples that wait while the queue is full. Beyond this they are given up, counted as those of
/// which the exporter is behind.
const MOST_SAMPLES: usize = 1_000_000;

/// Profiles that wait to be handed over together.
#[derive(Debug)]
pub(crate) struct Batch {
    queue: ProfileQueue,
    pending: Profile,
    samples: usize,
    since: Option<Instant>,
}

// === impl Batch ===

impl Batch {
    pub(crate) fn new(queue: ProfileQueue) -> Self {
        Self {
            queue,
            pending: Profile::default(),
            samples: 0,
            since: None,
        }
    }

    /// Takes the series that have samples, with what these need of the tables: of a program's
    /// totals most have not changed.
    pub(crate) fn add(&mut self, profile: &Profile, now: Instant) {
        let samples = profile.sample_count();
        if samples == 0 {
            return;
        }
        if self.samples + samples > ENOUGH_SAMPLES {
            self.flush();
        }
        if self.samples + samples > MOST_SAMPLES {
            self.give_up_or_send();
        }
        Translation::new(profile).copy_series(&mut self.pending);
        self.samples += samples;
        self.since.get_or_insert(now);
    }

    /// When [`Batch::flush`] is wanted.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.since.map(|since| since + PATIENCE)
    }

    /// Hands over what waits, unless the queue is full; then it is tried again later.
    pub(crate) fn flush(&mut self) {
        if self.samples == 0 {
            return;
        }
        match self.queue.try_push(std::mem::take(&mut self.pending)) {
            Ok(()) => self.forget(),
            Err(pending) => {
                self.pending = *pending;
                self.since = Some(Instant::now());
            }
        }
    }

    /// The last time: what finds no room is counted as dropped.
    pub(crate) fn finish(mut self) {
        self.give_up_or_send();
    }

    fn give_up_or_send(&mut self) {
        if self.samples > 0 {
            self.queue.push(std::mem::take(&mut self.pending));
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.samples = 0;
        self.since = None;
    }
}

/// Ids of one profile in another, made where they are used.
struct Translation<'a> {
    from: &'a Profile,
    stacks: HashMap<StackId, StackId>,
    label_sets: HashMap<LabelSetId, LabelSetId>,
    locations: HashMap<LocationId, LocationId>,
}

// === impl Translation ===

impl<'a> Translation<'a> {
    fn new(from: &'a Profile) -> Self {
        Self {
            from,
            stacks: HashMap::new(),
            label_sets: HashMap::new(),
            locations: HashMap::new(),
        }
    }

    fn copy_series(&mut self, to: &mut Profile) {
        let from = self.from;
        for series in from
            .series
            .iter()
            .filter(|series| !series.samples.is_empty())
        {
            let mut copy = series.clone();
            for sample in &mut copy.samples {
                *sample = Sample {
                    stack: self.stack(sample.stack, to),
                    label_set: self.label_set(sample.label_set, to),
                    link: to.intern_link(from.links[sample.link.index()]),
                    ..*sample
                };
            }
            to.series.push(copy);
        }
    }

    fn stack(&mut self, id: StackId, to: &mut Profile) -> StackId {
        if let Some(known) = self.stacks.get(&id) {
            return *known;
        }
        let from = self.from.stacks.get(id).iter();
        let locations: Vec<LocationId> =
            from.map(|&location| self.location(location, to)).collect();
        let made = to.stacks.intern(&locations);
        self.stacks.insert(id, made);
        made
    }

    fn label_set(&mut self, id: LabelSetId, to: &mut Profile) -> LabelSetId {
        if let Some(known) = self.label_sets.get(&id) {
            return *known;
        }
        let labels = self
            .from
            .label_sets
            .get(id)
            .iter()
            .map(|label| SampleLabel {
                key: self.text(label.key, to),
                value: match label.value {
                    LabelValue::Text(text) => LabelValue::Text(self.text(text, to)),
                    LabelValue::Number { value, unit } => LabelValue::Number {
                        value,
                        unit: self.text(unit, to),
                    },
                },
            });
        let labels: Vec<SampleLabel> = labels.collect();
        let made = to.label_sets.intern(labels);
        self.label_sets.insert(id, made);
        made
    }

    fn location(&mut self, id: LocationId, to: &mut Profile) -> LocationId {
        if let Some(known) = self.locations.get(&id) {
            return *known;
        }
        let symbols = &self.from.symbols;
        let location = symbols.location(id);
        let mapping = *symbols.mapping(location.mapping);
        let mapping = Mapping {
            file: self.text(mapping.file, to),
            build_id: self.text(mapping.build_id, to),
            ..mapping
        };
        let mapping = to.symbols.intern_mapping(mapping);
        let lines = symbols.lines(id).iter().map(|line| {
            let function = *symbols.function(line.function);
            let function = Function {
                name: self.text(function.name, to),
                system_name: self.text(function.system_name, to),
                file: self.text(function.file, to),
                ..function
            };
            let function = to.symbols.intern_function_ids(function);
            (function, line.line, line.column)
        });
        let lines: Vec<_> = lines.collect();
        let made = to
            .symbols
            .intern_location(&location.in_mapping(mapping), &lines);
        self.locations.insert(id, made);
        made
    }

    fn text(&self, id: StringId, to: &mut Profile) -> StringId {
        let text = self.from.symbols.strings.get(id);
        to.symbols.strings.intern(text)
    }
}

#[cfg(test)]
mod tests {
    use candela_model::FrameKind;
    use candela_model::Labels;
    use candela_model::Link;
    use candela_model::Location;
    use candela_model::ProfileSeries;
    use candela_model::ProfileType;

    use super::*;
    use crate::ledger::DropReason;
    use crate::status::StatusBoard;

    /// A profile of many stacks of which one has a sample.
    fn profile(name: &str) -> Profile {
        let mut profile = Profile::default();
        let file = profile.symbols.strings.intern("/bin/shop");
        let mapping = profile.symbols.intern_mapping(Mapping {
            file,
            ..Mapping::default()
        });
        let mut stacks = Vec::new();
        for number in 0..10 {
            let function =
                profile
                    .symbols
                    .intern_function(&format!("{name}{number}"), "system", "f.go", 7);
            let location = Location::new(FrameKind::Go, number).in_mapping(mapping);
            let location = profile
                .symbols
                .intern_location(&location, &[(function, 3, 1)]);
            stacks.push(profile.stacks.intern(&[location]));
        }
        let key = profile.symbols.strings.intern("bytes");
        let unit = profile.symbols.strings.intern("B");
        let value = LabelValue::Number { value: 64, unit };
        let label_set = profile.label_sets.intern(vec![SampleLabel { key, value }]);
        let link = profile.intern_link(Link {
            trace_id: [7; 16],
            ..Link::default()
        });
        let profile_type = ProfileType::new("memory", "alloc_space", "bytes", "space", "bytes");
        let mut series = ProfileSeries::new(Labels::default(), profile_type.clone());
        series.samples.push(Sample {
            label_set,
            link,
            ..Sample::new(stacks[4], 5)
        });
        profile.series.push(series);
        profile
            .series
            .push(ProfileSeries::new(Labels::default(), profile_type));
        profile
    }

    #[test]
    fn only_what_samples_need_is_handed_over() {
        let (queue, received) = ProfileQueue::for_tests(std::sync::Arc::default());
        let mut batch = Batch::new(queue);
        let now = Instant::now();
        batch.add(&profile("f"), now);
        batch.add(&profile("g"), now);
        assert_eq!(batch.due(), Some(now + PATIENCE));
        batch.flush();
        assert_eq!(batch.due(), None);
        let merged = received.try_recv().expect("it was handed over");
        assert_eq!(merged.validate(), Ok(()));
        assert_eq!((merged.series.len(), merged.stacks.len()), (2, 3));
        let sample = merged.series[1].samples[0];
        assert_eq!(merged.links[sample.link.index()].trace_id, [7; 16]);
        let label = merged.label_sets.get(sample.label_set)[0];
        assert_eq!(merged.symbols.strings.get(label.key), "bytes");
        let location = merged.stacks.get(sample.stack)[0];
        let line = merged.symbols.lines(location)[0];
        let function = merged.symbols.function(line.function);
        assert_eq!(merged.symbols.strings.get(function.name), "g4");
        let mapping = merged.symbols.location(location).mapping;
        let file = merged.symbols.mapping(mapping).file;
        assert_eq!(merged.symbols.strings.get(file), "/bin/shop");
    }

    #[test]
    fn a_full_queue_is_waited_for_and_the_end_counts() {
        let board = std::sync::Arc::new(StatusBoard::default());
        let (queue, received) = ProfileQueue::for_tests(std::sync::Arc::clone(&board));
        let mut batch = Batch::new(queue);
        let mut sent = 0;
        while batch.due().is_none() && sent < 100 {
            batch.add(&profile("f"), Instant::now());
            batch.flush();
            sent += 1;
        }
        assert!(batch.due().is_some(), "the queue takes everything");
        assert_eq!(board.ledger.get(DropReason::ExporterBehind), 0);
        received.try_recv().expect("one is taken");
        batch.flush();
        assert_eq!(batch.due(), None);
        batch.add(&profile("f"), Instant::now());
        batch.finish();
        assert!(board.ledger.get(DropReason::ExporterBehind) > 0);
    }
}
