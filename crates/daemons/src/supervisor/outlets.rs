//! The outboxes of a node and their uploads, which go on when their daemons do not.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use candela_fleet::DaemonBody;
use candela_fleet::Destination;
use candela_fleet::ObservabilityDaemon;
use serde::Deserialize;
use serde::Serialize;

use crate::error::DaemonError;
use crate::error::OutboxError;
use crate::error::UploadError;
use crate::outbox::Outbox;
use crate::outbox::OutboxCounts;
use crate::outbox::OutboxLimits;
use crate::outbox::replace;
use crate::store::StoreCounts;
use crate::store::StoreFeed;
use crate::upload::ObjectSink;
use crate::upload::UploadStatus;
use crate::upload::Uploader;
use crate::upload::UploaderHandle;

/// Says where the files of a folder go: what waits of a daemon that is in no document any more still belongs there.
const DESTINATION: &str = "destination.json";

/// Makes the client of a bucket.
pub type Connect = dyn Fn(&Destination) -> Result<Arc<dyn ObjectSink>, UploadError> + Send + Sync;

/// All outboxes of a node, by the names of their daemons.
pub(crate) struct Outlets {
    folder: PathBuf,
    node: String,
    limits: OutboxLimits,
    connect: Arc<Connect>,
    store: Option<StoreFeed>,
    open: BTreeMap<String, Outlet>,
}

/// One outbox with its uploads.
#[derive(Debug)]
struct Outlet {
    outbox: Arc<Outbox>,
    destination: Destination,
    /// While uploads go on.
    uploader: Option<UploaderHandle>,
    /// Whether it goes away once nothing waits in it.
    is_left: bool,
}

#[derive(Serialize, Deserialize)]
struct Written {
    export_to: String,
    bucket_subdirectory: String,
}

impl Outlets {
    pub(crate) fn new(
        folder: PathBuf,
        node: String,
        limits: OutboxLimits,
        connect: Arc<Connect>,
        store: Option<StoreFeed>,
    ) -> Self {
        Self {
            folder,
            node,
            limits,
            connect,
            store,
            open: BTreeMap::new(),
        }
    }

