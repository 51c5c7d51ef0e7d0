//! Targets that stand in files, which other programs write.

use std::collections::BTreeMap;
use std::fs;
use std::fs::Metadata;
use std::io;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use candela_model::Labels;
use regex::Regex;

use crate::scrape::discovery::TargetDiscovery;
use crate::scrape::discovery::group_targets;
use crate::scrape::error::ScrapeConfigError;
use crate::scrape::target_file::MOST_FILE_BYTES;
use crate::scrape::target_file::parse_target_file;

/// The label with the file that a target comes from.
const FILE_LABEL: &str = "__meta_filepath";

/// Files that all patterns together may match.
const MOST_FILES: usize = 1000;

/// Targets of files. A file is read again when it changed; one that cannot be read keeps the targets
/// it had, one that is gone has none.
#[derive(Debug)]
pub struct TargetFiles {
    patterns: Vec<Pattern>,
    files: BTreeMap<PathBuf, File>,
    targets: Vec<Labels>,
    problems: Vec<String>,
}

/// A path, the last part of which may stand for many.
#[derive(Debug)]
enum Pattern {
    One(PathBuf),
    Many { folder: PathBuf, name: Regex },
}

#[derive(Debug, Default)]
struct File {
    version: Option<Version>,
    targets: Vec<Labels>,
    problem: Option<String>,
}

/// What changes when a file is written or put in the place of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

// === impl TargetFiles ===

impl TargetFiles {
    /// The files of some paths; none is read yet.
    ///
    /// # Errors
    /// [`ScrapeConfigError::FilePattern`].
    pub fn new(patterns: &[String]) -> Result<Self, ScrapeConfigError> {
        let patterns = patterns.iter().map(|text| Pattern::new(text));
        Ok(Self {
            patterns: patterns.collect::<Result<_, _>>()?,
            files: BTreeMap::new(),
            targets: Vec::new(),
            problems: Vec::new(),
        })
    }

    fn paths(&self, problems: &mut Vec<String>) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for pattern in &self.patterns {
            match pattern.paths() {
                Ok(found) => paths.extend(found),
                Err((folder, error)) => problems.push(format!("{}: {error}", folder.display())),
            }
        }
        paths.sort();
        paths.dedup();
        if paths.len() > MOST_FILES {
            let count = paths.len();
            problems.push(format!(
                "{count} files of targets, only {MOST_FILES} are read"
            ));
            paths.truncate(MOST_FILES);
        }
        paths
    }
}

impl TargetDiscovery for TargetFiles {
    fn refresh(&mut self) -> bool {
        let mut problems = Vec::new();
        let paths = self.paths(&mut problems);
        let mut has_changed = false;
        let mut files = BTreeMap::new();
        for path in paths {
            let mut file = self.files.remove(&path).unwrap_or_default();
            has_changed |= file.refresh(&path, read);
            problems.extend(file.problem.clone());
            files.insert(path, file);
        }
        has_changed |= !self.files.is_empty() || problems != self.problems;
        self.files = files;
        self.problems = problems;
        if has_changed {
            let all = self.files.values().flat_map(|file| &file.targets);
            self.targets = all.cloned().collect();
        }
        has_changed
    }

    fn targets(&self) -> &[Labels] {
        &self.targets
    }

    fn problems(&self) -> &[String] {
        &self.problems
    }
}

// === impl File ===

impl File {
    /// Reads the file if it is another than before, and says whether something changed.
    fn refresh(&mut self, path: &Path, read: impl Fn(&Path) -> io::Result<String>) -> bool {
        let version = fs::metadata(path).ok().map(|found| Version::of(&found));
        if version.is_some() && version == self.version {
            return false;
        }
        let content = read(path);
        // One that makes no sense is not read again until it changes; one that could not be read is,
        // as that may have been for a moment.
        self.version = version.filter(|_| content.is_ok());
        let parsed = content
            .map_err(|error| error.to_string())
            .and_then(|text| parse_target_file(&text).map_err(|error| error.to_string()));
        match parsed {
            Ok(groups) => {
                let file_label = path.display().to_string();
                let labelled = groups.iter().flat_map(group_targets).map(|mut labels| {
                    labels.set(FILE_LABEL, file_label.as_str());
                    labels
                });
                self.targets = labelled.collect();
                self.problem = None;
                true
            }
            Err(error) => {
                let problem = Some(format!("{}: {error}", path.display()));
                let is_new = self.problem != problem;
                self.problem = problem;
                is_new
            }
        }
    }
}

