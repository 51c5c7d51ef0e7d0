//! Whether what was written of a trace is a snapshot: by what is in it.
//!
//! No engine says that of itself. Perfetto's own client ends with 0 whatever became of a trigger, and a trace of a data
//! source that nobody knows is whole, and empty; so is ours of processes that do not run. Who asked for the moment would
//! find that out in the viewer, weeks later.

use crate::error::DaemonError;
use crate::perfetto::packets::CLONE_SNAPSHOT_TRIGGER;
use crate::perfetto::packets::PERF_SAMPLE;
use crate::perfetto::packets::TRACE_PACKET;
use crate::perfetto::packets::TRIGGER_NAME;

/// Further fields of `TracePacket` in Perfetto's protobuf. Before its version 49 `traced` tells only triggers of the
/// whole trace.
const TRIGGER: u64 = 46;
/// Samples as writers of 2026 have them, too.
const STACK_SAMPLE: u64 = 135;

/// Takes a trace that holds the trigger of this name, and samples where they were asked for.
///
/// # Errors
/// [`DaemonError::NoSnapshot`] with what is missing.
pub(crate) fn judge(trace: &[u8], trigger: &str, wants_samples: bool) -> Result<(), DaemonError> {
    let no_snapshot = |reason: &str| DaemonError::NoSnapshot {
        reason: reason.to_owned(),
    };
    let seen = Seen::of(trace, trigger).ok_or_else(|| no_snapshot("it is torn"))?;
    if !seen.has_trigger {
        return Err(no_snapshot(&format!(
            "its trigger {trigger:?} is not in it"
        )));
    }
    if wants_samples && !seen.has_samples {
        return Err(no_snapshot(
            "no CPU samples are in it; see whether the processes run that linux.perf of config_text names and whether its buffer has room (size_kb), and ask again after a second",
        ));
    }
    Ok(())
}

/// What kinds of packets a trace has.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Seen {
    has_trigger: bool,
    has_samples: bool,
}

impl Seen {
    /// `None` where the trace ends within a packet, or is none.
    fn of(trace: &[u8], trigger: &str) -> Option<Self> {
        let mut seen = Self::default();
        let mut packets = Fields(trace);
        while let Some(packet) = packets.next()? {
            let mut fields = Fields(packet.bytes);
            while packet.number == TRACE_PACKET
                && let Some(field) = fields.next()?
            {
                match field.number {
                    CLONE_SNAPSHOT_TRIGGER | TRIGGER => {
                        seen.has_trigger |= is_of_name(field.bytes, trigger)?;
                    }
                    PERF_SAMPLE | STACK_SAMPLE => seen.has_samples = true,
                    _ => {}
                }
            }
        }
        Some(seen)
    }
}

/// Whether a `Trigger` has this name. `None` where it is torn.
fn is_of_name(trigger: &[u8], name: &str) -> Option<bool> {
    let mut fields = Fields(trigger);
    while let Some(field) = fields.next()? {
        if field.number == TRIGGER_NAME {
            return Some(field.bytes == name.as_bytes());
        }
    }
    Some(false)
}

/// The fields of a message, one after the other.
struct Fields<'bytes>(&'bytes [u8]);

struct Field<'bytes> {
    number: u64,
    /// Empty for numbers.
    bytes: &'bytes [u8],
}

impl<'bytes> Fields<'bytes> {
    /// `Some(None)` at the end; `None` where that is within a field.
    fn next(&mut self) -> Option<Option<Field<'bytes>>> {
        if self.0.is_empty() {
            return Some(None);
        }
        let tag = self.varint()?;
        let length = match tag & 7 {
            0 => {
                self.varint()?;
                0
            }
            1 => 8,
            2 => usize::try_from(self.varint()?).ok()?,
            5 => 4,
            _ => return None,
        };
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        let number = tag >> 3;
        Some(Some(Field { number, bytes }))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perfetto::packets::bytes;
    use crate::perfetto::packets::number;
    use crate::perfetto::packets::push_packet;
    use crate::perfetto::packets::trigger_packet;

    /// A packet with an empty message in a field, and a number and 32 bits beside it.
    fn packet(field: u64) -> Vec<u8> {
        let mut packet = vec![9 << 3 | 5, 0, 0, 0, 0];
        number(&mut packet, 8, 150);
        bytes(&mut packet, field, b"");
        let mut trace = Vec::new();
        push_packet(&mut trace, &packet);
        trace
    }

    fn verdict(trace: &[u8], wants_samples: bool) -> String {
        let judged = judge(trace, "moment", wants_samples);
        judged.map_or_else(|error| error.to_string(), |()| "a snapshot".to_owned())
    }

    #[test]
    fn what_is_in_it_decides() {
        let trigger = trigger_packet("moment", 1, 2);
        let with = |field| [packet(field), trigger.clone()].concat();
        for samples in [PERF_SAMPLE, STACK_SAMPLE] {
            assert_eq!(verdict(&with(samples), true), "a snapshot");
        }
        let other = with(84);
        assert_eq!(verdict(&other, false), "a snapshot");
        let said = verdict(&other, true);
        assert!(said.contains("no CPU samples are in it"), "{said}");
        let of_another = trigger_packet("another", 1, 2);
        for trace in [packet(PERF_SAMPLE), of_another, Vec::new(), packet(84)] {
            let said = verdict(&trace, false);
            assert!(
                said.contains("its trigger \"moment\" is not in it"),
                "{said}"
            );
        }
        let whole = with(PERF_SAMPLE);
        for end in 1..whole.len() {
            assert_ne!(verdict(&whole[..end], true), "a snapshot", "{end}");
        }
        let said = verdict(&whole[..whole.len() - 1], true);
        assert!(said.contains("it is torn"), "{said}");
        assert!(verdict(b"an error of XML", false).contains("it is torn"));
    }
}
