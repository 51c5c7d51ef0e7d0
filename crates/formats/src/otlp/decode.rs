//! A request of OTLP profiles to one profile of many series.

use std::borrow::Cow;

use candela_model::LabelSetId;
use candela_model::Labels;
use candela_model::LinkId;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::SERVICE_NAME_LABEL;
use candela_model::Sample;
use candela_model::SampleLabel;
use candela_model::StringId;
use hashbrown::HashMap;

use crate::error::ReadError;
use crate::naming::TypeAndUnit;
use crate::options::Limits;
use crate::options::ReadOptions;
use crate::otlp::ExportProfilesServiceRequest;
use crate::otlp::NAME;
use crate::otlp::attributes::Plain;
use crate::otlp::dictionary::Attribute;
use crate::otlp::dictionary::Dictionary;
use crate::otlp::dictionary::entry;
use crate::otlp::label_budget::LabelBudget;
use crate::otlp::label_budget::Refusal;
use crate::otlp::label_budget::check_attribute_count;
use crate::otlp::message_count::check_message_count;
use crate::otlp::names::sample_label;
use crate::otlp::names::series_label;
use crate::otlp::own::is_own;
use crate::otlp::own::own_attributes;
use crate::otlp::own::own_host;
use crate::otlp::own::own_name;
use crate::otlp::own::started_ms;
use crate::otlp::profile_type::ChosenType;
use crate::otlp::profile_type::Described;
use crate::otlp::profile_type::choose;
use crate::otlp::sample_labels::SampleLabels;
use crate::otlp::texts::PROFILES_REQUEST;
use crate::otlp::wire;
use crate::otlp::wire_version;
use crate::protobuf::repair::decode_repaired;
use crate::report::AgentReport;
use crate::report::Report;

/// What OpenTelemetry calls a service that has no name.
const UNKNOWN_SERVICE: &str = "unknown_service";
const HOST_LABEL: &str = "host";
const EXECUTABLE_LABEL: &str = "process_executable_name";

/// Decodes the bytes of a request (or of `ProfilesData`, which has the same fields).
///
/// # Errors
/// As [`decode_otlp`], and when the bytes are no request of version 1.10 or later.
pub fn decode_otlp_bytes(
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut repairs = Report::default();
    let request = otlp_request_from_bytes(bytes, &options.limits, &mut repairs)?;
    let (profile, mut report) = decode_otlp(&request, options)?;
    report.absorb_notes(repairs);
    Ok((profile, report))
}

/// A request from its bytes. Texts that are not UTF-8 are repaired and noted.
///
/// # Errors
/// When the bytes are no request of version 1.10 or later, or have more messages than may be.
pub fn otlp_request_from_bytes(
    bytes: &[u8],
    limits: &Limits,
    report: &mut Report,
) -> Result<ExportProfilesServiceRequest, ReadError> {
    check_message_count(bytes, limits)?;
    decode_repaired(&bytes, &PROFILES_REQUEST, report).map_err(|error| {
        let problem = match wire_version::looks_older(bytes) {
            true => wire_version::OLDER.to_owned(),
            false => format!("the bytes are no request of profiles: {error}"),
        };
        ReadError::Invalid {
            format: NAME,
            problem,
        }
    })
}

/// Takes all profiles of a request as series of one profile. A profile that refers to what does
/// not exist, or makes no sense, is left out and counted in [`Report::rejected`]; the others are
/// taken. Samples with the attribute `service.name` go to the series of that service.
///
/// CPU samples that are only counted become nanoseconds (value × period). Several timestamps of
/// one sample become several samples.
///
/// # Errors
/// When the request as a whole cannot be understood: no dictionary, or more samples than the limit.
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
    let limits = &options.limits;
    let dictionary = Dictionary::read(dictionary, &mut profile, &mut report, limits);
    // As much as all of the request may have: labels that outgrow it are repetition.
    let mut budget = LabelBudget::new(limits.inflated_bytes());
    let mut sample_labels = SampleLabels::default();
    for resource in &request.resource_profiles {
        let attributes = resource
            .resource
            .as_ref()
            .map(|resource| &resource.attributes[..]);
        let resource_labels = budget.labels(attributes.unwrap_or_default(), dictionary.texts);
        for scope in &resource.scope_profiles {
            let labels = scope_labels(&resource_labels, scope, &dictionary, &mut budget);
            let decoder = labels.map(|labels| ScopeDecoder {
                dictionary: &dictionary,
                options,
                labels,
                has_cpu_time: has_cpu_time(scope, &dictionary),
                identities: HashMap::new(),
                fallback_service: None,
                budget: &mut budget,
                sample_labels: &mut sample_labels,
            });
            let mut decoder = match decoder {
                Ok(decoder) => decoder,
                Err(refusal) => {
                    for one in &scope.profiles {
                        report.reject(refusal.reason, one.samples.len(), &refusal.example);
                    }
                    continue;
                }
            };
            for one in &scope.profiles {
                if let Err(refusal) = decoder.decode(one, &mut profile, &mut report) {
                    report.reject(refusal.reason, one.samples.len(), &refusal.example);
                }
            }
        }
    }
    Ok((profile, report))
}

