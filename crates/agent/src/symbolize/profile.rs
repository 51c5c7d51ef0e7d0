//! A window becomes a profile.

use std::sync::Arc;

use candela_model::FrameKind;
use candela_model::FunctionId;
use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::Labels;
use candela_model::Link;
use candela_model::LinkId;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::MappingId;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::SampleLabel;
use candela_model::StackId;
use candela_model::StringId;
use candela_symbols::FrameLanguage;
use candela_symbols::ObjectFile;
use candela_symbols::SourceFrame;
use hashbrown::HashMap;

use crate::filters::SampleFilters;
use crate::processes::Object;
use crate::symbolize::names::Symbols;
use crate::symbolize::scale::Measure;
use crate::symbolize::scale::Scale;
use crate::symbolize::selection::Selection;
use crate::symbolize::stack_labels::stack_labels;
use crate::window::Place;
use crate::window::Space;
use crate::window::TimedSample;
use crate::window::Window;
use crate::window::WindowStack;

/// The file name of what the kernel itself runs.
const KERNEL_FILE: &str = "[kernel]";

/// The frame between the stack of a wait and that of who ended it: what off-wake flame graphs have.
const SEPARATOR: &str = "--";

/// What the source says of all samples of a window.
#[derive(Clone, Debug)]
pub(crate) struct ProfileHeader {
    pub(crate) scale: Scale,
    /// Nanoseconds since the epoch.
    pub(crate) start_ns: i64,
    pub(crate) duration_ns: i64,
    /// Unix time minus CLOCK_MONOTONIC.
    pub(crate) clock: candela_ebpf::Clock,
}

/// How many places were named, and how many samples are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProfileCounts {
    pub(crate) named: u64,
    pub(crate) unnamed: u64,
    pub(crate) excluded: u64,
    pub(crate) below_min: u64,
}

/// The samples of a window that `filters` leave as series, one for each set of labels and each profile type,
/// with names for all places.
pub(crate) fn build_profile(
    window: &Window,
    header: &ProfileHeader,
    filters: &SampleFilters,
    symbols: &mut Symbols,
) -> (Profile, ProfileCounts) {
    symbols.jit.next_window();
    let selection = Selection::of(window, filters);
    let places = selection.places(window);
    let mut builder = Builder {
        window,
        symbols,
        profile: Profile::default(),
        counts: ProfileCounts {
            excluded: selection.excluded,
            below_min: selection.below_min,
            ..ProfileCounts::default()
        },
        selection,
        objects: vec![None; window.spaces.len()],
        lines: Vec::new(),
    };
    let locations: Vec<LocationId> = window
        .places
        .iter()
        .zip(places)
        .map(|(place, is_wanted)| match is_wanted {
            true => builder.location(place),
            false => LocationId::default(),
        })
        .collect();
    let stacks = builder.stacks(&locations);
    builder.series(header, &stacks);
    (builder.profile, builder.counts)
}

struct Builder<'a> {
    window: &'a Window,
    symbols: &'a mut Symbols,
    profile: Profile,
    counts: ProfileCounts,
    selection: Selection,
    /// By space.
    objects: Vec<Option<OpenObject>>,
    lines: Vec<(FunctionId, u32, u32)>,
}

/// An object of the window, opened once for all of its places.
#[derive(Clone)]
struct OpenObject {
    file: Option<Arc<ObjectFile>>,
    mapping: MappingId,
}

