//! Which object has which table, and where the table is now.

use std::sync::Arc;
use std::sync::Weak;

use candela_ebpf::TableId;
use candela_ebpf::monotonic_ns;
use candela_symbols::BuildId;
use candela_unwind::Rule;
use candela_unwind::RuleSet;
use candela_unwind::Table;
use hashbrown::HashMap;

use crate::processes::Object;
use crate::tables::loader::Loader;

/// Tables kept in our own memory for walks of stack copies, bytes. They serve the first samples of
/// new processes; what falls out is built again when such a walk needs it.
const CACHED_TABLE_BYTES: usize = 8 << 20;

/// The tables of all objects. Objects with equal build ids share one.
#[derive(Debug, Default)]
pub(crate) struct TableSlots {
    slots: Vec<Slot>,
    by_build_id: HashMap<BuildId, u32>,
    /// The same dictionary as the loader's, kept in step by its answers.
    rules: RuleSet,
    cached_bytes: usize,
    /// Room for them besides [`CACHED_TABLE_BYTES`].
    more_room_bytes: usize,
    uses: u64,
    /// Slots whose objects are all gone.
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot {
    /// The files with this build id.
    objects: Vec<Weak<Object>>,
    state: SlotState,
    table: Option<Arc<Table>>,
    last_use: u64,
    /// When the kernel may be offered the table again after it found no room.
    refusals: Backoff,
}

/// Longer and longer waits: where the tables in use need more than their budget, building the same
/// ones again and again would take a core and help nobody.
#[derive(Clone, Copy, Debug, Default)]
struct Backoff {
    not_before_ns: u64,
    delay_ns: u64,
}

const FIRST_DELAY_NS: u64 = 5_000_000_000;
const LONGEST_DELAY_NS: u64 = 320_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotState {
    /// Not asked for.
    Idle,
    /// The loader is at it.
    Requested,
    /// The loader has built it.
    Built,
    /// There is no unwind information.
    FramePointers,
}

/// How the frames of an object are walked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ObjectTable<'a> {
    /// The loader has not read the headers yet.
    Unknown,
    /// The table is not in our memory.
    Absent,
    /// The table.
    Ready { slot: u32, table: &'a Table },
    /// There is none.
    FramePointers,
}

impl TableSlots {
    /// With so much more room for tables in our own memory, bytes.
    pub(crate) fn with_room(bytes: u64) -> Self {
        Self {
            more_room_bytes: usize::try_from(bytes).unwrap_or(usize::MAX / 2),
            ..Self::default()
        }
    }

    /// The slot for a described object, new if need be; `None` for what is no ELF file and has
    /// therefore no table.
    pub(crate) fn slot_of(&mut self, object: &Arc<Object>) -> Option<u32> {
        let description = object.description().flatten()?;
        let slot = match self.by_build_id.get(&description.build_id) {
            Some(&slot) => slot,
            None => {
                let slot = self.free_slot();
                self.by_build_id.insert(description.build_id.clone(), slot);
                slot
            }
        };
        let objects = &mut self.slots[slot as usize].objects;
        let is_new = objects
            .iter()
            .all(|known| known.as_ptr() != Arc::as_ptr(object));
        if is_new {
            objects.push(Arc::downgrade(object));
        }
        Some(slot)
    }

    /// Frees the slots that no object has any more, so that ids do not run out where binaries come
    /// and go. A slot that the loader works on stays until it has answered.
    pub(crate) fn sweep(&mut self, loader: &Loader) {
        let slots = &mut self.slots;
        let cached_bytes = &mut self.cached_bytes;
        self.by_build_id.retain(|_, slot| {
            let entry = &mut slots[*slot as usize];
            entry.objects.retain(|object| object.strong_count() > 0);
            if !entry.objects.is_empty() || entry.state == SlotState::Requested {
                return true;
            }
            if let Some(table) = entry.table.take() {
                *cached_bytes -= table.statistics().bytes;
            }
            entry.state = SlotState::Idle;
            entry.refusals = Backoff::default();
            loader.forget(*slot);
            false
        });
    }

    /// The kernel has no table of this slot any more, so another object may have it. Before, its
    /// processes would have been walked by the table of the one that is gone.
    pub(crate) fn forgotten(&mut self, slot: u32) {
        self.free.push(slot);
    }

