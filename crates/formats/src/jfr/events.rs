//! Events to samples.

use candela_model::LabelSetId;
use candela_model::Link;
use candela_model::LinkId;
use candela_model::Profile;
use candela_model::Sample;
use candela_model::StringId;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::jfr::chunk::CHECKPOINT_TYPE;
use crate::jfr::chunk::Chunk;
use crate::jfr::chunk::EventHead;
use crate::jfr::chunk::HEADER_BYTES;
use crate::jfr::chunk::METADATA_TYPE;
use crate::jfr::chunk::Outline;
use crate::jfr::cursor::Cursor;
use crate::jfr::kinds::Column;
use crate::jfr::kinds::EventKind;
use crate::jfr::labels::LabelKey;
use crate::jfr::labels::LabelMaker;
use crate::jfr::layout::Layouts;
use crate::jfr::layout::Plan;
use crate::jfr::layout::SLOTS;
use crate::jfr::layout::Shape;
use crate::jfr::layout::Slots;
use crate::jfr::losses::Losses;
use crate::jfr::metadata::Metadata;
use crate::jfr::metadata::TimeUnit;
use crate::jfr::resolver::Resolver;
use crate::jfr::resolver::ThreadState;
use crate::jfr::samples::Samples;
use crate::jfr::settings::Settings;

/// What all chunks add to.
#[derive(Debug)]
pub(crate) struct Sink {
    pub(crate) profile: Profile,
    pub(crate) samples: Samples,
    pub(crate) labels: LabelMaker,
    pub(crate) losses: Losses,
    pub(crate) settings: Settings,
    pub(crate) rate_hz: Option<u32>,
    pub(crate) keeps_times: bool,
    /// The time of the latest sample, nanoseconds since the Unix epoch.
    pub(crate) last_ns: i64,
    links: HashMap<i64, LinkId>,
}

/// Reads the events of one chunk.
#[derive(Debug)]
pub(crate) struct EventReader<'a> {
    chunk: Chunk<'a>,
    resolver: Resolver<'a>,
    /// By the id of the event's type.
    plans: HashMap<u64, EventPlan>,
    execution_ns: i64,
    datadog_ns: i64,
    wall_ns: i64,
}

/// How events of a type are read.
#[derive(Clone, Debug)]
struct EventPlan {
    kind: EventKind,
    plan: Plan,
    amount_unit: TimeUnit,
}

// Places of the fields of events.
const START: usize = 0;
const THREAD: usize = 1;
const STACK: usize = 2;
const STATE: usize = 3;
const CONTEXT: usize = 4;
const SPAN_ID: usize = 5;
const SPAN_NAME: usize = 6;
const AMOUNT: usize = 7;
const COLLECTOR: usize = 8;
const CAUSE: usize = 9;
const ROOT_SPAN: usize = 10;
const WEIGHT: usize = 11;

impl Sink {
    pub(crate) fn new(
        samples: Samples,
        labels: LabelMaker,
        losses: Losses,
        rate_hz: Option<u32>,
        keeps_times: bool,
    ) -> Self {
        Self {
            profile: Profile::default(),
            samples,
            labels,
            losses,
            settings: Settings::default(),
            rate_hz,
            keeps_times,
            last_ns: 0,
            links: HashMap::new(),
        }
    }

    /// The link to a span; the number of its trace is not recorded.
    #[inline]
    fn link(&mut self, span_id: i64) -> LinkId {
        if span_id == 0 {
            return LinkId(0);
        }
        let profile = &mut self.profile;
        *self.links.entry(span_id).or_insert_with(|| {
            profile.intern_link(Link {
                trace_id: [0; 16],
                span_id: span_id.to_be_bytes(),
            })
        })
    }
}

