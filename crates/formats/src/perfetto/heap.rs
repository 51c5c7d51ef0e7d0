//! Heap profiles of heapprofd: what was allocated and freed at each stack, dumped once or again and
//! again.

use candela_model::LabelSetId;
use candela_model::Sample;
use candela_model::StackId;
use candela_model::StringId;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::naming;
use crate::perfetto::fields::fields;
use crate::perfetto::fields::number;
use crate::perfetto::fields::signed;
use crate::protobuf::reader::Span;
use crate::protobuf::reader::WireError;
use crate::timed_samples::TimedSamples;

/// Whose heap it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HeapKey {
    pub(crate) sequence: u32,
    pub(crate) pid: i64,
    pub(crate) heap: StringId,
    pub(crate) callstack: u64,
    pub(crate) stack: StackId,
}

/// The values of a stack. Each dump counts from the start, so that the last one holds all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeapValues {
    pub(crate) label_set: LabelSetId,
    allocated: u64,
    freed: u64,
    allocations: u64,
    frees: u64,
    most: u64,
    most_count: u64,
}

/// All heaps of a trace.
#[derive(Debug, Default)]
pub(crate) struct Heaps {
    values: HashMap<HeapKey, HeapValues>,
    /// In the order of the trace.
    keys: Vec<HeapKey>,
    interval: Option<i64>,
}

/// Sample types, in the order of [`HeapValues::columns`].
const COLUMNS: [naming::TypeAndUnit<'static>; 4] = [
    ("alloc_space", "bytes"),
    ("alloc_objects", "count"),
    ("inuse_space", "bytes"),
    ("inuse_objects", "count"),
];

impl HeapValues {
    /// The number of the stack and its values, from a message `HeapSample`.
    pub(crate) fn read(data: &[u8], span: Span) -> Result<(u64, Self), WireError> {
        let mut callstack = 0;
        let mut values = Self::default();
        fields(data, span, |field, value| {
            match field {
                1 => callstack = number(value),
                2 => values.allocated = number(value),
                3 => values.freed = number(value),
                5 => values.allocations = number(value),
                6 => values.frees = number(value),
                8 => values.most = number(value),
                9 => values.most_count = number(value),
                _ => {}
            }
            Ok(())
        })?;
        Ok((callstack, values))
    }

    /// A dump of the moment when the heap was largest has nothing but what was alive then.
    fn columns(self) -> [i64; 4] {
        let (space, objects) = (signed(self.allocated), signed(self.allocations));
        if space == 0 && self.most != 0 {
            let (most, count) = (signed(self.most), signed(self.most_count));
            return [most, count, most, count];
        }
        let alive = |all: i64, gone: u64| all.saturating_sub(signed(gone));
        [
            space,
            objects,
            alive(space, self.freed),
            alive(objects, self.frees),
        ]
    }
}

impl Heaps {
    pub(crate) fn set(
        &mut self,
        key: HeapKey,
        values: HeapValues,
        max_samples: usize,
    ) -> Result<(), ReadError> {
        if self.values.insert(key, values).is_none() {
            self.keys.push(key);
        }
        if self.keys.len() > max_samples {
            return Err(ReadError::TooLarge {
                what: "the number of samples",
                limit: max_samples,
            });
        }
        Ok(())
    }

    pub(crate) fn set_interval(&mut self, bytes: u64) {
        let bytes = signed(bytes);
        if *self.interval.get_or_insert(bytes) != bytes {
            self.interval = Some(0);
        }
    }

    /// Adds the series of memory.
    pub(crate) fn finish(self, samples: &mut TimedSamples) -> Result<(), ReadError> {
        if self.keys.is_empty() {
            return Ok(());
        }
        for (position, column) in COLUMNS.into_iter().enumerate() {
            let profile_type = naming::profile_type(column, ("space", "bytes"), None);
            let series = samples.series(&profile_type)?;
            samples.set_period(series, self.interval.unwrap_or(0));
            for key in &self.keys {
                let Some(values) = self.values.get(key) else {
                    continue;
                };
                let value = values.columns()[position];
                let label_set = values.label_set;
                samples.add(
                    series,
                    Sample {
                        label_set,
                        ..Sample::new(key.stack, value)
                    },
                )?;
            }
        }
        Ok(())
    }
}