    /// Takes up what waits of daemons that do not run; those that no document has go away when they are empty.
    /// What cannot be read stays where it is, and is told.
    pub(crate) fn take_up_leftovers(
        &mut self,
        is_ours: impl Fn(&str) -> bool,
        is_known: impl Fn(&str) -> bool,
    ) {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => {
                tracing::warn!(%error, folder = %self.folder.display(), "what waits there is not uploaded");
                return;
            }
            Ok(entries) => entries,
        };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !is_ours(&name) {
                continue;
            }
            match self.take_up(&name) {
                Ok(()) if is_known(&name) => {}
                Ok(()) => self.leave(&name),
                Err(error) => tracing::warn!(name, error, "what waits there is not uploaded"),
            }
        }
    }

    /// The outbox of a daemon, whose uploads go on from here.
    ///
    /// # Errors
    /// [`DaemonError::Outbox`], [`DaemonError::Impossible`] without a destination.
    pub(crate) fn of_daemon(
        &mut self,
        id: &str,
        daemon: &ObservabilityDaemon,
    ) -> Result<Arc<Outbox>, DaemonError> {
        let destination = daemon.body.destination();
        let destination = destination.ok_or_else(|| DaemonError::Impossible {
            reason: "export_to is no bucket; write s3://BUCKET or gs://BUCKET".to_owned(),
        })?;
        let retained = match &daemon.body {
            DaemonBody::PerfCollector(collector) => collector.dumps_retained(),
            DaemonBody::PerfettoDaemon(perfetto) => perfetto.runs_retained(),
        };
        let limits = OutboxLimits {
            retained: usize::try_from(retained).unwrap_or(usize::MAX),
            ..self.limits
        };
        if let Some(outlet) = self.open.get_mut(id) {
            outlet.is_left = false;
            outlet.outbox.set_limits(limits);
            let outbox = Arc::clone(&outlet.outbox);
            self.resume(id)?;
            return Ok(outbox);
        }
        self.open(id, destination, limits)
    }

    /// A daemon is in no document any more: what waits is uploaded, then all of it is removed.
    pub(crate) fn leave(&mut self, id: &str) {
        if let Some(outlet) = self.open.get_mut(id) {
            outlet.is_left = true;
        }
    }

    /// Ends all uploads at once. Daemons may write on until [`Outlets::close`], and uploads go on with
    /// [`Outlets::take_up_leftovers`].
    ///
    /// Whoever pauses them may have to wait for one in the middle of an upload: `meanwhile` is done before.
    pub(crate) fn pause(&mut self, meanwhile: impl FnOnce()) {
        for uploader in self.open.values().filter_map(|it| it.uploader.as_ref()) {
            uploader.stop();
        }
        meanwhile();
        for outlet in self.open.values_mut() {
            outlet.uploader = None;
        }
    }

    /// Lets go of all outboxes. What waits stays on the node until [`Outlets::take_up_leftovers`].
    pub(crate) fn close(&mut self) {
        self.open.clear();
    }

    /// Removes outboxes that were left and are empty.
    pub(crate) fn remove_empty(&mut self) {
        let is_done = |outlet: &Outlet| {
            let is_idle = outlet.outbox.counts().waiting == 0;
            outlet.is_left && outlet.uploader.is_some() && is_idle
        };
        let open = std::mem::take(&mut self.open);
        let (done, open) = open.into_iter().partition(|(_, outlet)| is_done(outlet));
        self.open = open;
        for (id, outlet) in done {
            drop(outlet.uploader);
            match outlet.outbox.remove() {
                Ok(()) => tracing::info!(id, "a daemon that was removed has uploaded everything"),
                Err(error) => tracing::warn!(id, %error, "the folder of a removed daemon stays"),
            }
        }
    }

    pub(crate) fn counts(&self, id: &str) -> OutboxCounts {
        let outlet = self.open.get(id);
        outlet
            .map(|outlet| outlet.outbox.counts())
            .unwrap_or_default()
    }

    pub(crate) fn stored(&self, id: &str) -> StoreCounts {
        let store = self.store.as_ref();
        store.map(|store| store.counts(id)).unwrap_or_default()
    }

    pub(crate) fn upload_status(&self, id: &str) -> UploadStatus {
        let outlet = self.open.get(id);
        let uploader = outlet.and_then(|outlet| outlet.uploader.as_ref());
        uploader.map(UploaderHandle::status).unwrap_or_default()
    }

    fn take_up(&mut self, id: &str) -> Result<(), String> {
        if self.open.contains_key(id) {
            return self.resume(id).map_err(|error| error.to_string());
        }
        let path = self.folder.join(id).join(DESTINATION);
        let text = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let written: Written = serde_json::from_slice(&text)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let folder = Some(written.bucket_subdirectory.as_str());
        let destination = Destination::parse(&written.export_to, folder)?;
        let opened = self.open(id, destination, self.limits);
        opened.map(drop).map_err(|error| error.to_string())
    }

    fn open(
        &mut self,
        id: &str,
        destination: Destination,
        limits: OutboxLimits,
    ) -> Result<Arc<Outbox>, DaemonError> {
        let root = self.folder.join(id);
        let outbox = Outbox::open(&root, limits)?;
        if let Some(store) = &self.store {
            store.follow(id, &outbox);
        }
        let without_folder = Destination {
            folder: String::new(),
            ..destination.clone()
        };
        let written = Written {
            export_to: without_folder.to_string(),
            bucket_subdirectory: destination.folder.clone(),
        };
        let path = root.join(DESTINATION);
        let written = serde_json::to_vec(&written).map_err(io::Error::from);
        let written = written.and_then(|text| replace(&path, &text));
        written.map_err(|source| OutboxError::File { path, source })?;
        let uploader = self.upload(&outbox, &destination)?;
        let outlet = Outlet {
            outbox: Arc::clone(&outbox),
            destination,
            uploader: Some(uploader),
            is_left: false,
        };
        self.open.insert(id.to_owned(), outlet);
        Ok(outbox)
    }

    /// Uploads of an open outbox go on, where they were paused.
    fn resume(&mut self, id: &str) -> Result<(), DaemonError> {
        let paused = self.open.get(id).filter(|it| it.uploader.is_none());
        let Some((outbox, destination)) = paused.map(|it| (&it.outbox, &it.destination)) else {
            return Ok(());
        };
        let uploader = self.upload(outbox, destination)?;
        if let Some(outlet) = self.open.get_mut(id) {
            outlet.uploader = Some(uploader);
        }
        Ok(())
    }

    fn upload(
        &self,
        outbox: &Arc<Outbox>,
        destination: &Destination,
    ) -> Result<UploaderHandle, DaemonError> {
        let sink = (self.connect)(destination)?;
        let (outbox, destination) = (Arc::clone(outbox), destination.clone());
        Uploader::new(outbox, sink, destination, &self.node).spawn()
    }
}
