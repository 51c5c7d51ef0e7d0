//! Compression that is taken off while input is read, a layer at a time.

use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Cursor;
use std::io::ErrorKind;
use std::io::Read;

use flate2::bufread::MultiGzDecoder;

use crate::error::ReadError;
use crate::inflate::GZIP_MAGIC;
use crate::inflate::MAX_LAYERS;
use crate::inflate::ZSTD_MAGIC;
use crate::inflate::read_error;

/// A layer may be so many bytes larger than what is inside of it may be: the headers of the
/// compression that it holds.
const MOST_HEADER_BYTES: usize = 64 << 10;

/// What comes out of one decompressor. All layers have a bound, as thousands of streams of nothing pack
/// well: what comes out of the last layer would never show how much passed through the others.
struct Layer<R> {
    decoder: R,
    encoding: &'static str,
    left: usize,
    limit: usize,
}

impl<R: Read> Read for Layer<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.decoder.read(buffer);
        let read = read.map_err(|error| damage(error, self.encoding))?;
        self.left = self.left.checked_sub(read).ok_or_else(|| {
            io::Error::other(ReadError::TooLarge {
                what: "the size of a layer of compression in bytes",
                limit: self.limit,
            })
        })?;
        Ok(read)
    }
}

/// Input without its layers of gzip or zstd, and whether it had any. The caller bounds what comes out
/// of the last layer by `max_bytes`. Errors of the input carry a [`ReadError`], see [`read_error`].
pub(crate) fn without_layers<'a>(
    mut input: Box<dyn BufRead + 'a>,
    max_bytes: usize,
) -> Result<(Box<dyn BufRead + 'a>, bool), ReadError> {
    let limit = max_bytes.saturating_add(MOST_HEADER_BYTES);
    let mut is_compressed = false;
    for _ in 0..MAX_LAYERS {
        let (start, whole) = peeked(input, ZSTD_MAGIC.len() as u64)?;
        if start.starts_with(&GZIP_MAGIC) {
            input = layer(MultiGzDecoder::new(whole), "gzip", limit);
        } else if start.starts_with(&ZSTD_MAGIC) {
            let decoder = zstd::stream::read::Decoder::with_buffer(whole);
            input = layer(decoder.map_err(read_error)?, "zstd", limit);
        } else {
            return Ok((whole, is_compressed));
        }
        is_compressed = true;
    }
    Ok((input, is_compressed))
}

/// The first bytes, and the input that still begins with them.
pub(crate) fn peeked<'a>(
    mut input: Box<dyn BufRead + 'a>,
    count: u64,
) -> Result<(Vec<u8>, Box<dyn BufRead + 'a>), ReadError> {
    let mut start = Vec::new();
    let read = (&mut input).take(count).read_to_end(&mut start);
    read.map_err(read_error)?;
    let whole = Cursor::new(start.clone()).chain(input);
    Ok((start, Box::new(whole)))
}

fn layer<'a>(
    decoder: impl Read + 'a,
    encoding: &'static str,
    limit: usize,
) -> Box<dyn BufRead + 'a> {
    Box::new(BufReader::new(Layer {
        decoder,
        encoding,
        left: limit,
        limit,
    }))
}

/// What decoders say of damage has one of these kinds; all else comes from the source, or from a layer
/// outside, which says itself what it is.
fn damage(error: io::Error, encoding: &'static str) -> io::Error {
    let is_named = error.get_ref().is_some_and(|inner| inner.is::<ReadError>());
    let is_damage = matches!(
        error.kind(),
        ErrorKind::InvalidInput
            | ErrorKind::InvalidData
            | ErrorKind::UnexpectedEof
            | ErrorKind::Other
    );
    if is_named || !is_damage {
        return error;
    }
    io::Error::other(ReadError::Compression {
        encoding,
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inflate::tests::gzip;

    fn inflated(bytes: &[u8], max_bytes: usize) -> Result<Vec<u8>, ReadError> {
        let (mut input, is_compressed) = without_layers(Box::new(bytes), max_bytes)?;
        assert!(is_compressed);
        let mut inflated = Vec::new();
        input.read_to_end(&mut inflated).map_err(read_error)?;
        Ok(inflated)
    }

    #[test]
    fn streams_of_nothing_have_a_bound() {
        let nothing = gzip(b"");
        let few = gzip(&nothing.repeat(100));
        assert_eq!(inflated(&few, 1000).expect("2000 bytes"), b"");
        let many = gzip(&nothing.repeat(10_000));
        let error = inflated(&many, 1000).expect_err("200000 bytes").to_string();
        assert!(error.contains("a layer of compression"), "{error}");
        assert_eq!(inflated(&many, 200_000).expect("more is allowed"), b"");
    }

    #[test]
    fn damage_is_named_by_the_layer_that_has_it() {
        let inner = zstd::encode_all(&b"some bytes"[..], 1).expect("a vector takes all");
        let cut = inner.len() - 3;
        for (bytes, encoding) in [(&inner[..cut], "zstd"), (&gzip(&inner[..cut]), "zstd")] {
            let error = inflated(bytes, 1000).expect_err("cut").to_string();
            assert!(error.starts_with(encoding), "{error}");
        }
        let outer = gzip(&inner);
        let error = inflated(&outer[..outer.len() - 9], 1000).expect_err("cut");
        assert!(error.to_string().starts_with("gzip"), "{error}");
    }
}
