//! A request of OTLP profiles to one profile of many series.

use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::Labels;
use candela_model::LinkId;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::SERVICE_NAME_LABEL;
use candela_model::Sample;
use candela_model::SampleLabel;
use hashbrown::HashMap;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use prost::Message;

use crate::error::ReadError;
use crate::naming::TypeAndUnit;
use crate::options::ReadOptions;
use crate::otlp::ExportProfilesServiceRequest;
use crate::otlp::NAME;
use crate::otlp::OWN_PREFIX;
use crate::otlp::PROFILE_NAME_ATTRIBUTE;
use crate::otlp::attributes::Plain;
use crate::otlp::attributes::key;
use crate::otlp::attributes::plain_values;
use crate::otlp::dictionary::Dictionary;
use crate::otlp::dictionary::entry;
use crate::otlp::names::sample_label;
use crate::otlp::names::series_label;
use crate::otlp::profile_type::ChosenType;
use crate::otlp::profile_type::Described;
use crate::otlp::profile_type::choose;
use crate::otlp::wire;
use crate::otlp::wire_version;
use crate::report::AttributeValue;
use crate::report::Report;

/// What OpenTelemetry calls a service that has no name.
const UNKNOWN_SERVICE: &str = "unknown_service";
const EXECUTABLE_LABEL: &str = "process_executable_name";

/// Decodes the bytes of a request (or of `ProfilesData`, which has the same fields).
///
/// # Errors
/// As [`decode_otlp`], and when the bytes are no request of version 1.10 or later.
pub fn decode_otlp_bytes(
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let request = ExportProfilesServiceRequest::decode(bytes).map_err(|error| {
        let problem = match wire_version::looks_older(bytes) {
            true => wire_version::OLDER.to_owned(),
            false => format!("the bytes are no request of profiles: {error}"),
        };
        ReadError::Invalid {
            format: NAME,
            problem,
        }
    })?;
    decode_otlp(&request, options)
}

/// Takes all profiles of a request as series of one profile. A profile that refers to what does
/// not exist, or makes no sense, is left out and counted in [`Report::rejected`]; the others are
/// taken. Samples with the attribute `service.name` go to the series of that service.
///
/// CPU samples that are only counted become nanoseconds (value × period). Several timestamps of
/// one sample become several samples.
///
/// # Errors
/// When the request as a whole cannot be understood: no dictionary, a dictionary whose strings do
/// not start with the empty one, or more samples than the limit.
pub fn decode_otlp(
    request: &ExportProfilesServiceRequest,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut profile = Profile::default();
    let mut report = Report::default();
    let scopes = || {
        request
            .resource_profiles
            .iter()
            .flat_map(|resource| &resource.scope_profiles)
    };
    let profiles = || scopes().flat_map(|scope| &scope.profiles);
    if profiles().next().is_none() {
        return Ok((profile, report));
    }
    let values = profiles()
        .flat_map(|one| &one.samples)
        .map(|sample| sample.values.len().max(sample.timestamps_unix_nano.len()));
    if values.sum::<usize>() > options.limits.max_samples {
        return Err(ReadError::TooLarge {
            what: "the number of samples",
            limit: options.limits.max_samples,
        });
    }
    let Some(dictionary) = &request.dictionary else {
        return Err(ReadError::Invalid {
            format: NAME,
            problem: "the request has no dictionary: OTLP profiles before version 1.8 are not \
                supported, update the sender"
                .to_owned(),
        });
    };
    let depth = options.limits.max_stack_depth;
    let dictionary = Dictionary::read(dictionary, &mut profile, &mut report, depth)?;
    for resource in &request.resource_profiles {
        let attributes = resource
            .resource
            .as_ref()
            .map(|resource| &resource.attributes[..]);
        let resource_labels = labels_of(attributes.unwrap_or_default(), &dictionary);
        for scope in &resource.scope_profiles {
            let mut labels = resource_labels.clone();
            let attributes = scope.scope.as_ref().map(|scope| &scope.attributes[..]);
            for (name, value) in labels_of(attributes.unwrap_or_default(), &dictionary).iter() {
                labels.set_default(name, value);
            }
            let mut decoder = ScopeDecoder {
                dictionary: &dictionary,
                options,
                labels,
                has_cpu_time: has_cpu_time(scope, &dictionary),
                identities: HashMap::new(),
                labels_of_identities: Labels::default(),
            };
            for one in &scope.profiles {
                if let Err(refusal) = decoder.decode(one, &mut profile, &mut report) {
                    report.reject(refusal.reason, one.samples.len(), refusal.example);
                }
            }
        }
    }
    Ok((profile, report))
}