impl<'a> EventReader<'a> {
    pub(crate) fn new(
        chunk: Chunk<'a>,
        metadata: &Metadata<'_>,
        resolver: Resolver<'a>,
        sink: &mut Sink,
    ) -> Self {
        let plans = EventKind::ALL
            .into_iter()
            .filter_map(|(kind, event, amount)| {
                let class = metadata.find(event)?;
                let plan = EventPlan::new(kind, amount, class, metadata, resolver.layouts());
                Some((metadata.classes[class].id, plan))
            });
        Self {
            chunk,
            plans: plans.collect(),
            resolver,
            execution_ns: sink.settings.execution_interval_ns(sink.rate_hz),
            datadog_ns: sink.settings.datadog_interval_ns(sink.rate_hz),
            wall_ns: sink.settings.wall_interval_ns(sink.rate_hz),
        }
    }

    /// Reads all sound events.
    pub(crate) fn read(&mut self, outline: &Outline, sink: &mut Sink) -> Result<(), ReadError> {
        let mut position = self.chunk.start + HEADER_BYTES;
        while position < outline.sound_end
            && let Ok(event) = self.chunk.event(position)
        {
            position = event.end;
            self.read_event(event, sink)?;
        }
        Ok(())
    }

    #[inline]
    fn read_event(&mut self, event: EventHead, sink: &mut Sink) -> Result<(), ReadError> {
        let Some(plan) = self.plans.get(&event.type_id) else {
            let is_description = matches!(event.type_id, METADATA_TYPE | CHECKPOINT_TYPE);
            sink.losses.other_events += u64::from(!is_description);
            return Ok(());
        };
        let data = &self.chunk.data[..event.end];
        let mut cursor = Cursor::new(data, event.body, self.chunk.is_compressed);
        let mut slots = [0; SLOTS];
        let layouts = self.resolver.layouts();
        if layouts.read(&plan.plan, &mut cursor, &mut slots).is_err() {
            sink.losses.damaged_events += 1;
            return Ok(());
        }
        let (kind, amount_unit) = (plan.kind, plan.amount_unit);
        if kind.amount_is_time() {
            slots[AMOUNT] = self.nanoseconds(slots[AMOUNT], amount_unit);
        }
        let sample = self.sample(kind, &slots, sink);
        self.push_values(kind, &slots, &sample, sink)?;
        sink.losses.budget.check()
    }

    fn sample(&mut self, kind: EventKind, slots: &Slots, sink: &mut Sink) -> Sample {
        let (profile, losses) = (&mut sink.profile, &mut sink.losses);
        let stack = match kind {
            EventKind::GarbageCollection => {
                let (collector, cause) = (slots[COLLECTOR], slots[CAUSE]);
                self.resolver.collection(collector, cause, profile, losses)
            }
            _ => self.resolver.stack(slots[STACK], profile, losses),
        };
        let key = LabelKey {
            thread: match kind {
                // The thread that happened to see a collection's end says nothing about it.
                EventKind::GarbageCollection => StringId(0),
                _ => self.resolver.thread(slots[THREAD], profile, losses),
            },
            context: slots[CONTEXT],
            span_name: slots[SPAN_NAME],
        };
        losses.root_spans += u64::from(slots[ROOT_SPAN] != 0);
        let label_set: LabelSetId = sink.labels.label_set(key, profile, losses);
        let time_ns = self.chunk.time_ns(slots[START]);
        sink.last_ns = sink.last_ns.max(time_ns);
        Sample {
            stack,
            value: 0,
            label_set,
            link: sink.link(slots[SPAN_ID]),
            time_ns: if sink.keeps_times { time_ns } else { 0 },
        }
    }

