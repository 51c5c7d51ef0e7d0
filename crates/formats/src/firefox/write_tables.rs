//! Symbols and stacks as the shared tables of a processed profile.

use candela_model::FrameKind;
use candela_model::FunctionId;
use candela_model::LocationId;
use candela_model::MappingId;
use candela_model::Profile;
use candela_model::StackId;
use hashbrown::HashMap;

use crate::firefox::columns::Index;
use crate::firefox::columns::Lib;
use crate::firefox::columns::Shared;

/// Builds the shared tables from what samples use.
pub(crate) struct Tables<'p> {
    profile: &'p Profile,
    pub(crate) shared: Shared,
    pub(crate) libs: Vec<Lib>,
    /// The kinds of code of the categories.
    pub(crate) categories: Vec<FrameKind>,
    /// Whether all code has names: otherwise the Firefox Profiler asks its symbol server.
    pub(crate) is_symbolicated: bool,
    strings: HashMap<String, u32>,
    sources: HashMap<u32, u32>,
    lib_of_mapping: HashMap<MappingId, (i64, i64)>,
    functions: HashMap<(FunctionId, i64), u32>,
    addresses: HashMap<(u32, i64), u32>,
    frames: HashMap<LocationId, Vec<u32>>,
    stacks: HashMap<(u32, u32), u32>,
    known: HashMap<StackId, Index>,
}

/// What has no parent, as a parent.
const NO_STACK: u32 = u32::MAX;

/// JavaScript has no whole numbers above.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// `ResourceType.Library`.
const LIBRARY: u32 = 1;

/// The name of the category of a kind. "Other" is what Firefox calls what it knows nothing of.
pub(crate) fn category_name(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Unknown => "Other",
        FrameKind::Other => "Remainder",
        kind => kind.as_str(),
    }
}

impl<'p> Tables<'p> {
    pub(crate) fn new(profile: &'p Profile) -> Self {
        Self {
            profile,
            shared: Shared::default(),
            libs: Vec::new(),
            categories: vec![FrameKind::Unknown],
            is_symbolicated: true,
            strings: HashMap::new(),
            sources: HashMap::new(),
            lib_of_mapping: HashMap::new(),
            functions: HashMap::new(),
            addresses: HashMap::new(),
            frames: HashMap::new(),
            stacks: HashMap::new(),
            known: HashMap::new(),
        }
    }

    /// The position of a stack; `None` for the empty one.
    pub(crate) fn stack(&mut self, id: StackId) -> Index {
        if let Some(&known) = self.known.get(&id) {
            return known;
        }
        let profile = self.profile;
        let mut parent = NO_STACK;
        for &location in profile.stacks.get(id).iter().rev() {
            for frame in self.frames(location) {
                parent = self.child(parent, frame);
            }
        }
        let position = (parent != NO_STACK).then_some(parent);
        self.known.insert(id, position);
        position
    }

    fn child(&mut self, parent: u32, frame: u32) -> u32 {
        let table = &mut self.shared.stack_table;
        *self.stacks.entry((parent, frame)).or_insert_with(|| {
            let position = table.length as u32;
            let offset = if parent == NO_STACK {
                0
            } else {
                position - parent
            };
            table.frame.push(frame);
            table.prefix_offset.push(offset);
            table.length += 1;
            position
        })
    }

    /// The frames of a location, outermost first.
    fn frames(&mut self, id: LocationId) -> Vec<u32> {
        if let Some(known) = self.frames.get(&id) {
            return known.clone();
        }
        let symbols = &self.profile.symbols;
        let location = *symbols.location(id);
        let (lib, resource) = self.lib(location.mapping);
        let address = self.relative_address(location.mapping, location.address);
        let category = self.category(location.kind);
        let is_script = location.kind == FrameKind::V8js;
        let mut made = Vec::new();
        for line in symbols.lines(id).iter().rev() {
            let func = self.function(line.function, resource, is_script);
            let position = [line.line, line.column].map(known);
            let depth = made.len() as u32;
            made.push(self.frame(func, (lib, address), category, depth, position));
        }
        if made.is_empty() {
            let func = self.address_function(id, address, resource);
            made.push(self.frame(func, (lib, address), category, 0, [None; 2]));
        }
        let differs = location.address != 0 && u64::try_from(address) != Ok(location.address);
        let own_address = differs.then_some(location.address);
        let own = &mut self.shared.frame_table.candela;
        own.extend(made.iter().map(|_| own_address));
        self.frames.insert(id, made.clone());
        made
    }

    fn frame(
        &mut self,
        func: u32,
        (lib, address): (i64, i64),
        category: u32,
        inline_depth: u32,
        [line, column]: [Index; 2],
    ) -> u32 {
        let table = &mut self.shared.frame_table;
        table.address.push(address);
        table.lib.push(lib);
        table.inline_depth.push(inline_depth);
        table.category.push(category);
        table.subcategory.push(Some(0));
        table.func.push(func);
        table.native_symbol.push(None);
        table.inner_window_id.push(None);
        table.line.push(line);
        table.column.push(column);
        table.original_location.push(None);
        table.length += 1;
        table.length as u32 - 1
    }

    fn function(&mut self, id: FunctionId, resource: i64, is_script: bool) -> u32 {
        if let Some(&known) = self.functions.get(&(id, resource)) {
            return known;
        }
        let symbols = &self.profile.symbols;
        let function = symbols.function(id);
        let name = self.string(symbols.strings.get(function.name));
        let source = self.source(symbols.strings.get(function.file));
        let func = self.push_function(
            name,
            resource,
            source,
            known(function.start_line),
            is_script,
        );
        self.functions.insert((id, resource), func);
        func
    }

