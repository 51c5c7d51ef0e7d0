//! Input bytes, decompressed when they are compressed, never more than the limit.

use std::borrow::Cow;
use std::io;
use std::io::BufRead;
use std::io::Read;

use flate2::bufread::MultiGzDecoder;

use crate::error::ReadError;
use crate::layers::without_layers;
use crate::options::HARD_INFLATED_LIMIT;
use crate::zip::ZIP_MAGIC;
use crate::zip::first_entry_prefix;
use crate::zip::largest_entry;

pub(crate) const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
pub(crate) const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Uploads through proxies arrive compressed twice now and then; more layers are an attack.
pub(crate) const MAX_LAYERS: usize = 2;

/// All of the input, without its gzip or zstd layers. Of a ZIP archive it is the largest file.
pub(crate) fn read_inflated(
    mut input: impl BufRead,
    max_bytes: usize,
) -> Result<Vec<u8>, ReadError> {
    let mut bytes = read_capped(&mut input, 0, max_bytes)?;
    for _ in 0..MAX_LAYERS {
        let Some(inflated) = inflate_layer(&bytes, max_bytes)? else {
            break;
        };
        bytes = inflated;
    }
    Ok(bytes)
}

/// Bytes in memory without their gzip, zstd or ZIP layers: for callers that want to know how much they
/// are.
///
/// # Errors
/// When they are damaged, or inflate to more than `max_bytes`.
pub fn inflate(bytes: &[u8], max_bytes: usize) -> Result<Cow<'_, [u8]>, ReadError> {
    let max_bytes = max_bytes.min(HARD_INFLATED_LIMIT);
    let mut inflated = Cow::Borrowed(bytes);
    for _ in 0..MAX_LAYERS {
        let Some(layer) = inflate_layer(&inflated, max_bytes)? else {
            break;
        };
        inflated = Cow::Owned(layer);
    }
    Ok(inflated)
}

/// Whether bytes begin as gzip, zstd or a ZIP archive does: readers would take that off.
#[must_use]
pub fn is_compressed(bytes: &[u8]) -> bool {
    bytes.starts_with(&GZIP_MAGIC)
        || bytes.starts_with(&ZSTD_MAGIC)
        || bytes.starts_with(&ZIP_MAGIC)
}

/// Input that is inflated while it is read, for formats that are read piece by piece. What comes out
/// of a decompressor is bounded; its errors carry a [`ReadError`], see [`read_error`].
pub(crate) struct Inflating<'a> {
    input: Box<dyn BufRead + 'a>,
    is_compressed: bool,
    left: usize,
    max_bytes: usize,
}

impl<'a> Inflating<'a> {
    pub(crate) fn new(input: impl BufRead + 'a, max_bytes: usize) -> Result<Self, ReadError> {
        let (input, is_compressed) = without_layers(Box::new(input), max_bytes)?;
        Ok(Self {
            input,
            is_compressed,
            left: max_bytes,
            max_bytes,
        })
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.is_compressed
    }
}

impl Read for Inflating<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        if !self.is_compressed {
            return Ok(read);
        }
        self.left = self.left.checked_sub(read).ok_or_else(|| {
            io::Error::other(ReadError::TooLarge {
                what: "the size of the input in bytes",
                limit: self.max_bytes,
            })
        })?;
        Ok(read)
    }
}

/// What an error of [`Inflating`] means.
pub(crate) fn read_error(error: io::Error) -> ReadError {
    match error.downcast::<ReadError>() {
        Ok(error) => error,
        Err(error) => ReadError::Io(error),
    }
}

/// As much of a prefix of the input as inflates, for format detection.
pub(crate) fn inflate_prefix(prefix: &[u8]) -> Cow<'_, [u8]> {
    let mut inflated = Cow::Borrowed(prefix);
    for _ in 0..MAX_LAYERS {
        let Some(layer) = prefix_layer(&inflated) else {
            break;
        };
        inflated = Cow::Owned(layer);
    }
    inflated
}

fn prefix_layer(prefix: &[u8]) -> Option<Vec<u8>> {
    // A layer inside loses some to what the outer one cuts.
    const ENOUGH: u64 = 16 << 10;
    let mut inflated = Vec::new();
    // The prefix ends somewhere in the compressed stream: what came out before is the answer.
    if prefix.starts_with(&GZIP_MAGIC) {
        let _ = MultiGzDecoder::new(prefix)
            .take(ENOUGH)
            .read_to_end(&mut inflated);
        return Some(inflated);
    }
    if prefix.starts_with(&ZSTD_MAGIC) {
        if let Ok(decoder) = zstd::stream::read::Decoder::with_buffer(prefix) {
            let _ = decoder.take(ENOUGH).read_to_end(&mut inflated);
        }
        return Some(inflated);
    }
    if prefix.starts_with(&ZIP_MAGIC) {
        return Some(first_entry_prefix(prefix, ENOUGH));
    }
    None
}

