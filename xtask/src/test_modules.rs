//! Files of tests that are in no program: cargo finds only `tests/main.rs` of a crate, so what no `mod` names never runs.

use std::path::Path;
use std::path::PathBuf;

/// Programs that tests compile are no modules.
const PROGRAMS: &str = "programs";

/// The files below `crates/NAME/tests` that no other file there declares.
pub(crate) fn undeclared(files: &[PathBuf], read: impl Fn(&Path) -> String) -> Vec<&Path> {
    let modules = files.iter().map(PathBuf::as_path);
    let modules: Vec<&Path> = modules.filter(|path| tests_of(path).is_some()).collect();
    let declares = |module: &Path, name: &str| {
        let declaration = format!("mod {name};");
        let same_crate = modules
            .iter()
            .filter(|path| tests_of(path) == tests_of(module));
        let mut texts = same_crate.map(|path| read(path));
        texts.any(|text| text.lines().any(|line| line.ends_with(&declaration)))
    };
    let is_undeclared =
        |module: &&Path| module_name(module).is_some_and(|name| !declares(module, name));
    modules.iter().copied().filter(is_undeclared).collect()
}

/// `crates/NAME/tests` of a Rust file there.
fn tests_of(path: &Path) -> Option<&Path> {
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    let is_program = path.components().any(|part| part.as_os_str() == PROGRAMS);
    let tests = path.ancestors().find(|folder| folder.ends_with("tests"))?;
    let is_of_crate = tests.starts_with("crates") && tests.components().count() == 3;
    (is_rust && !is_program && is_of_crate).then_some(tests)
}

/// What `mod` must name; `None` for the root of a program.
fn module_name(path: &Path) -> Option<&str> {
    let stem = path.file_stem()?.to_str()?;
    match stem {
        "main" => None,
        "mod" => path.parent()?.file_name()?.to_str(),
        name => Some(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_no_program_has_is_found() {
        let texts = [
            (
                "crates/store/tests/main.rs",
                "mod life;\n#[cfg(unix)]\nmod host;\n",
            ),
            (
                "crates/store/tests/life.rs",
                "// mod lonely; is not meant\n",
            ),
            ("crates/store/tests/host/mod.rs", "pub(crate) mod disk;\n"),
            ("crates/store/tests/host/disk.rs", ""),
            ("crates/store/tests/programs/lonely.rs", ""),
            ("crates/store/tests/lonely.rs", ""),
            ("crates/query/tests/life.rs", ""),
            ("crates/query/src/tests/life.rs", ""),
        ];
        let files: Vec<PathBuf> = texts.iter().map(|(path, _)| PathBuf::from(path)).collect();
        let read = |path: &Path| {
            let found = texts.iter().find(|(name, _)| Path::new(name) == path);
            found.map_or(String::new(), |(_, text)| (*text).to_owned())
        };
        let wanted = ["crates/store/tests/lonely.rs", "crates/query/tests/life.rs"];
        assert_eq!(undeclared(&files, read), wanted.map(Path::new));
    }
}