impl Builder<'_> {
    fn location(&mut self, place: &Place) -> LocationId {
        match &self.window.spaces[place.space as usize] {
            Space::Kernel => self.kernel_location(place.address),
            Space::Object(object) => self.object_location(place, object),
            Space::Process { pid } => self.process_location(place.address, *pid),
            Space::Separator => self.separator(),
        }
    }

    fn separator(&mut self) -> LocationId {
        let symbols = &mut self.profile.symbols;
        let function = symbols.intern_function(SEPARATOR, "", "", 0);
        symbols.intern_location(&Location::new(FrameKind::Unknown, 0), &[(function, 0, 0)])
    }

    fn kernel_location(&mut self, address: u64) -> LocationId {
        let build_id = self.symbols.kernel.build_id().to_owned();
        let found = self.symbols.kernel.find(address);
        let found = found.map(|symbol| {
            (
                symbol.to_frame(),
                symbol.module.map(|module| format!("[{module}]")),
            )
        });
        let (frame, module) = found.unzip();
        let mapping = match module.flatten() {
            Some(module) => self.mapping(&module, "", (0, 0, 0)),
            None => self.mapping(KERNEL_FILE, &build_id, (0, 0, 0)),
        };
        self.add_location(FrameKind::Kernel, address, mapping, frame.as_slice())
    }

    fn process_location(&mut self, address: u64, pid: u32) -> LocationId {
        let frame = self.symbols.jit.find(pid, address);
        let kind = frame
            .as_ref()
            .map_or(FrameKind::Native, |frame| kind_of(frame.language));
        self.add_location(kind, address, MappingId::default(), frame.as_slice())
    }

    fn object_location(&mut self, place: &Place, object: &Object) -> LocationId {
        let OpenObject { file, mapping } = self.open(place.space as usize, object);
        let description = object.describe();
        let elf_address = description.and_then(|headers| headers.elf_address(place.address));
        // Without headers the offset in the file is what can still be told apart.
        let address = elf_address.unwrap_or(place.address);
        let frames = match (&file, elf_address) {
            (Some(file), Some(elf_address)) => self.symbols.resolve(file, elf_address),
            _ => Arc::from([]),
        };
        let is_go = file.as_ref().is_some_and(|file| file.is_go());
        let kind = match frames.first() {
            Some(frame) => kind_of(frame.language),
            None if is_go => FrameKind::Go,
            None => FrameKind::Native,
        };
        self.add_location(kind, address, mapping, &frames)
    }

    fn open(&mut self, space: usize, object: &Object) -> OpenObject {
        if let Some(open) = &self.objects[space] {
            return open.clone();
        }
        // The loader may be late on a busy host, and a stack stored without build id gets no names later.
        let description = object.describe();
        let build_id = description
            .map(|headers| headers.build_id.to_string())
            .unwrap_or_default();
        let range = description.map_or((0, 0, 0), |headers| headers.code_range());
        let open = OpenObject {
            file: self.symbols.open(object),
            mapping: self.mapping(&object.path, &build_id, range),
        };
        self.objects[space] = Some(open.clone());
        open
    }

    fn mapping(&mut self, file: &str, build_id: &str, range: (u64, u64, u64)) -> MappingId {
        let symbols = &mut self.profile.symbols;
        let mapping = Mapping {
            memory_start: range.0,
            memory_limit: range.1,
            file_offset: range.2,
            file: symbols.strings.intern(file),
            build_id: symbols.strings.intern(build_id),
        };
        symbols.intern_mapping(mapping)
    }

    fn add_location(
        &mut self,
        kind: FrameKind,
        address: u64,
        mapping: MappingId,
        frames: &[SourceFrame],
    ) -> LocationId {
        match frames.is_empty() {
            true => self.counts.unnamed += 1,
            false => self.counts.named += 1,
        }
        let symbols = &mut self.profile.symbols;
        self.lines.clear();
        for frame in frames {
            let system_name = match frame.system_name == frame.function {
                true => "",
                false => &frame.system_name,
            };
            let file = frame.file.as_deref().unwrap_or_default();
            let function =
                symbols.intern_function(&frame.function, system_name, file, frame.start_line);
            self.lines.push((function, frame.line, frame.column));
        }
        let location = Location::new(kind, address).in_mapping(mapping);
        symbols.intern_location(&location, &self.lines)
    }

    /// Whether a place is how the kernel came from a tracepoint to our program: no part of what it traced.
    fn is_ours(&mut self, place: &Place) -> bool {
        let Space::Kernel = self.window.spaces[place.space as usize] else {
            return false;
        };
        let symbol = self.symbols.kernel.find(place.address);
        symbol.is_some_and(|symbol| {
            let name = symbol.name;
            name.starts_with("__bpf_trace_") || name.starts_with("__traceiter_")
        })
    }

    fn stacks(&mut self, locations: &[LocationId]) -> Vec<StackId> {
        let is_ours: Vec<bool> = self
            .window
            .places
            .iter()
            .map(|place| self.is_ours(place))
            .collect();
        let mut scratch = Vec::new();
        self.window
            .stacks
            .iter()
            .enumerate()
            .map(|(position, stack)| {
                if !self.selection.has(position) {
                    return StackId::default();
                }
                scratch.clear();
                let places = self.window.places_of(stack).iter();
                let places = places.filter(|&&place| !is_ours[place as usize]);
                scratch.extend(places.map(|&place| locations[place as usize]));
                self.profile.stacks.intern(&scratch)
            })
            .collect()
    }

    fn series(&mut self, header: &ProfileHeader, stacks: &[StackId]) {
        let mut series_of_labels: HashMap<Arc<Labels>, usize> = HashMap::new();
        let mut series_of_process = Vec::new();
        for process in &self.window.processes {
            let series = &mut self.profile.series;
            let position = *series_of_labels
                .entry(Arc::clone(&process.labels))
                .or_insert_with(|| {
                    let first = series.len();
                    let types = header.scale.measures.iter();
                    series.extend(types.map(|(profile_type, _)| ProfileSeries {
                        start_ns: header.start_ns,
                        duration_ns: header.duration_ns,
                        period: header.scale.period,
                        ..ProfileSeries::new(Labels::clone(&process.labels), profile_type.clone())
                    }));
                    first
                });
            series_of_process.push(position);
        }
        let labels = stack_labels(
            self.window,
            header.scale.has_reasons,
            &mut self.symbols.kernel,
            &mut self.profile,
        );
        let links = self.links();
        let rows = Rows {
            header,
            stacks,
            labels: &labels,
            links: &links,
            series: &series_of_process,
        };
        if self.window.timed.is_empty() {
            self.add_counted(&rows);
        } else {
            self.add_timed(&rows);
        }
        if self.selection.is_partial() {
            let series = &mut self.profile.series;
            series.retain(|series| !series.samples.is_empty());
        }
    }

    /// By number of the context.
    fn links(&mut self) -> Vec<LinkId> {
        let contexts = self.window.contexts.list().iter();
        let links = contexts.map(|context| {
            self.profile.intern_link(Link {
                trace_id: context.span.trace_id,
                span_id: context.span.span_id,
            })
        });
        links.collect()
    }

    fn add_counted(&mut self, rows: &Rows<'_>) {
        // Processes of one series share most of their stacks.
        let mut totals: HashMap<(usize, StackId, LabelSetId, LinkId), i64> = HashMap::new();
        for (position, stack) in self.window.stacks.iter().enumerate() {
            // Of a window with times, all of whose samples were left out, or by a rule.
            if stack.samples == 0 || !self.selection.has(position) {
                continue;
            }
            let label_set = rows.labels[position];
            let link = rows.link_of(stack);
            for (series, measure) in rows.series_of(stack) {
                let total = totals
                    .entry((series, rows.stacks[position], label_set, link))
                    .or_default();
                *total = total.saturating_add(measure.of(stack.amount));
            }
        }
        for ((series, stack, label_set, link), value) in totals {
            self.profile.series[series].samples.push(Sample {
                label_set,
                link,
                ..Sample::new(stack, value)
            });
        }
        for series in &mut self.profile.series {
            let samples = &mut series.samples;
            samples.sort_unstable_by_key(|sample| (sample.stack, sample.label_set, sample.link));
        }
    }

    fn add_timed(&mut self, rows: &Rows<'_>) {
        let keys = LabelKeys::intern(&mut self.profile);
        let thread_names: Vec<StringId> = self
            .window
            .thread_names
            .iter()
            .map(|name| self.profile.symbols.strings.intern(name))
            .collect();
        let mut label_sets: HashMap<_, LabelSetId> = HashMap::new();
        for timed in &self.window.timed {
            let position = timed.stack as usize;
            if !self.selection.has(position) {
                continue;
            }
            let stack = &self.window.stacks[position];
            let pid = self.window.processes[stack.process as usize].pid;
            let of_stack = rows.labels[position];
            let TimedSample {
                tid,
                thread_name,
                cpu,
                ..
            } = *timed;
            let profile = &mut self.profile;
            let label_set = *label_sets
                .entry((pid, tid, thread_name, cpu, of_stack))
                .or_insert_with(|| {
                    let mut labels = vec![number_label(keys.pid, pid)];
                    // Heaps that were read do not tell threads.
                    if tid != 0 {
                        let name = thread_names[thread_name as usize];
                        labels.push(number_label(keys.thread_id, tid));
                        labels.push(SampleLabel::text(keys.thread_name, name));
                    }
                    labels.extend(cpu.map(|cpu| number_label(keys.cpu, cpu)));
                    labels.extend(profile.label_sets.get(of_stack));
                    profile.label_sets.intern(labels)
                });
            for (series, measure) in rows.series_of(stack) {
                profile.series[series].samples.push(Sample {
                    label_set,
                    link: rows.link_of(stack),
                    time_ns: rows.header.clock.unix_ns(timed.time_ns),
                    ..Sample::new(rows.stacks[position], measure.of(timed.amount))
                });
            }
        }
    }
}

