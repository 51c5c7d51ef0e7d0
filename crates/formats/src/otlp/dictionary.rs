//! The shared tables of a request, taken into ours once.
//!
//! The first entry of each table should be the zero value, so that index 0 means "none". What the Collector merges has no such
//! entry (`pprofile.Profiles.MergeTo`, v0.165.0): index 0 is a real one there, and also what is written where there is none.
//! So it is read as the entry that it is where a profile cannot do without one (stacks, locations, functions and their names, the
//! mapping of an address without names), and as none where many have none (links, files, units, the mapping of a frame with
//! names): a span or a binary that is not there costs less than a wrong one.

use candela_model::FrameKind;
use candela_model::Function;
use candela_model::FunctionId;
use candela_model::Link;
use candela_model::LinkId;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::MappingId;
use candela_model::Profile;
use candela_model::StackId;
use candela_model::StringId;
use hashbrown::HashMap;

use crate::options::Limits;
use crate::otlp::BUILD_ID_ATTRIBUTES;
use crate::otlp::FRAME_TYPE_ATTRIBUTE;
use crate::otlp::attributes::Plain;
use crate::otlp::attributes::Texts;
use crate::otlp::attributes::plain_values;
use crate::otlp::wire;
use crate::report::Report;

/// For each index of the request's tables what it is here; `None` where an entry refers to what
/// does not exist, so that only the profiles that use it are refused.
#[derive(Debug)]
pub(crate) struct Dictionary<'a> {
    pub(crate) texts: Texts<'a>,
    pub(crate) stacks: Vec<Option<StackId>>,
    pub(crate) links: Vec<LinkId>,
    pub(crate) attributes: Vec<Option<Attribute<'a>>>,
}

/// An entry of the attribute table.
#[derive(Debug)]
pub(crate) struct Attribute<'a> {
    pub(crate) key: &'a str,
    pub(crate) values: Vec<Plain<'a>>,
    pub(crate) unit: &'a str,
}

/// The tables that only other tables refer to.
struct Tables<'a> {
    strings: Vec<StringId>,
    attributes: Vec<Option<Attribute<'a>>>,
    mappings: Vec<Option<MappingId>>,
    functions: Vec<Option<FunctionId>>,
    locations: Vec<Option<LocationId>>,
    /// By attribute: as many mappings as there are may refer to one text.
    build_ids: HashMap<i32, StringId>,
}

/// The entry at an index of the request, which is signed there.
pub(crate) fn entry<T>(table: &[T], index: i32) -> Option<&T> {
    table.get(usize::try_from(index).ok()?)
}

impl<'a> Dictionary<'a> {
    /// Takes all tables in.
    pub(crate) fn read(
        dictionary: &'a wire::ProfilesDictionary,
        profile: &mut Profile,
        report: &mut Report,
        limits: &'a Limits,
    ) -> Self {
        let strings = &dictionary.string_table[..];
        let is_long = |text: &&String| text.len() > limits.max_string_bytes;
        let long_strings = strings.iter().filter(is_long).count();
        report.note_many(
            "strings_cut",
            "strings longer than the limit were cut at their end",
            long_strings as u64,
        );
        let texts = Texts { strings, limits };
        let mut tables = Tables {
            strings: strings
                .iter()
                .map(|text| profile.symbols.strings.intern(limits.cut(text)))
                .collect(),
            attributes: read_attributes(dictionary, texts),
            mappings: Vec::new(),
            functions: Vec::new(),
            locations: Vec::new(),
            build_ids: HashMap::new(),
        };
        tables.mappings = dictionary
            .mapping_table
            .iter()
            .map(|mapping| tables.mapping(profile, mapping))
            .collect();
        tables.functions = dictionary
            .function_table
            .iter()
            .map(|function| tables.function(profile, function))
            .collect();
        tables.locations = dictionary
            .location_table
            .iter()
            .map(|location| tables.location(profile, location))
            .collect();
        let mut cut_stacks = 0;
        let mut scratch = Vec::new();
        let stacks = dictionary
            .stack_table
            .iter()
            .map(|stack| {
                let indices = &stack.location_indices;
                let cut = indices.len().saturating_sub(limits.max_stack_depth);
                cut_stacks += u64::from(cut > 0);
                scratch.clear();
                for &index in &indices[cut..] {
                    scratch.push((*entry(&tables.locations, index)?)?);
                }
                Some(profile.stacks.intern(&scratch))
            })
            .collect();
        report.note_many(
            "stacks_cut",
            "stacks deeper than the limit were cut at the leaf",
            cut_stacks,
        );
        Self {
            texts,
            stacks,
            links: read_links(dictionary, profile),
            attributes: tables.attributes,
        }
    }

