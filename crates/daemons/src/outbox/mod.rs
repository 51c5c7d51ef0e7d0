//! Files of a daemon that wait on the node until the bucket has them.
//!
//! A file is written under another name and synced before it waits, so that what waits is whole. What waits survives
//! restarts and is uploaded in the order in which it came. Of what is uploaded the last few stay on the node. When
//! room is short, those go first; what was not uploaded goes last, the oldest first, and is counted by reason.

mod counts;
mod folder;
mod names;
mod writing;

use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::OnceLock;
use std::sync::PoisonError;

use bytes::Bytes;
use tokio::sync::Notify;

pub use crate::outbox::counts::DropReason;
pub use crate::outbox::counts::OutboxCounts;
pub(crate) use crate::outbox::folder::replace;
pub use crate::outbox::writing::OutboxFile;

use crate::error::OutboxError;
use crate::outbox::folder::Folder;
use crate::outbox::folder::StoredFile;
use crate::outbox::names::UsedSeconds;
use crate::outbox::names::timestamp;

/// How much an outbox may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboxLimits {
    /// Uploaded files that stay on the node.
    pub retained: usize,
    /// Files that may wait.
    pub waiting_files: usize,
    /// What they may take on the disk.
    pub waiting_bytes: u64,
}

/// Is told the name of each file that waits.
pub(crate) type Listener = Box<dyn Fn(&str) + Send + Sync>;

/// The files of one daemon.
pub struct Outbox {
    folder: Folder,
    state: Mutex<State>,
    /// Something new waits.
    news: Notify,
    listener: OnceLock<Listener>,
}

/// A file that is being uploaded; no limit drops it meanwhile.
#[derive(Debug)]
pub struct WaitingFile {
    file: StoredFile,
    /// What it holds.
    pub bytes: Bytes,
}

#[derive(Debug)]
struct State {
    limits: OutboxLimits,
    waiting: VecDeque<StoredFile>,
    uploaded: VecDeque<StoredFile>,
    used: UsedSeconds,
    next_sequence: u64,
    in_flight: Option<u64>,
    counts: OutboxCounts,
}

impl Default for OutboxLimits {
    fn default() -> Self {
        Self {
            retained: 3,
            // Three days of a dump each minute.
            waiting_files: 4320,
            waiting_bytes: 2 << 30,
        }
    }
}

impl Outbox {
    /// Takes over what a folder has; one that is not there is made.
    ///
    /// # Errors
    /// [`OutboxError::Folder`] when it cannot be made or read.
    pub fn open(root: &Path, limits: OutboxLimits) -> Result<Arc<Self>, OutboxError> {
        let failed = |source| OutboxError::Folder {
            path: root.to_owned(),
            source,
        };
        let folder = Folder::create(root).map_err(failed)?;
        let found = folder.scan().map_err(failed)?;
        let files = found.waiting.iter().chain(&found.uploaded);
        let last = files.map(|file| file.sequence).max();
        let outbox = Self {
            folder,
            state: Mutex::new(State {
                limits,
                waiting: found.waiting.into(),
                uploaded: found.uploaded.into(),
                used: found.used,
                next_sequence: last.map_or(0, |last| last + 1),
                in_flight: None,
                counts: OutboxCounts::default(),
            }),
            news: Notify::new(),
            listener: OnceLock::new(),
        };
        if found.unfinished > 0 {
            let count = found.unfinished;
            outbox.dropped(&mut outbox.state(), DropReason::Unfinished, count);
        }
        outbox.keep_within_limits(&mut outbox.state());
        Ok(Arc::new(outbox))
    }

