//! Which log a store writes, and which one an earlier setting left behind.

use std::fs;
use std::hash::BuildHasher;
use std::hash::Hasher;
use std::hash::RandomState;
use std::io::ErrorKind;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::data_dir::DataDir;
use crate::data_dir::write_atomically;
use crate::error::StoreError;
use crate::flush::writer_name;
use crate::log::DurableLog;
use crate::log::LocalLog;
use crate::log::LocalSettings;
use crate::log::ObjectLog;
use crate::log::ObjectSettings;
use crate::log::writers_of_bucket;
use crate::options::LogPlace;
use crate::options::StoreOptions;
use crate::space::SpaceReserve;
use crate::storage::Bucket;

/// The logs of a data directory.
#[derive(Debug)]
pub(crate) struct Logs {
    /// The one that is written.
    pub(crate) current: Box<dyn DurableLog>,
    /// One that was written before the setting changed. What it has goes to blocks first.
    pub(crate) earlier: Option<Box<dyn DurableLog>>,
}

/// What it takes to open them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogSources<'a> {
    pub(crate) options: &'a StoreOptions,
    pub(crate) data_dir: &'a DataDir,
    pub(crate) bucket: Option<&'a Bucket>,
    pub(crate) catalog: &'a dyn Catalog,
}

impl Logs {
    pub(crate) fn all(&self) -> impl Iterator<Item = &dyn DurableLog> {
        self.earlier.iter().chain([&self.current]).map(|log| &**log)
    }
}

impl<'a> LogSources<'a> {
    /// Opens them, and takes over the one in the bucket.
    pub(crate) fn open(self) -> Result<Logs, StoreError> {
        let marker = self.writer_file();
        match self.options.log {
            LogPlace::Local => {
                let earlier = match self.noted_writer(&marker)? {
                    None => None,
                    Some(writer_id) => Some(self.object(writer_id)?),
                };
                Ok(Logs {
                    current: Box::new(self.local()?),
                    earlier,
                })
            }
            LogPlace::Object => {
                let local = self.local()?;
                let has_earlier = local.has_segments()?;
                let writer_id = match self.noted_writer(&marker)? {
                    Some(writer_id) => writer_id,
                    None => self.writer_of_bucket()?.unwrap_or_else(random_id),
                };
                write_atomically(&marker, format!("{}\n", writer_name(writer_id)).as_bytes())?;
                Ok(Logs {
                    current: self.object(writer_id)?,
                    earlier: has_earlier.then(|| Box::new(local) as Box<dyn DurableLog>),
                })
            }
        }
    }

    /// What the earlier log had is in blocks: the next start need not look for it.
    pub(crate) fn forget_earlier(self) -> Result<(), StoreError> {
        if self.options.log == LogPlace::Object {
            // The files that are left of a local log hold nothing that is not in blocks.
            return Ok(());
        }
        let marker = self.writer_file();
        match fs::remove_file(&marker) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(StoreError::io("remove", &marker)(error))
            }
            _ => Ok(()),
        }
    }

    fn local(self) -> Result<LocalLog, StoreError> {
        let directory = self.data_dir.log();
        let settings = LocalSettings {
            sync: self.options.sync,
            segment_bytes: self.options.segment_bytes,
            reserve: SpaceReserve {
                directory: directory.clone(),
                min_free_bytes: self.options.min_free_bytes,
            },
        };
        LocalLog::open(&directory, settings, random_id)
    }

    fn object(self, writer_id: u64) -> Result<Box<dyn DurableLog>, StoreError> {
        let settings = ObjectSettings {
            segment_interval: self.options.log_segment_interval,
            retry_pause: self.options.log_retry_pause,
            clock: Arc::clone(&self.options.clock),
            process_id: random_id(),
        };
        let after = self.catalog.checkpoint(&writer_name(writer_id))?;
        let log = ObjectLog::open(self.bucket()?, writer_id, after, settings)?;
        Ok(Box::new(log))
    }

    /// The log in the bucket that a data directory names. A digit may have become another one, and
    /// going on with a log that never was would lose all that the right one has; the newest segment
    /// of a log is never removed, so the bucket knows each one. It has none at all when the first
    /// start died before it claimed its log.
    fn noted_writer(self, marker: &Path) -> Result<Option<u64>, StoreError> {
        let Some(noted) = read_writer(marker)? else {
            return Ok(None);
        };
        let writers = writers_of_bucket(self.bucket()?)?;
        let writer_id = u64::from_str_radix(&noted, 16).ok();
        if writer_id.is_some_and(|id| writers.is_empty() || writers.contains(&id)) {
            return Ok(writer_id);
        }
        let names: Vec<String> = writers.into_iter().map(writer_name).collect();
        Err(StoreError::UnknownLog {
            path: marker.to_owned(),
            noted,
            writers: names.join(", "),
        })
    }

    /// The log that a bucket has from a data directory that is gone.
    fn writer_of_bucket(self) -> Result<Option<u64>, StoreError> {
        let writers = writers_of_bucket(self.bucket()?)?;
        match *writers {
            [] => Ok(None),
            [writer_id] => {
                let writer = writer_name(writer_id);
                tracing::warn!(
                    writer,
                    "this data directory goes on with the log of the bucket"
                );
                Ok(Some(writer_id))
            }
            _ => {
                let names: Vec<String> = writers.into_iter().map(writer_name).collect();
                Err(StoreError::SeveralLogs {
                    writers: names.join(", "),
                    path: self.writer_file(),
                })
            }
        }
    }

    fn bucket(self) -> Result<&'a Bucket, StoreError> {
        self.bucket.ok_or_else(|| StoreError::NoBucket {
            path: self.writer_file(),
        })
    }

    /// Names the writer of the log in the bucket.
    fn writer_file(self) -> PathBuf {
        self.data_dir.log().join("writer")
    }
}

/// `None` where there is no such file.
fn read_writer(marker: &Path) -> Result<Option<String>, StoreError> {
    match fs::read(marker) {
        Ok(text) => Ok(Some(String::from_utf8_lossy(&text).trim().to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io("read", marker)(error)),
    }
}

/// Tells a log from all others. Nothing else depends on it, so any source of distinct numbers does.
fn random_id() -> u64 {
    RandomState::new().build_hasher().finish()
}
