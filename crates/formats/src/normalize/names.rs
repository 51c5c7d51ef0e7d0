//! Names of functions by the language that they are written in.

use std::borrow::Cow;

use candela_model::FunctionId;
use candela_model::Profile;
use candela_model::SymbolTables;

use crate::options::Limits;

/// How the functions of a profile are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// As they are, but those of Go without type parameters: a host has programs of all languages.
    Plain,
    /// With the file in front.
    WithFile,
}

/// The names of a profile's functions. What is made of them is bounded, and so is what is looked at for
/// it: one long path may be the file of as many functions as a profile can have.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    naming: Naming,
    /// Which functions are instances of generic ones of Go.
    go_instances: Vec<bool>,
    /// From here on functions keep the names they have.
    first_kept: FunctionId,
}

/// Clients whose functions are named without their module.
const SCRIPTING_SPIES: [&str; 3] = ["pyspy", "rbspy", "scripting"];

/// Behind these a path is relative to where packages are installed.
const PACKAGE_FOLDERS: [&str; 4] = ["/site-packages/", "/dist-packages/", "/gems/", "/lib/ruby/"];

impl Naming {
    pub(crate) fn of(spy: &str) -> Self {
        match SCRIPTING_SPIES.contains(&spy) {
            true => Self::WithFile,
            false => Self::Plain,
        }
    }
}

impl Names {
    pub(crate) fn of(profile: &Profile, naming: Naming, limits: &Limits) -> Self {
        let symbols = &profile.symbols;
        let mut names = Self {
            naming,
            go_instances: match naming {
                Naming::Plain => go_instances(symbols),
                Naming::WithFile => Vec::new(),
            },
            first_kept: FunctionId::from_index(symbols.functions().len()),
        };
        let mut bytes_left = limits.inflated_bytes();
        let mut ids = (0..symbols.functions().len()).map(FunctionId::from_index);
        let first_kept = ids.find(|&id| {
            let bytes = names.most_bytes(id, symbols);
            let is_beyond = bytes > bytes_left;
            bytes_left = bytes_left.saturating_sub(bytes);
            is_beyond
        });
        names.first_kept = first_kept.unwrap_or(names.first_kept);
        names
    }

    /// The most bytes that the name of a function takes if it gets another one; 0 when it cannot.
    fn most_bytes(&self, id: FunctionId, symbols: &SymbolTables) -> usize {
        let function = symbols.function(id);
        let bytes = |id| symbols.strings.get(id).len();
        match self.naming {
            Naming::Plain if self.go_instances[id.index()] => bytes(function.name),
            Naming::Plain => 0,
            Naming::WithFile => match bytes(function.file) {
                0 => 0,
                file => file + " ".len() + bytes(function.name),
            },
        }
    }

    /// The name of a function, borrowed when it is the one it has.
    pub(crate) fn name<'a>(&self, id: FunctionId, symbols: &'a SymbolTables) -> Cow<'a, str> {
        let function = symbols.function(id);
        let name = symbols.strings.get(function.name);
        if id >= self.first_kept {
            return Cow::Borrowed(name);
        }
        match self.naming {
            Naming::Plain if self.go_instances[id.index()] => without_type_parameters(name),
            Naming::Plain => Cow::Borrowed(name),
            Naming::WithFile => with_file(symbols.strings.get(function.file), name),
        }
    }

    /// Whether some function gets another name.
    pub(crate) fn change_any(&self, symbols: &SymbolTables) -> bool {
        let mut ids = (0..symbols.functions().len()).map(FunctionId::from_index);
        ids.any(|id| matches!(self.name(id, symbols), Cow::Owned(_)))
    }

    /// Whether a function keeps its name because those of others took the bytes there are.
    pub(crate) fn is_beyond(&self, id: FunctionId, symbols: &SymbolTables) -> bool {
        id >= self.first_kept && self.most_bytes(id, symbols) > 0
    }

    /// How many there are of them.
    pub(crate) fn functions_beyond(&self, symbols: &SymbolTables) -> u64 {
        let kept = self.first_kept.index()..symbols.functions().len();
        let beyond = kept.filter(|&id| self.is_beyond(FunctionId::from_index(id), symbols));
        beyond.count() as u64
    }
}

