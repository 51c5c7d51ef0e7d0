//! The constants of a chunk: where each stands. They are decoded when a sample uses them, as most
//! symbols of a recording belong to no stack.

use hashbrown::HashMap;

use crate::error::ReadError;
use crate::jfr::chunk::CHECKPOINT_TYPE;
use crate::jfr::chunk::Chunk;
use crate::jfr::chunk::Outline;
use crate::jfr::cursor::Cursor;
use crate::jfr::cursor::Damage;
use crate::jfr::cursor::Width;
use crate::jfr::layout::Layouts;
use crate::jfr::layout::Value;
use crate::jfr::metadata::Metadata;
use crate::options::Limits;
use crate::report::Report;

/// The types whose constants a profile needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolKind {
    StackTrace,
    Method,
    Class,
    Symbol,
    FrameType,
    ThreadState,
    Thread,
    Text,
    GcName,
    GcCause,
}

/// The constants of one type.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    by_key: HashMap<u64, u32>,
    constants: Vec<Constant>,
}

/// Where a constant stands, and what has been made of it.
#[derive(Clone, Copy, Debug)]
struct Constant {
    /// Input is smaller than 4 GiB.
    offset: u32,
    resolved: u32,
}

/// The constants of all types.
#[derive(Debug)]
pub(crate) struct Pools {
    pools: [Pool; PoolKind::ALL.len()],
    /// By class.
    kinds: Vec<Option<PoolKind>>,
    count: usize,
}

const UNRESOLVED: u32 = u32::MAX;

impl PoolKind {
    pub(crate) const ALL: [(Self, &'static str); 10] = [
        (Self::StackTrace, "jdk.types.StackTrace"),
        (Self::Method, "jdk.types.Method"),
        (Self::Class, "java.lang.Class"),
        (Self::Symbol, "jdk.types.Symbol"),
        (Self::FrameType, "jdk.types.FrameType"),
        (Self::ThreadState, "jdk.types.ThreadState"),
        (Self::Thread, "java.lang.Thread"),
        (Self::Text, "java.lang.String"),
        (Self::GcName, "jdk.types.GCName"),
        (Self::GcCause, "jdk.types.GCCause"),
    ];
}

impl Pool {
    /// The position of the constant with this key.
    #[inline]
    pub(crate) fn find(&self, key: u64) -> Option<usize> {
        self.by_key.get(&key).map(|&position| position as usize)
    }

    pub(crate) fn len(&self) -> usize {
        self.constants.len()
    }

    pub(crate) fn offset(&self, position: usize) -> usize {
        self.constants[position].offset as usize
    }

    /// What was made of the constant, if anything yet.
    #[inline]
    pub(crate) fn resolved(&self, position: usize) -> Option<u32> {
        let resolved = self.constants[position].resolved;
        (resolved != UNRESOLVED).then_some(resolved)
    }

    pub(crate) fn resolve(&mut self, position: usize, made: u32) {
        self.constants[position].resolved = made;
    }
}

impl Pools {
    /// Finds the constants in all checkpoints of a chunk.
    pub(crate) fn read(
        chunk: &Chunk<'_>,
        outline: &Outline,
        metadata: &Metadata<'_>,
        layouts: &Layouts,
        limits: &Limits,
        report: &mut Report,
    ) -> Result<Self, ReadError> {
        let mut pools = Self {
            pools: Default::default(),
            kinds: vec![None; metadata.classes.len()],
            count: 0,
        };
        for (kind, name) in PoolKind::ALL {
            if let Some(class) = metadata.find(name) {
                pools.kinds[class] = Some(kind);
            }
        }
        // A key may be written again when its constant changed, as the name of a thread: the last
        // one counts.
        for &checkpoint in outline.checkpoints.iter().rev() {
            if pools
                .read_checkpoint(chunk, checkpoint, layouts, limits)
                .is_err()
            {
                report.note(
                    "checkpoints_damaged",
                    "constants behind a damaged place could not be read; what uses them has no name",
                );
            }
            if pools.count > limits.max_messages {
                return Err(ReadError::TooLarge {
                    what: "the number of constants of a recording",
                    limit: limits.max_messages,
                });
            }
        }
        Ok(pools)
    }

    #[inline]
    pub(crate) fn of(&self, kind: PoolKind) -> &Pool {
        &self.pools[kind as usize]
    }

    #[inline]
    pub(crate) fn of_mut(&mut self, kind: PoolKind) -> &mut Pool {
        &mut self.pools[kind as usize]
    }

    fn read_checkpoint(
        &mut self,
        chunk: &Chunk<'_>,
        position: usize,
        layouts: &Layouts,
        limits: &Limits,
    ) -> Result<(), Damage> {
        let event = chunk.event(position)?;
        let mut cursor = Cursor::new(&chunk.data[..event.end], event.body, chunk.is_compressed);
        if event.type_id != CHECKPOINT_TYPE {
            return Err(cursor.damage("no checkpoint is where it should be"));
        }
        // Start, duration and distance to the checkpoint before.
        for _ in 0..3 {
            cursor.skip_number(Width::Long)?;
        }
        cursor.byte()?;
        for _ in 0..cursor.count()? {
            let type_id = cursor.key()?;
            let count = cursor.count()?;
            let Some(class) = layouts.class(type_id) else {
                return Err(cursor.damage("constants of a type that is not described"));
            };
            let value = layouts.value(class);
            match self.kinds[class] {
                Some(kind) => self.take(kind, value, count, &mut cursor, layouts, limits)?,
                None => {
                    for _ in 0..count {
                        cursor.key()?;
                        layouts.skip(value, &mut cursor)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        kind: PoolKind,
        value: Value,
        count: usize,
        cursor: &mut Cursor<'_>,
        layouts: &Layouts,
        limits: &Limits,
    ) -> Result<(), Damage> {
        let pool = &mut self.pools[kind as usize];
        for _ in 0..count {
            let key = cursor.key()?;
            let offset = cursor.position() as u32;
            layouts.skip(value, cursor)?;
            self.count += 1;
            if self.count > limits.max_messages {
                return Err(cursor.damage("there are too many constants"));
            }
            let next = pool.constants.len() as u32;
            if *pool.by_key.entry(key).or_insert(next) == next {
                pool.constants.push(Constant {
                    offset,
                    resolved: UNRESOLVED,
                });
            }
        }
        Ok(())
    }
}
