//! One record: `len u32 | crc32c u32 | kind u8 | codec u8 | tenant_len u16 | received_ns i64 |
//! key u128 | tenant | payload`, little endian. `len` counts what follows the checksum, and the
//! checksum covers just that. The key tells what comes twice; 0 is none.

use crate::data_dir::is_valid_tenant;
use crate::duplicates::Key;

/// Bytes before the tenant's name.
const FIXED_BYTES: usize = 8 + 1 + 1 + 2 + 8 + 16;

/// The largest encoded profile of a record, before it is compressed.
pub(crate) const MAX_PAYLOAD_BYTES: usize = 256 << 20;

/// The payload is an encoded profile.
const KIND_PROFILE: u8 = 1;
/// Who writes the log from here on; the key is the process's. 0 is who wrote it before.
const KIND_CLAIM: u8 = 2;
/// The payload is compressed with zstd.
const CODEC_ZSTD: u8 = 1;
/// Segments live for a minute and are written on the way of every request: speed before size.
const ZSTD_LEVEL: i32 = 1;

/// A record as it lies in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordRef<'a> {
    pub(crate) kind: RecordKind,
    pub(crate) tenant: &'a str,
    pub(crate) received_ns: i64,
    pub(crate) key: Key,
    /// Compressed.
    pub(crate) payload: &'a [u8],
}

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    Profile,
    /// It takes a sequence and has no payload.
    Claim,
}

/// What lies at some offset of a segment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed<'a> {
    /// A record, and the bytes it takes.
    Record(RecordRef<'a>, usize),
    /// The preallocated rest, or the end of the file.
    End,
    /// Bytes that are no record: a torn write or a damaged disk.
    Broken,
    /// A sound record of a kind or codec of a later version.
    Newer(u8),
}

/// A complete record of an encoded profile.
pub(crate) fn encode_record(
    tenant: &str,
    received_ns: i64,
    key: Key,
    encoded_profile: &[u8],
) -> std::io::Result<Vec<u8>> {
    let payload = zstd::bulk::compress(encoded_profile, ZSTD_LEVEL)?;
    Ok(frame(KIND_PROFILE, tenant, received_ns, key, &payload))
}

/// A complete record which says that this process writes the log from here on.
pub(super) fn encode_claim(process_id: u64) -> Vec<u8> {
    frame(KIND_CLAIM, "claim", 0, process_id.into(), &[])
}

/// A complete record that says nothing, and has what comes before it lie in earlier segments when
/// a new one was asked for.
pub(crate) fn encode_mark() -> Vec<u8> {
    frame(KIND_CLAIM, "mark", 0, 0, &[])
}

fn frame(kind: u8, tenant: &str, received_ns: i64, key: Key, payload: &[u8]) -> Vec<u8> {
    let tenant_bytes =
        u16::try_from(tenant.len()).expect("tenants are checked to be at most 150 bytes");
    let mut record = Vec::with_capacity(FIXED_BYTES + tenant.len() + payload.len());
    record.extend_from_slice(&[0; 8]);
    record.push(kind);
    record.push(CODEC_ZSTD);
    record.extend_from_slice(&tenant_bytes.to_le_bytes());
    record.extend_from_slice(&received_ns.to_le_bytes());
    record.extend_from_slice(&key.to_le_bytes());
    record.extend_from_slice(tenant.as_bytes());
    record.extend_from_slice(payload);
    let body_bytes = u32::try_from(record.len() - 8).unwrap_or(u32::MAX);
    let checksum = crc32c::crc32c(&record[8..]);
    record[..4].copy_from_slice(&body_bytes.to_le_bytes());
    record[4..8].copy_from_slice(&checksum.to_le_bytes());
    record
}

impl RecordRef<'_> {
    /// The encoded profile.
    pub(crate) fn decompress(&self) -> std::io::Result<Vec<u8>> {
        zstd::stream::decode_all(self.payload)
    }
}

/// What the bytes of a segment from here on begin with.
pub(super) fn parse_record(bytes: &[u8]) -> Parsed<'_> {
    let Some(header) = bytes.first_chunk::<8>() else {
        let is_end = bytes.iter().all(|&byte| byte == 0);
        return if is_end { Parsed::End } else { Parsed::Broken };
    };
    let (length, checksum) = header.split_at(4);
    let body_bytes = u32_of(length) as usize;
    if *header == [0; 8] {
        return Parsed::End;
    }
    let Some(body) = bytes.get(8..8 + body_bytes) else {
        return Parsed::Broken;
    };
    let total = 8 + body_bytes;
    if crc32c::crc32c(body) != u32_of(checksum) {
        return Parsed::Broken;
    }
    let Some((fixed, rest)) = body.split_at_checked(FIXED_BYTES - 8) else {
        return Parsed::Broken;
    };
    let (kind, codec) = (fixed[0], fixed[1]);
    let kind = match kind {
        KIND_PROFILE => RecordKind::Profile,
        KIND_CLAIM => RecordKind::Claim,
        newer => return Parsed::Newer(newer),
    };
    if codec != CODEC_ZSTD {
        return Parsed::Newer(codec);
    }
    let tenant_bytes = usize::from(u16::from_le_bytes([fixed[2], fixed[3]]));
    let (received, hash) = fixed[4..].split_at(8);
    let parts = rest
        .split_at_checked(tenant_bytes)
        .and_then(|(tenant, payload)| {
            Some(RecordRef {
                kind,
                tenant: std::str::from_utf8(tenant).ok()?,
                received_ns: i64::from_le_bytes(received.try_into().ok()?),
                key: Key::from_le_bytes(hash.try_into().ok()?),
                payload,
            })
        });
    match parts {
        Some(record) => Parsed::Record(record, total),
        None => Parsed::Broken,
    }
}

/// Whether the bytes begin with what a record of this version may begin with. Cheap, so that a
/// search need not check the sum of nearly a whole segment at each of its bytes.
pub(super) fn looks_like_record(bytes: &[u8]) -> bool {
    let Some(fixed) = bytes.first_chunk::<FIXED_BYTES>() else {
        return false;
    };
    let tenant_bytes = usize::from(u16::from_le_bytes([fixed[10], fixed[11]]));
    let tenant = bytes.get(FIXED_BYTES..FIXED_BYTES + tenant_bytes);
    matches!(fixed[8], KIND_PROFILE | KIND_CLAIM)
        && fixed[9] == CODEC_ZSTD
        && tenant
            .and_then(|it| std::str::from_utf8(it).ok())
            .is_some_and(is_valid_tenant)
}

fn u32_of(bytes: &[u8]) -> u32 {
    bytes
        .first_chunk()
        .map_or(0, |chunk| u32::from_le_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_round_trips() {
        let bytes = encode_record("team", 42, 7, b"profile").expect("compresses");
        let Parsed::Record(record, total) = parse_record(&bytes) else {
            panic!("no record");
        };
        assert_eq!(total, bytes.len());
        assert_eq!((record.tenant, record.received_ns), ("team", 42));
        assert_eq!(record.key, 7);
        assert_eq!(record.decompress().expect("decompresses"), b"profile");
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        let bytes = encode_record("team", 42, 7, b"profile").expect("compresses");
        for position in 0..bytes.len() * 8 {
            let mut broken = bytes.clone();
            broken[position / 8] ^= 1 << (position % 8);
            let parsed = parse_record(&broken);
            assert!(
                matches!(parsed, Parsed::Broken),
                "bit {position}: {parsed:?}"
            );
        }
    }
}