    /// Where it lies.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.folder.root()
    }

    /// Holds for what comes and for what is there.
    pub fn set_limits(&self, limits: OutboxLimits) {
        let mut state = self.state();
        state.limits = limits;
        self.keep_within_limits(&mut state);
    }

    /// How it is doing.
    #[must_use]
    pub fn counts(&self) -> OutboxCounts {
        let state = self.state();
        OutboxCounts {
            waiting: state.waiting.len() as u64,
            waiting_bytes: state.waiting_bytes(),
            retained: state.uploaded.len() as u64,
            ..state.counts.clone()
        }
    }

    /// Begins a file. It is gone without a trace unless [`OutboxFile::publish`] ends it.
    ///
    /// # Errors
    /// [`OutboxError::File`].
    pub fn begin(self: &Arc<Self>) -> Result<OutboxFile, OutboxError> {
        let path = {
            let mut state = self.state();
            let sequence = state.next_sequence;
            state.next_sequence += 1;
            self.folder.unfinished(sequence)
        };
        OutboxFile::create(Arc::clone(self), path)
    }

    /// The file that has waited longest; the caller tells what became of it by [`Outbox::uploaded`] or
    /// [`Outbox::not_uploaded`].
    ///
    /// # Errors
    /// [`OutboxError::Unread`] when it cannot be read now. It goes on waiting as the oldest: a moment without memory or
    /// descriptors is no reason to give up all that waits.
    pub fn oldest_waiting(&self) -> Result<Option<WaitingFile>, OutboxError> {
        loop {
            let file = {
                let mut state = self.state();
                let Some(file) = state.waiting.front().cloned() else {
                    return Ok(None);
                };
                state.in_flight = Some(file.sequence);
                file
            };
            let path = self.folder.waiting(&file);
            let error = match fs::read(&path) {
                Ok(bytes) => {
                    let bytes = bytes.into();
                    return Ok(Some(WaitingFile { file, bytes }));
                }
                Err(error) => error,
            };
            let mut state = self.state();
            state.in_flight = None;
            if error.kind() != io::ErrorKind::NotFound {
                let source = error;
                return Err(OutboxError::Unread { path, source });
            }
            tracing::error!(name = file.name, "a file that waited is gone");
            state.waiting.retain(|it| it.sequence != file.sequence);
            self.dropped(&mut state, DropReason::Broken, 1);
        }
    }

    /// The bucket has it.
    pub fn uploaded(&self, waiting: WaitingFile) {
        let mut state = self.state();
        let file = waiting.file;
        state.in_flight = None;
        state.waiting.retain(|it| it.sequence != file.sequence);
        state.counts.uploaded += 1;
        match self.folder.move_to_uploaded(&file) {
            Ok(()) => state.uploaded.push_back(file),
            Err(error) => {
                tracing::warn!(name = file.name, %error, "an uploaded file is not kept on the node");
            }
        }
        self.keep_within_limits(&mut state);
    }

    /// It goes on waiting, as the next one.
    pub fn not_uploaded(&self, waiting: WaitingFile) {
        drop(waiting);
        let mut state = self.state();
        state.in_flight = None;
        self.keep_within_limits(&mut state);
    }

    /// Tells somebody of each file that waits from now on; the first who asks is told.
    pub(crate) fn tell_of_files(&self, listener: Listener) {
        let _ = self.listener.set(listener);
    }

    /// A file by its name, while it is on the node.
    pub(crate) fn read(&self, name: &str) -> Option<Vec<u8>> {
        let paths = {
            let state = self.state();
            let mut waiting = state.waiting.iter();
            let mut uploaded = state.uploaded.iter();
            let file = waiting
                .find(|file| file.name == name)
                .or_else(|| uploaded.find(|file| file.name == name))?;
            [self.folder.waiting(file), self.folder.uploaded(file)]
        };
        // It may move meanwhile.
        paths.iter().find_map(|path| fs::read(path).ok())
    }

    /// Counts a file that was lost before it came here.
    pub(crate) fn lost(&self, reason: DropReason) {
        self.dropped(&mut self.state(), reason, 1);
    }

    /// Ends when something has come since the last look.
    pub async fn news(&self) {
        self.news.notified().await;
    }

    /// Removes all of it.
    ///
    /// # Errors
    /// [`OutboxError::Folder`].
    pub fn remove(self: Arc<Self>) -> Result<(), OutboxError> {
        let path = self.root().to_owned();
        fs::remove_dir_all(&path).map_err(|source| OutboxError::Folder { path, source })
    }

    /// Gives a finished file its name and lets it wait.
    fn publish(
        &self,
        unfinished: &Path,
        bytes: u64,
        (unix_seconds, suffix): (i64, &str),
    ) -> io::Result<String> {
        let mut state = self.state();
        let second = state.used.take(unix_seconds);
        // The order is that of the ends: what began first may be finished last.
        let sequence = state.next_sequence;
        state.next_sequence += 1;
        let file = StoredFile {
            sequence,
            name: format!("{}-{suffix}", timestamp(second)),
            bytes,
        };
        self.write_used(&mut state)?;
        self.folder.publish(unfinished, &file)?;
        let name = file.name.clone();
        state.waiting.push_back(file);
        self.keep_within_limits(&mut state);
        drop(state);
        self.news.notify_one();
        if let Some(listener) = self.listener.get() {
            listener(&name);
        }
        Ok(name)
    }

    fn write_used(&self, state: &mut State) -> io::Result<()> {
        loop {
            match self.folder.write_used(&state.used) {
                Err(error) if is_full(&error) && self.make_room(state) => (),
                written => return written,
            }
        }
    }

    /// Frees some room on a full disk: what is uploaded first, then what waited longest. Whether there was something.
    fn make_room(&self, state: &mut State) -> bool {
        if let Some(file) = state.uploaded.pop_front() {
            self.remove_file(&self.folder.uploaded(&file));
            return true;
        }
        self.drop_oldest(state, DropReason::DiskFull)
    }

    fn keep_within_limits(&self, state: &mut State) {
        while state.uploaded.len() > state.limits.retained {
            if let Some(file) = state.uploaded.pop_front() {
                self.remove_file(&self.folder.uploaded(&file));
            }
        }
        while state.waiting.len() > state.limits.waiting_files
            && self.drop_oldest(state, DropReason::TooManyWaiting)
        {}
        // The last one stays however large it is: it is what somebody may still get.
        while state.waiting.len() > 1
            && state.waiting_bytes() > state.limits.waiting_bytes
            && self.drop_oldest(state, DropReason::TooManyBytes)
        {}
    }

    fn drop_oldest(&self, state: &mut State, reason: DropReason) -> bool {
        let in_flight = state.in_flight;
        let is_free = |file: &StoredFile| Some(file.sequence) != in_flight;
        let Some(position) = state.waiting.iter().position(is_free) else {
            return false;
        };
        let Some(file) = state.waiting.remove(position) else {
            return false;
        };
        self.remove_file(&self.folder.waiting(&file));
        self.dropped(state, reason, 1);
        true
    }

    fn dropped(&self, state: &mut State, reason: DropReason, count: u64) {
        let folder = self.root().display();
        tracing::warn!(%folder, reason = reason.name(), count, "files are lost before they were uploaded");
        *state.counts.dropped.entry(reason).or_default() += count;
    }

    fn remove_file(&self, path: &PathBuf) {
        if let Err(error) = fs::remove_file(path) {
            tracing::warn!(path = %path.display(), %error, "a file stays on the node");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is whole before anything that may panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Outbox");
        debug
            .field("folder", &self.folder)
            .field("state", &self.state);
        debug.finish_non_exhaustive()
    }
}

impl WaitingFile {
    /// As the bucket will know it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.file.name
    }
}

impl State {
    fn waiting_bytes(&self) -> u64 {
        self.waiting.iter().map(|file| file.bytes).sum()
    }
}

/// Whether room would help.
fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}
