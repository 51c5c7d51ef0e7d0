//! The shared tables of a request under construction.

use candela_model::FunctionId;
use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::LinkId;
use candela_model::LocationId;
use candela_model::MappingId;
use candela_model::Profile;
use candela_model::StackId;
use candela_model::StringId;
use hashbrown::HashMap;
use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::common::v1::ArrayValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use prost::Message;

use crate::otlp::BUILD_ID_ATTRIBUTES;
use crate::otlp::FRAME_TYPE_ATTRIBUTE;
use crate::otlp::names::sample_attribute;
use crate::otlp::wire;

/// Tables that get an entry when something first uses it, so that there are no orphans. Entry 0 of
/// each is the zero value.
#[derive(Debug)]
pub(crate) struct DictionaryWriter<'a> {
    profile: &'a Profile,
    tables: wire::ProfilesDictionary,
    string_indices: HashMap<String, i32>,
    attribute_indices: HashMap<(i32, i32, Vec<u8>), i32>,
    /// For each id of the profile its index, 0 until it is used.
    strings: Vec<i32>,
    mappings: Vec<i32>,
    functions: Vec<i32>,
    locations: Vec<i32>,
    stacks: Vec<i32>,
    links: Vec<i32>,
    label_sets: HashMap<LabelSetId, Vec<i32>>,
}

impl<'a> DictionaryWriter<'a> {
    pub(crate) fn new(profile: &'a Profile) -> Self {
        let symbols = &profile.symbols;
        Self {
            profile,
            tables: wire::ProfilesDictionary {
                mapping_table: vec![wire::Mapping::default()],
                location_table: vec![wire::Location::default()],
                function_table: vec![wire::Function::default()],
                // Ids of their full length: receivers check it for every link.
                link_table: vec![wire::Link {
                    trace_id: vec![0; 16],
                    span_id: vec![0; 8],
                }],
                string_table: vec![String::new()],
                attribute_table: vec![wire::KeyValueAndUnit::default()],
                stack_table: vec![wire::Stack::default()],
            },
            string_indices: HashMap::from([(String::new(), 0)]),
            attribute_indices: HashMap::new(),
            strings: vec![0; symbols.strings.len()],
            mappings: vec![0; symbols.mappings().len()],
            functions: vec![0; symbols.functions().len()],
            locations: vec![0; symbols.locations().len()],
            stacks: vec![0; profile.stacks.len()],
            links: vec![0; profile.links.len()],
            label_sets: HashMap::new(),
        }
    }

    pub(crate) fn finish(self) -> wire::ProfilesDictionary {
        self.tables
    }

    pub(crate) fn value_type(&mut self, kind: &str, unit: &str) -> wire::ValueType {
        wire::ValueType {
            type_strindex: self.text(kind),
            unit_strindex: self.text(unit),
        }
    }

    /// The index of an attribute.
    pub(crate) fn attribute(&mut self, name: &str, unit: &str, value: Value) -> i32 {
        let (key_strindex, unit_strindex) = (self.text(name), self.text(unit));
        let value = AnyValue { value: Some(value) };
        // Values are no keys of a map (floats), their bytes are.
        let identity = (key_strindex, unit_strindex, value.encode_to_vec());
        let table = &mut self.tables.attribute_table;
        *self.attribute_indices.entry(identity).or_insert_with(|| {
            push(
                table,
                wire::KeyValueAndUnit {
                    key_strindex,
                    value: Some(value),
                    unit_strindex,
                },
            )
        })
    }

    pub(crate) fn stack(&mut self, id: StackId) -> i32 {
        let known = self.stacks[id.index()];
        let locations = self.profile.stacks.get(id);
        if known != 0 || locations.is_empty() {
            return known;
        }
        let location_indices = locations
            .iter()
            .map(|&location| self.location(location))
            .collect();
        let index = push(
            &mut self.tables.stack_table,
            wire::Stack { location_indices },
        );
        self.stacks[id.index()] = index;
        index
    }

    pub(crate) fn link(&mut self, id: LinkId) -> i32 {
        let known = self.links[id.index()];
        if known != 0 || id == LinkId(0) {
            return known;
        }
        let link = self.profile.links[id.index()];
        let link = wire::Link {
            trace_id: link.trace_id.to_vec(),
            span_id: link.span_id.to_vec(),
        };
        let index = push(&mut self.tables.link_table, link);
        self.links[id.index()] = index;
        index
    }