impl Version {
    fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// Not more than a file may have, and of nothing that could make us wait: a wrong path may be
/// anything.
fn read(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut text = String::new();
    let most = MOST_FILE_BYTES as u64 + 1;
    fs::File::open(path)?.take(most).read_to_string(&mut text)?;
    Ok(text)
}

// === impl Pattern ===

impl Pattern {
    fn new(text: &str) -> Result<Self, ScrapeConfigError> {
        let refused = |problem| ScrapeConfigError::FilePattern {
            pattern: text.to_owned(),
            problem,
        };
        let path = Path::new(text);
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| refused("names no file"))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let is_wild = |text: &str| text.contains(['*', '?']);
        if is_wild(&folder.to_string_lossy()) {
            return Err(refused("only the last part of a path may have * and ?"));
        }
        if !is_wild(name) {
            return Ok(Self::One(path.to_owned()));
        }
        let characters = name.chars().map(|character| match character {
            '*' => ".*".to_owned(),
            '?' => ".".to_owned(),
            other => regex::escape(&other.to_string()),
        });
        let name = Regex::new(&format!("^(?s:{})$", characters.collect::<String>()));
        let name = name.map_err(|_| refused("is too long"))?;
        let folder = match folder.as_os_str().is_empty() {
            true => PathBuf::from("."),
            false => folder.to_owned(),
        };
        Ok(Self::Many { folder, name })
    }

    /// The files that are there; the folder with the system's reason where it cannot be read. A
    /// folder or file that is not there yet has no targets yet.
    fn paths(&self) -> Result<Vec<PathBuf>, (&Path, io::Error)> {
        let Self::Many { folder, name } = self else {
            let Self::One(path) = self else {
                return Ok(Vec::new());
            };
            let is_gone = matches!(path.try_exists(), Ok(false));
            return Ok(if is_gone {
                Vec::new()
            } else {
                vec![path.clone()]
            });
        };
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(|error| (folder.as_path(), error))?,
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let wanted = names.filter(|found| name.is_match(found));
        Ok(wanted
            .take(MOST_FILES + 1)
            .map(|name| folder.join(name))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(files: &TargetFiles) -> Vec<&str> {
        let targets = files.targets().iter();
        targets
            .filter_map(|labels| labels.get("__address__"))
            .collect()
    }

    #[test]
    fn files_are_read_again_when_they_change() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| folder.path().join(name);
        let pattern = path("*.yml").display().to_string();
        let mut files = TargetFiles::new(&[pattern]).expect("a pattern");
        assert!(!files.refresh());

        fs::write(path("a.yml"), "- targets: [a:1]\n").expect("written");
        fs::write(path("b.yaml"), "- targets: [other:1]\n").expect("written");
        assert!(files.refresh());
        assert_eq!(addresses(&files), ["a:1"]);
        assert_eq!(
            files.targets()[0].get(FILE_LABEL),
            Some(path("a.yml").display().to_string().as_str())
        );
        assert!(!files.refresh());

        fs::write(path("b.yml"), "- targets: [b:1, c:1]\n").expect("written");
        assert!(files.refresh());
        assert_eq!(addresses(&files), ["a:1", "b:1", "c:1"]);

        // A writer that is caught in the middle of its work takes no target away.
        fs::write(path("b.yml"), "- targets: [b:1").expect("written");
        assert!(files.refresh());
        assert_eq!(addresses(&files), ["a:1", "b:1", "c:1"]);
        assert!(
            files.problems()[0].contains("b.yml: no valid YAML"),
            "{files:?}"
        );
        assert!(!files.refresh(), "told once");

        fs::write(path("b.yml"), "- targets: [d:12]\n").expect("written");
        assert!(files.refresh());
        assert_eq!(addresses(&files), ["a:1", "d:12"]);
        assert!(files.problems().is_empty());

        fs::remove_file(path("a.yml")).expect("removed");
        assert!(files.refresh());
        assert_eq!(addresses(&files), ["d:12"]);
    }

    #[test]
    fn a_file_that_could_not_be_read_for_a_moment_is_read_again() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("a.yml");
        fs::write(&path, "- targets: [a:1]\n").expect("written");
        let busy = |_: &Path| Err(io::Error::other("too many open files"));
        let mut file = File::default();
        assert!(file.refresh(&path, busy), "a problem is news");
        assert!(!file.refresh(&path, busy), "told once");
        assert!(file.refresh(&path, read));
        assert_eq!((file.targets.len(), &file.problem), (1, &None));
        assert!(!file.refresh(&path, busy), "not read again");
    }

    #[test]
    fn patterns_that_cannot_be_are_named() {
        for text in ["", "/", "a/*/b.yml", "/x?/y"] {
            let error = TargetFiles::new(&[text.to_owned()]).expect_err(text);
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
        let mut missing = TargetFiles::new(&["/nonexistent/x.yml".to_owned()]).expect("a path");
        assert!(!missing.refresh());
        assert!(missing.targets().is_empty());
    }
}