/// What the attributes of a sample say.
#[derive(Clone, Copy, Debug)]
struct Identity {
    label_set: LabelSetId,
    /// The service of the sample, where it is not that of its resource. An id, as thousands of
    /// samples are compared by it.
    service: Option<StringId>,
}

/// Decodes the profiles of one resource and scope.
struct ScopeDecoder<'a, 'request> {
    dictionary: &'a Dictionary<'request>,
    options: &'a ReadOptions,
    labels: Labels,
    has_cpu_time: bool,
    /// By attribute indices: samples of a thread share them.
    identities: HashMap<&'a [i32], Identity>,
    /// What the identities were made for: the service of samples that name none, where the labels
    /// of the profile name none either.
    fallback_service: Option<String>,
    budget: &'a mut LabelBudget,
    sample_labels: &'a mut SampleLabels,
}

fn dangling(table: &str, index: i32) -> Refusal {
    Refusal {
        reason: "dangling_index",
        example: format!("{table} {index} does not exist in the dictionary or refers to nothing"),
    }
}

impl<'a> ScopeDecoder<'a, '_> {
    fn decode(
        &mut self,
        one: &'a wire::Profile,
        profile: &mut Profile,
        report: &mut Report,
    ) -> Result<(), Refusal> {
        let attributes = self.attributes(one)?;
        // What is cheap to refuse comes before labels are copied.
        let chosen = self.chosen_type(one, own_name(&attributes))?;
        let (start_ns, duration_ns) = self.window(one)?;
        let labels = self.profile_labels(&attributes)?;
        let fallback_service = self.fallback_of(&labels);
        if self.fallback_service != fallback_service {
            // A large table takes as long to clear as to make.
            self.identities = HashMap::new();
            self.fallback_service = fallback_service;
        }
        let mut all_series: Vec<ProfileSeries> = Vec::new();
        let mut position_of_service: HashMap<Option<StringId>, usize> = HashMap::new();
        for sample in &one.samples {
            check_shape(sample)?;
            let identity = self.identity(&sample.attribute_indices, profile)?;
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
            let position = match position_of_service.get(&identity.service) {
                Some(&known) => known,
                None => {
                    let mut labels = self.budget.copy(&labels)?;
                    let profile_type = self.budget.copy_type(&chosen.profile_type)?;
                    if let Some(service) = identity.service {
                        let service = profile.symbols.strings.get(service);
                        self.budget.pay(service.len())?;
                        labels.set(SERVICE_NAME_LABEL, service);
                    }
                    all_series.push(ProfileSeries {
                        labels: self.options.series_labels(labels),
                        profile_type,
                        start_ns,
                        duration_ns,
                        period: one.period.max(0),
                        samples: Vec::new(),
                    });
                    position_of_service.insert(identity.service, all_series.len() - 1);
                    all_series.len() - 1
                }
            };
            let template = Sample {
                stack,
                value: 0,
                label_set: identity.label_set,
                link,
                time_ns: 0,
            };
            let samples = &mut all_series[position].samples;
            push_observations(sample, template, chosen.factor, samples)?;
        }
        let own_attributes = own_attributes(&attributes);
        if !own_attributes.is_empty() {
            report.hear(AgentReport {
                host: own_host(&own_attributes)
                    .or_else(|| labels.get(HOST_LABEL))
                    .unwrap_or_default()
                    .to_owned(),
                started_ms: started_ms(&own_attributes),
                start_ns,
                attributes: own_attributes,
            });
        }
        profile.series.extend(all_series);
        Ok(())
    }

    fn attributes(&self, one: &wire::Profile) -> Result<Vec<&'a Attribute<'a>>, Refusal> {
        check_attribute_count(one.attribute_indices.len())?;
        let dictionary: &'a Dictionary<'_> = self.dictionary;
        let attributes = one.attribute_indices.iter().map(|&index| {
            let attribute = dictionary.attribute(index);
            attribute.ok_or_else(|| dangling("attribute", index))
        });
        attributes.collect()
    }

    /// The labels of the scope and those of the profile itself.
    fn profile_labels(&mut self, attributes: &[&Attribute<'_>]) -> Result<Labels, Refusal> {
        let mut labels = self.budget.copy(&self.labels)?;
        // `pprof.*` describe the file that a profile was converted from.
        let is_label = |attribute: &&&Attribute<'_>| {
            !is_own(attribute) && !attribute.key.starts_with("pprof.")
        };
        for attribute in attributes.iter().filter(is_label) {
            if let Some(value) = attribute.values.first() {
                self.budget.pay(attribute.key.len() + value.text_bytes())?;
                labels.set_default(series_label(attribute.key), &value.to_text());
            }
        }
        Ok(labels)
    }

    /// The service of samples that name none; `None` when the labels do.
    fn fallback_of(&self, labels: &Labels) -> Option<String> {
        let has_service =
            labels.get(SERVICE_NAME_LABEL).is_some() || !self.options.default_service.is_empty();
        (!has_service).then(|| unknown_service(labels.get(EXECUTABLE_LABEL)))
    }

    /// Pays for its texts: thousands of profiles may refer to one long text.
    fn chosen_type(
        &mut self,
        one: &wire::Profile,
        own_name: Option<&str>,
    ) -> Result<ChosenType, Refusal> {
        let sample = value_type(one.sample_type.as_ref(), self.dictionary)?;
        let is_given = |period: &&wire::ValueType| period.type_strindex != 0;
        let period_type = one.period_type.as_ref().filter(is_given);
        let period_type = value_type(period_type, self.dictionary)?;
        if sample.0.is_empty() {
            return Err(Refusal {
                reason: "no_sample_type",
                example: "the profile does not say what its values are".to_owned(),
            });
        }
        let texts = [sample.0, sample.1, period_type.0, period_type.1];
        let texts = texts.into_iter().chain(own_name);
        self.budget.pay(texts.map(str::len).sum())?;
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

    fn identity(&mut self, indices: &'a [i32], profile: &mut Profile) -> Result<Identity, Refusal> {
        if let Some(known) = self.identities.get(indices) {
            return Ok(*known);
        }
        self.check_label_count(indices.len())?;
        let mut set: Vec<SampleLabel> = Vec::with_capacity(indices.len());
        let mut service = None;
        let mut executable = None;
        for &index in indices {
            let attribute = self.dictionary.attribute(index);
            let attribute = attribute.ok_or_else(|| dangling("attribute", index))?;
            let name = sample_label(attribute.key);
            if let (SERVICE_NAME_LABEL, Some(Plain::Text(text))) = (name, attribute.values.first())
            {
                service = Some(self.sample_labels.text(index, text, profile));
                continue;
            }
            if let (EXECUTABLE_LABEL, Some(Plain::Text(text))) = (name, attribute.values.first()) {
                executable = Some(text);
            }
            // Before they are copied: one attribute may have a million values.
            self.check_label_count(set.len() + attribute.values.len())?;
            set.extend_from_slice(self.sample_labels.of(index, attribute, profile));
        }
        if let (None, Some(fallback)) = (service, &self.fallback_service) {
            let name = match executable {
                Some(executable) => Cow::Owned(unknown_service(Some(executable))),
                None => Cow::Borrowed(fallback.as_str()),
            };
            self.budget.pay(name.len())?;
            service = Some(profile.symbols.strings.intern(&name));
        }
        let identity = Identity {
            label_set: profile.label_sets.intern(set),
            service,
        };
        self.identities.insert(indices, identity);
        Ok(identity)
    }

    fn check_label_count(&self, count: usize) -> Result<(), Refusal> {
        let limit = self.options.limits.max_labels_per_sample;
        if count <= limit {
            return Ok(());
        }
        Err(Refusal {
            reason: "too_many_sample_labels",
            example: format!("a sample has {count} labels, at most {limit} may be"),
        })
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
    let (kind, unit) = (value_type.type_strindex, value_type.unit_strindex);
    let kind = dictionary
        .text(kind)
        .ok_or_else(|| dangling("string", kind))?;
    let unit = dictionary
        .optional_text(unit)
        .ok_or_else(|| dangling("string", unit))?;
    Ok((kind, unit))
}

fn has_cpu_time(scope: &wire::ScopeProfiles, dictionary: &Dictionary<'_>) -> bool {
    scope.profiles.iter().any(|one| {
        let sample = value_type(one.sample_type.as_ref(), dictionary);
        sample.is_ok_and(|sample| sample == ("cpu", "nanoseconds"))
    })
}

/// The labels of a resource and those of the scope besides.
fn scope_labels(
    resource: &Result<Labels, Refusal>,
    scope: &wire::ScopeProfiles,
    dictionary: &Dictionary<'_>,
    budget: &mut LabelBudget,
) -> Result<Labels, Refusal> {
    let mut labels = budget.copy(resource.as_ref().map_err(Refusal::clone)?)?;
    let attributes = scope.scope.as_ref().map(|scope| &scope.attributes[..]);
    let own = budget.labels(attributes.unwrap_or_default(), dictionary.texts)?;
    for (name, value) in own.iter() {
        labels.set_default(name, value);
    }
    Ok(labels)
}

/// What OpenTelemetry calls a service that has no name, by its executable where that is known.
pub(super) fn unknown_service(executable: Option<&str>) -> String {
    match executable {
        Some(name) => format!("{UNKNOWN_SERVICE}:{name}"),
        None => UNKNOWN_SERVICE.to_owned(),
    }
}