/// What the samples of a window become rows of.
struct Rows<'a> {
    header: &'a ProfileHeader,
    /// By stack of the window.
    stacks: &'a [StackId],
    /// By stack of the window.
    labels: &'a [LabelSetId],
    /// By number of the context.
    links: &'a [LinkId],
    /// By process of the window, the first of its series: those of the other types follow it.
    series: &'a [usize],
}

impl Rows<'_> {
    fn link_of(&self, stack: &WindowStack) -> LinkId {
        stack
            .context
            .map_or(LinkId::default(), |context| self.links[context as usize])
    }

    /// The series that a sample of `stack` is in, and which part of its amount is its value there.
    fn series_of(&self, stack: &WindowStack) -> impl Iterator<Item = (usize, Measure)> {
        let first = self.series[stack.process as usize];
        let measures = self.header.scale.measures.iter();
        measures
            .enumerate()
            .map(move |(position, (_, measure))| (first + position, *measure))
    }
}

/// The names of the labels of timed samples.
struct LabelKeys {
    pid: StringId,
    thread_id: StringId,
    thread_name: StringId,
    cpu: StringId,
}

impl LabelKeys {
    fn intern(profile: &mut Profile) -> Self {
        let strings = &mut profile.symbols.strings;
        Self {
            pid: strings.intern("pid"),
            thread_id: strings.intern("thread_id"),
            thread_name: strings.intern("thread_name"),
            cpu: strings.intern("cpu"),
        }
    }
}

