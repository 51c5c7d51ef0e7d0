//! One copy of each name and path of an object, demangled once.

use crate::demangle::demangle;
use crate::frame::FrameLanguage;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Interned strings of one object. Frames share them, so that a function with a thousand sampled
/// addresses costs its name once.
#[derive(Debug, Default)]
pub(crate) struct NamePool {
    functions: HashMap<Arc<str>, Function>,
    paths: HashSet<Arc<str>>,
    heap_bytes: usize,
}

/// A function's two names.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    pub(crate) system_name: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) language: FrameLanguage,
}

/// A copy of `bytes` as text, with replacement characters where it is none. The bytes may lie in a
/// mapped file that changes at any moment, so the copy is checked and not the original.
pub(crate) fn copied_text(bytes: &[u8]) -> String {
    let copied = String::from_utf8(bytes.to_vec());
    copied.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

impl NamePool {
    /// The shared names of the function whose raw name is `system_name`.
    pub(crate) fn function(&mut self, system_name: &str) -> Function {
        if let Some(known) = self.functions.get(system_name) {
            return known.clone();
        }
        let demangled = demangle(system_name);
        let raw: Arc<str> = Arc::from(system_name);
        let name = if demangled.name == system_name {
            Arc::clone(&raw)
        } else {
            Arc::from(&*demangled.name)
        };
        self.heap_bytes += raw.len() + name.len() + size_of::<Function>() + 3 * size_of::<usize>();
        let function = Function {
            system_name: Arc::clone(&raw),
            name,
            language: demangled.language,
        };
        self.functions.insert(raw, function.clone());
        function
    }

    /// The shared copy of a source path.
    pub(crate) fn path(&mut self, path: &str) -> Arc<str> {
        if let Some(known) = self.paths.get(path) {
            return Arc::clone(known);
        }
        let shared: Arc<str> = Arc::from(path);
        self.heap_bytes += path.len() + 4 * size_of::<usize>();
        self.paths.insert(Arc::clone(&shared));
        shared
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.heap_bytes
    }
}
