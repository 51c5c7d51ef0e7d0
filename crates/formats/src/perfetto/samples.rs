//! Packets with samples.

use candela_model::LabelSetId;
use candela_model::Sample;
use candela_model::StackId;
use candela_model::StringId;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::named_stacks::NamedStacks;
use crate::naming;
use crate::options::Limits;
use crate::perfetto::clocks::Moment;
use crate::perfetto::counters::Descriptor;
use crate::perfetto::counters::Measure;
use crate::perfetto::counters::MeasuredSeries;
use crate::perfetto::counters::MeasuredTypes;
use crate::perfetto::facts::Facts;
use crate::perfetto::facts::symbol_line;
use crate::perfetto::fields::fields;
use crate::perfetto::fields::number;
use crate::perfetto::fields::signed;
use crate::perfetto::heap::Heaps;
use crate::perfetto::packets::Packet;
use crate::perfetto::packets::content;
use crate::perfetto::sequence::EntryBudget;
use crate::perfetto::sequence::Sequence;
use crate::perfetto::sequence::task_context;
use crate::perfetto::stacks::StackMaker;
use crate::protobuf::reader::Span;
use crate::protobuf::reader::Value;
use crate::protobuf::reader::WireError;
use crate::protobuf::reader::numbers;
use crate::thread_labels::ThreadLabels;
use crate::timed_samples::TimedSamples;

/// Counters that are read with each sample: systems have a handful.
const MOST_FOLLOWERS: usize = 1024;

/// First and last time of samples.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    /// Since the epoch.
    pub(crate) real: Option<(i64, i64)>,
    /// Of a clock that nothing relates to it.
    pub(crate) other: Option<(i64, i64)>,
}

/// Reads packets in their order.
pub(crate) struct SampleReader<'a> {
    facts: &'a Facts,
    pub(crate) limits: &'a Limits,
    pub(crate) stacks: NamedStacks<'a>,
    samples: TimedSamples,
    pub(crate) heaps: Heaps,
    maker: StackMaker<'a>,
    pub(crate) budget: EntryBudget,
    sequences: HashMap<u32, Box<Sequence>>,
    /// The series and the factor of each counter, with weights or as a count of samples.
    counters: HashMap<(Descriptor, bool), (usize, i64)>,
    label_sets: HashMap<(Option<i64>, Option<i64>, StringId), LabelSetId>,
    pub(crate) times: Times,
    /// Whether a sequence says that we wrote it.
    pub(crate) is_own: bool,
}

/// A packet whose content is broken is left out; a limit ends the reading.
pub(crate) enum Failure {
    Wire,
    Limit(ReadError),
}

impl From<WireError> for Failure {
    fn from(_: WireError) -> Self {
        Self::Wire
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::Limit(error)
    }
}

impl<'a> SampleReader<'a> {
    pub(crate) fn new(facts: &'a Facts, stacks: NamedStacks<'a>, limits: &'a Limits) -> Self {
        Self {
            facts,
            limits,
            stacks,
            samples: TimedSamples::new(limits),
            heaps: Heaps::default(),
            maker: StackMaker::new(limits),
            budget: EntryBudget::new(limits),
            sequences: HashMap::new(),
            counters: HashMap::new(),
            label_sets: HashMap::new(),
            times: Times::default(),
            is_own: false,
        }
    }

    pub(crate) fn finish(mut self) -> Result<(NamedStacks<'a>, TimedSamples), ReadError> {
        self.heaps.finish(&mut self.samples)?;
        Ok((self.stacks, self.samples))
    }