fn inflate_layer(bytes: &[u8], max_bytes: usize) -> Result<Option<Vec<u8>>, ReadError> {
    if bytes.starts_with(&GZIP_MAGIC) {
        let decoder = &mut MultiGzDecoder::new(bytes);
        return named("gzip", read_capped(decoder, gzip_size(bytes), max_bytes)).map(Some);
    }
    if bytes.starts_with(&ZSTD_MAGIC) {
        let decoder = zstd::stream::read::Decoder::with_buffer(bytes);
        let mut decoder = named("zstd", decoder.map_err(ReadError::Io))?;
        return named("zstd", read_capped(&mut decoder, 0, max_bytes)).map(Some);
    }
    if bytes.starts_with(&ZIP_MAGIC) {
        let entry = largest_entry(bytes, |mut packed| read_capped(&mut packed, 0, max_bytes));
        return named("zip", entry).map(Some);
    }
    Ok(None)
}

/// What the trailer says of the inflated size (RFC 1952, ISIZE). It may lie, so that it is only
/// believed as far as is usual for profiles.
fn gzip_size(bytes: &[u8]) -> usize {
    const USUAL_RATIO: usize = 12;
    let size = bytes
        .last_chunk()
        .map_or(0, |trailer| u32::from_le_bytes(*trailer));
    (size as usize).min(bytes.len() * USUAL_RATIO)
}

fn read_capped(
    input: &mut impl Read,
    expected: usize,
    max_bytes: usize,
) -> Result<Vec<u8>, ReadError> {
    // Some bytes more, so that the end is found without growing.
    let mut bytes = Vec::with_capacity(expected.min(max_bytes) + 64);
    input.take(max_bytes as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > max_bytes {
        return Err(ReadError::TooLarge {
            what: "the size of the input in bytes",
            limit: max_bytes,
        });
    }
    Ok(bytes)
}

/// An IO error of a decoder over bytes in memory is damage to these bytes.
fn named<T>(encoding: &'static str, result: Result<T, ReadError>) -> Result<T, ReadError> {
    result.map_err(|error| match error {
        ReadError::Io(error) => ReadError::Compression {
            encoding,
            reason: error.to_string(),
        },
        other => other,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::zip::tests::archive;

    pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).expect("a vector takes all");
        encoder.finish().expect("a vector takes all")
    }

    #[test]
    fn layers_come_off() {
        let zstd = zstd::encode_all(&b"profile"[..], 1).expect("a vector takes all");
        for input in [
            b"profile".to_vec(),
            gzip(b"profile"),
            gzip(&gzip(b"profile")),
            zstd,
        ] {
            let bytes = read_inflated(&input[..], 100).expect("seven bytes");
            assert_eq!(bytes, b"profile");
        }
    }

    #[test]
    fn of_an_archive_the_largest_file_is_read() {
        let files: [(&str, &[u8], bool); 3] = [
            ("small", b"no", false),
            ("dir/large.bin", b"profile", true),
            ("stored", b"12345", false),
        ];
        let several = archive(&files);
        assert_eq!(
            read_inflated(&several[..], 1000).expect("sound"),
            b"profile"
        );
        for is_deflated in [false, true] {
            let one = archive(&[("one", b"profile", is_deflated)]);
            assert_eq!(read_inflated(&one[..], 1000).expect("sound"), b"profile");
            assert_eq!(inflate_prefix(&one[..20]).len(), 0);
            assert_eq!(*inflate_prefix(&one), *b"profile");
            assert!(is_compressed(&one));
            for length in 0..one.len() {
                let _ = inflate_prefix(&one[..length]);
                let result = read_inflated(&one[..length], 1000);
                // Without its first bytes it is no archive; the last two tell nothing.
                let tells_nothing = length < 4 || length + 2 >= one.len();
                assert!(result.is_err() || tells_nothing, "cut at {length}");
            }
        }
        let bomb = archive(&[("bomb", &[0; 1 << 16], true)]);
        let error = read_inflated(&bomb[..], 1 << 12).expect_err("4 KiB allowed");
        assert!(matches!(error, ReadError::TooLarge { limit: 4096, .. }));
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let bomb = gzip(&vec![0; 1 << 20]);
        let error = read_inflated(&bomb[..], 1 << 16).expect_err("64 KiB allowed");
        assert!(matches!(error, ReadError::TooLarge { limit: 65536, .. }));
    }

    #[test]
    fn input_is_inflated_while_it_is_read() {
        let read = |bytes: &[u8], max_bytes| {
            let mut read = Vec::new();
            let mut input = Inflating::new(bytes, max_bytes)?;
            input.read_to_end(&mut read).map_err(read_error)?;
            Ok::<_, ReadError>(read)
        };
        for input in [b"pro".to_vec(), gzip(b"pro"), gzip(&gzip(b"pro"))] {
            assert_eq!(read(&input, 3).expect("three bytes"), b"pro");
        }
        assert_eq!(read(b"plain input", 3).expect("no bomb"), b"plain input");
        let error = read(&gzip(&[0; 100]), 99).expect_err("99 bytes allowed");
        assert!(matches!(error, ReadError::TooLarge { limit: 99, .. }));
        let whole = gzip(b"some bytes that do not matter");
        let error = read(&whole[..whole.len() - 9], 100).expect_err("cut");
        assert!(error.to_string().starts_with("gzip data is damaged"));
    }

    #[test]
    fn a_cut_stream_is_named() {
        let whole = gzip(b"some bytes that do not matter");
        let error = read_inflated(&whole[..whole.len() - 9], 100).expect_err("cut");
        assert!(error.to_string().starts_with("gzip data is damaged"));
    }
}