    /// The text at an index; `None` when there is no such entry.
    pub(crate) fn text(&self, index: i32) -> Option<&'a str> {
        self.texts.get(index)
    }

    /// The same, but index 0 means no text, whatever stands there.
    pub(crate) fn optional_text(&self, index: i32) -> Option<&'a str> {
        match index {
            0 => Some(""),
            index => self.text(index),
        }
    }

    /// The attribute at an index; `None` when it does not exist or refers to nothing.
    pub(crate) fn attribute(&self, index: i32) -> Option<&Attribute<'a>> {
        entry(&self.attributes, index)?.as_ref()
    }
}

impl Tables<'_> {
    fn string(&self, index: i32) -> Option<StringId> {
        entry(&self.strings, index).copied()
    }

    /// The same, but index 0 means no text, whatever stands there.
    fn optional_string(&self, index: i32) -> Option<StringId> {
        match index {
            0 => Some(StringId(0)),
            index => self.string(index),
        }
    }

    fn mapping(&mut self, profile: &mut Profile, mapping: &wire::Mapping) -> Option<MappingId> {
        let mut build_ids: [Option<(i32, &str)>; BUILD_ID_ATTRIBUTES.len()] = Default::default();
        for &index in &mapping.attribute_indices {
            let attribute = entry(&self.attributes, index)?.as_ref()?;
            let rank = BUILD_ID_ATTRIBUTES
                .iter()
                .position(|name| *name == attribute.key);
            if let (Some(rank), Some(Plain::Text(id))) = (rank, attribute.values.first()) {
                build_ids[rank] = Some((index, id));
            }
        }
        let strings = &mut profile.symbols.strings;
        let build_id = match build_ids.into_iter().flatten().next() {
            Some((index, id)) => {
                let known = self.build_ids.entry(index);
                *known.or_insert_with(|| strings.intern(id))
            }
            None => StringId(0),
        };
        Some(profile.symbols.intern_mapping(Mapping {
            memory_start: mapping.memory_start,
            memory_limit: mapping.memory_limit,
            file_offset: mapping.file_offset,
            file: self.optional_string(mapping.filename_strindex)?,
            build_id,
        }))
    }

    fn function(&self, profile: &mut Profile, function: &wire::Function) -> Option<FunctionId> {
        let name = self.string(function.name_strindex)?;
        let system_name = self.optional_string(function.system_name_strindex)?;
        let is_same = system_name == name;
        Some(profile.symbols.intern_function_ids(Function {
            name: if name == StringId(0) {
                system_name
            } else {
                name
            },
            system_name: if is_same { StringId(0) } else { system_name },
            file: self.optional_string(function.filename_strindex)?,
            start_line: line_number(function.start_line),
        }))
    }

    fn location(&self, profile: &mut Profile, location: &wire::Location) -> Option<LocationId> {
        let has_names = !location.lines.is_empty();
        let mapping = match location.mapping_index {
            0 if has_names || self.mappings.is_empty() => MappingId(0),
            index => (*entry(&self.mappings, index)?)?,
        };
        let mut kind = FrameKind::Unknown;
        for &index in &location.attribute_indices {
            let attribute = entry(&self.attributes, index)?.as_ref()?;
            if let (FRAME_TYPE_ATTRIBUTE, Some(Plain::Text(name))) =
                (attribute.key, attribute.values.first())
            {
                kind = FrameKind::from_name(name);
            }
        }
        let mut lines = Vec::with_capacity(location.lines.len());
        for line in &location.lines {
            if line.function_index == 0 && self.functions.is_empty() {
                continue;
            }
            // Function 0 is usually "not known", and others without a name say as little.
            let function = (*entry(&self.functions, line.function_index)?)?;
            if profile.symbols.function(function).name != StringId(0) {
                lines.push((function, line_number(line.line), line_number(line.column)));
            }
        }
        let ours = Location::new(kind, location.address).in_mapping(mapping);
        Some(profile.symbols.intern_location(&ours, &lines))
    }
}

fn read_attributes<'a>(
    dictionary: &'a wire::ProfilesDictionary,
    texts: Texts<'a>,
) -> Vec<Option<Attribute<'a>>> {
    dictionary
        .attribute_table
        .iter()
        .map(|attribute| {
            Some(Attribute {
                key: texts.get(attribute.key_strindex)?,
                values: plain_values(attribute.value.as_ref(), texts),
                unit: match attribute.unit_strindex {
                    0 => "",
                    index => texts.get(index)?,
                },
            })
        })
        .collect()
}

fn read_links(dictionary: &wire::ProfilesDictionary, profile: &mut Profile) -> Vec<LinkId> {
    let mut known: HashMap<Link, LinkId> = HashMap::from([(Link::default(), LinkId(0))]);
    dictionary
        .link_table
        .iter()
        .map(|link| {
            let link = Link {
                trace_id: link.trace_id.as_slice().try_into().unwrap_or_default(),
                span_id: link.span_id.as_slice().try_into().unwrap_or_default(),
            };
            *known.entry(link).or_insert_with(|| {
                profile.links.push(link);
                LinkId::from_index(profile.links.len() - 1)
            })
        })
        .collect()
}

/// Line and column numbers are signed 64-bit in the format; nonsense counts as unknown.
fn line_number(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(0)
}
