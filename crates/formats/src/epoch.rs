//! Telling time since 1970 from time since something else.

/// September 2001. Many formats write either; a machine that has run for so long since it started
/// there is none, and no profile of a format of ours is older.
const EARLIEST_UNIX_NS: i64 = 1_000_000_000_000_000_000;

/// When a profile starts whose clock shows this at its start: the clock's time where it is that of
/// the world, otherwise what the caller says it is.
pub(crate) fn start_of(clock_ns: i64, now_ns: i64) -> i64 {
    if clock_ns >= EARLIEST_UNIX_NS {
        return clock_ns;
    }
    now_ns.max(0)
}
