//! The thread that puts names into blocks: one object file at a time, none of them kept.

use std::collections::BTreeSet;
use std::panic;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::PoisonError;
use std::time::Duration;

use candela_store::Store;
use candela_store::UnsymbolizedBinary;
use candela_symbols::BuildId;
use candela_symbols::ObjectFile;
use candela_symbols::debuginfod::Lookup;

use super::State;
use super::Symbolization;
use super::names::ObjectNames;

/// How often blocks are looked at without anything new: heads become blocks all the time.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// The same while a debuginfod server is asked.
const FETCH_INTERVAL: Duration = Duration::from_secs(2);

/// What blocks say of names from there.
const DEBUGINFOD: &str = "debuginfod";

/// The file that may name the addresses of a binary.
enum Found {
    /// One that people sent, with what tells it from others.
    Archived(String),
    Fetched(PathBuf),
    /// A server is being asked.
    OnItsWay,
    Nothing,
}

impl Symbolization {
    /// Works until it is stopped.
    pub(crate) fn run(&self, store: &Store) {
        while !self.is_stopping() {
            // Symbol files come from anywhere: one that brings the code that reads it to its end
            // must not end the thread.
            let pass = panic::catch_unwind(AssertUnwindSafe(|| self.pass(store)));
            let pending = match pass {
                Ok(Ok(pending)) => pending,
                Ok(Err(error)) => {
                    tracing::error!("stored addresses could not be named: {error}");
                    self.lock().last_error = Some(error);
                    BTreeSet::new()
                }
                Err(_) => {
                    let message = "naming stored addresses panicked, which is a bug";
                    tracing::error!("{message}");
                    self.lock().last_error = Some(message.to_owned());
                    BTreeSet::new()
                }
            };
            self.wait(pending);
        }
    }

    /// Gives every binary in blocks the names that there are. Returns the build ids whose names are
    /// being fetched.
    fn pass(&self, store: &Store) -> Result<BTreeSet<String>, String> {
        self.lock().last_error = None;
        let is_cancelled = || self.is_stopping();
        let indexed = store.index_unsymbolized(&is_cancelled);
        indexed.map_err(|error| error.to_string())?;
        let mut on_their_way = BTreeSet::new();
        for binary in store.unsymbolized(None) {
            if self.is_stopping() {
                break;
            }
            let build_id = &binary.build_id;
            match self.find(build_id) {
                Found::Archived(source) if is_news(&binary, &source) => {
                    match self.sources.archive.open_object(build_id) {
                        Ok(Some(object)) => self.name(store, build_id, source, object)?,
                        Ok(None) => {}
                        Err(error) => self.note(&error.to_string()),
                    }
                }
                Found::Fetched(path) if is_news(&binary, DEBUGINFOD) => {
                    if let Some(object) = self.open_fetched(&path, build_id) {
                        self.name(store, build_id, DEBUGINFOD.to_owned(), object)?;
                    }
                }
                Found::OnItsWay => {
                    on_their_way.insert(binary.build_id);
                }
                Found::Archived(_) | Found::Fetched(_) | Found::Nothing => {}
            }
        }
        Ok(on_their_way)
    }

    fn find(&self, build_id: &str) -> Found {
        if let Some(file) = self.sources.archive.file(build_id) {
            return Found::Archived(format!("file {}", file.sha256));
        }
        let id = BuildId::from_gnu_hex(build_id);
        let (Some(id), Some(client)) = (id, &self.sources.debuginfod) else {
            return Found::Nothing;
        };
        match client.debug_file(&id) {
            Lookup::Found(path) => Found::Fetched(path),
            Lookup::Pending => Found::OnItsWay,
            Lookup::Absent | Lookup::Unreachable => Found::Nothing,
        }
    }

    fn open_fetched(&self, path: &Path, build_id: &str) -> Option<Arc<ObjectFile>> {
        match ObjectFile::open(path) {
            Ok(object) if object.build_id().to_string() == build_id => Some(Arc::new(object)),
            Ok(object) => {
                let served = object.build_id();
                self.note(&format!(
                    "debuginfod gave a file of build id {served} for {build_id}; it is not used"
                ));
                None
            }
            Err(error) => {
                self.note(&error.to_string());
                None
            }
        }
    }

    fn name(
        &self,
        store: &Store,
        build_id: &str,
        source: String,
        object: Arc<ObjectFile>,
    ) -> Result<(), String> {
        self.lock().pending.insert(build_id.to_owned());
        let is_cancelled = || self.is_stopping();
        let names = ObjectNames::new(build_id.to_owned(), source, object, &is_cancelled);
        let done = store.resymbolize(&names);
        let done = done.map_err(|error| format!("build id {build_id}: {error}"))?;
        let mut state = self.lock();
        state.renamed_blocks += done.renamed_blocks;
        state.named_locations += done.named_locations;
        if done.failed_blocks > 0 {
            state.last_error = Some(format!(
                "build id {build_id}: {} blocks could not be read",
                done.failed_blocks
            ));
        }
        tracing::info!(build_id, ?done, "stored addresses were named");
        Ok(())
    }

    fn note(&self, message: &str) {
        tracing::warn!("{message}");
        self.lock().last_error = Some(message.to_owned());
    }

    /// Waits until there is something to do.
    fn wait(&self, on_their_way: BTreeSet<String>) {
        let interval = match on_their_way.is_empty() {
            true => LOOK_INTERVAL,
            false => FETCH_INTERVAL,
        };
        let mut state = self.lock();
        // What came while the blocks were looked at is still to be done.
        if !state.is_wanted {
            state.pending = on_their_way;
        }
        let is_idle = |state: &mut State| !state.is_wanted && !state.is_stopping;
        let waited = self.changed.wait_timeout_while(state, interval, is_idle);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_wanted = false;
    }
}

/// Whether there are blocks for whose names this source was not asked.
fn is_news(binary: &UnsymbolizedBinary, source: &str) -> bool {
    binary.asked.iter().any(|asked| asked != source)
}
