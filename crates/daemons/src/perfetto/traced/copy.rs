//! A copy of a trace, as `CLONE_SNAPSHOT` has it: made by `traced` when a trigger was hit, and read to its end.

use std::path::Path;
use std::time::Duration;

use crate::perfetto::packets::push_packet;
use crate::perfetto::traced::connection::Connection;
use crate::perfetto::traced::error::TracedError;
use crate::perfetto::traced::messages::CloneSessionRequest;
use crate::perfetto::traced::messages::CloneSessionResponse;
use crate::perfetto::traced::messages::CloneTriggerHit;
use crate::perfetto::traced::messages::ReadBuffersRequest;
use crate::perfetto::traced::messages::ReadBuffersResponse;
use crate::perfetto::traced::messages::Slice;

/// Producers have five seconds for what they still hold; then it is copied, and read without a pause.
const PATIENCE: Duration = Duration::from_secs(15);

/// Puts packets together of the slices that they come in.
#[derive(Debug, Default)]
struct Packets {
    trace: Vec<u8>,
    begun: Vec<u8>,
}

/// The trace of this number as it is now, with what the trigger was.
///
/// # Errors
/// [`TracedError`].
pub(crate) fn copy_trace(
    socket: &Path,
    session: u64,
    hit: &CloneTriggerHit,
) -> Result<Vec<u8>, TracedError> {
    // A connection of its own: whoever copies a trace holds the copy from then on, and no longer the trace.
    let mut connection = Connection::open(socket)?;
    connection.set_patience(PATIENCE)?;
    connection.bind()?;
    connection.call(
        "CloneSession",
        &CloneSessionRequest {
            session_id: Some(session),
            clone_trigger_name: hit.trigger_name.clone(),
            clone_trigger_producer_name: hit.producer_name.clone(),
            // Perfetto's own messages have it with a sign here, and without one there.
            clone_trigger_trusted_producer_uid: hit.producer_uid.map(|uid| uid as i32),
            clone_trigger_boot_time_ns: hit.boot_time_ns,
            clone_trigger_delay_ms: hit.trigger_delay_ms,
        },
    )?;
    let response: CloneSessionResponse = connection.receive()?.message()?;
    if !response.success() {
        return Err(TracedError::NotCloned {
            reason: response.error().to_owned(),
        });
    }
    connection.call("ReadBuffers", &ReadBuffersRequest {})?;
    let mut packets = Packets::default();
    loop {
        let reply = connection.receive()?;
        let response: ReadBuffersResponse = reply.message()?;
        response
            .slices
            .into_iter()
            .for_each(|slice| packets.add(&slice));
        if reply.is_last {
            return Ok(packets.trace);
        }
    }
}

impl Packets {
    fn add(&mut self, slice: &Slice) {
        self.begun.extend_from_slice(slice.data());
        if slice.last_slice_for_packet() {
            push_packet(&mut self.trace, &self.begun);
            self.begun.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_put_together_of_their_slices() {
        let mut packets = Packets::default();
        for (data, is_last) in [("ab", false), ("c", true), ("", true), ("de", true)] {
            packets.add(&Slice {
                data: Some(data.as_bytes().to_vec()),
                last_slice_for_packet: Some(is_last),
            });
        }
        packets.add(&Slice {
            data: Some(b"torn".to_vec()),
            last_slice_for_packet: None,
        });
        assert_eq!(packets.trace, b"\x0a\x03abc\x0a\x00\x0a\x02de");
    }
}
