//! The last good document, for a start while the server is away.

use std::fs;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use candela_fleet::FleetDocument;
use candela_fleet::Json;
use serde::Deserialize;
use serde::Serialize;

use crate::outbox::replace;

/// A file of the node.
#[derive(Clone, Debug)]
pub(crate) struct LastDocument {
    path: PathBuf,
}

#[derive(Serialize)]
struct Written<'document> {
    version: u64,
    document: &'document FleetDocument,
}

#[derive(Deserialize)]
struct Read {
    version: u64,
    document: Json,
}

impl LastDocument {
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self {
            path: folder.join("document.json"),
        }
    }

    /// Keeps a document. That it cannot be kept is no reason not to follow it.
    pub(crate) fn keep(&self, version: u64, document: &FleetDocument) {
        let text = serde_json::to_vec_pretty(&Written { version, document });
        let kept = text.map_err(io::Error::from).and_then(|text| {
            // The first document comes before anything else is written here.
            if let Some(folder) = self.path.parent() {
                fs::create_dir_all(folder)?;
            }
            replace(&self.path, &text)
        });
        if let Err(error) = kept {
            let path = self.path.display();
            tracing::warn!(%path, %error, "the document does not survive a restart without the server");
        }
    }

    /// The document that was kept, unless there is none or it is no document any more.
    pub(crate) fn read(&self) -> Option<(u64, FleetDocument)> {
        let text = match fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            text => text.map_err(|error| error.to_string()),
        };
        let read = text.and_then(|text| {
            let read: Read = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
            let accepted = FleetDocument::read_applied(&read.document.to_string());
            let accepted = accepted.map_err(|problems| problems.to_string())?;
            for note in accepted.warnings() {
                tracing::warn!(version = read.version, %note, "in the last document");
            }
            Ok((read.version, accepted.document))
        });
        match read {
            Ok(read) => Some(read),
            Err(error) => {
                let path = self.path.display();
                tracing::warn!(%path, error, "the last document is not used");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_survives_and_what_is_broken_is_not_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let last = LastDocument::in_folder(&folder.path().join("of-the-fleet"));
        assert_eq!(last.read(), None);
        let text = r#"{"suspended": true, "observability_daemons": [{"perf_collector": {"export_to": "s3://bucket"}}]}"#;
        let document = FleetDocument::read(text).expect("a document").document;
        last.keep(7, &document);
        assert_eq!(last.read(), Some((7, document)));
        for broken in [
            "",
            "{\"version\": 7}",
            "{\"version\": 7, \"document\": {\"x\": 1}}",
        ] {
            fs::write(&last.path, broken).expect("written");
            assert_eq!(last.read(), None, "{broken}");
        }
    }

    #[test]
    fn what_only_later_rules_refuse_holds() {
        let folder = tempfile::tempdir().expect("a folder");
        let last = LastDocument::in_folder(folder.path());
        let daemon = r#"{"perf_collector": {"export_to": "s3://bucket"}}"#;
        let text = format!(r#"{{"observability_daemons": [{daemon}, {daemon}]}}"#);
        assert!(FleetDocument::read(&text).is_err());
        let written = format!(r#"{{"version": 7, "document": {text}}}"#);
        fs::write(&last.path, written).expect("written");
        let (version, document) = last.read().expect("a document");
        assert_eq!((version, document.daemons().len()), (7, 2));
    }
}
