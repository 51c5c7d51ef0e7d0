//! What each record does.

use candela_model::LocationId;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::options::Limits;
use crate::perf_data::NAME;
use crate::perf_data::attr::Attr;
use crate::perf_data::bytes::Bytes;
use crate::perf_data::bytes::Endian;
use crate::perf_data::callchain::Context;
use crate::perf_data::callchain::FrameAddress;
use crate::perf_data::callchain::copied_stack;
use crate::perf_data::callchain::has_user_frames;
use crate::perf_data::callchain::recorded_frames;
use crate::perf_data::collector::Collector;
use crate::perf_data::collector::Region;
use crate::perf_data::collector::Thread;
use crate::perf_data::events::Events;
use crate::perf_data::features::Features;
use crate::perf_data::files::FileKind;
use crate::perf_data::files::Files;
use crate::perf_data::losses::Losses;
use crate::perf_data::machine::Machine;
use crate::perf_data::mappings::Mappings;
use crate::perf_data::queue::Queue;
use crate::perf_data::records::Record;
use crate::perf_data::records::kinds;
use crate::perf_data::resolver::AddressResolver;
use crate::perf_data::resolver::MappedBinary;
use crate::perf_data::resolver::MappedCode;
use crate::perf_data::sample::PerfSample;
use crate::perf_data::texts::Texts;
use crate::work::Work;

/// The events of a recording: more is no recording.
const MOST_EVENTS: usize = 4096;

/// Each event has one for each processor, or for each thread.
const MOST_IDS: usize = 4_000_000;

/// Numbers that perf uses for "none".
const NO_ID: u32 = u32::MAX;

/// All that was read so far.
pub(crate) struct Session<'r> {
    pub(crate) endian: Endian,
    pub(crate) limits: Limits,
    pub(crate) events: Events,
    pub(crate) features: Features,
    pub(crate) texts: Texts,
    pub(crate) files: Files,
    pub(crate) collector: Collector,
    pub(crate) losses: Losses,
    pub(crate) resolver: Option<&'r mut dyn AddressResolver>,
    /// Pays for the ids of events, whose sections may overlap.
    pub(crate) work: Work,
    machine: Machine,
    queue: Queue,
    /// The time of the last record that left the queue.
    last_time: u64,
    /// What the counters of groups were at the sample before, by id and thread.
    counted: HashMap<(u64, u32), u64>,
    frames: Vec<FrameAddress>,
    walked: Vec<u64>,
    places: Vec<LocationId>,
}