/// Why a profile is refused.
struct Refusal {
    reason: &'static str,
    example: String,
}

/// What the attributes of a sample say.
#[derive(Clone, Debug)]
struct Identity {
    label_set: LabelSetId,
    /// The service of the sample, where it is not that of its resource.
    service: Option<String>,
}

/// Decodes the profiles of one resource and scope.
struct ScopeDecoder<'a> {
    dictionary: &'a Dictionary<'a>,
    options: &'a ReadOptions,
    labels: Labels,
    has_cpu_time: bool,
    /// By attribute indices: samples of a thread share them.
    identities: HashMap<&'a [i32], Identity>,
    /// What the identities were made for: whether a service is known decides over theirs.
    labels_of_identities: Labels,
}

fn dangling(table: &str, index: i32) -> Refusal {
    Refusal {
        reason: "dangling_index",
        example: format!("{table} {index} does not exist in the dictionary or refers to nothing"),
    }
}

impl<'a> ScopeDecoder<'a> {
    fn decode(
        &mut self,
        one: &'a wire::Profile,
        profile: &mut Profile,
        report: &mut Report,
    ) -> Result<(), Refusal> {
        let (labels, own_name, own_attributes) = self.profile_attributes(one)?;
        let chosen = self.chosen_type(one, own_name)?;
        let (start_ns, duration_ns) = self.window(one)?;
        let mut series_of_service: Vec<(Option<String>, ProfileSeries)> = Vec::new();
        if self.labels_of_identities != labels {
            self.identities.clear();
            self.labels_of_identities = labels.clone();
        }
        for sample in &one.samples {
            check_shape(sample)?;
            let identity = self.identity(&sample.attribute_indices, &labels, profile)?;
            let stack = entry(&self.dictionary.stacks, sample.stack_index)
                .copied()
                .flatten();
            let stack = stack.ok_or_else(|| dangling("stack", sample.stack_index))?;
            let link = match sample.link_index {
                0 => LinkId(0),
                index => {
                    *entry(&self.dictionary.links, index).ok_or_else(|| dangling("link", index))?
                }
            };
            let known = series_of_service
                .iter()
                .position(|(service, _)| *service == identity.service);
            let position = known.unwrap_or_else(|| {
                let mut labels = labels.clone();
                if let Some(service) = &identity.service {
                    labels.set(SERVICE_NAME_LABEL, service.as_str());
                }
                let series = ProfileSeries {
                    labels: self.options.series_labels(labels),
                    profile_type: chosen.profile_type.clone(),
                    start_ns,
                    duration_ns,
                    period: one.period.max(0),
                    samples: Vec::new(),
                };
                series_of_service.push((identity.service.clone(), series));
                series_of_service.len() - 1
            });
            let template = Sample {
                stack,
                value: 0,
                label_set: identity.label_set,
                link,
                time_ns: 0,
            };
            let samples = &mut series_of_service[position].1.samples;
            push_observations(sample, template, chosen.factor, samples)?;
        }
        let series = series_of_service.into_iter().map(|(_, series)| series);
        profile.series.extend(series);
        report.attributes.extend(own_attributes);
        Ok(())
    }

