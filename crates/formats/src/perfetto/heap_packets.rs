//! Packets of heapprofd.

use candela_model::StringId;

use crate::perfetto::fields::bytes;
use crate::perfetto::fields::fields;
use crate::perfetto::fields::number;
use crate::perfetto::heap::HeapKey;
use crate::perfetto::heap::HeapValues;
use crate::perfetto::packets::Packet;
use crate::perfetto::samples::Failure;
use crate::perfetto::samples::SampleReader;
use crate::perfetto::sequence::Sequence;
use crate::perfetto::sequence::Tables;
use crate::perfetto::sequence::TextOf;
use crate::protobuf::reader::Span;
use crate::protobuf::reader::Value;

/// One table of texts serves for all.
const ALL_TEXTS: [TextOf; 3] = [TextOf::Function, TextOf::Path, TextOf::BuildId];

impl SampleReader<'_> {
    /// A dump of the heaps of some processes, or a part of one.
    pub(crate) fn heap_profile(
        &mut self,
        data: &[u8],
        span: Span,
        packet: &Packet,
        sequence: &mut Sequence,
    ) -> Result<(), Failure> {
        let mut is_continued = false;
        let mut dumps = Vec::new();
        sequence.forget_locations();
        let stacks = &mut self.stacks;
        let budget = &mut self.budget;
        fields(data, span, |field, value| {
            let tables = &mut sequence.heap_tables;
            if matches!(value, Value::Bytes(_)) && !budget.has_taken_one() {
                return Ok(());
            }
            match (field, value) {
                (1, Value::Bytes(span)) => tables.take_text(data, span, &ALL_TEXTS, stacks)?,
                (2, Value::Bytes(span)) => tables.take_frame(data, span)?,
                (3, Value::Bytes(span)) => tables.take_callstack(data, span)?,
                (4, Value::Bytes(span)) => tables.take_mapping(data, span)?,
                (5, Value::Bytes(span)) => dumps.push(span),
                (6, value) => is_continued = number(value) != 0,
                _ => {}
            }
            Ok(())
        })?;
        self.budget.check()?;
        for dump in dumps {
            self.heap_dump(data, dump, packet, sequence)?;
        }
        if !is_continued {
            sequence.heap_tables = Tables::default();
        }
        Ok(())
    }

    fn heap_dump(
        &mut self,
        data: &[u8],
        span: Span,
        packet: &Packet,
        sequence: &mut Sequence,
    ) -> Result<(), Failure> {
        let (mut pid, mut heap, mut is_incomplete) = (0, StringId(0), false);
        let mut found = Vec::new();
        let stacks = &mut self.stacks;
        let heaps = &mut self.heaps;
        let budget = &mut self.budget;
        fields(data, span, |field, value| {
            match (field, value) {
                (1, value) => pid = number(value) as i64,
                (2, Value::Bytes(span)) => {
                    let read = HeapValues::read(data, span)?;
                    found.extend(budget.has_taken_one().then_some(read));
                }
                // Rejected, buffer overrun or corrupted, stopped by a guardrail.
                (4 | 7 | 8 | 10, value) => is_incomplete |= number(value) != 0,
                (11, Value::Bytes(span)) => {
                    let text = stacks.text(bytes(data, span));
                    let text = stacks.cut(&text);
                    heap = stacks.profile.symbols.strings.intern(text);
                }
                (12, value) => heaps.set_interval(number(value)),
                _ => {}
            }
            Ok(())
        })?;
        self.budget.check()?;
        if is_incomplete {
            self.stacks.report.note(
                "heaps_incomplete",
                "heap profiles that their recorder calls incomplete",
            );
        }
        self.time(packet, sequence);
        for (callstack, mut values) in found {
            let stack = self.stack(callstack, sequence, true)?;
            values.label_set = self.label_set(Some(pid), None, heap)?;
            let key = HeapKey {
                sequence: packet.sequence,
                pid,
                heap,
                callstack,
                stack,
            };
            self.heaps.set(key, values, self.limits.max_samples)?;
        }
        Ok(())
    }
}
