//! A profile to a request of OTLP profiles.

use candela_model::LabelSetId;
use candela_model::Labels;
use candela_model::LinkId;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::StackId;
use hashbrown::HashMap;
use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

use crate::otlp::ExportProfilesServiceRequest;
use crate::otlp::PROFILE_NAME_ATTRIBUTE;
use crate::otlp::dictionary_writer::DictionaryWriter;
use crate::otlp::names::series_attribute;
use crate::otlp::wire;
use crate::report::AttributeValue;

/// What an OTLP request says besides the profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtlpOptions {
    /// Name of the instrumentation scope: who made the profiles.
    pub scope_name: String,
    /// Its version.
    pub scope_version: String,
    /// Attributes of every resource; labels of a series win over them.
    pub resource_attributes: Vec<(String, AttributeValue)>,
    /// Attributes of the first profile, for what is said once in a request: unwinding results,
    /// drops, the agent's version. Names start with `candela.`.
    pub attributes: Vec<(String, AttributeValue)>,
}

/// The bytes of [`encode_otlp`].
#[must_use]
pub fn encode_otlp_bytes(profile: &Profile, options: &OtlpOptions) -> Vec<u8> {
    encode_otlp(profile, options).encode_to_vec()
}

/// A request with all series, which are grouped into resources by their labels. The dictionary has
/// no duplicates and nothing that no sample uses. Samples of equal stack, labels and link become
/// one, with all times where they have times.
///
/// The profile must be valid ([`Profile::validate`]).
#[must_use]
pub fn encode_otlp(profile: &Profile, options: &OtlpOptions) -> ExportProfilesServiceRequest {
    let mut dictionary = DictionaryWriter::new(profile);
    let mut own_attributes: Vec<i32> = options
        .attributes
        .iter()
        .map(|(name, value)| dictionary.attribute(name, "", any_value(value)))
        .collect();
    let mut resources: Vec<(&Labels, Vec<wire::Profile>)> = Vec::new();
    let mut positions: HashMap<Vec<(&str, &str)>, usize> = HashMap::new();
    for series in &profile.series {
        let key = series.labels.iter().collect();
        let position = *positions.entry(key).or_insert_with(|| {
            resources.push((&series.labels, Vec::new()));
            resources.len() - 1
        });
        let mut encoded = encode_series(series, &mut dictionary);
        encoded.attribute_indices.append(&mut own_attributes);
        resources[position].1.push(encoded);
    }
    let resource_profiles = resources
        .into_iter()
        .map(|(labels, profiles)| wire::ResourceProfiles {
            resource: Some(resource(labels, options)),
            scope_profiles: vec![wire::ScopeProfiles {
                scope: Some(InstrumentationScope {
                    name: options.scope_name.clone(),
                    version: options.scope_version.clone(),
                    ..InstrumentationScope::default()
                }),
                profiles,
                schema_url: String::new(),
            }],
            schema_url: String::new(),
        })
        .collect();
    ExportProfilesServiceRequest {
        resource_profiles,
        dictionary: Some(dictionary.finish()),
    }
}

/// What makes a sample of OTLP; with times it cannot be mixed with one without.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct SampleKey {
    stack: StackId,
    label_set: LabelSetId,
    link: LinkId,
    has_time: bool,
}

fn encode_series(series: &ProfileSeries, dictionary: &mut DictionaryWriter<'_>) -> wire::Profile {
    let id = &series.profile_type;
    let sample_type = dictionary.value_type(&id.sample_type, &id.sample_unit);
    let has_period = !id.period_type.is_empty() || !id.period_unit.is_empty();
    let period_type = has_period.then(|| dictionary.value_type(&id.period_type, &id.period_unit));
    let name = Value::StringValue(id.name.clone());
    let name = dictionary.attribute(PROFILE_NAME_ATTRIBUTE, "", name);
    let mut samples: Vec<wire::Sample> = Vec::new();
    let mut positions: HashMap<SampleKey, usize> = HashMap::new();
    for sample in &series.samples {
        let key = SampleKey {
            stack: sample.stack,
            label_set: sample.label_set,
            link: sample.link,
            has_time: sample.time_ns > 0,
        };
        let position = *positions.entry(key).or_insert_with(|| {
            samples.push(wire::Sample {
                stack_index: dictionary.stack(sample.stack),
                attribute_indices: dictionary.label_set(sample.label_set),
                link_index: dictionary.link(sample.link),
                ..wire::Sample::default()
            });
            samples.len() - 1
        });
        let encoded = &mut samples[position];
        if key.has_time {
            encoded.values.push(sample.value);
            encoded.timestamps_unix_nano.push(sample.time_ns as u64);
            continue;
        }
        match encoded.values.first_mut() {
            Some(sum) => *sum = sum.saturating_add(sample.value),
            None => encoded.values.push(sample.value),
        }
    }
    wire::Profile {
        sample_type: Some(sample_type),
        samples,
        time_unix_nano: series.start_ns.max(0) as u64,
        duration_nano: series.duration_ns.max(0) as u64,
        period_type,
        period: series.period,
        attribute_indices: vec![name],
        ..wire::Profile::default()
    }
}

fn resource(labels: &Labels, options: &OtlpOptions) -> Resource {
    let own = labels
        .iter()
        .map(|(name, value)| (series_attribute(name), Value::StringValue(value.to_owned())));
    let given = options
        .resource_attributes
        .iter()
        .filter(|(name, _)| {
            !labels
                .iter()
                .any(|(label, _)| series_attribute(label) == name)
        })
        .map(|(name, value)| (name.as_str(), any_value(value)));
    let attributes = own.chain(given).map(|(name, value)| KeyValue {
        key: name.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        key_strindex: 0,
    });
    Resource {
        attributes: attributes.collect(),
        ..Resource::default()
    }
}

fn any_value(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::Text(text) => Value::StringValue(text.clone()),
        AttributeValue::Number(number) => Value::IntValue(*number),
    }
}
