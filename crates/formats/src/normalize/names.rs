//! Names of functions by the language that they are written in.

use std::borrow::Cow;

use candela_model::Function;
use candela_model::FunctionId;
use candela_model::Profile;
use candela_model::StringTable;
use candela_model::SymbolTables;

use crate::options::Limits;

/// How the functions of a profile are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// As they are.
    Plain,
    /// Without type parameters.
    Go,
    /// With the file in front.
    WithFile,
}

/// The names of a profile's functions. What is made of them is bounded, and so is what is looked at for
/// it: one long path may be the file of as many functions as a profile can have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    naming: Naming,
    /// From here on functions keep the names they have.
    first_kept: FunctionId,
}

/// Clients whose functions are named without their module.
const SCRIPTING_SPIES: [&str; 3] = ["pyspy", "rbspy", "scripting"];

/// Behind these a path is relative to where packages are installed.
const PACKAGE_FOLDERS: [&str; 4] = ["/site-packages/", "/dist-packages/", "/gems/", "/lib/ruby/"];

impl Naming {
    pub(crate) fn of(profile: &Profile, spy: &str) -> Self {
        if SCRIPTING_SPIES.contains(&spy) {
            return Self::WithFile;
        }
        let strings = &profile.symbols.strings;
        let is_go = profile.symbols.functions().iter().any(|function| {
            let name = strings.get(function.name);
            strings.get(function.file).ends_with(".go")
                || matches!(name, "runtime.goexit" | "runtime.main" | "runtime.mcall")
        });
        if is_go { Self::Go } else { Self::Plain }
    }

    /// The most bytes that the name of a function takes if it gets another one; 0 when it cannot.
    fn most_bytes(self, function: &Function, strings: &StringTable) -> usize {
        let bytes = |id| strings.get(id).len();
        match self {
            Self::Plain => 0,
            Self::Go => bytes(function.name),
            Self::WithFile => match bytes(function.file) {
                0 => 0,
                file => file + " ".len() + bytes(function.name),
            },
        }
    }

    /// The name of a function, borrowed when it is the one it has.
    fn name<'a>(self, function: &Function, strings: &'a StringTable) -> Cow<'a, str> {
        let name = strings.get(function.name);
        match self {
            Self::Plain => Cow::Borrowed(name),
            Self::Go => without_type_parameters(name),
            Self::WithFile => with_file(strings.get(function.file), name),
        }
    }
}

impl Names {
    pub(crate) fn of(profile: &Profile, naming: Naming, limits: &Limits) -> Self {
        let strings = &profile.symbols.strings;
        let functions = profile.symbols.functions();
        let mut bytes_left = limits.inflated_bytes();
        let first_kept = functions.iter().position(|function| {
            let bytes = naming.most_bytes(function, strings);
            let is_beyond = bytes > bytes_left;
            bytes_left = bytes_left.saturating_sub(bytes);
            is_beyond
        });
        Self {
            naming,
            first_kept: FunctionId::from_index(first_kept.unwrap_or(functions.len())),
        }
    }

    /// The name of a function, borrowed when it is the one it has.
    pub(crate) fn name<'a>(&self, id: FunctionId, symbols: &'a SymbolTables) -> Cow<'a, str> {
        let function = symbols.function(id);
        if id >= self.first_kept {
            return Cow::Borrowed(symbols.strings.get(function.name));
        }
        self.naming.name(function, &symbols.strings)
    }

    /// Whether a function keeps its name because those of others took the bytes there are.
    pub(crate) fn is_beyond(&self, id: FunctionId, symbols: &SymbolTables) -> bool {
        let most_bytes = || {
            let function = symbols.function(id);
            self.naming.most_bytes(function, &symbols.strings)
        };
        id >= self.first_kept && most_bytes() > 0
    }

    /// How many there are of them.
    pub(crate) fn functions_beyond(&self, symbols: &SymbolTables) -> u64 {
        let kept = self.first_kept.index()..symbols.functions().len();
        let beyond = kept.filter(|&id| self.is_beyond(FunctionId::from_index(id), symbols));
        beyond.count() as u64
    }
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