    /// Takes what a packet changes and what it holds.
    pub(crate) fn packet(&mut self, data: &[u8], packet: &Packet) -> Result<(), ReadError> {
        // The sequence is taken out so that it can be read while all else changes.
        let known = self.sequences.remove(&packet.sequence);
        if known.is_none() {
            self.budget.take_sequence()?;
        }
        let mut sequence = known.unwrap_or_default();
        let result = self.packet_of(data, packet, &mut sequence);
        self.sequences.insert(packet.sequence, sequence);
        match result {
            Err(Failure::Limit(error)) => Err(error),
            Err(Failure::Wire) => {
                let report = &mut self.stacks.report;
                report.note("packets_broken", "packets that are damaged were left out");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn packet_of(
        &mut self,
        data: &[u8],
        packet: &Packet,
        sequence: &mut Sequence,
    ) -> Result<(), Failure> {
        if packet.is_after_loss {
            sequence.is_whole = false;
        }
        if packet.is_cleared {
            sequence.clear();
        }
        for span in &packet.interned {
            let budget = &mut self.budget;
            sequence.take_interned(data, *span, &mut self.stacks, budget)?;
            self.budget.check()?;
        }
        if let Some(span) = packet.defaults {
            self.take_defaults(data, span, sequence)?;
            self.budget.check()?;
        }
        for &(kind, span) in &packet.content {
            let is_sample = matches!(
                kind,
                content::PERF_SAMPLE
                    | content::STACK_SAMPLE
                    | content::STREAMING_PROFILE
                    | content::PROFILE_PACKET
            );
            if is_sample && packet.needs_state && !sequence.is_whole {
                self.stacks.report.note(
                    "packets_without_state",
                    "samples that refer to lost packets were left out",
                );
                continue;
            }
            match kind {
                content::THREAD_DESCRIPTOR => sequence.take_thread(data, span)?,
                content::PERF_SAMPLE => self.perf_sample(data, span, packet, sequence)?,
                content::STACK_SAMPLE => self.stack_sample(data, span, packet, sequence)?,
                content::STREAMING_PROFILE => self.streaming(data, span, packet, sequence)?,
                content::PROFILE_PACKET => self.heap_profile(data, span, packet, sequence)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn take_defaults(
        &mut self,
        data: &[u8],
        span: Span,
        sequence: &mut Sequence,
    ) -> Result<(), WireError> {
        let stacks = &mut self.stacks;
        let budget = &mut self.budget;
        fields(data, span, |field, value| {
            match (field, value) {
                (58, value) => sequence.default_clock = u32::try_from(number(value)).ok(),
                (12, Value::Bytes(span)) => {
                    sequence.measure = Some(Box::new(Measure::read(data, span, stacks)?));
                    sequence.measured = None;
                    sequence.last_count = 0;
                }
                (100, Value::Bytes(span)) => {
                    sequence.followers.clear();
                    fields(data, span, |field, value| {
                        match (field, value) {
                            (2, Value::Bytes(span)) => {
                                sequence.primary = Some(Descriptor::read(data, span, stacks)?.1);
                            }
                            (3, Value::Bytes(span)) => {
                                let (_, follower) = Descriptor::read(data, span, stacks)?;
                                let is_kept = budget.has_taken_one();
                                sequence.followers.extend(is_kept.then_some(follower));
                            }
                            _ => {}
                        }
                        Ok(())
                    })?;
                }
                _ => {}
            }
            Ok(())
        })
    }

    fn perf_sample(
        &mut self,
        data: &[u8],
        span: Span,
        packet: &Packet,
        sequence: &mut Sequence,
    ) -> Result<(), Failure> {
        let (mut pid, mut tid, mut callstack, mut count) = (None, None, 0, 0);
        let (mut lost, mut is_skipped, mut is_event) = (0, false, false);
        fields(data, span, |field, value| {
            match field {
                2 => pid = Some(number(value) as i64),
                3 => tid = Some(number(value) as i64),
                4 => callstack = number(value),
                6 => count = number(value),
                17 => lost = number(value),
                18 => is_skipped = true,
                19 => is_event = true,
                _ => {}
            }
            Ok(())
        })?;
        let report = &mut self.stacks.report;
        report.note_many(
            "samples_lost",
            "samples were lost while the trace was recorded",
            lost,
        );
        if is_skipped {
            report.note(
                "samples_skipped",
                "samples without a stack, as the profiler was too busy or not to look, were left out",
            );
            return Ok(());
        }
        // The end of a data source, and losses, are told in samples of nothing.
        if is_event || (lost != 0 && callstack == 0) {
            return Ok(());
        }
        let time_ns = self.time(packet, sequence);
        let stack = self.stack(callstack, sequence, false)?;
        let mut sample = Sample {
            label_set: self.label_set(pid, tid, StringId(0))?,
            time_ns,
            ..Sample::new(stack, 1)
        };
        match self.measured(sequence)? {
            MeasuredSeries::Sampled { samples, weighed } => {
                self.samples.add(samples, sample)?;
                if let Some((series, value)) = weighed {
                    sample.value = value;
                    self.samples.add(series, sample)?;
                }
            }
            MeasuredSeries::Counted(series) => {
                self.is_own = true;
                let growth = count.wrapping_sub(sequence.last_count);
                sequence.last_count = count;
                sample.value = i64::try_from(growth).unwrap_or(i64::MAX);
                self.samples.add(series, sample)?;
            }
        }
        Ok(())
    }

    /// The series of a sequence's samples of perf.
    fn measured(&mut self, sequence: &mut Sequence) -> Result<MeasuredSeries, ReadError> {
        if let Some(known) = sequence.measured {
            return Ok(known);
        }
        let types = match &sequence.measure {
            Some(measure) => measure.types(&mut self.stacks),
            None => MeasuredTypes::unknown(),
        };
        let made = match types {
            MeasuredTypes::Sampled {
                samples,
                weighed,
                period,
            } => MeasuredSeries::Sampled {
                samples: self.samples.series_every(&samples, period)?,
                weighed: match weighed {
                    Some((of, value)) => Some((self.samples.series_every(&of, period)?, value)),
                    None => None,
                },
            },
            MeasuredTypes::Counted { of, period } => {
                MeasuredSeries::Counted(self.samples.series_every(&of, period)?)
            }
        };
        sequence.measured = Some(made);
        Ok(made)
    }

    /// The series of a counter's weights and what these are multiplied by, or the series of the
    /// samples themselves.
    fn counter(
        &mut self,
        descriptor: Descriptor,
        has_weight: bool,
    ) -> Result<(usize, i64), ReadError> {
        if let Some(&known) = self.counters.get(&(descriptor, has_weight)) {
            return Ok(known);
        }
        let (mut profile_type, multiplier) = descriptor.profile_type(&self.stacks);
        if !has_weight {
            let counted = (
                profile_type.sample_type.as_str(),
                profile_type.sample_unit.as_str(),
            );
            profile_type = naming::profile_type(("samples", "count"), counted, None);
        }
        let series = self.samples.series_every(&profile_type, 0)?;
        let made = (series, multiplier);
        self.counters.insert((descriptor, has_weight), made);
        Ok(made)
    }

    fn stack_sample(
        &mut self,
        data: &[u8],
        span: Span,
        packet: &Packet,
        sequence: &mut Sequence,
    ) -> Result<(), Failure> {
        let mut thread = (None, None);
        let (mut callstack, mut inline) = (0, None);
        let mut primary = sequence.primary;
        let mut weight = None;
        let mut followers: Vec<Descriptor> = Vec::new();
        let mut follower_weights: Vec<u64> = Vec::new();
        let mut follow = |follower| {
            if followers.len() < MOST_FOLLOWERS {
                followers.push(follower);
            }
        };
        let stacks = &mut self.stacks;
        fields(data, span, |field, value| {
            let known = |iid| sequence.descriptors.get(&iid).copied();
            match (field, value) {
                (1, Value::Bytes(span)) => thread = task_context(data, span)?.1,
                (2, value) => {
                    let task = sequence.tasks.get(&number(value));
                    thread = task.copied().unwrap_or_default();
                }
                (5, Value::Bytes(span)) => inline = Some(span),
                (6, value) => callstack = number(value),
                (9, Value::Bytes(span)) => primary = Some(Descriptor::read(data, span, stacks)?.1),
                (10, value) => primary = known(number(value)),
                (11, value) => weight = Some(number(value)),
                (12, Value::Bytes(span)) => follow(Descriptor::read(data, span, stacks)?.1),
                (13, value) => {
                    numbers(data, 13, value, |iid| {
                        follow(known(iid).unwrap_or_default());
                    })?;
                }
                (14, value) => numbers(data, 14, value, |weight| follower_weights.push(weight))?,
                _ => {}
            }
            Ok(())
        })?;
        let stack = match inline {
            Some(span) => self.inline_stack(data, span)?,
            None => self.stack(callstack, sequence, false)?,
        };
        let mut sample = Sample {
            label_set: self.label_set(thread.0, thread.1, StringId(0))?,
            time_ns: self.time(packet, sequence),
            ..Sample::new(stack, 1)
        };
        let (series, multiplier) = self.counter(primary.unwrap_or_default(), weight.is_some())?;
        if let Some(weight) = weight {
            sample.value = signed(weight).saturating_mul(multiplier);
        }
        self.samples.add(series, sample)?;
        if !followers.is_empty() {
            self.stacks.report.note_many(
                "followers_left_out",
                "counters beyond those that a sample may have were left out",
                follower_weights.len().saturating_sub(MOST_FOLLOWERS) as u64,
            );
        }
        let followers = match &followers[..] {
            [] => &sequence.followers,
            own => own,
        };
        // As many as there are weights are looked at: those of the sequence stand there once.
        for (follower, weight) in followers.iter().zip(follower_weights) {
            let (series, multiplier) = self.counter(*follower, true)?;
            sample.value = signed(weight).saturating_mul(multiplier);
            self.samples.add(series, sample)?;
        }
        Ok(())
    }

    fn inline_stack(&mut self, data: &[u8], span: Span) -> Result<StackId, Failure> {
        let mut frames = Vec::new();
        let stacks = &mut self.stacks;
        fields(data, span, |field, value| {
            let (1, Value::Bytes(span)) = (field, value) else {
                return Ok(());
            };
            frames.push(symbol_line(data, span, stacks)?);
            Ok(())
        })?;
        Ok(self.maker.inline_stack(&frames, &mut self.stacks)?)
    }

    /// Samples of a thread of Chrome, each with the time since the one before.
    fn streaming(
        &mut self,
        data: &[u8],
        span: Span,
        packet: &Packet,
        sequence: &mut Sequence,
    ) -> Result<(), Failure> {
        let mut callstacks = Vec::new();
        let mut deltas_us = Vec::new();
        fields(data, span, |field, value| match field {
            1 => numbers(data, 1, value, |iid| callstacks.push(iid)),
            2 => numbers(data, 2, value, |delta| deltas_us.push(delta as i64)),
            _ => Ok(()),
        })?;
        let (pid, tid) = sequence.thread;
        let label_set = self.label_set(pid, tid, StringId(0))?;
        if packet.timestamp.is_some() {
            sequence.stream_time_us = 0;
        }
        let base_ns = packet.timestamp.map_or(0, |time| time as i64);
        for (position, iid) in callstacks.into_iter().enumerate() {
            let delta_us = deltas_us.get(position).copied().unwrap_or(0);
            sequence.stream_time_us = sequence.stream_time_us.saturating_add(delta_us);
            let elapsed_ns = sequence.stream_time_us.saturating_mul(1000);
            let timestamp = base_ns.saturating_add(elapsed_ns).max(0);
            let moment = Packet {
                timestamp: Some(timestamp as u64),
                clock: packet.clock,
                sequence: packet.sequence,
                ..Packet::default()
            };
            let sample = Sample {
                label_set,
                time_ns: self.time(&moment, sequence),
                ..Sample::new(self.stack(iid, sequence, false)?, 1)
            };
            let samples = naming::profile_type(("samples", "count"), ("cpu", "nanoseconds"), None);
            self.samples.add_to(&samples, 0, sample)?;
        }
        Ok(())
    }

    /// Number 0 is no stack: counters can be sampled without.
    pub(crate) fn stack(
        &mut self,
        iid: u64,
        sequence: &mut Sequence,
        is_heap: bool,
    ) -> Result<StackId, ReadError> {
        let known = sequence.known_stack(iid).filter(|_| !is_heap);
        if let Some(known) = known {
            return Ok(known);
        }
        let mut locations = std::mem::take(&mut sequence.made);
        let made = self.maker.stack(
            iid,
            is_heap,
            (sequence, &mut locations),
            self.facts,
            &mut self.stacks,
        )?;
        sequence.made = locations;
        if let Some(stack) = made {
            if !is_heap {
                sequence.remember_stack(iid, stack);
            }
            return Ok(stack);
        }
        if iid != 0 {
            self.stacks.report.note(
                "stacks_missing",
                "samples whose stack no packet explains have none",
            );
        }
        Ok(StackId(0))
    }

    pub(crate) fn label_set(
        &mut self,
        pid: Option<i64>,
        tid: Option<i64>,
        heap: StringId,
    ) -> Result<LabelSetId, ReadError> {
        let facts = self.facts;
        let pid = pid.or_else(|| facts.thread_pids.get(&tid?).copied());
        if let Some(&known) = self.label_sets.get(&(pid, tid, heap)) {
            return Ok(known);
        }
        let profile = &mut self.stacks.profile;
        let text = |id: Option<&StringId>| {
            let id = id.copied().unwrap_or_default();
            profile.symbols.strings.get(id).to_owned()
        };
        let process_name = text(pid.and_then(|pid| facts.processes.get(&pid)));
        let thread_name = text(tid.and_then(|tid| facts.threads.get(&tid)));
        let heap_name = text(Some(&heap));
        let labels = ThreadLabels {
            thread_name: &thread_name,
            thread_id: tid,
            pid,
            process_name: &process_name,
            other: Some(("heap_name", heap_name.as_str())),
        };
        self.maker.work.spend(labels.steps())?;
        let made = labels.intern(profile);
        self.label_sets.insert((pid, tid, heap), made);
        Ok(made)
    }

    /// The time of a packet; 0 when nothing relates its clock to the epoch.
    pub(crate) fn time(&mut self, packet: &Packet, sequence: &mut Sequence) -> i64 {
        let Some(timestamp) = packet.timestamp else {
            return 0;
        };
        let clock = packet.clock.or(sequence.default_clock);
        let clocks = &self.facts.clocks;
        let last = &mut sequence.last_times;
        let moment = clocks.moment(packet.sequence, clock, timestamp, last);
        let widen = |range: Option<(i64, i64)>, time: i64| {
            let (first, last) = range.unwrap_or((time, time));
            Some((first.min(time), last.max(time)))
        };
        match moment {
            Moment::Real(time) => {
                let time = time.max(0);
                self.times.real = widen(self.times.real, time);
                time
            }
            Moment::Other(time) => {
                self.times.other = widen(self.times.other, time);
                0
            }
        }
    }
}

impl Sequence {
    /// From a message `ThreadDescriptor`: whose the samples of this sequence are.
    fn take_thread(&mut self, data: &[u8], span: Span) -> Result<(), WireError> {
        fields(data, span, |field, value| {
            match field {
                1 => self.thread.0 = Some(number(value) as i64),
                2 => self.thread.1 = Some(number(value) as i64),
                6 => self.stream_time_us = number(value) as i64,
                _ => {}
            }
            Ok(())
        })
    }
}