    fn push_values(
        &mut self,
        kind: EventKind,
        slots: &Slots,
        sample: &Sample,
        sink: &mut Sink,
    ) -> Result<(), ReadError> {
        let mut amount = slots[AMOUNT];
        if amount < 0 {
            sink.losses.negative_values += 1;
            amount = 0;
        }
        if let Some((count_column, amount_column)) = kind.columns() {
            sink.samples.push(count_column, 1, sample)?;
            return sink.samples.push(amount_column, amount, sample);
        }
        let is_wall = sink.settings.is_wall;
        let samples = &mut sink.samples;
        let interval_ns = match kind {
            EventKind::DatadogExecution => self.datadog_ns,
            EventKind::WallClock | EventKind::DatadogMethod => self.wall_ns,
            _ => self.execution_ns,
        };
        let value = amount.saturating_mul(interval_ns);
        match kind {
            EventKind::Execution => {
                let state = self.resolver.thread_state(slots[STATE], &mut sink.losses);
                if state != ThreadState::Sleeping {
                    samples.push_time(Column::Cpu, interval_ns, interval_ns, sample)?;
                }
                if is_wall {
                    samples.push_time(Column::Wall, interval_ns, interval_ns, sample)?;
                }
                Ok(())
            }
            EventKind::CpuTime => {
                // The sampler of CPU time adapts its distance, and writes it into each event.
                let value = if amount > 0 { amount } else { interval_ns };
                samples.push_time(Column::Cpu, interval_ns, value, sample)
            }
            EventKind::WallClock => {
                let state = self.resolver.thread_state(slots[STATE], &mut sink.losses);
                // In wall mode nothing else tells the time on a CPU.
                if is_wall && state == ThreadState::Runnable {
                    samples.push_time(Column::Cpu, interval_ns, value, sample)?;
                }
                samples.push_time(Column::Wall, interval_ns, value, sample)
            }
            EventKind::DatadogExecution => {
                samples.push_time(Column::Cpu, interval_ns, value, sample)
            }
            EventKind::DatadogMethod => samples.push_time(Column::Wall, interval_ns, value, sample),
            EventKind::DatadogObject => {
                // How many objects of this size the sampler lets pass for each that it sees. A
                // recording without weights has them in the least number that there can be.
                let weight = f64::from(f32::from_bits(slots[WEIGHT] as u32)).max(1.0);
                let bytes = (weight * amount as f64).round() as i64;
                samples.push(Column::SampledObjects, weight.round() as i64, sample)?;
                samples.push(Column::SampledBytes, bytes, sample)
            }
            EventKind::Native => samples.push(Column::Native, 1, sample),
            _ => samples.push(Column::Live, 1, sample),
        }
    }

    fn nanoseconds(&self, amount: i64, unit: TimeUnit) -> i64 {
        match unit {
            TimeUnit::Ticks => self.chunk.ticks_to_ns(amount),
            TimeUnit::Nanoseconds(scale) => amount.saturating_mul(scale),
        }
    }
}

impl EventPlan {
    fn new(
        kind: EventKind,
        amount: &str,
        class: usize,
        metadata: &Metadata<'_>,
        layouts: &Layouts,
    ) -> Self {
        let plan = layouts.plan(metadata, class, |name, shape| {
            let place = match (name, shape) {
                (name, Shape::Number) if name == amount => AMOUNT,
                ("startTime", Shape::Number) => START,
                ("eventThread" | "sampledThread", Shape::Key) => THREAD,
                ("stackTrace", Shape::Key) => STACK,
                ("state", Shape::Key) => STATE,
                ("contextId", Shape::Number) => CONTEXT,
                ("spanId", Shape::Number) => SPAN_ID,
                ("spanName", Shape::Number) => SPAN_NAME,
                ("localRootSpanId", Shape::Number) => ROOT_SPAN,
                ("weight", Shape::Float) => WEIGHT,
                ("name", Shape::Key) => COLLECTOR,
                ("cause", Shape::Key) => CAUSE,
                _ => return None,
            };
            Some(place as u8)
        });
        let fields = &metadata.classes[class].fields;
        let amount_field = fields
            .iter()
            .find(|field| metadata.field_name(field) == amount);
        Self {
            kind,
            plan,
            amount_unit: amount_field.map_or(TimeUnit::Ticks, |field| field.unit),
        }
    }
}
