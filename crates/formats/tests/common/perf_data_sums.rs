//! The samples of a recording, counted without our reader.

use std::io::Write;

/// Samples of a recording without call chains, found without our reader: all compressed pieces
/// inflated as one stream, records stepped through, periods added up, which stand last.
pub(crate) fn plain_sums(bytes: &[u8]) -> (usize, i64) {
    let u64_at =
        |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let u16_at =
        |bytes: &[u8], at: usize| u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap());
    let records = |bytes: &[u8]| {
        let mut found = Vec::new();
        let mut position = 0;
        while position < bytes.len() {
            let size = usize::from(u16_at(bytes, position + 6));
            found.push(bytes[position..position + size].to_vec());
            position += size;
        }
        found
    };
    let data = match u64_at(bytes, 8) {
        16 => bytes[16..].to_vec(),
        _ => {
            let (start, size) = (u64_at(bytes, 40) as usize, u64_at(bytes, 48) as usize);
            bytes[start..start + size].to_vec()
        }
    };
    let mut plain = Vec::new();
    let mut inflater = zstd::stream::write::Decoder::new(Vec::new()).unwrap();
    for record in records(&data) {
        match record[0] {
            81 => inflater.write_all(&record[8..]).unwrap(),
            83 => {
                let size = u64_at(&record, 8) as usize;
                inflater.write_all(&record[16..16 + size]).unwrap();
            }
            _ => plain.push(record),
        }
    }
    inflater.flush().unwrap();
    plain.extend(records(inflater.get_ref()));
    let samples: Vec<u64> = plain
        .iter()
        .filter(|record| record[0] == 9)
        .map(|record| u64_at(record, record.len() - 8))
        .collect();
    (samples.len(), samples.iter().sum::<u64>() as i64)
}
