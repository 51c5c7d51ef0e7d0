//! Walks in a browser are scripts that somebody has to call: one that nobody calls tests nothing, and looks as if it did.

use std::path::Path;
use std::path::PathBuf;

/// Where the walks are.
const FOLDER: &str = "ui/e2e";

/// Texts in which a person is told to run a script by hand.
const GUIDES: [&str; 2] = ["README.md", "CONTRIBUTING.md"];

/// The walks among these files that no Rust code runs, no other walk imports, and no guide names.
pub(crate) fn uncalled(files: &[PathBuf], read: impl Fn(&Path) -> String) -> Vec<&Path> {
    let is_walk =
        |path: &Path| path.starts_with(FOLDER) && path.extension().is_some_and(|it| it == "mjs");
    let paths = || files.iter().map(PathBuf::as_path);
    let callers: Vec<(&Path, String)> = paths()
        .filter(|path| is_walk(path) || is_rust(path) || is_guide(path))
        .map(|path| (path, read(path)))
        .collect();
    paths()
        .filter(|path| is_walk(path))
        .filter(|walk| !callers.iter().any(|(path, text)| calls(path, text, walk)))
        .collect()
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

fn is_guide(path: &Path) -> bool {
    GUIDES.iter().any(|guide| path.ends_with(guide))
}

/// Code names a script at the end of a text in quotes; that a comment mentions it runs nothing.
fn calls(path: &Path, text: &str, walk: &Path) -> bool {
    let name = walk.file_name().and_then(|name| name.to_str());
    let Some(name) = name else { return false };
    if is_guide(path) {
        return text.contains(name);
    }
    if is_rust(path) {
        let is_called = |before: char| before == '"' || before == '/';
        let quoted = format!("{name}\"");
        let mut found = text.match_indices(&quoted);
        return found.any(|(at, _)| text[..at].ends_with(is_called));
    }
    path != walk && text.contains(&format!("from \"./{name}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<PathBuf> = texts.iter().map(|(path, _)| PathBuf::from(path)).collect();
        let read = |path: &Path| {
            let mut all = texts.iter();
            let found = all.find(|(name, _)| Path::new(name) == path);
            found
                .map(|(_, text)| (*text).to_owned())
                .unwrap_or_default()
        };
        let uncalled = uncalled(&files, read).into_iter();
        uncalled.map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn a_walk_that_nobody_runs_is_found() {
        let walks = [
            ("ui/e2e/run.mjs", "import { launch } from \"./shared.mjs\";"),
            ("ui/e2e/shared.mjs", "// see lonely.mjs"),
            ("ui/e2e/by-hand.mjs", ""),
            ("ui/e2e/lonely.mjs", "// node e2e/lonely.mjs URL"),
            ("ui/e2e/panes.mjs", ""),
            ("ui/README.md", "`node e2e/by-hand.mjs URL`"),
            ("docs/window.md", "lonely.mjs"),
            (
                "tests/screens.rs",
                "walk(\"run.mjs\"); // as lonely.mjs\nwalk(\"more-panes.mjs\")",
            ),
        ];
        assert_eq!(found(&walks), ["ui/e2e/lonely.mjs", "ui/e2e/panes.mjs"]);
    }
}
