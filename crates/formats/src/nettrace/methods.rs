//! Methods by address.

use candela_model::FrameKind;
use candela_model::Function;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::StringId;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::named_stacks::NamedStacks;
use crate::nettrace::cursor::Cursor;
use crate::work::STEPS_PER_ENTRY;
use crate::work::Work;

/// A method in memory.
#[derive(Clone, Copy, Debug)]
struct Method {
    start: u64,
    end: u64,
    module: u64,
    name: StringId,
    full_name: StringId,
}

/// All methods and modules of a trace. Most are told at its end.
#[derive(Debug, Default)]
pub(crate) struct Methods {
    methods: Vec<Method>,
    /// Path of each module.
    modules: HashMap<u64, StringId>,
    locations: HashMap<u64, LocationId>,
}

impl Methods {
    /// From an event that names a method.
    pub(crate) fn take_method(
        &mut self,
        payload: &[u8],
        stacks: &mut NamedStacks<'_>,
    ) -> Option<()> {
        let mut cursor = Cursor::new(payload);
        let _id = cursor.u64()?;
        let module = cursor.u64()?;
        let start = cursor.u64()?;
        let size = u64::from(cursor.u32()?);
        let _token = cursor.u32()?;
        let _flags = cursor.u32()?;
        let namespace = cursor.utf16()?;
        let name = cursor.utf16()?;
        let signature = cursor.utf16()?;
        let name = match namespace.as_str() {
            "" => name,
            namespace => format!("{namespace}.{name}"),
        };
        let parameters = signature.find('(').and_then(|at| signature.get(at..));
        let full_name = format!("{name}{}", parameters.unwrap_or(""));
        let mut intern = |text: &str| {
            let text = stacks.cut(text);
            stacks.profile.symbols.strings.intern(text)
        };
        let method = Method {
            start,
            end: start.saturating_add(size),
            module,
            name: intern(&name),
            full_name: intern(&full_name),
        };
        self.methods.push(method);
        Some(())
    }

    /// From an event that names a module.
    pub(crate) fn take_module(
        &mut self,
        payload: &[u8],
        stacks: &mut NamedStacks<'_>,
    ) -> Option<()> {
        let mut cursor = Cursor::new(payload);
        let module = cursor.u64()?;
        let _assembly = cursor.u64()?;
        let _flags = cursor.u32()?;
        let _reserved = cursor.u32()?;
        let path = cursor.utf16()?;
        let path = stacks.cut(&path);
        let id = stacks.profile.symbols.strings.intern(path);
        self.modules.insert(module, id);
        Some(())
    }

    /// Makes methods findable. Of those at one place the last counts: the others are gone.
    pub(crate) fn sort(&mut self) {
        self.methods.reverse();
        self.methods.sort_by_key(|method| method.start);
        self.methods.dedup_by_key(|method| method.start);
    }

    /// Where an address is. Of callers it is behind the call.
    pub(crate) fn location(
        &mut self,
        address: u64,
        is_caller: bool,
        work: &mut Work,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<LocationId, ReadError> {
        let looked_up = address.saturating_sub(u64::from(is_caller));
        if let Some(&known) = self.locations.get(&looked_up) {
            return Ok(known);
        }
        work.spend(STEPS_PER_ENTRY)?;
        let behind = self
            .methods
            .partition_point(|method| method.start <= looked_up);
        let before = behind.checked_sub(1).and_then(|at| self.methods.get(at));
        let method = before.filter(|method| looked_up < method.end);
        let symbols = &mut stacks.profile.symbols;
        let id = match method {
            Some(method) => {
                let file = self.modules.get(&method.module).copied();
                let mapping = symbols.intern_mapping(Mapping {
                    file: file.unwrap_or_default(),
                    ..Mapping::default()
                });
                let function = symbols.intern_function_ids(Function {
                    name: method.name,
                    system_name: method.full_name,
                    file: StringId(0),
                    start_line: 0,
                });
                let location = Location::new(FrameKind::Dotnet, looked_up).in_mapping(mapping);
                symbols.intern_location(&location, &[(function, 0, 0)])
            }
            None => symbols.intern_location(&Location::new(FrameKind::Unknown, looked_up), &[]),
        };
        self.locations.insert(looked_up, id);
        Ok(id)
    }
}