    /// A function for code without one, named by its address.
    fn address_function(&mut self, id: LocationId, address: i64, resource: i64) -> u32 {
        let symbols = &self.profile.symbols;
        let name = match (address, symbols.location(id).address) {
            (-1, 0) => symbols.address_name(id),
            (-1, absolute) => format!("0x{absolute:x}"),
            (relative, _) => format!("0x{relative:x}"),
        };
        self.is_symbolicated &= address == -1 || resource == -1;
        let name = self.string(&name);
        if let Some(&known) = self.addresses.get(&(name, resource)) {
            return known;
        }
        let func = self.push_function(name, resource, None, None, false);
        self.addresses.insert((name, resource), func);
        func
    }

    fn push_function(
        &mut self,
        name: u32,
        resource: i64,
        source: Index,
        line: Index,
        is_script: bool,
    ) -> u32 {
        let table = &mut self.shared.func_table;
        table.name.push(name);
        table.is_js.push(is_script);
        table.relevant_for_js.push(false);
        table.resource.push(resource);
        table.source.push(source);
        table.line_number.push(line);
        table.column_number.push(None);
        table.original_location.push(None);
        table.length += 1;
        table.length as u32 - 1
    }

    /// The library of a mapping and its resource, -1 when it is not known.
    fn lib(&mut self, id: MappingId) -> (i64, i64) {
        if id == MappingId(0) {
            return (-1, -1);
        }
        if let Some(&known) = self.lib_of_mapping.get(&id) {
            return known;
        }
        let symbols = &self.profile.symbols;
        let mapping = symbols.mapping(id);
        let path = symbols.strings.get(mapping.file).to_owned();
        let build_id = symbols.strings.get(mapping.build_id);
        let name = path.rsplit(['/', '\\']).next().unwrap_or("").to_owned();
        let resource_name = self.string(&name);
        self.libs.push(Lib {
            arch: "",
            debug_name: name.clone(),
            debug_path: path.clone(),
            breakpad_id: breakpad_id(build_id),
            code_id: (!build_id.is_empty()).then(|| build_id.to_owned()),
            candela: [
                mapping.memory_start,
                mapping.memory_limit,
                mapping.file_offset,
            ],
            name,
            path,
        });
        let table = &mut self.shared.resource_table;
        table.name.push(resource_name);
        table.host.push(None);
        table.kind.push(LIBRARY);
        table.length += 1;
        let made = (self.libs.len() as i64 - 1, table.length as i64 - 1);
        self.lib_of_mapping.insert(id, made);
        made
    }

    /// Where an address is in its library; -1 when it is not known or does not fit.
    fn relative_address(&self, mapping: MappingId, address: u64) -> i64 {
        if address == 0 {
            return -1;
        }
        let mapping = self.profile.symbols.mapping(mapping);
        let is_inside = (mapping.memory_start..mapping.memory_limit).contains(&address);
        let relative = if is_inside {
            (address - mapping.memory_start).checked_add(mapping.file_offset)
        } else {
            Some(address)
        };
        let safe = relative.filter(|&relative| relative <= MAX_SAFE_INTEGER);
        safe.map_or(-1, |relative| relative as i64)
    }

    fn category(&mut self, kind: FrameKind) -> u32 {
        let known = self.categories.iter().position(|&known| known == kind);
        let position = known.unwrap_or_else(|| {
            self.categories.push(kind);
            self.categories.len() - 1
        });
        position as u32
    }

    fn source(&mut self, file: &str) -> Index {
        if file.is_empty() {
            return None;
        }
        let name = self.string(file);
        let table = &mut self.shared.sources;
        let position = *self.sources.entry(name).or_insert_with(|| {
            table.id.push(None);
            table.filename.push(name);
            // The whole file.
            table.start_line.push(1);
            table.start_column.push(1);
            table.source_map_url.push(None);
            table.content.push(None);
            table.length += 1;
            table.length as u32 - 1
        });
        Some(position)
    }

    fn string(&mut self, text: &str) -> u32 {
        if let Some(&known) = self.strings.get(text) {
            return known;
        }
        let position = self.shared.string_array.len() as u32;
        self.shared.string_array.push(text.to_owned());
        self.strings.insert(text.to_owned(), position);
        position
    }
}

fn known(number: u32) -> Index {
    (number != 0).then_some(number)
}

/// The first 16 bytes of a build id as the GUID that Breakpad makes of them (its first three fields
/// are little endian), and an age of 0; what is no such id stays as it is.
fn breakpad_id(build_id: &str) -> String {
    const GUID_DIGITS: usize = 32;
    /// Where the digits of each byte of the GUID are.
    const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let is_hex = build_id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let Some(digits) = build_id.get(..GUID_DIGITS).filter(|_| is_hex) else {
        return build_id.to_ascii_uppercase();
    };
    let bytes = ORDER
        .iter()
        .filter_map(|&byte| digits.get(2 * byte..2 * byte + 2));
    let guid: String = bytes.collect();
    format!("{}0", guid.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_ids_become_breakpad_ids() {
        let id = breakpad_id("0123456789abcdef0123456789abcdef01234567");
        assert_eq!(id, "67452301AB89EFCD0123456789ABCDEF0");
        assert_eq!(breakpad_id("go-id"), "GO-ID");
        assert_eq!(breakpad_id(""), "");
    }
}
