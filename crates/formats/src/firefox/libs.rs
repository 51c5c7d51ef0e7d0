//! The libraries of a process.

use std::borrow::Cow;

use candela_model::Mapping;
use candela_model::MappingId;
use hashbrown::HashMap;
use serde_json::Value;

use crate::error::ReadError;
use crate::firefox::process::OWN_KEY;
use crate::firefox::read::Sink;
use crate::firefox::table::text;
use crate::named_stacks::NamedStacks;

/// The libraries of a list, as mappings without a range: addresses are made relative to their
/// library, as Firefox does itself, since each process has them elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Libs {
    libs: Vec<Lib>,
    /// Positions of those with a range, by where they start.
    by_start: Vec<usize>,
    /// The first of each name.
    by_name: HashMap<String, MappingId>,
}

#[derive(Debug)]
struct Lib {
    mapping: MappingId,
    start: u64,
    end: u64,
    offset: u64,
}

impl Libs {
    /// From `libs`, which was a text with JSON inside until 2017.
    ///
    /// # Errors
    /// When all such texts together have more values than may be.
    pub(crate) fn new(value: &Value, sink: &mut Sink<'_>) -> Result<Self, ReadError> {
        let value = match value {
            Value::String(inner) => {
                sink.inner_values.take(inner.as_bytes())?;
                serde_json::from_str(inner).map_or_else(
                    |_| {
                        sink.stacks.report.note(
                            "libs_broken",
                            "a list of libraries that is no JSON was left out",
                        );
                        Cow::Owned(Value::Null)
                    },
                    Cow::Owned,
                )
            }
            value => Cow::Borrowed(value),
        };
        let entries = value.as_array().map_or(&[][..], Vec::as_slice);
        let mut libs: Vec<Lib> = Vec::with_capacity(entries.len());
        let mut by_name: HashMap<String, MappingId> = HashMap::new();
        for entry in entries {
            let (name, lib) = lib(entry, &mut sink.stacks);
            by_name.entry(name.to_owned()).or_insert(lib.mapping);
            libs.push(lib);
        }
        let mut by_start: Vec<usize> = (0..libs.len())
            .filter(|&position| libs[position].end > libs[position].start)
            .collect();
        by_start.sort_by_key(|&position| libs[position].start);
        Ok(Self {
            libs,
            by_start,
            by_name,
        })
    }

    pub(crate) fn mapping(&self, position: u32) -> Option<MappingId> {
        self.libs.get(position as usize).map(|lib| lib.mapping)
    }

    /// The library of this name.
    pub(crate) fn named(&self, name: &str) -> Option<MappingId> {
        self.by_name.get(name).copied()
    }

    /// The library at an address, and the address relative to it.
    pub(crate) fn at(&self, address: u64) -> Option<(MappingId, u64)> {
        let after = self
            .by_start
            .partition_point(|&position| self.libs[position].start <= address);
        let lib = &self.libs[*self.by_start.get(after.checked_sub(1)?)?];
        if address >= lib.end {
            return None;
        }
        Some((
            lib.mapping,
            (address - lib.start).saturating_add(lib.offset),
        ))
    }
}

/// The name of a library and what else is known of it.
fn lib<'v>(entry: &'v Value, stacks: &mut NamedStacks<'_>) -> (&'v str, Lib) {
    let own = entry.get(OWN_KEY);
    let number = |name: &str, place: usize| {
        let number = own.map_or_else(|| entry.get(name), |own| own.get(place));
        number.and_then(Value::as_u64).unwrap_or(0)
    };
    let [start, end, offset] = [number("start", 0), number("end", 1), number("offset", 2)];
    // What is a path today was the name before 2017, and `pdbName` the name.
    let path = [
        text(entry, "path"),
        text(entry, "name"),
        text(entry, "debugName"),
    ];
    let path = path.into_iter().find(|path| !path.is_empty()).unwrap_or("");
    let name = [
        text(entry, "debugName"),
        text(entry, "pdbName"),
        text(entry, "name"),
    ];
    let name = name.into_iter().find(|name| !name.is_empty()).unwrap_or("");
    let build_id = match own {
        Some(_) => text(entry, "codeId").to_owned(),
        None => build_id(text(entry, "codeId"), text(entry, "breakpadId")),
    };
    let path = stacks.cut(path);
    let build_id = stacks.cut(&build_id);
    let symbols = &mut stacks.profile.symbols;
    let mapping = Mapping {
        file: symbols.strings.intern(path),
        build_id: symbols.strings.intern(build_id),
        ..match own {
            Some(_) => Mapping {
                memory_start: start,
                memory_limit: end,
                file_offset: offset,
                ..Mapping::default()
            },
            None => Mapping::default(),
        }
    };
    let lib = Lib {
        mapping: symbols.intern_mapping(mapping),
        start,
        end,
        offset,
    };
    (name, lib)
}

/// A code id is the build id itself where it is as long as one (on Windows it is a time). Of a
/// breakpad id nothing but digits is kept.
fn build_id(code_id: &str, breakpad_id: &str) -> String {
    const SHORTEST_BUILD_ID: usize = 32;
    let is_hex = |id: &str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if code_id.len() >= SHORTEST_BUILD_ID && is_hex(code_id) {
        return code_id.to_ascii_lowercase();
    }
    let is_known = is_hex(breakpad_id) && breakpad_id.bytes().any(|byte| byte != b'0');
    if is_known {
        return breakpad_id.to_ascii_lowercase();
    }
    String::new()
}