    fn free_slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                objects: Vec::new(),
                state: SlotState::Idle,
                table: None,
                last_use: 0,
                refusals: Backoff::default(),
            });
            self.slots.len() as u32 - 1
        })
    }

    /// The table id under which the kernel has, or will have, the object's table; `None` where
    /// frame pointers are all there is.
    pub(crate) fn kernel_id(&mut self, object: &Arc<Object>) -> Option<TableId> {
        let slot = self.slot_of(object)?;
        let has_table = self.slots[slot as usize].state != SlotState::FramePointers;
        has_table.then_some(TableId(slot))
    }

    /// How to walk frames of `object` here.
    pub(crate) fn find(&self, object: &Object) -> ObjectTable<'_> {
        let description = match object.description() {
            None if object.is_readable() => return ObjectTable::Unknown,
            None | Some(None) => return ObjectTable::FramePointers,
            Some(Some(description)) => description,
        };
        let Some(&slot) = self.by_build_id.get(&description.build_id) else {
            return ObjectTable::Unknown;
        };
        let entry = &self.slots[slot as usize];
        match (&entry.table, entry.state) {
            (Some(table), _) => ObjectTable::Ready { slot, table },
            (None, SlotState::FramePointers) => ObjectTable::FramePointers,
            (None, _) => ObjectTable::Absent,
        }
    }

    /// Asks the loader for a table that our memory lacks.
    pub(crate) fn request(&mut self, object: &Arc<Object>, loader: &Loader) {
        let Some(slot) = self.slot_of(object) else {
            return;
        };
        let entry = &mut self.slots[slot as usize];
        if matches!(entry.state, SlotState::Idle)
            || (entry.state == SlotState::Built && entry.table.is_none())
        {
            entry.state = SlotState::Requested;
            loader.build(slot, Arc::clone(object));
        }
    }

    /// Asks for a table that the kernel lacks, even if our memory has it.
    pub(crate) fn request_for_kernel(&mut self, object: &Arc<Object>, loader: &Loader) {
        let Some(slot) = self.slot_of(object) else {
            return;
        };
        let entry = &mut self.slots[slot as usize];
        let is_time = entry.refusals.is_over(monotonic_ns());
        if matches!(entry.state, SlotState::Idle | SlotState::Built) && is_time {
            entry.state = SlotState::Requested;
            loader.build(slot, Arc::clone(object));
        }
    }

    pub(crate) fn built(
        &mut self,
        slot: u32,
        table: Arc<Table>,
        new_rules: &[Rule],
        is_in_kernel: bool,
    ) {
        self.learn(new_rules);
        self.uses += 1;
        let entry = &mut self.slots[slot as usize];
        if is_in_kernel {
            entry.refusals = Backoff::default();
        } else {
            entry.refusals.refused(monotonic_ns());
        }
        entry.state = SlotState::Built;
        entry.last_use = self.uses;
        self.cached_bytes += table.statistics().bytes;
        if let Some(old) = entry.table.replace(table) {
            self.cached_bytes -= old.statistics().bytes;
        }
        self.shrink(slot);
    }

    pub(crate) fn has_no_table(&mut self, slot: u32, new_rules: &[Rule]) {
        self.learn(new_rules);
        self.slots[slot as usize].state = SlotState::FramePointers;
    }

    fn learn(&mut self, new_rules: &[Rule]) {
        for &rule in new_rules {
            self.rules.intern(rule);
        }
    }

    pub(crate) fn used(&mut self, slot: u32) {
        self.uses += 1;
        self.slots[slot as usize].last_use = self.uses;
    }

    pub(crate) fn rules(&self) -> &RuleSet {
        &self.rules
    }

    /// Whether the loader is at a table, or has yet to come to it.
    pub(crate) fn is_waiting(&self) -> bool {
        let mut slots = self.slots.iter();
        slots.any(|slot| slot.state == SlotState::Requested)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_build_id.len()
    }

    /// Drops the longest unused tables, but never the one just built: a walk waits for it.
    fn shrink(&mut self, newest: u32) {
        while self.cached_bytes > CACHED_TABLE_BYTES + self.more_room_bytes {
            let oldest = (0_u32..)
                .zip(&mut self.slots)
                .filter(|(slot, entry)| *slot != newest && entry.table.is_some())
                .min_by_key(|(_, entry)| entry.last_use);
            let Some(table) = oldest.and_then(|(_, entry)| entry.table.take()) else {
                return;
            };
            self.cached_bytes -= table.statistics().bytes;
        }
    }
}

impl Backoff {
    fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.not_before_ns
    }

    fn refused(&mut self, now_ns: u64) {
        self.delay_ns = (self.delay_ns * 2).clamp(FIRST_DELAY_NS, LONGEST_DELAY_NS);
        self.not_before_ns = now_ns + self.delay_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_table_is_offered_less_and_less_often() {
        let mut backoff = Backoff::default();
        let seconds = |seconds: u64| seconds * 1_000_000_000;
        assert!(backoff.is_over(0));
        backoff.refused(seconds(100));
        assert!(!backoff.is_over(seconds(104)));
        assert!(backoff.is_over(seconds(105)));
        backoff.refused(seconds(105));
        assert!(!backoff.is_over(seconds(114)));
        for _ in 0..100 {
            backoff.refused(seconds(200));
        }
        assert!(backoff.is_over(seconds(200) + LONGEST_DELAY_NS));
    }

    #[test]
    fn rules_of_tables_that_failed_are_learnt_too() {
        let mut slots = TableSlots::default();
        slots.slots.push(Slot {
            objects: Vec::new(),
            state: SlotState::Requested,
            table: None,
            last_use: 0,
            refusals: Backoff::default(),
        });
        let mut dictionary = RuleSet::new();
        let before = dictionary.len();
        dictionary.intern(Rule::FRAME_POINTER);
        let new = dictionary.rules()[before..].to_vec();
        slots.has_no_table(0, &new);
        assert_eq!(slots.rules().rules(), dictionary.rules());
    }
}
