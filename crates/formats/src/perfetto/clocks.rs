//! Times of packets as times since the Unix epoch.

use hashbrown::HashMap;

use crate::perfetto::fields::fields;
use crate::perfetto::fields::number;
use crate::protobuf::reader::Span;
use crate::protobuf::reader::Value;
use crate::protobuf::reader::WireError;

/// What a time is of: clocks from 64 to 127 are of one sequence each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ClockKey {
    sequence: u32,
    clock: u32,
}

/// A moment that several clocks were read at.
#[derive(Clone, Copy, Debug)]
struct Reading {
    clock_ns: i64,
    boot_ns: i64,
    /// 0 when the snapshot has no time since the epoch.
    real_ns: i64,
}

/// All snapshots of a trace.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    readings: HashMap<ClockKey, Vec<Reading>>,
    /// Units of clocks that do not count nanoseconds, and whether each time is a distance.
    units: HashMap<ClockKey, (i64, bool)>,
    /// First and last time since the epoch.
    real: Option<(i64, i64)>,
    count: usize,
}

/// A packet's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Nanoseconds since the epoch.
    Real(i64),
    /// Nanoseconds of a clock that nothing relates to others.
    Other(i64),
}

const REALTIME: u32 = 1;
const BOOTTIME: u32 = 6;

/// Snapshots come every few seconds; more than these tell nothing more.
const MAX_READINGS: usize = 1_000_000;

/// A snapshot reads a dozen.
const MAX_CLOCKS_OF_SNAPSHOT: usize = 4096;

impl Clocks {
    /// Takes a message `ClockSnapshot`.
    pub(crate) fn take_snapshot(
        &mut self,
        data: &[u8],
        span: Span,
        sequence: u32,
    ) -> Result<(), WireError> {
        let mut read: Vec<(ClockKey, i64)> = Vec::new();
        fields(data, span, |field, value| {
            let (1, Value::Bytes(span)) = (field, value) else {
                return Ok(());
            };
            if read.len() >= MAX_CLOCKS_OF_SNAPSHOT {
                return Ok(());
            }
            let (mut clock, mut time, mut is_distance, mut unit) = (0, 0, false, 1);
            fields(data, span, |field, value| {
                match field {
                    1 => clock = number(value) as u32,
                    2 => time = number(value) as i64,
                    3 => is_distance = number(value) != 0,
                    4 => unit = i64::try_from(number(value)).unwrap_or(1).max(1),
                    _ => {}
                }
                Ok(())
            })?;
            let key = key(sequence, clock);
            let is_counted = self.units.len() < MAX_READINGS;
            if is_counted && (unit != 1 || is_distance) {
                self.units.insert(key, (unit, is_distance));
            }
            read.push((key, time.saturating_mul(unit)));
            Ok(())
        })?;
        let time_of = |clock| read.iter().find(|read| read.0.clock == clock);
        let real_ns = time_of(REALTIME).map_or(0, |read| read.1);
        let Some(&(_, boot_ns)) = time_of(BOOTTIME).or(time_of(REALTIME)) else {
            return Ok(());
        };
        if real_ns > 0 {
            let (first, last) = self.real.unwrap_or((real_ns, real_ns));
            self.real = Some((first.min(real_ns), last.max(real_ns)));
        }
        for (key, clock_ns) in read {
            if self.count >= MAX_READINGS {
                break;
            }
            self.count += 1;
            self.readings.entry(key).or_default().push(Reading {
                clock_ns,
                boot_ns,
                real_ns,
            });
        }
        Ok(())
    }

    /// Makes snapshots findable, once all are there.
    pub(crate) fn sort(&mut self) {
        for readings in self.readings.values_mut() {
            readings.sort_by_key(|reading| reading.clock_ns);
        }
    }

    /// First and last time since the epoch that a snapshot has.
    pub(crate) fn real(&self) -> Option<(i64, i64)> {
        self.real
    }

    /// A time of a clock. `last` is the last time of the sequence, for clocks whose times are distances.
    pub(crate) fn moment(
        &self,
        sequence: u32,
        clock: Option<u32>,
        timestamp: u64,
        last: &mut HashMap<u32, i64>,
    ) -> Moment {
        let clock = clock.unwrap_or(BOOTTIME);
        let key = key(sequence, clock);
        let (unit, is_distance) = self.units.get(&key).copied().unwrap_or((1, false));
        let mut time = i64::try_from(timestamp)
            .unwrap_or(i64::MAX)
            .saturating_mul(unit);
        if is_distance {
            let first = self
                .readings
                .get(&key)
                .and_then(|readings| readings.first());
            let before = last
                .entry(clock)
                .or_insert(first.map_or(0, |reading| reading.clock_ns));
            *before = before.saturating_add(time);
            time = *before;
        }
        if clock == REALTIME {
            return Moment::Real(time);
        }
        let Some(reading) = self.nearest(key, time) else {
            return Moment::Other(time);
        };
        let elapsed = time.saturating_sub(reading.clock_ns);
        if reading.real_ns > 0 {
            return Moment::Real(reading.real_ns.saturating_add(elapsed));
        }
        let boot_ns = reading.boot_ns.saturating_add(elapsed);
        let boot = ClockKey {
            sequence: 0,
            clock: BOOTTIME,
        };
        match self.nearest(boot, boot_ns).filter(|near| near.real_ns > 0) {
            Some(near) => {
                let elapsed = boot_ns.saturating_sub(near.clock_ns);
                Moment::Real(near.real_ns.saturating_add(elapsed))
            }
            None => Moment::Other(boot_ns),
        }
    }

    /// The last snapshot before a time, else the first.
    fn nearest(&self, key: ClockKey, time: i64) -> Option<Reading> {
        let readings = self.readings.get(&key)?;
        let before = readings.partition_point(|reading| reading.clock_ns <= time);
        readings.get(before.saturating_sub(1)).copied()
    }
}

fn key(sequence: u32, clock: u32) -> ClockKey {
    let is_of_sequence = (64..128).contains(&clock);
    ClockKey {
        sequence: if is_of_sequence { sequence } else { 0 },
        clock,
    }
}