    /// Labels with those of the profile itself, our name for it, and what else is ours.
    #[expect(
        clippy::type_complexity,
        reason = "three results of one walk, used at one place"
    )]
    fn profile_attributes(
        &self,
        one: &wire::Profile,
    ) -> Result<(Labels, Option<&'a str>, Vec<(String, AttributeValue)>), Refusal> {
        let dictionary: &'a Dictionary<'a> = self.dictionary;
        let mut labels = self.labels.clone();
        let mut own_name = None;
        let mut own_attributes = Vec::new();
        for &index in &one.attribute_indices {
            let attribute = dictionary
                .attribute(index)
                .ok_or_else(|| dangling("attribute", index))?;
            let Some(value) = attribute.values.first() else {
                continue;
            };
            match value {
                Plain::Text(name) if attribute.key == PROFILE_NAME_ATTRIBUTE => {
                    own_name = Some(name.as_str());
                }
                value if attribute.key.starts_with(OWN_PREFIX) => {
                    let value = match value.clone() {
                        Plain::Text(text) => AttributeValue::Text(text),
                        Plain::Number(number) => AttributeValue::Number(number),
                    };
                    own_attributes.push((attribute.key.to_owned(), value));
                }
                // `pprof.*` describe the file that a profile was converted from.
                _ if attribute.key.starts_with("pprof.") => {}
                value => {
                    labels.set_default(series_label(attribute.key), &value.clone().into_text());
                }
            }
        }
        Ok((labels, own_name, own_attributes))
    }

    fn chosen_type(
        &self,
        one: &wire::Profile,
        own_name: Option<&str>,
    ) -> Result<ChosenType, Refusal> {
        let sample = value_type(one.sample_type.as_ref(), self.dictionary)?;
        let period_type = value_type(one.period_type.as_ref(), self.dictionary)?;
        if sample.0.is_empty() {
            return Err(Refusal {
                reason: "no_sample_type",
                example: "the profile does not say what its values are".to_owned(),
            });
        }
        let described = Described {
            sample,
            period_type,
            period: one.period,
            own_name,
            has_cpu_time: self.has_cpu_time,
        };
        Ok(choose(&described, self.options.profile_name.as_deref()))
    }

    fn window(&self, one: &wire::Profile) -> Result<(i64, i64), Refusal> {
        let first_timestamp = || {
            let times = one
                .samples
                .iter()
                .flat_map(|sample| &sample.timestamps_unix_nano);
            times.copied().min()
        };
        let start = match one.time_unix_nano {
            0 => first_timestamp().unwrap_or(self.options.now_ns.max(0) as u64),
            start => start,
        };
        let window = i64::try_from(start)
            .ok()
            .zip(i64::try_from(one.duration_nano).ok());
        window
            .filter(|(start, duration)| start.checked_add(*duration).is_some())
            .ok_or_else(|| Refusal {
                reason: "time_out_of_range",
                example: format!("start {start} ns and duration {} ns", one.duration_nano),
            })
    }

    fn identity(
        &mut self,
        indices: &'a [i32],
        labels: &Labels,
        profile: &mut Profile,
    ) -> Result<Identity, Refusal> {
        if let Some(known) = self.identities.get(indices) {
            return Ok(known.clone());
        }
        let mut set = Vec::with_capacity(indices.len());
        let mut service = None;
        let mut executable = None;
        for &index in indices {
            let attribute = self.dictionary.attribute(index);
            let attribute = attribute.ok_or_else(|| dangling("attribute", index))?;
            let name = sample_label(attribute.key);
            if let (SERVICE_NAME_LABEL, Some(Plain::Text(text))) = (name, attribute.values.first())
            {
                service = Some(text.clone());
                continue;
            }
            if let (EXECUTABLE_LABEL, Some(Plain::Text(text))) = (name, attribute.values.first()) {
                executable = Some(text.as_str());
            }
            let strings = &mut profile.symbols.strings;
            let key = strings.intern(name);
            for value in &attribute.values {
                let value = match value {
                    Plain::Text(text) => LabelValue::Text(strings.intern(text)),
                    Plain::Number(number) => LabelValue::Number {
                        value: *number,
                        unit: strings.intern(attribute.unit),
                    },
                };
                set.push(SampleLabel { key, value });
            }
        }
        let has_service =
            labels.get(SERVICE_NAME_LABEL).is_some() || !self.options.default_service.is_empty();
        if service.is_none() && !has_service {
            let executable = executable.or_else(|| labels.get(EXECUTABLE_LABEL));
            service = Some(match executable {
                Some(name) => format!("{UNKNOWN_SERVICE}:{name}"),
                None => UNKNOWN_SERVICE.to_owned(),
            });
        }
        let identity = Identity {
            label_set: profile.label_sets.intern(set),
            service,
        };
        self.identities.insert(indices, identity.clone());
        Ok(identity)
    }
}

