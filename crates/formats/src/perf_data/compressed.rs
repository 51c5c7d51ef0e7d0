//! Records that are written as one zstd stream in pieces (`perf record -z`).

use std::io;

use zstd::stream::raw::Decoder;
use zstd::stream::raw::InBuffer;
use zstd::stream::raw::Operation;
use zstd::stream::raw::OutBuffer;

use crate::error::ReadError;

/// How much is inflated before records are taken out of it: more than the largest record has.
const STEP_BYTES: usize = 128 << 10;

/// The stream of a recording. A record may begin in one piece and end in the next.
pub(crate) struct Inflater {
    decoder: Decoder<'static>,
    step: Vec<u8>,
    /// Bytes that came out.
    pub(crate) inflated_bytes: usize,
    max_bytes: usize,
}

impl Inflater {
    pub(crate) fn new(max_bytes: usize) -> io::Result<Self> {
        Ok(Self {
            decoder: Decoder::new()?,
            step: vec![0; STEP_BYTES],
            inflated_bytes: 0,
            max_bytes,
        })
    }

    /// Inflates some of `piece`, which is then without it, and appends that to `inflated`. Nothing is
    /// appended when the piece is used up. `bytes_outside` came out of what the whole recording is
    /// compressed with, and counts together with what comes out here.
    pub(crate) fn step(
        &mut self,
        piece: &mut &[u8],
        inflated: &mut Vec<u8>,
        bytes_outside: usize,
    ) -> Result<(), ReadError> {
        let mut input = InBuffer::around(piece);
        let mut output = OutBuffer::around(&mut self.step[..]);
        let result = self.decoder.run(&mut input, &mut output);
        result.map_err(|error| ReadError::Compression {
            encoding: "zstd",
            reason: error.to_string(),
        })?;
        let (used, made) = (input.pos(), output.pos());
        *piece = piece.get(used..).unwrap_or(&[]);
        self.inflated_bytes += made;
        if self.inflated_bytes.saturating_add(bytes_outside) > self.max_bytes {
            return Err(ReadError::TooLarge {
                what: "the size of the inflated records in bytes",
                limit: self.max_bytes,
            });
        }
        inflated.extend_from_slice(self.step.get(..made).unwrap_or(&[]));
        Ok(())
    }
}
