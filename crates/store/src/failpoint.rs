//! Places at which a crash test ends the process, as `kill -9` would at just that moment.
//!
//! `failpoint!("log.sync.after")` marks one. It is nothing without the cargo feature `failpoints`.
//! With it, `CANDELA_FAILPOINT=NAME` or `NAME:COUNT` has the process kill itself when it comes to
//! the place of that name for the first, or the given, time.

/// Every place, in the order of the code's way: the log, a flush, compaction, what deletes, a start.
/// A place that is not listed does not compile, so the crash test, which goes through this list,
/// misses none.
#[cfg_attr(
    not(feature = "failpoints"),
    expect(unreachable_pub, reason = "only a build for crash tests lists them")
)]
pub const FAILPOINTS: &[&str] = &[
    "log.segment.before",
    "log.segment.after",
    "log.write.before",
    "log.write.torn",
    "log.write.after",
    "log.sync.after",
    "log.apply.after",
    "file.write.after",
    "file.sync.after",
    "file.rename.after",
    "flush.freeze.after",
    "flush.table.after",
    "flush.manifest.before",
    "flush.manifest.after",
    "flush.blocks.after",
    "catalog.publish.before",
    "catalog.publish.inside",
    "catalog.publish.after",
    "flush.publish.after",
    "log.trim.before",
    "log.trim.each",
    "log.trim.after",
    "compact.before",
    "compact.tables.after",
    "compact.manifest.after",
    "compact.catalog.before",
    "compact.catalog.after",
    "compact.swap.after",
    "recover.before",
    "recover.take_back.manifest",
    "recover.take_back.after",
    "recover.settle.after",
    "recover.after",
    "replay.each",
    "replay.cut.after",
];

/// Marks a place of [`FAILPOINTS`].
macro_rules! failpoint {
    ($name:literal) => {{
        const { assert!($crate::failpoint::is_known($name), "list it in FAILPOINTS") };
        #[cfg(feature = "failpoints")]
        $crate::failpoint::reach($name);
    }};
}
pub(crate) use failpoint;

pub(crate) const fn is_known(name: &str) -> bool {
    let mut index = 0;
    while index < FAILPOINTS.len() {
        if is_same(FAILPOINTS[index].as_bytes(), name.as_bytes()) {
            return true;
        }
        index += 1;
    }
    false
}

/// Comparison of texts is no constant function yet.
const fn is_same(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut index = 0;
    while index < left.len() {
        if left[index] != right[index] {
            return false;
        }
        index += 1;
    }
    true
}

#[cfg(feature = "failpoints")]
pub(crate) use armed::is_due;
#[cfg(feature = "failpoints")]
pub(crate) use armed::kill;
#[cfg(feature = "failpoints")]
pub(crate) use armed::reach;

#[cfg(feature = "failpoints")]
mod armed {
    use std::sync::LazyLock;
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering;

    use rustix::process::Signal;
    use rustix::process::getpid;
    use rustix::process::kill_process;

    /// The one place at which this process is to die.
    struct Armed {
        name: String,
        visits_before: AtomicU64,
    }

    static ARMED: LazyLock<Option<Armed>> = LazyLock::new(|| {
        let text = std::env::var("CANDELA_FAILPOINT").ok()?;
        let (name, count) = text.split_once(':').unwrap_or((&text, "1"));
        let count: u64 = count.parse().ok()?;
        Some(Armed {
            name: name.to_owned(),
            visits_before: AtomicU64::new(count.saturating_sub(1)),
        })
    });

    /// Kills the process when this is the place and the visit.
    pub(crate) fn reach(name: &str) {
        if is_due(name) {
            kill();
        }
    }

    /// The same for a place that leaves something half done before it calls [`kill`].
    pub(crate) fn is_due(name: &str) -> bool {
        let Some(armed) = ARMED.as_ref().filter(|armed| armed.name == name) else {
            return false;
        };
        let less = |visits: u64| visits.checked_sub(1);
        let visits = &armed.visits_before;
        visits
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
            .is_err()
    }

    /// No destructor runs, no buffer is written, other threads stop where they are.
    pub(crate) fn kill() -> ! {
        // If the signal cannot be sent, ending by another one is as sudden.
        let _ = kill_process(getpid(), Signal::KILL);
        std::process::abort()
    }
}
