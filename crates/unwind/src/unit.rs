//! One stretch of code that one source describes.

use std::ops::Range;

/// Which source describes a [`Unit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// An FDE of `.eh_frame`.
    EhFrame,
    /// A function of Go's pclntab.
    Go,
    /// An FDE of `.debug_frame`.
    DebugFrame,
    /// One rule for the whole unit, found without unwind information; see [`crate::landmarks`].
    Landmark,
}

/// A stretch of code (an FDE, a Go function) and where its source describes it.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    /// ELF virtual addresses, never empty.
    pub(crate) addresses: Range<u64>,
    pub(crate) origin: Origin,
    /// Position in the source: an FDE's offset, a Go function's number, a landmark's number.
    pub(crate) offset: u64,
}

/// Sorts by address; of several units with one start, the best source comes last, so that it wins.
pub(crate) fn sort(units: &mut [Unit]) {
    let order =
        |a: &Unit, b: &Unit| (a.addresses.start, b.origin).cmp(&(b.addresses.start, a.origin));
    // Linkers write FDEs in the order of the code, so most objects need no sort.
    if !units.is_sorted_by(|a, b| order(a, b).is_le()) {
        units.sort_unstable_by(order);
    }
}

/// Whether `address` lies in one of `units`, which are sorted.
pub(crate) fn covers(units: &[Unit], address: u64) -> bool {
    let after = units.partition_point(|unit| unit.addresses.start <= address);
    after > 0 && address < units[after - 1].addresses.end
}
