//! One dump: gzip of the text of `perf script`.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use candela_model::Profile;
use candela_model::StackId;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::error::DaemonError;
use crate::error::OutboxError;
use crate::outbox::Outbox;
use crate::outbox::OutboxFile;

/// Behind the time in the name of each dump.
pub(crate) const SUFFIX: &str = "perf-data.gz";

/// What stands above the samples of a dump, as comments.
#[derive(Clone, Debug)]
pub(crate) struct DumpHeader {
    pub(crate) node: String,
    pub(crate) frequency_hz: u32,
    pub(crate) has_call_graph: bool,
    pub(crate) is_filtered: bool,
}

/// The dump that is being written, and the outbox that gets it.
#[derive(Debug)]
pub(crate) struct Dump {
    outbox: Arc<Outbox>,
    header: DumpHeader,
    /// `None` when it was lost; the next one is begun all the same.
    file: Option<GzEncoder<OutboxFile>>,
    began_ns: i64,
}

impl Dump {
    /// # Errors
    /// [`DaemonError::Outbox`].
    pub(crate) fn begin(
        outbox: &Arc<Outbox>,
        header: DumpHeader,
        began_ns: i64,
    ) -> Result<Self, DaemonError> {
        let file = begin_file(outbox, &header, began_ns)?;
        Ok(Self {
            outbox: Arc::clone(outbox),
            header,
            file: Some(file),
            began_ns,
        })
    }

    /// Adds a window. One dump that cannot be written is lost and counted, those after it are not.
    pub(crate) fn add(&mut self, profile: &Profile) -> Result<(), DaemonError> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let written = match self.header.has_call_graph {
            true => candela_formats::write_perf_script(profile, &mut *file),
            false => candela_formats::write_perf_script(&leaves_of(profile), &mut *file),
        };
        match written {
            Ok(_) => Ok(()),
            Err(error) => {
                tracing::error!(%error, "a dump is lost");
                file.get_mut().lose();
                self.file = None;
                Ok(())
            }
        }
    }

    /// Ends it and begins the next.
    ///
    /// # Errors
    /// [`DaemonError::Outbox`] when there can be no next one.
    pub(crate) fn rotate(&mut self, began_ns: i64) -> Result<(), DaemonError> {
        if let Err(error) = self.end() {
            tracing::error!(%error, "a dump is lost");
        }
        self.file = Some(begin_file(&self.outbox, &self.header, began_ns)?);
        self.began_ns = began_ns;
        Ok(())
    }

    /// Ends the last one.
    ///
    /// # Errors
    /// [`DaemonError::Outbox`].
    pub(crate) fn publish(mut self) -> Result<(), DaemonError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), DaemonError> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        let path = self.outbox.root().to_owned();
        let file = file
            .finish()
            .map_err(|source| OutboxError::File { path, source })?;
        let name = file.publish(self.began_ns / 1_000_000_000, SUFFIX)?;
        tracing::debug!(name, "a dump waits for its upload");
        Ok(())
    }
}

fn begin_file(
    outbox: &Arc<Outbox>,
    header: &DumpHeader,
    began_ns: i64,
) -> Result<GzEncoder<OutboxFile>, DaemonError> {
    let mut file = GzEncoder::new(outbox.begin()?, Compression::default());
    let written = file.write_all(header.text(began_ns).as_bytes());
    let path = outbox.root().to_owned();
    written.map_err(|source| OutboxError::File { path, source })?;
    Ok(file)
}

impl DumpHeader {
    /// As `perf script --header` begins. Readers skip it.
    fn text(&self, began_ns: i64) -> String {
        let began = jiff::Timestamp::from_nanosecond(began_ns.into());
        let began = began.unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let call_graph = if self.has_call_graph {
            "with"
        } else {
            "without"
        };
        let processes = if self.is_filtered { "chosen" } else { "all" };
        format!(
            "# ========\n# captured on    : {began}\n# hostname : {}\n# candela version : {}\n\
             # sampled at {} Hz, {call_graph} call graphs, {processes} processes\n# ========\n#\n",
            self.node,
            env!("CARGO_PKG_VERSION"),
            self.frequency_hz
        )
    }
}

/// The same samples, each with the innermost frame alone.
fn leaves_of(profile: &Profile) -> Profile {
    let mut leaves = profile.clone();
    let mut known: HashMap<StackId, StackId> = HashMap::new();
    for series in &mut leaves.series {
        for sample in &mut series.samples {
            let stacks = &mut leaves.stacks;
            sample.stack = *known.entry(sample.stack).or_insert_with(|| {
                let leaf = profile.stacks.get(sample.stack).first().copied();
                stacks.intern(leaf.as_slice())
            });
        }
    }
    leaves
}