/// Checks that a sample has what version 1.10 prescribes. Before its attributes are looked up: in
/// older versions values stand there.
fn check_shape(sample: &wire::Sample) -> Result<(), Refusal> {
    if wire_version::is_older(sample) {
        return Err(Refusal {
            reason: "older_version",
            example: wire_version::OLDER.to_owned(),
        });
    }
    let (values, times) = (sample.values.len(), sample.timestamps_unix_nano.len());
    if values == 0 && times == 0 {
        return Err(Refusal {
            reason: "no_values",
            example: "a sample has neither values nor timestamps".to_owned(),
        });
    }
    if values != 0 && times != 0 && values != times {
        return Err(Refusal {
            reason: "values_and_timestamps_differ",
            example: format!("a sample has {values} values and {times} timestamps"),
        });
    }
    Ok(())
}

/// Adds the observations of one sample: values alone are summed, timestamps alone count 1 each.
fn push_observations(
    sample: &wire::Sample,
    template: Sample,
    factor: i64,
    samples: &mut Vec<Sample>,
) -> Result<(), Refusal> {
    let (values, times) = (&sample.values, &sample.timestamps_unix_nano);
    if times.is_empty() {
        let value = values
            .iter()
            .fold(0_i64, |sum, value| sum.saturating_add(*value));
        push(samples, template, value.saturating_mul(factor));
        return Ok(());
    }
    for (index, &time) in times.iter().enumerate() {
        let value = values.get(index).copied().unwrap_or(1);
        let time_ns = i64::try_from(time).map_err(|_| Refusal {
            reason: "time_out_of_range",
            example: format!("timestamp {time} ns"),
        })?;
        push(
            samples,
            Sample {
                time_ns,
                ..template
            },
            value.saturating_mul(factor),
        );
    }
    Ok(())
}

fn push(samples: &mut Vec<Sample>, template: Sample, value: i64) {
    if value != 0 {
        samples.push(Sample { value, ..template });
    }
}

fn value_type<'a>(
    value_type: Option<&wire::ValueType>,
    dictionary: &Dictionary<'a>,
) -> Result<TypeAndUnit<'a>, Refusal> {
    let Some(value_type) = value_type else {
        return Ok(("", ""));
    };
    let text = |index| {
        dictionary
            .text(index)
            .ok_or_else(|| dangling("string", index))
    };
    Ok((
        text(value_type.type_strindex)?,
        text(value_type.unit_strindex)?,
    ))
}

fn has_cpu_time(scope: &wire::ScopeProfiles, dictionary: &Dictionary<'_>) -> bool {
    scope.profiles.iter().any(|one| {
        let sample = value_type(one.sample_type.as_ref(), dictionary);
        sample.is_ok_and(|sample| sample == ("cpu", "nanoseconds"))
    })
}

fn labels_of(attributes: &[KeyValue], dictionary: &Dictionary<'_>) -> Labels {
    let mut labels = Labels::default();
    for attribute in attributes {
        let values = plain_values(attribute.value.as_ref(), dictionary.strings);
        let texts: Vec<String> = values.into_iter().map(Plain::into_text).collect();
        let name = key(attribute, dictionary.strings);
        if !name.is_empty() {
            labels.set(series_label(name), texts.join(","));
        }
    }
    labels
}
