//! Events of a block.

use crate::nettrace::blocks::Block;
use crate::nettrace::cursor::Cursor;

/// An event. Its numbers refer to tables.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Event<'a> {
    pub(crate) metadata: u32,
    /// The id of the thread, or its number in the table of threads from version 6 on.
    pub(crate) thread: u64,
    pub(crate) stack: u32,
    /// What a stack of version 3 has right here.
    pub(crate) own_stack: Option<&'a [u8]>,
    pub(crate) ticks: i64,
    pub(crate) payload: &'a [u8],
}

/// The header of an event before, which the next one's may leave out what is the same of.
#[derive(Clone, Copy, Debug, Default)]
struct Header {
    metadata: u32,
    thread: u64,
    stack: u32,
    ticks: u64,
    payload_bytes: u32,
}

const GUID_BYTES: usize = 16;

/// Visits the events of a block; `None` when it is broken, after what was sound.
pub(crate) fn events<'a>(
    block: &Block<'a>,
    version: u32,
    visit: &mut dyn FnMut(&Event<'a>),
) -> Option<()> {
    let mut cursor = Cursor::new(block.data);
    if version <= 3 {
        while !cursor.at_end() {
            visit(&old_event(&mut cursor, block.offset)?);
        }
        return Some(());
    }
    let header_bytes = usize::from(cursor.u16()?);
    let is_compressed = cursor.u16()? & 1 != 0;
    cursor.bytes(header_bytes.checked_sub(4)?)?;
    let mut header = Header::default();
    while !cursor.at_end() {
        let event = if is_compressed {
            compressed_event(&mut cursor, &mut header, version)?
        } else {
            plain_event(&mut cursor, block.offset, version)?
        };
        visit(&event);
    }
    Some(())
}

fn compressed_event<'a>(
    cursor: &mut Cursor<'a>,
    header: &mut Header,
    version: u32,
) -> Option<Event<'a>> {
    let flags = cursor.u8()?;
    if flags & 1 != 0 {
        header.metadata = cursor.varuint32()?;
    }
    if flags & 2 != 0 {
        let _sequence_number = cursor.varuint()?;
        let _capture_thread = cursor.varuint()?;
        let _processor = cursor.varuint()?;
    }
    if flags & 4 != 0 {
        header.thread = cursor.varuint()?;
    }
    if flags & 8 != 0 {
        header.stack = cursor.varuint32()?;
    }
    header.ticks = header.ticks.wrapping_add(cursor.varuint()?);
    if version >= 6 {
        if flags & 16 != 0 {
            let _labels = cursor.varuint()?;
        }
    } else {
        let guids = [16, 32].iter().filter(|flag| flags & **flag != 0).count();
        cursor.bytes(guids * GUID_BYTES)?;
    }
    if flags & 128 != 0 {
        header.payload_bytes = cursor.varuint32()?;
    }
    Some(Event {
        metadata: header.metadata,
        thread: header.thread,
        stack: header.stack,
        own_stack: None,
        ticks: header.ticks as i64,
        payload: cursor.bytes(header.payload_bytes as usize)?,
    })
}

fn plain_event<'a>(cursor: &mut Cursor<'a>, offset: usize, version: u32) -> Option<Event<'a>> {
    let _size = cursor.u32()?;
    let metadata = cursor.u32()?;
    let _sequence_number = cursor.u32()?;
    let thread = cursor.u64()?;
    let _capture_thread = cursor.u64()?;
    let _processor = cursor.u32()?;
    let stack = cursor.u32()?;
    let ticks = cursor.u64()? as i64;
    if version >= 6 {
        let _labels = cursor.u32()?;
    } else {
        cursor.bytes(2 * GUID_BYTES)?;
    }
    let payload_bytes = cursor.u32()? as usize;
    let payload = cursor.bytes(payload_bytes)?;
    if version < 6 && !cursor.at_end() {
        cursor.align(offset)?;
    }
    Some(Event {
        metadata,
        thread,
        stack,
        own_stack: None,
        ticks,
        payload,
    })
}

/// Version 3: the stack stands behind the payload.
fn old_event<'a>(cursor: &mut Cursor<'a>, offset: usize) -> Option<Event<'a>> {
    let _size = cursor.u32()?;
    let metadata = cursor.u32()?;
    let thread = u64::from(cursor.u32()?);
    let ticks = cursor.u64()? as i64;
    cursor.bytes(2 * GUID_BYTES)?;
    let payload_bytes = cursor.u32()? as usize;
    let payload = cursor.bytes(payload_bytes)?;
    let stack_bytes = cursor.u32()? as usize;
    let own_stack = Some(cursor.bytes(stack_bytes)?);
    if !cursor.at_end() {
        cursor.align(offset)?;
    }
    Some(Event {
        metadata,
        thread,
        stack: 0,
        own_stack,
        ticks,
        payload,
    })
}
