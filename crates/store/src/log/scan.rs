//! The records of a segment, and what is damaged between them.

use std::ops::Range;

use super::Sequence;
use super::record::Parsed;
use super::record::RecordRef;
use super::record::looks_like_record;
use super::record::parse_record;
use super::segment::HEADER_BYTES;

/// The sound records of a segment.
#[derive(Debug, Default)]
pub(super) struct Scan<'a> {
    /// Each with the number of records before it, sound or not.
    pub(super) records: Vec<(u64, RecordRef<'a>)>,
    /// How many of `records` come before the last unsound place.
    before_last_gap: usize,
    /// Offset behind the last record.
    pub(super) end: usize,
    /// Whether something that is no record comes behind it.
    pub(super) is_torn: bool,
}

impl<'a> Scan<'a> {
    /// All sound records, also those behind damage. Fails with the number of a later version.
    pub(super) fn of(bytes: &'a [u8]) -> Result<Self, u32> {
        let mut scan = Scan {
            end: HEADER_BYTES,
            ..Scan::default()
        };
        if bytes.len() < HEADER_BYTES {
            scan.end = bytes.len();
            scan.is_torn = !bytes.is_empty();
            return Ok(scan);
        }
        let last = bytes.iter().rposition(|&byte| byte != 0);
        let written = last.map_or(0, |last| last + 1);
        let mut number = 0;
        loop {
            match parse_record(&bytes[scan.end..]) {
                Parsed::Record(record, length) => {
                    scan.records.push((number, record));
                    scan.end += length;
                }
                Parsed::Newer(version) => return Err(version.into()),
                // A crash tears the end and nothing before it. With sound records behind, this was
                // written completely and went bad later; how many records it was is not known.
                Parsed::End | Parsed::Broken => match next_record(bytes, scan.end + 1..written) {
                    Some(next) => {
                        scan.before_last_gap = scan.records.len();
                        scan.end = next;
                    }
                    None => {
                        scan.is_torn = scan.end < written;
                        return Ok(scan);
                    }
                },
            }
            number += 1;
        }
    }

    /// The records with their sequences. Damage counts as one record, except that the last place
    /// of it takes what is missing up to the first record of the next segment.
    pub(super) fn numbered(
        &self,
        first: Sequence,
        successor: Option<Sequence>,
    ) -> impl Iterator<Item = (Sequence, RecordRef<'a>)> {
        let end = self
            .records
            .last()
            .map_or(first, |&(number, _)| first + number + 1);
        let missing = match successor {
            Some(successor) if self.has_gap() && !self.is_torn => successor.saturating_sub(end),
            _ => 0,
        };
        let records = self.records.iter().enumerate();
        records.map(move |(position, &(number, record))| {
            let is_behind = position >= self.before_last_gap;
            (first + number + if is_behind { missing } else { 0 }, record)
        })
    }

    /// How many records there were, as far as one can see: damage between records and behind them
    /// counts as one each.
    pub(super) fn count(&self) -> u64 {
        let sound = self.records.last().map_or(0, |&(number, _)| number + 1);
        (sound + u64::from(self.is_torn)).max(1)
    }

    /// Whether there are records and no damage between or behind them.
    pub(super) fn is_whole(&self) -> bool {
        !self.records.is_empty() && !self.has_gap() && !self.is_torn
    }

    fn has_gap(&self) -> bool {
        self.before_last_gap > 0 || self.records.first().is_some_and(|it| it.0 > 0)
    }
}

/// The first of these offsets at which a sound record begins.
fn next_record(bytes: &[u8], mut offsets: Range<usize>) -> Option<usize> {
    offsets.find(|&offset| {
        looks_like_record(&bytes[offset..])
            && matches!(parse_record(&bytes[offset..]), Parsed::Record(..))
    })
}