    /// The attributes of a set of sample labels. A key that has several values, which pprof
    /// allows and OTLP forbids, becomes one attribute with an array.
    pub(crate) fn label_set(&mut self, id: LabelSetId) -> Vec<i32> {
        if let Some(known) = self.label_sets.get(&id) {
            return known.clone();
        }
        let profile = self.profile;
        let set = profile.label_sets.get(id);
        let mut indices = Vec::with_capacity(set.len());
        for same_key in set.chunk_by(|left, right| left.key == right.key) {
            let name = profile.symbols.strings.get(same_key[0].key);
            let unit = same_key.iter().find_map(|label| match label.value {
                LabelValue::Number { unit, .. } => Some(unit),
                LabelValue::Text(_) => None,
            });
            let unit = profile.symbols.strings.get(unit.unwrap_or_default());
            let mut values = same_key.iter().map(|label| match label.value {
                LabelValue::Text(text) => {
                    Value::StringValue(profile.symbols.strings.get(text).to_owned())
                }
                LabelValue::Number { value, .. } => Value::IntValue(value),
            });
            let value = match (values.next(), same_key.len()) {
                (Some(only), 1) => only,
                (first, _) => Value::ArrayValue(ArrayValue {
                    values: first
                        .into_iter()
                        .chain(values)
                        .map(|value| AnyValue { value: Some(value) })
                        .collect(),
                }),
            };
            indices.push(self.attribute(sample_attribute(name), unit, value));
        }
        self.label_sets.insert(id, indices.clone());
        indices
    }

    fn location(&mut self, id: LocationId) -> i32 {
        let known = self.locations[id.index()];
        if known != 0 {
            return known;
        }
        let symbols = &self.profile.symbols;
        let location = *symbols.location(id);
        let kind = location.kind.as_str();
        let attribute_indices = match kind {
            "" => Vec::new(),
            kind => {
                let value = Value::StringValue(kind.to_owned());
                vec![self.attribute(FRAME_TYPE_ATTRIBUTE, "", value)]
            }
        };
        let lines = symbols.lines(id).iter().map(|line| wire::Line {
            function_index: self.function(line.function),
            line: i64::from(line.line),
            column: i64::from(line.column),
        });
        let encoded = wire::Location {
            lines: lines.collect(),
            mapping_index: self.mapping(location.mapping),
            address: location.address,
            attribute_indices,
        };
        if encoded == wire::Location::default() {
            return 0;
        }
        let index = push(&mut self.tables.location_table, encoded);
        self.locations[id.index()] = index;
        index
    }

    fn function(&mut self, id: FunctionId) -> i32 {
        let known = self.functions[id.index()];
        if known != 0 {
            return known;
        }
        let function = *self.profile.symbols.function(id);
        let encoded = wire::Function {
            name_strindex: self.string(function.name),
            system_name_strindex: self.string(function.system_name),
            filename_strindex: self.string(function.file),
            start_line: i64::from(function.start_line),
        };
        if encoded == wire::Function::default() {
            return 0;
        }
        let index = push(&mut self.tables.function_table, encoded);
        self.functions[id.index()] = index;
        index
    }

    fn mapping(&mut self, id: MappingId) -> i32 {
        let known = self.mappings[id.index()];
        if known != 0 || id == MappingId(0) {
            return known;
        }
        let mapping = *self.profile.symbols.mapping(id);
        let build_id = self.profile.symbols.strings.get(mapping.build_id);
        let attribute_indices = match build_id {
            "" => Vec::new(),
            build_id => {
                let value = Value::StringValue(build_id.to_owned());
                vec![self.attribute(build_id_attribute(build_id), "", value)]
            }
        };
        let encoded = wire::Mapping {
            memory_start: mapping.memory_start,
            memory_limit: mapping.memory_limit,
            file_offset: mapping.file_offset,
            filename_strindex: self.string(mapping.file),
            attribute_indices,
        };
        let index = push(&mut self.tables.mapping_table, encoded);
        self.mappings[id.index()] = index;
        index
    }

    fn string(&mut self, id: StringId) -> i32 {
        let known = self.strings[id.index()];
        if known != 0 || id == StringId(0) {
            return known;
        }
        let index = self.text(self.profile.symbols.strings.get(id));
        self.strings[id.index()] = index;
        index
    }

    fn text(&mut self, text: &str) -> i32 {
        if let Some(&known) = self.string_indices.get(text) {
            return known;
        }
        let index = push(&mut self.tables.string_table, text.to_owned());
        self.string_indices.insert(text.to_owned(), index);
        index
    }
}

/// GNU build ids are hexadecimal, Go's are not.
fn build_id_attribute(build_id: &str) -> &'static str {
    let is_hex = build_id.bytes().all(|byte| byte.is_ascii_hexdigit());
    BUILD_ID_ATTRIBUTES[usize::from(!is_hex)]
}

fn push<T>(table: &mut Vec<T>, entry: T) -> i32 {
    table.push(entry);
    i32::try_from(table.len() - 1).expect("tables of a profile are far below 2^31 entries")
}
