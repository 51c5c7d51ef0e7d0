//! The labels of the agent's own pod, by which snapshots choose nodes.
//!
//! The kubelet writes them into a file (a volume of the downward API) and keeps it true when somebody labels the pod,
//! which a variable of the environment would not be. Nobody needs a right to ask the API server for that.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::io::Read;
use std::path::PathBuf;

/// As many as the server takes: with one more it would refuse the whole report.
const MOST_LABELS: usize = 128;
/// More than so many labels take.
const MOST_BYTES: u64 = 128 << 10;

/// The file, and whether it was told that it cannot be read.
#[derive(Debug)]
pub(crate) struct OwnLabels {
    path: PathBuf,
    has_failed: bool,
}

impl OwnLabels {
    pub(crate) fn in_file(path: PathBuf) -> Self {
        Self {
            path,
            has_failed: false,
        }
    }

    /// The labels of now; `None` when they cannot be read, so that those of before hold.
    pub(crate) fn read(&mut self) -> Option<BTreeMap<String, String>> {
        let read = self.text();
        if let Err(error) = &read
            && !self.has_failed
        {
            let path = self.path.display();
            tracing::warn!(%path, %error, "snapshots do not find this node by the labels of its pod");
        }
        self.has_failed = read.is_err();
        read.ok().map(|text| labels_of(&text))
    }

    fn text(&self) -> io::Result<String> {
        let mut text = String::new();
        File::open(&self.path)?
            .take(MOST_BYTES)
            .read_to_string(&mut text)?;
        Ok(text)
    }
}

/// A label a line: `app="shop"`. Values are quoted as in Go; none of the letters that a label may have is written otherwise
/// there, so what has a backslash is no label.
fn labels_of(text: &str) -> BTreeMap<String, String> {
    let labels = text.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        let value = value.strip_prefix('"')?.strip_suffix('"')?;
        let is_label = !key.is_empty() && !value.contains(['\\', '"']);
        is_label.then(|| (key.to_owned(), value.to_owned()))
    });
    labels.take(MOST_LABELS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_kubelet() {
        let text = "app.kubernetes.io/name=\"candela-daemon\"\nempty=\"\"\nodd=\"a\\nb\"\nno label\n=\"x\"\nhalf=\"x\n";
        let expected = [("app.kubernetes.io/name", "candela-daemon"), ("empty", "")];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(labels_of(text), BTreeMap::from(expected));
        let many: String = (0..500)
            .map(|number| format!("label-{number}=\"x\"\n"))
            .collect();
        assert_eq!(labels_of(&many).len(), MOST_LABELS);
    }

    #[test]
    fn a_file_that_is_not_there_leaves_what_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("labels");
        let mut labels = OwnLabels::in_file(path.clone());
        assert_eq!(labels.read(), None);
        std::fs::write(&path, "app=\"shop\"\n").expect("written");
        assert_eq!(labels.read().map(|labels| labels.len()), Some(1));
        std::fs::write(&path, "app=\"shop\"\ntier=\"a\"\n").expect("written");
        assert_eq!(labels.read().map(|labels| labels.len()), Some(2));
    }
}
