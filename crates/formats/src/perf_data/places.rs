//! Places become locations, with names where a resolver has some.

use candela_model::FrameKind;
use candela_model::Function;
use candela_model::FunctionId;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::MappingId;
use candela_model::StringId;
use candela_model::SymbolTables;
use hashbrown::HashMap;
use hashbrown::HashSet;

use crate::perf_data::collector::Place;
use crate::perf_data::collector::Region;
use crate::perf_data::features::Features;
use crate::perf_data::files::Files;
use crate::perf_data::files::KERNEL_FILE;
use crate::perf_data::files::PERF_KERNEL;
use crate::perf_data::mappings;
use crate::perf_data::resolver::AddressResolver;
use crate::perf_data::resolver::KernelIdentity;
use crate::perf_data::resolver::MappedBinary;
use crate::perf_data::resolver::ResolvedCode;
use crate::perf_data::resolver::ResolvedFrame;

/// Makes locations of places.
pub(crate) struct Places<'a, 'r> {
    symbols: &'a mut SymbolTables,
    files: &'a Files,
    features: &'a Features,
    resolver: Option<&'r mut dyn AddressResolver>,
    /// Of parts of the kernel, by region.
    mappings: HashMap<u32, MappingId>,
    /// Files that the resolver does not know, and of which the recording does not name all either.
    unknown_files: HashSet<u32>,
    /// Functions that only the recording names, by that name.
    own_functions: HashMap<&'a str, FunctionId>,
}

impl<'a, 'r> Places<'a, 'r> {
    pub(crate) fn new(
        symbols: &'a mut SymbolTables,
        files: &'a Files,
        features: &'a Features,
        resolver: Option<&'r mut dyn AddressResolver>,
    ) -> Self {
        Self {
            symbols,
            files,
            features,
            resolver,
            mappings: HashMap::new(),
            unknown_files: HashSet::new(),
            own_functions: HashMap::new(),
        }
    }

    /// How many files the resolver did not know.
    pub(crate) fn files_not_found(&self) -> u64 {
        self.unknown_files.len() as u64
    }

    pub(crate) fn location(&mut self, place: &Place, regions: &[Region]) -> LocationId {
        let address = place.address;
        let kernel = Location::new(FrameKind::Kernel, address);
        match regions[place.region as usize] {
            Region::File(mapping) => self.code_of_file(place, &mapping),
            Region::Compiled(mapping) => self.compiled(address, &mapping),
            Region::Process { pid } => self.anonymous(pid, address),
            Region::Kernel { file } => self.kernel(place.region, file, address),
            Region::UnknownKernel => self.without_names(kernel, KERNEL_FILE),
            Region::Hypervisor => self.without_names(kernel, "[hypervisor]"),
            Region::UnknownGuestKernel => self.without_names(kernel, "[guest.kernel]"),
            Region::GuestUser => {
                let guest = Location::new(FrameKind::Native, address);
                self.without_names(guest, "[guest]")
            }
        }
    }

    fn without_names(&mut self, location: Location, file: &str) -> LocationId {
        let file = self.symbols.strings.intern(file);
        let mapping = self.symbols.intern_mapping(Mapping {
            file,
            ..Mapping::default()
        });
        self.symbols
            .intern_location(&location.in_mapping(mapping), &[])
    }

    fn anonymous(&mut self, pid: u32, address: u64) -> LocationId {
        let found = match self.resolver.as_deref_mut() {
            Some(resolver) => resolver.resolve_anonymous(pid, address),
            None => Vec::new(),
        };
        let kind = found.first().map_or(FrameKind::Native, |(kind, _)| *kind);
        let frames: Vec<ResolvedFrame> = found.into_iter().map(|(_, frame)| frame).collect();
        let own_name = self.features.own_symbols.of_process(pid, address);
        let lines = self.lines_or_own(&frames, own_name);
        self.symbols
            .intern_location(&Location::new(kind, address), &lines)
    }

    fn kernel(&mut self, region: u32, file: u32, address: u64) -> LocationId {
        let file = self.files.get(file);
        let build_id = self.build_id(file.build_id, file.perf_path);
        let mapping = match self.mappings.get(&region) {
            Some(known) => *known,
            None => {
                let mapping = Mapping {
                    file: file.path,
                    build_id,
                    ..Mapping::default()
                };
                let made = self.symbols.intern_mapping(mapping);
                self.mappings.insert(region, made);
                made
            }
        };
        let location = Location::new(FrameKind::Kernel, address).in_mapping(mapping);
        if file.function != StringId::default() {
            let function = Function {
                name: file.function,
                ..Function::default()
            };
            let function = self.symbols.intern_function_ids(function);
            return self.symbols.intern_location(&location, &[(function, 0, 0)]);
        }
        let is_guest = self.symbols.strings.get(file.path).starts_with("[guest");
        let frames = match self.resolver.as_deref_mut() {
            Some(resolver) if !is_guest => {
                let reference = self.files.kernel_reference.as_ref();
                let identity = KernelIdentity {
                    build_id: self.features.build_id(PERF_KERNEL),
                    reference: reference.map(|(symbol, address)| (symbol.as_str(), *address)),
                };
                resolver.resolve_kernel(&identity, address)
            }
            _ => Vec::new(),
        };
        let own_name = match is_guest {
            true => None,
            false => self.features.own_symbols.of_kernel(address),
        };
        let lines = self.lines_or_own(&frames, own_name);
        self.symbols.intern_location(&location, &lines)
    }

