//! A file that is being written.

use std::fs;
use std::fs::File;
use std::io;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::OutboxError;
use crate::outbox::DropReason;
use crate::outbox::Outbox;
use crate::outbox::is_full;

/// A file that does not wait yet. Dropped without [`OutboxFile::publish`] it is gone, and counted as lost when that is
/// because it could not be written.
#[derive(Debug)]
pub struct OutboxFile {
    outbox: Arc<Outbox>,
    path: PathBuf,
    file: File,
    bytes: u64,
    is_published: bool,
    failed: Option<DropReason>,
}

impl OutboxFile {
    pub(super) fn create(outbox: Arc<Outbox>, path: PathBuf) -> Result<Self, OutboxError> {
        let created = loop {
            match File::create_new(&path) {
                Err(error) if is_full(&error) && outbox.make_room(&mut outbox.state()) => (),
                created => break created,
            }
        };
        match created {
            Ok(file) => Ok(Self {
                outbox,
                path,
                file,
                bytes: 0,
                is_published: false,
                failed: None,
            }),
            Err(source) => Err(OutboxError::File { path, source }),
        }
    }

    /// Ends it: it waits from here on as `TIMESTAMP-SUFFIX`, the name that is returned. The timestamp is
    /// `unix_seconds`, or the first second behind it that no file of this outbox had.
    ///
    /// # Errors
    /// [`OutboxError::File`]; then it is lost, and counted.
    pub fn publish(mut self, unix_seconds: i64, suffix: &str) -> Result<String, OutboxError> {
        // A sync that failed is not tried again: the kernel has forgotten the bytes by then.
        let synced = self.file.sync_all();
        let published = synced.and_then(|()| {
            let name = (unix_seconds, suffix);
            self.outbox.publish(&self.path, self.bytes, name)
        });
        match published {
            Ok(name) => {
                self.is_published = true;
                Ok(name)
            }
            Err(source) => {
                self.note_failure(&source);
                let path = self.path.clone();
                Err(OutboxError::File { path, source })
            }
        }
    }

    /// Gives it up, and counts it as lost.
    pub(crate) fn give_up(mut self) {
        self.failed = Some(DropReason::Broken);
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What was to be in it cannot be written: it is counted when it is dropped.
    pub(crate) fn lose(&mut self) {
        self.failed.get_or_insert(DropReason::Broken);
    }

    fn note_failure(&mut self, error: &io::Error) {
        self.failed = Some(match is_full(error) {
            true => DropReason::DiskFull,
            false => DropReason::Broken,
        });
    }
}

impl Write for OutboxFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        loop {
            match self.file.write(buffer) {
                Err(error)
                    if is_full(&error) && self.outbox.make_room(&mut self.outbox.state()) => {}
                Ok(count) => {
                    self.bytes += count as u64;
                    return Ok(count);
                }
                Err(error) => {
                    self.note_failure(&error);
                    return Err(error);
                }
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for OutboxFile {
    fn drop(&mut self) {
        if self.is_published {
            return;
        }
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "an unfinished file stays on the node");
        }
        if let Some(reason) = self.failed {
            self.outbox.dropped(&mut self.outbox.state(), reason, 1);
        }
    }
}
