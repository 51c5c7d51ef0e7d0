//! The table of threads that version 6 has.

use hashbrown::HashMap;

use crate::nettrace::cursor::Cursor;

/// A thread as the trace describes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Thread {
    pub(crate) name: String,
    pub(crate) pid: Option<i64>,
    pub(crate) tid: Option<i64>,
}

/// More than any system runs while a trace lasts.
const MAX_THREADS: usize = 1 << 20;

/// Threads by number. A number is never given anew while a trace lasts.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    threads: HashMap<u64, Thread>,
}

impl Threads {
    pub(crate) fn get(&self, number: u64) -> Option<&Thread> {
        self.threads.get(&number)
    }

    pub(crate) fn take_block(&mut self, data: &[u8]) -> Option<()> {
        let mut cursor = Cursor::new(data);
        while !cursor.at_end() {
            let size = usize::from(cursor.u16()?);
            let mut row = Cursor::new(cursor.bytes(size)?);
            let number = row.varuint()?;
            let mut thread = Thread::default();
            while let Some(kind) = row.u8() {
                match kind {
                    1 => thread.name = row.utf8()?,
                    2 => thread.pid = i64::try_from(row.varuint()?).ok(),
                    3 => thread.tid = i64::try_from(row.varuint()?).ok(),
                    4 => {
                        row.utf8()?;
                        row.utf8()?;
                    }
                    _ => break,
                }
            }
            if self.threads.len() < MAX_THREADS {
                self.threads.insert(number, thread);
            }
        }
        Some(())
    }
}