impl<'r> Session<'r> {
    pub(crate) fn new(
        endian: Endian,
        limits: Limits,
        resolver: Option<&'r mut dyn AddressResolver>,
    ) -> Self {
        Self {
            endian,
            limits,
            events: Events::default(),
            features: Features::default(),
            texts: Texts::new(limits),
            files: Files::default(),
            collector: Collector::new(limits),
            losses: Losses::default(),
            resolver,
            machine: Machine::new(&limits),
            work: Work::new(&limits),
            queue: Queue::default(),
            last_time: 0,
            counted: HashMap::new(),
            frames: Vec::new(),
            walked: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Adds an event with its ids.
    pub(crate) fn add_event(
        &mut self,
        attr: Attr,
        ids: impl Iterator<Item = u64>,
    ) -> Result<(), ReadError> {
        self.events.add(attr, ids);
        let counts = [
            (
                "the number of events",
                self.events.list().len(),
                MOST_EVENTS,
            ),
            (
                "the number of ids of events",
                self.events.id_count(),
                MOST_IDS,
            ),
        ];
        let too_many = counts.iter().find(|(_, count, limit)| count > limit);
        too_many.map_or(Ok(()), |(what, _, limit)| {
            Err(ReadError::TooLarge {
                what,
                limit: *limit,
            })
        })
    }

    /// Takes a record as it stands in the recording; compressed ones and those that bytes follow are
    /// the caller's.
    pub(crate) fn take(&mut self, record: Record<'_>) -> Result<(), ReadError> {
        if record.kind >= kinds::FIRST_OF_PERF {
            return self.take_record_of_perf(record);
        }
        let time = self.time_of(record);
        let Some(time) = time.filter(|time| *time != 0 && *time != u64::MAX) else {
            return self.process(record);
        };
        self.queue.push(time, record);
        match self.queue.overflow_time() {
            Some(time) => self.process_until(time),
            None => Ok(()),
        }
    }

    /// Processes all that still waits.
    pub(crate) fn finish(&mut self) -> Result<(), ReadError> {
        self.process_until(u64::MAX)?;
        self.losses.left_out_mappings = self.machine.left_out_mappings();
        Ok(())
    }

    fn time_of(&self, record: Record<'_>) -> Option<u64> {
        if record.kind == kinds::SAMPLE {
            let event = self.events.of_sample(record.body)?;
            return self.events.sample_time(event, record.body);
        }
        let mut body = record.body;
        self.events.take_record_ids(&mut body).time
    }

    fn process_until(&mut self, time: u64) -> Result<(), ReadError> {
        while let Some(queued) = self.queue.pop(time) {
            if queued.time() < self.last_time {
                self.losses.late_records += 1;
            }
            self.last_time = self.last_time.max(queued.time());
            self.process(queued.record(self.endian))?;
        }
        Ok(())
    }

    fn take_record_of_perf(&mut self, record: Record<'_>) -> Result<(), ReadError> {
        let mut body = record.body;
        match record.kind {
            kinds::HEADER_ATTR => {
                let Some(attr) = Attr::parse(body) else {
                    self.losses.damaged_records += 1;
                    return Ok(());
                };
                body.take(attr.size as usize);
                let ids = body.words(body.len() as u64 / 8);
                let ids = ids.into_iter().flat_map(|ids| ids.iter());
                self.add_event(attr, ids)?;
            }
            kinds::EVENT_UPDATE => self.rename_event(body),
            kinds::HEADER_FEATURE => {
                if let Some(number) = body.u64() {
                    let (events, limits) = (&mut self.events, &self.limits);
                    self.features.read(number, body, events, limits);
                }
            }
            kinds::BUILD_ID => {
                self.features.add_build_id(record.misc, body, &self.limits);
            }
            kinds::FINISHED_ROUND => {
                let time = self.queue.end_round();
                self.process_until(time)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn rename_event(&mut self, mut body: Bytes<'_>) {
        const NAME_UPDATE: u64 = 2;
        if body.u64() == Some(NAME_UPDATE)
            && let Some(id) = body.u64()
        {
            let name = String::from_utf8_lossy(body.text());
            self.events.set_name(id, self.limits.cut(&name));
        }
    }

    /// Does what a record of the kernel says.
    fn process(&mut self, record: Record<'_>) -> Result<(), ReadError> {
        self.machine.pay_in(record);
        if record.kind == kinds::SAMPLE {
            return self.process_sample(record);
        }
        let mut body = record.body;
        self.events.take_record_ids(&mut body);
        let record = Record { body, ..record };
        let Self {
            machine,
            files,
            texts,
            losses,
            ..
        } = self;
        let done = match record.kind {
            kinds::MMAP => machine.map(record, false, files, texts),
            kinds::MMAP2 => machine.map(record, true, files, texts),
            kinds::COMM => machine.rename(record, texts),
            kinds::FORK => machine.fork(record),
            kinds::EXIT => machine.exit(record),
            kinds::KSYMBOL => machine.kernel_symbol(record, files, texts),
            kinds::LOST => {
                body.u64();
                losses.lose_samples(body.u64())
            }
            kinds::LOST_SAMPLES => losses.lose_samples(body.u64()),
            kinds::THROTTLE => {
                losses.throttled += 1;
                Some(())
            }
            _ => Some(()),
        };
        if done.is_none() {
            losses.damaged_records += 1;
        }
        texts.check()
    }

    fn process_sample(&mut self, record: Record<'_>) -> Result<(), ReadError> {
        let Some(number) = self.events.of_sample(record.body) else {
            self.losses.samples_of_unknown_events += 1;
            return Ok(());
        };
        let Some(event) = self.events.get(number) else {
            self.losses.samples_of_unknown_events += 1;
            return Ok(());
        };
        let attr = event.attr;
        let Some(sample) = PerfSample::parse(&attr, record.body) else {
            self.losses.damaged_records += 1;
            return Ok(());
        };
        recorded_frames(&sample, record.misc, &mut self.frames);
        let pid = sample.pid.filter(|pid| *pid != NO_ID);
        self.walk_copied_stack(&sample, pid);
        let stack = self.stack(pid)?;
        let tid = sample.tid.filter(|tid| *tid != NO_ID);
        let texts = &mut self.texts;
        let name = |thread: Option<u32>, texts: &mut Texts| {
            thread.map_or_else(Default::default, |thread| self.machine.name(thread, texts))
        };
        let thread = Thread {
            pid,
            tid,
            thread_name: name(tid, texts),
            process_name: name(pid, texts),
        };
        let time = i64::try_from(sample.time.unwrap_or(0)).unwrap_or(i64::MAX);
        let mut add = |event, value: u64| {
            if value == 0 {
                self.losses.samples_without_value += 1;
                return Ok(());
            }
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            self.collector.add(event, stack, value, thread, time)
        };
        // A group is sampled by its leader, and counts since the sample before.
        let Some(counters) = sample.counters else {
            return add(number, sample.period.unwrap_or_else(|| usual_period(&attr)));
        };
        let mut has_ids = false;
        for (id, total) in counters.values() {
            has_ids = true;
            let Some(event) = self.events.find(id) else {
                continue;
            };
            let thread = if attr.is_inherited() { tid } else { None };
            let key = (id, thread.unwrap_or(NO_ID));
            if self.counted.len() >= self.limits.max_samples && !self.counted.contains_key(&key) {
                return Err(ReadError::TooLarge {
                    what: "the number of counters of threads",
                    limit: self.limits.max_samples,
                });
            }
            let before = self.counted.insert(key, total).unwrap_or(0);
            let counted = total.wrapping_sub(before);
            if counted != 0 {
                add(event, counted)?;
            }
        }
        if has_ids {
            return Ok(());
        }
        add(number, sample.period.unwrap_or_else(|| usual_period(&attr)))
    }

    /// Puts the frames of a copied stack in the place of those that the kernel found.
    fn walk_copied_stack(&mut self, sample: &PerfSample<'_>, pid: Option<u32>) {
        if sample.user_stack.is_none() {
            return;
        }
        let space = pid.and_then(|pid| self.machine.space(pid));
        let (Some(stack), Some(resolver), Some(space)) =
            (copied_stack(sample), self.resolver.as_deref_mut(), space)
        else {
            self.losses.stacks_not_walked += 1;
            return;
        };
        self.walked.clear();
        let code_at =
            |address| mapped_code(space, address, &self.files, &self.texts, &self.features);
        let is_whole = resolver.walk(&stack, &code_at, &mut self.walked);
        self.losses.stacks_walked_in_part += u64::from(!is_whole);
        if self.walked.is_empty() {
            return;
        }
        if has_user_frames(&self.frames) {
            self.frames.retain(|frame| frame.context != Context::User);
        }
        let walked = self.walked.iter().map(|address| FrameAddress {
            address: *address,
            context: Context::User,
        });
        self.frames.extend(walked);
    }

    fn stack(&mut self, pid: Option<u32>) -> Result<candela_model::StackId, ReadError> {
        self.places.clear();
        let space = pid.and_then(|pid| self.machine.space(pid));
        // Names of it may come with the resolver, or behind the data.
        let process = pid.unwrap_or(NO_ID);
        // What is cut makes no places, so that these are bounded with the stacks.
        let excess = self.collector.excess(self.frames.len());
        for frame in self.frames.iter().skip(excess) {
            let address = frame.address;
            let region = match frame.context {
                Context::User => {
                    let mapping = space.and_then(|space| space.find(address));
                    let kind = mapping.map(|mapping| self.files.get(mapping.file).kind);
                    match (kind, mapping) {
                        (Some(FileKind::Object), Some(mapping)) => Region::File(*mapping),
                        (Some(FileKind::Compiled), Some(mapping)) => Region::Compiled(*mapping),
                        _ => Region::Process { pid: process },
                    }
                }
                Context::Kernel => match self.machine.kernel.find(address) {
                    Some(mapping) => Region::Kernel { file: mapping.file },
                    None => Region::UnknownKernel,
                },
                Context::GuestKernel => match self.machine.guest_kernel.find(address) {
                    Some(mapping) => Region::Kernel { file: mapping.file },
                    None => Region::UnknownGuestKernel,
                },
                Context::Hypervisor => Region::Hypervisor,
                Context::GuestUser => Region::GuestUser,
            };
            let (region, address) = region.on_all_hosts(address);
            let place = self.collector.place(region, address);
            self.places.push(place);
        }
        self.collector.stack(&self.places)
    }
}

/// The period of samples that do not tell theirs: of clocks with a frequency, nanoseconds.
fn usual_period(attr: &Attr) -> u64 {
    const SECOND_NS: u64 = 1_000_000_000;
    let by_frequency = attr
        .frequency()
        .filter(|_| attr.is_clock())
        .and_then(|frequency| SECOND_NS.checked_div(frequency));
    attr.fixed_period().or(by_frequency).unwrap_or(1).max(1)
}

fn mapped_code<'a>(
    space: &Mappings,
    address: u64,
    files: &Files,
    texts: &'a Texts,
    features: &'a Features,
) -> MappedCode<'a> {
    let Some(mapping) = space.find(address) else {
        return MappedCode::Unmapped;
    };
    let file = files.get(mapping.file);
    if file.kind != FileKind::Object {
        return MappedCode::Anonymous;
    }
    let path = texts.strings.get(file.path);
    let build_id = match texts.strings.get(file.build_id) {
        "" => features.build_id(path),
        build_id => build_id,
    };
    MappedCode::Binary(MappedBinary {
        path,
        build_id,
        start: mapping.start,
        end: mapping.end,
        file_offset: mapping.file_offset,
    })
}

/// The error of a recording that breaks off before anything of it was read.
pub(crate) fn corrupt(problem: &str, offset: u64) -> ReadError {
    ReadError::Corrupt {
        format: NAME,
        problem: problem.to_owned(),
        offset: usize::try_from(offset).unwrap_or(usize::MAX),
    }
}