fn number_label(key: StringId, value: u32) -> SampleLabel {
    SampleLabel {
        key,
        value: LabelValue::Number {
            value: i64::from(value),
            unit: StringId::default(),
        },
    }
}

fn kind_of(language: FrameLanguage) -> FrameKind {
    match language {
        FrameLanguage::Native => FrameKind::Native,
        FrameLanguage::Rust => FrameKind::Rust,
        FrameLanguage::Go => FrameKind::Go,
        FrameLanguage::Kernel => FrameKind::Kernel,
        FrameLanguage::Jvm => FrameKind::Jvm,
        FrameLanguage::V8 => FrameKind::V8js,
        FrameLanguage::Cpython => FrameKind::Cpython,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::kinds::Kind;
    use crate::observation::ProcessView;
    use crate::places::CodePlace;
    use crate::processes::Mappings;
    use crate::processes::ObjectSource;
    use crate::processes::ProcessIdentity;
    use crate::symbolize::SymbolOptions;
    use crate::window::Amount;

    #[test]
    fn code_has_its_build_id_before_the_loader_has_come_to_it() {
        let path = std::env::current_exe().expect("our own path");
        let file = File::open(&path).expect("our own executable");
        let own = ObjectFile::open(&path).expect("our own executable");
        let path = path.to_str().expect("an UTF-8 path").to_owned();
        let object = Object::new(1, path, "/".into(), ObjectSource::File(file));
        let place = CodePlace {
            space: Space::Object(Arc::new(object)),
            address: 0x1000,
        };
        let process = ProcessView {
            identity: ProcessIdentity {
                pid: 1,
                serial: 1,
                generation: 0,
            },
            labels: Arc::default(),
            unsettled: None,
            mappings: Mappings::default(),
        };
        let mut window = Window::new(false);
        window.add_placed(&process, (&[place], None), 5, (1, Amount::default()));
        let header = ProfileHeader {
            scale: Scale::of(Kind::Cpu, 1),
            start_ns: 0,
            duration_ns: 1,
            clock: candela_ebpf::Clock::now(),
        };
        let mut symbols = Symbols::new(SymbolOptions {
            cache_bytes: 1 << 20,
            debuginfod: None,
        });
        let (profile, _) = build_profile(&window, &header, &SampleFilters::default(), &mut symbols);
        let tables = &profile.symbols;
        let build_ids = tables.mappings().iter();
        let build_ids: Vec<&str> = build_ids
            .map(|it| tables.strings.get(it.build_id))
            .collect();
        assert_eq!(build_ids, ["", &own.build_id().to_string()]);
    }
}
