//! Samples under construction: places, stacks of places, and a row for each sample.
//!
//! What a place is called is settled at the end, as recordings tell build ids and the names of
//! events behind their data.

use candela_model::LabelSetId;
use candela_model::LocationId;
use candela_model::Sample;
use candela_model::SampleLabel;
use candela_model::StackId;
use candela_model::StackTable;
use candela_model::StringId;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::options::Limits;
use crate::perf_data::mappings::Mapping;

/// What an address is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Region {
    /// A file of a process; addresses are as in [`Mapping`].
    File(Mapping),
    /// What a just-in-time compiler made; addresses are those of the process.
    Compiled(Mapping),
    /// A process, where no file is mapped.
    Process {
        pid: u32,
    },
    /// The kernel or a part of it, by the number of the file.
    Kernel {
        file: u32,
    },
    /// The kernel, of which nothing was told.
    UnknownKernel,
    Hypervisor,
    GuestUser,
    UnknownGuestKernel,
}

/// An address in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) region: u32,
    pub(crate) address: u64,
}

/// Whose sample it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Thread {
    pub(crate) pid: Option<u32>,
    pub(crate) tid: Option<u32>,
    pub(crate) thread_name: StringId,
    pub(crate) process_name: StringId,
}

/// All samples, by event.
#[derive(Debug)]
pub(crate) struct Collector {
    limits: Limits,
    regions: Vec<Region>,
    region_numbers: HashMap<Region, u32>,
    places: Vec<Place>,
    place_numbers: HashMap<Place, u32>,
    /// Of the numbers of places.
    pub(crate) stacks: StackTable,
    threads: Vec<Thread>,
    thread_numbers: HashMap<Thread, u32>,
    /// Samples whose label sets are numbers of threads and whose times are those of the recording.
    rows: Vec<Vec<Sample>>,
    row_count: usize,
    frames_left: usize,
    pub(crate) cut_stacks: u64,
}

impl Region {
    /// The same place with a number that is equal in all processes and on all hosts, as far as that
    /// can be had without the file: the offset in the file, in a range of offsets. Whoever has the file
    /// gets from there to the address as linked.
    pub(crate) fn on_all_hosts(self, address: u64) -> (Self, u64) {
        /// Programs that are mapped where they are linked lie below, all others above.
        const POSITION_INDEPENDENT_FROM: u64 = 1 << 28;
        let Self::File(mapping) = self else {
            return (self, address);
        };
        if mapping.start < POSITION_INDEPENDENT_FROM {
            return (self, address);
        }
        let offset = mapping.file_offset;
        let by_offset = Mapping {
            start: offset,
            end: offset.saturating_add(mapping.end - mapping.start),
            ..mapping
        };
        let address = address.wrapping_sub(mapping.start).wrapping_add(offset);
        (Self::File(by_offset), address)
    }
}

impl Collector {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            regions: Vec::new(),
            region_numbers: HashMap::new(),
            places: Vec::new(),
            place_numbers: HashMap::new(),
            stacks: StackTable::default(),
            threads: Vec::new(),
            thread_numbers: HashMap::new(),
            rows: Vec::new(),
            row_count: 0,
            // A frame takes eight bytes of the input and about as many here.
            frames_left: limits.inflated_bytes() / 8,
            cut_stacks: 0,
        }
    }

    pub(crate) fn regions(&self) -> &[Region] {
        &self.regions
    }

    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }

    pub(crate) fn threads(&self) -> &[Thread] {
        &self.threads
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.row_count == 0
    }

    /// The samples of an event.
    pub(crate) fn rows(&self, event: usize) -> &[Sample] {
        self.rows.get(event).map_or(&[], Vec::as_slice)
    }

    /// The number of an address in a region, as a frame of [`stack`](Self::stack).
    pub(crate) fn place(&mut self, region: Region, address: u64) -> LocationId {
        let next = number(self.regions.len());
        let region_number = *self.region_numbers.entry(region).or_insert(next);
        if region_number == next {
            self.regions.push(region);
        }
        let place = Place {
            region: region_number,
            address,
        };
        let next = number(self.places.len());
        let place_number = *self.place_numbers.entry(place).or_insert(next);
        if place_number == next {
            self.places.push(place);
        }
        LocationId(place_number)
    }

    /// How many frames at the leaf of a stack are one too many.
    pub(crate) fn excess(&mut self, depth: usize) -> usize {
        let excess = depth.saturating_sub(self.limits.max_stack_depth);
        self.cut_stacks += u64::from(excess > 0);
        excess
    }

    /// The stack of these places, leaf first.
    pub(crate) fn stack(&mut self, leaf_first: &[LocationId]) -> Result<StackId, ReadError> {
        let known = self.stacks.len();
        let stack = self.stacks.intern(leaf_first);
        if self.stacks.len() > known {
            let left = self.frames_left.checked_sub(leaf_first.len());
            self.frames_left = left.ok_or(ReadError::TooLarge {
                what: "the number of frames of all stacks",
                limit: self.limits.inflated_bytes() / 8,
            })?;
        }
        Ok(stack)
    }

    pub(crate) fn add(
        &mut self,
        event: usize,
        stack: StackId,
        value: i64,
        thread: Thread,
        time_ns: i64,
    ) -> Result<(), ReadError> {
        self.row_count += 1;
        if self.row_count > self.limits.max_samples {
            return Err(ReadError::TooLarge {
                what: "the number of samples",
                limit: self.limits.max_samples,
            });
        }
        let next = number(self.threads.len());
        let thread_number = *self.thread_numbers.entry(thread).or_insert(next);
        if thread_number == next {
            self.threads.push(thread);
        }
        if self.rows.len() <= event {
            self.rows.resize_with(event + 1, Vec::new);
        }
        self.rows[event].push(Sample {
            label_set: LabelSetId(thread_number),
            time_ns,
            ..Sample::new(stack, value)
        });
        Ok(())
    }
}

/// Tables grow by samples and their frames, which are bounded far below.
fn number(length: usize) -> u32 {
    u32::try_from(length).expect("frames are bounded by the bytes that may be inflated")
}

/// The names of the labels that samples have, as the agent gives them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LabelKeys {
    pub(crate) pid: StringId,
    pub(crate) thread_id: StringId,
    pub(crate) thread_name: StringId,
    pub(crate) process_name: StringId,
}

impl Thread {
    pub(crate) fn labels(&self, keys: &LabelKeys) -> Vec<SampleLabel> {
        let mut labels = Vec::new();
        for (key, number) in [(keys.pid, self.pid), (keys.thread_id, self.tid)] {
            labels.extend(number.map(|number| number_label(key, number)));
        }
        for (key, name) in [
            (keys.thread_name, self.thread_name),
            (keys.process_name, self.process_name),
        ] {
            if name != StringId::default() {
                labels.push(SampleLabel::text(key, name));
            }
        }
        labels
    }
}

fn number_label(key: StringId, number: u32) -> SampleLabel {
    SampleLabel {
        key,
        value: candela_model::LabelValue::Number {
            value: i64::from(number),
            unit: StringId::default(),
        },
    }
}