    /// What only the recording knows.
    fn compiled(&mut self, address: u64, mapping: &mappings::Mapping) -> LocationId {
        let file = self.files.get(mapping.file).path;
        let path = self.symbols.strings.get(file);
        let own = self.features.own_symbols.of_compiled(path, address);
        let kind = own.map_or(FrameKind::Native, |(kind, _)| kind);
        let lines = self.lines_or_own(&[], own.map(|(_, name)| name));
        let mapping = self.symbols.intern_mapping(Mapping {
            memory_start: mapping.start,
            memory_limit: mapping.end,
            file,
            ..Mapping::default()
        });
        let location = Location::new(kind, address).in_mapping(mapping);
        self.symbols.intern_location(&location, &lines)
    }

    fn code_of_file(&mut self, place: &Place, mapping: &mappings::Mapping) -> LocationId {
        let file = *self.files.get(mapping.file);
        let build_id = self.build_id(file.build_id, file.perf_path);
        let path = self.symbols.strings.get(file.path);
        let own = self
            .features
            .own_symbols
            .of_file(path, mapping, place.address);
        let own_name = own.map(|(_, name)| name);
        if let Some(code) = self.resolve(place, mapping, file.path, build_id) {
            let (start, limit, offset) = code.code_range;
            let build_id = match build_id == StringId::default() {
                true => self.symbols.strings.intern(&code.build_id),
                false => build_id,
            };
            let mapping = self.symbols.intern_mapping(Mapping {
                memory_start: start,
                memory_limit: limit,
                file_offset: offset,
                file: file.path,
                build_id,
            });
            let lines = self.lines_or_own(&code.frames, own_name);
            let location = Location::new(code.kind, code.address).in_mapping(mapping);
            return self.symbols.intern_location(&location, &lines);
        }
        if self.resolver.is_some() && own.is_none() {
            self.unknown_files.insert(mapping.file);
        }
        let mapping = self.symbols.intern_mapping(Mapping {
            memory_start: mapping.start,
            memory_limit: mapping.end,
            file_offset: mapping.file_offset,
            file: file.path,
            build_id,
        });
        let kind = own.map_or(FrameKind::Native, |(kind, _)| kind);
        let location = Location::new(kind, place.address).in_mapping(mapping);
        let lines = self.lines_or_own(&[], own_name);
        self.symbols.intern_location(&location, &lines)
    }

    fn resolve(
        &mut self,
        place: &Place,
        mapping: &mappings::Mapping,
        path: StringId,
        build_id: StringId,
    ) -> Option<ResolvedCode> {
        let resolver = self.resolver.as_deref_mut()?;
        let strings = &self.symbols.strings;
        let binary = MappedBinary {
            path: strings.get(path),
            build_id: strings.get(build_id),
            start: mapping.start,
            end: mapping.end,
            file_offset: mapping.file_offset,
        };
        let inside = place.address.wrapping_sub(mapping.start);
        resolver.resolve(&binary, mapping.file_offset.wrapping_add(inside))
    }

    /// The build id of a mapping, or else the one that the recording has for the path.
    fn build_id(&mut self, of_mapping: StringId, perf_path: StringId) -> StringId {
        if of_mapping != StringId::default() {
            return of_mapping;
        }
        let strings = &mut self.symbols.strings;
        match self.features.build_id(strings.get(perf_path)) {
            "" => StringId::default(),
            build_id => strings.intern(build_id),
        }
    }

    /// The functions that a resolver found, or else the one that the recording names.
    fn lines_or_own(
        &mut self,
        frames: &[ResolvedFrame],
        own_name: Option<&'a str>,
    ) -> Vec<(FunctionId, u32, u32)> {
        let Some(name) = own_name.filter(|_| frames.is_empty()) else {
            return self.lines(frames);
        };
        if let Some(&known) = self.own_functions.get(name) {
            return vec![(known, 0, 0)];
        }
        let resolver = self.resolver.as_deref();
        let readable = resolver.and_then(|resolver| resolver.demangle(name));
        let function = match readable {
            Some(readable) => self.symbols.intern_function(&readable, name, "", 0),
            None => self.symbols.intern_function(name, "", "", 0),
        };
        self.own_functions.insert(name, function);
        vec![(function, 0, 0)]
    }

    fn lines(&mut self, frames: &[ResolvedFrame]) -> Vec<(FunctionId, u32, u32)> {
        let lines = frames.iter().map(|frame| {
            let function = self.symbols.intern_function(
                &frame.function,
                &frame.system_name,
                &frame.file,
                frame.start_line,
            );
            (function, frame.line, frame.column)
        });
        lines.collect()
    }
}
