//! Debug files by build id from debuginfod servers, fetched by threads of their own.
//!
//! Protocol and cache layout are those of elfutils (`debuginfod(8)`,
//! `debuginfod_find_debuginfo(3)`), so that a cache directory can be shared with gdb and its kin:
//! `DIRECTORY/BUILDID/debuginfo`, empty when the servers had none.

mod disk;
mod fetch;
mod options;

pub use options::{Clock, DebuginfodOptions};

use crate::build_id::BuildId;
use disk::{DiskCache, OnDisk};
use fetch::{Fetched, Servers};
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Threads that fetch at the same time; servers ask clients to be modest.
const WORKERS: usize = 2;

/// Build ids that wait at most. What comes in addition is asked again by a later lookup.
const LONGEST_QUEUE: usize = 4096;

/// Build ids remembered at most.
const REMEMBERED: usize = 64 * 1024;

/// What is known of a build id's debug file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// It is on disk.
    Found(PathBuf),
    /// A server is or will be asked.
    Pending,
    /// Every server was asked lately and none has it.
    Absent,
    /// A server or the cache directory failed lately, or too much waits already; asking again later may help.
    Unreachable,
}

/// What a [`Debuginfod`] has done since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DebuginfodStats {
    /// Files fetched.
    pub fetched: u64,
    /// Bytes fetched.
    pub fetched_bytes: u64,
    /// Files answered from the cache directory.
    pub cached: u64,
    /// Build ids no server knows.
    pub absent: u64,
    /// Build ids for which a server failed.
    pub failed: u64,
    /// Files that could not be written to the cache directory.
    pub disk_failed: u64,
    /// Lookups refused because the queue was full.
    pub refused: u64,
}

/// A debuginfod client that never makes its caller wait.
#[derive(Debug)]
pub struct Debuginfod {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    disk: DiskCache,
    servers: Servers,
    clock: Clock,
    retry_after: Duration,
    state: Mutex<State>,
    /// Signalled when work arrives, when work is done, and at the end.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    known: HashMap<String, Status>,
    queue: VecDeque<String>,
    running: usize,
    closed: bool,
    stats: DebuginfodStats,
}

#[derive(Debug)]
enum Status {
    Asked,
    Found(PathBuf),
    AbsentUntil(SystemTime),
    UnreachableUntil(SystemTime),
}

impl Debuginfod {
    /// Starts the client's threads.
    ///
    /// # Errors
    /// When the cache directory cannot be made or no thread can be started.
    pub fn start(options: &DebuginfodOptions) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            disk: DiskCache::open(options)?,
            servers: Servers::new(options),
            clock: options.clock,
            retry_after: options.retry_after,
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        for number in 0..WORKERS {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name(format!("debuginfod-{number}"));
            // Not joined at the end: a transfer may hang for as long as its timeout, and no caller
            // should.
            thread.spawn(move || shared.work())?;
        }
        Ok(Self { shared })
    }

    /// What is known of the debug file with this build id; asks the servers in the background when
    /// nothing is. Only GNU build ids are known to servers.
    pub fn debug_file(&self, id: &BuildId) -> Lookup {
        let Some(digits) = id.gnu_hex() else {
            return Lookup::Absent;
        };
        self.shared.lookup(&digits)
    }

    /// Waits until nothing is queued or under way, at most `patience`; returns whether that came
    /// true.
    pub fn wait_until_idle(&self, patience: Duration) -> bool {
        let state = self.shared.lock();
        let busy = |state: &mut State| !state.queue.is_empty() || state.running > 0;
        let waited = self
            .shared
            .changed
            .wait_timeout_while(state, patience, busy);
        let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        drop(state);
        !timeout.timed_out()
    }

    /// Counts since the start.
    pub fn stats(&self) -> DebuginfodStats {
        self.shared.lock().stats
    }
}

impl Drop for Debuginfod {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        state.queue.clear();
        drop(state);
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lookup(&self, digits: &str) -> Lookup {
        let now = (self.clock)();
        let mut state = self.lock();
        match state.known.get(digits) {
            Some(Status::Asked) => return Lookup::Pending,
            Some(Status::Found(path)) if is_file(path) => return Lookup::Found(path.clone()),
            Some(Status::AbsentUntil(until)) if now < *until => return Lookup::Absent,
            Some(Status::UnreachableUntil(until)) if now < *until => return Lookup::Unreachable,
            Some(_) | None => {}
        }
        if state.known.len() >= REMEMBERED {
            state
                .known
                .retain(|_, status| matches!(status, Status::Asked));
        }
        match self.disk.find(digits, now) {
            OnDisk::File(path) => {
                state.stats.cached += 1;
                state
                    .known
                    .insert(digits.to_owned(), Status::Found(path.clone()));
                return Lookup::Found(path);
            }
            OnDisk::AbsentUntil(until) => {
                state
                    .known
                    .insert(digits.to_owned(), Status::AbsentUntil(until));
                return Lookup::Absent;
            }
            OnDisk::Unknown => {}
        }
        if state.queue.len() >= LONGEST_QUEUE {
            state.stats.refused += 1;
            return Lookup::Unreachable;
        }
        state.known.insert(digits.to_owned(), Status::Asked);
        state.queue.push_back(digits.to_owned());
        drop(state);
        self.changed.notify_all();
        Lookup::Pending
    }

    fn work(&self) {
        while let Some(digits) = self.next_request() {
            let fetched = self.servers.fetch(&digits, &self.disk, self.clock);
            let now = (self.clock)();
            let mut state = self.lock();
            let status = match fetched {
                Fetched::File { path, size } => {
                    state.stats.fetched += 1;
                    state.stats.fetched_bytes += size;
                    Status::Found(path)
                }
                Fetched::Absent => {
                    state.stats.absent += 1;
                    Status::AbsentUntil(now + self.disk.remember_absent(&digits))
                }
                Fetched::DiskFailed => {
                    state.stats.disk_failed += 1;
                    Status::UnreachableUntil(now + self.retry_after)
                }
                Fetched::Failed => {
                    state.stats.failed += 1;
                    Status::UnreachableUntil(now + self.retry_after)
                }
            };
            state.known.insert(digits, status);
            state.running -= 1;
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Waits for a build id to fetch; `None` at the end.
    fn next_request(&self) -> Option<String> {
        let idle = |state: &mut State| state.queue.is_empty() && !state.closed;
        let state = self.lock();
        let mut state = self
            .changed
            .wait_while(state, idle)
            .unwrap_or_else(PoisonError::into_inner);
        let digits = state.queue.pop_front()?;
        state.running += 1;
        Some(digits)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the file is still there: anybody may clean a cache directory.
fn is_file(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}
