//! Snapshots that somebody asked for, until they are in the bucket.

use std::time::Duration;

use candela_fleet::DaemonId;

use crate::error::UploadError;
use crate::supervisor::outlets::Outlets;
use crate::supervisor::state::SnapshotReport;
use crate::supervisor::state::SnapshotStatus;

/// Somebody waits for the answer. The file itself goes on waiting when this is over.
const PATIENCE: Duration = Duration::from_secs(120);

/// Whoever gives credentials may fail for a moment. Who has none at all is to hear it before a command gives up.
const PATIENCE_WITHOUT_CREDENTIALS: Duration = Duration::from_secs(20);

/// Those that are on their way.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    pending: Vec<Pending>,
}

#[derive(Debug)]
struct Pending {
    id: String,
    daemon: DaemonId,
    /// Once it is written: its name, and when that was.
    file: Option<(String, Duration)>,
    asked: Duration,
}

impl Snapshots {
    /// A daemon was asked.
    pub(crate) fn asked(&mut self, id: String, daemon: DaemonId, now: Duration) {
        self.pending.push(Pending {
            id,
            daemon,
            file: None,
            asked: now,
        });
    }

    /// A daemon has answered; what is written waits for its upload.
    pub(crate) fn answered(
        &mut self,
        id: &str,
        daemon: &DaemonId,
        answer: Result<String, String>,
        now: Duration,
    ) -> Option<SnapshotReport> {
        let is_it = |pending: &Pending| pending.id == id && pending.daemon == *daemon;
        let position = self.pending.iter().position(is_it)?;
        match answer {
            Ok(file) => {
                self.pending[position].file = Some((file, now));
                None
            }
            Err(error) => {
                self.pending.remove(position);
                Some(failed(id, error))
            }
        }
    }

    /// A daemon has ended: what it was asked for and has not written will not come.
    pub(crate) fn ended(&mut self, daemon: &DaemonId, reason: &str) -> Vec<SnapshotReport> {
        let is_lost = |pending: &mut Pending| pending.daemon == *daemon && pending.file.is_none();
        let lost = self.pending.extract_if(.., is_lost);
        lost.map(|pending| failed(&pending.id, reason.to_owned()))
            .collect()
    }

    /// Takes out what is decided.
    pub(crate) fn settle(&mut self, outlets: &Outlets, now: Duration) -> Vec<SnapshotReport> {
        let mut settled = Vec::new();
        self.pending.retain(|pending| {
            let report = pending.outcome(outlets, now);
            let is_pending = report.is_none();
            settled.extend(report);
            is_pending
        });
        settled
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }
}

impl Pending {
    fn outcome(&self, outlets: &Outlets, now: Duration) -> Option<SnapshotReport> {
        let upload = outlets.upload_status(self.daemon.as_str());
        if let Some((file, written)) = &self.file {
            let mut keys = upload.last_keys.into_iter();
            let is_it = |key: &String| key.rsplit('/').next() == Some(file);
            if let Some(key) = keys.find(is_it) {
                return Some(SnapshotReport {
                    id: self.id.clone(),
                    status: SnapshotStatus::Ok,
                    object_key: Some(key),
                    error: None,
                });
            }
            // What may work later has until the deadline: a short failure says nothing of this file.
            let is_final = |error: &UploadError| match error {
                UploadError::Unavailable { .. } | UploadError::Stopped { .. } => false,
                UploadError::NoCredentials { .. } => {
                    now.saturating_sub(*written) >= PATIENCE_WITHOUT_CREDENTIALS
                }
                UploadError::Settings { .. }
                | UploadError::NotAllowed { .. }
                | UploadError::NoBucket { .. } => true,
            };
            if let Some(error) = upload.error.as_ref().filter(|error| is_final(error)) {
                return Some(failed(&self.id, error.to_string()));
            }
        }
        (now.saturating_sub(self.asked) >= PATIENCE).then(|| {
            let seconds = PATIENCE.as_secs();
            let reason = match upload.error {
                Some(error) => error.to_string(),
                None => "look at the state of the daemon".to_owned(),
            };
            let text =
                format!("it is not in the bucket after {seconds} s, and may still come: {reason}");
            failed(&self.id, text)
        })
    }
}

/// A snapshot that there is not.
pub(crate) fn failed(id: &str, error: String) -> SnapshotReport {
    SnapshotReport {
        id: id.to_owned(),
        status: SnapshotStatus::Failed,
        object_key: None,
        error: Some(error),
    }
}