/// What a name may have of Go's type parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Brackets {
    None,
    /// Such as names of other languages have, too.
    Some,
    /// Such as only Go's compiler writes.
    OfGo,
}

impl Brackets {
    fn of(name: &str) -> Self {
        match name.contains('[') {
            false => Self::None,
            true if name.contains("[...]") || name.contains("[go.shape.") => Self::OfGo,
            true => Self::Some,
        }
    }
}

/// Of each function, whether it is an instance of a generic one of Go. A name is looked at once: one long name may be that of
/// all functions.
fn go_instances(symbols: &SymbolTables) -> Vec<bool> {
    let strings = &symbols.strings;
    let mut known: Vec<Option<Brackets>> = vec![None; strings.len()];
    let functions = symbols.functions().iter();
    let instances = functions.map(|function| {
        let known = &mut known[function.name.index()];
        match known.get_or_insert_with(|| Brackets::of(strings.get(function.name))) {
            Brackets::None => false,
            Brackets::Some => is_go_file(strings.get(function.file)),
            Brackets::OfGo => true,
        }
    });
    instances.collect()
}

/// Whether a file is Go's source code.
pub(crate) fn is_go_file(file: &str) -> bool {
    file.ends_with(".go")
}

/// A Go function's name without `[...]`: instances of one function are one function. Brackets of
/// array types, which do not follow a name, stay.
fn without_type_parameters(name: &str) -> Cow<'_, str> {
    if !name.contains('[') {
        return Cow::Borrowed(name);
    }
    let mut cut = String::with_capacity(name.len());
    let mut depth = 0_usize;
    for character in name.chars() {
        match character {
            '[' if depth > 0
                || cut.ends_with(|last: char| last.is_alphanumeric() || last == '_') =>
            {
                depth += 1;
            }
            ']' if depth > 0 => depth -= 1,
            other if depth == 0 => cut.push(other),
            _ => {}
        }
    }
    // What is not closed is no list of parameters.
    if depth == 0 {
        Cow::Owned(cut)
    } else {
        Cow::Borrowed(name)
    }
}

fn with_file<'a>(file: &str, name: &'a str) -> Cow<'a, str> {
    let file = relative(file);
    let is_named = name
        .strip_prefix(file)
        .is_some_and(|rest| rest.starts_with(' '));
    if file.is_empty() || is_named {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("{file} {name}"))
}

fn relative(file: &str) -> &str {
    let behind = PACKAGE_FOLDERS
        .iter()
        .filter_map(|folder| Some(file.rfind(folder)? + folder.len()))
        .max();
    &file[behind.unwrap_or(0)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_parameters_are_cut() {
        for (given, cut) in [
            ("main.work", "main.work"),
            ("slices.SortFunc[...]", "slices.SortFunc"),
            (
                "main.Map[go.shape.string,go.shape.[]uint8].func1",
                "main.Map.func1",
            ),
            ("lru.(*Cache[...]).Get", "lru.(*Cache).Get"),
            ("type:.eq.[2]string", "type:.eq.[2]string"),
            ("main.broken[int", "main.broken[int"),
            ("é[x]ü", "éü"),
        ] {
            assert_eq!(without_type_parameters(given), cut);
        }
    }

    #[test]
    fn scripts_stand_in_front_of_their_functions() {
        for (file, name, with) in [
            ("app/views.py", "index", "app/views.py index"),
            (
                "/usr/lib/python3/site-packages/flask/app.py",
                "run",
                "flask/app.py run",
            ),
            ("app.py", "app.py run", "app.py run"),
            ("", "run", "run"),
        ] {
            assert_eq!(with_file(file, name), with);
        }
    }
}
