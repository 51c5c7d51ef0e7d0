//! What a push to `/ingest` says of its profile, and the profile as it is stored.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use candela_formats::JfrOptions;
use candela_formats::ReadError;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_model::Profile;
use candela_model::SERVICE_NAME_LABEL;
use serde::Deserialize;

use super::app_name::AppName;
use super::format::BodyFormat;
use super::names::DEFAULT_RATE;
use super::names::NamedType;
use super::unprocessable;
use crate::api_error::ApiError;
use crate::app::App;
use crate::auth::TenantName;
use crate::ingest::body::BodyBounds;
use crate::ingest::form::Sent;
use crate::ingest::read::read_error;
use crate::ingest::read::read_options;
use crate::parameters::Parameters;
use crate::pyroscope::attime::parse_attime;
use crate::pyroscope::labels::PushedLabels;
use crate::pyroscope::pushed::Pushed;

/// Before this profiles have no time of their own, but a clock that began at 0.
const NANOSECONDS_OF_1970: i64 = 365 * 86_400 * 1_000_000_000;

type Read = Result<(Profile, Report), ReadError>;

/// What the URL says.
#[derive(Clone, Debug)]
pub(crate) struct Ingested {
    name: AppName,
    format: BodyFormat,
    /// Nanoseconds since the Unix epoch.
    from_ns: i64,
    until_ns: i64,
    rate: u32,
    spy: String,
}

/// A sample type as the part `sample_type_config` of a form describes it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct SampleTypeConfig {
    units: String,
    display_name: String,
}

impl SampleTypeConfig {
    /// The name of the profile type, where the display name tells more than the profile does: those of
    /// mutexes and of blocks have the same sample types. These stay what they are in the profile.
    fn profile_name(&self) -> Option<&'static str> {
        match self.display_name.as_str() {
            name if name.starts_with("mutex_") => Some("mutex"),
            name if name.starts_with("block_") => Some("block"),
            // Not the name of what is scraped, but what everybody who asks for pushed ones expects.
            "goroutines" => Some("goroutines"),
            _ => None,
        }
    }
}

impl Ingested {
    /// # Errors
    /// 400 for a name or a time that is none.
    pub(crate) fn of(
        parameters: &Parameters,
        headers: &HeaderMap,
        now_ns: i64,
    ) -> Result<Self, ApiError> {
        let name = parameters.one("name").ok_or_else(|| {
            ApiError::bad_request("bad_name", "name is missing").hint("it is the application's")
        })?;
        let time = |name| match parameters.one(name) {
            None => Ok(now_ns),
            Some(text) => parse_attime(text, now_ns)
                .map_err(|error| ApiError::bad_request("bad_time", format!("{name}: {error}"))),
        };
        let rate = parameters.one("sampleRate");
        Ok(Self {
            name: AppName::parse(name)?,
            format: BodyFormat::of(parameters, headers),
            from_ns: time("from")?,
            until_ns: time("until")?,
            // As upstream: a rate that is none is the usual one.
            rate: rate.map_or(DEFAULT_RATE, |text| text.parse().unwrap_or(DEFAULT_RATE)),
            spy: parameters.one("spyName").unwrap_or("unknown").to_owned(),
        })
    }

    /// Whether the profile is one of a request alone, as SDKs of the first version sent them beside
    /// those of the whole program: stored, each would be a series of its own.
    pub(crate) fn is_of_one_request(&self) -> bool {
        let mut labels = self.name.labels.iter();
        labels.any(|(name, _)| name == "profile_id")
    }

    /// Reads what was sent.
    ///
    /// # Errors
    /// 422 for a profile that cannot be read, 413 for one that is too large.
    pub(crate) fn read(
        &self,
        app: &App,
        tenant: &TenantName,
        sent: &Sent,
    ) -> Result<Pushed, ApiError> {
        let limits = app.tenants.limits(tenant);
        let bounds = BodyBounds::profile(&limits);
        let mut pairs = self.name.labels.clone();
        pairs.push(("pyroscope_spy".to_owned(), self.spy.clone()));
        let mut labels = PushedLabels::from_pairs(pairs);
        let named = NamedType::of(&self.name.app, self.rate);
        let has_types = matches!(self.format, BodyFormat::Pprof | BodyFormat::Jfr);
        let service = if has_types {
            &self.name.app
        } else {
            &named.service
        };
        // A client that names its service keeps that, and the application is a label beside it.
        let own_service = self
            .name
            .labels
            .iter()
            .any(|(name, _)| name == SERVICE_NAME_LABEL);
        let label = if own_service {
            "app_name"
        } else {
            SERVICE_NAME_LABEL
        };
        labels.labels.set(label, service.as_str());
        let options = ReadOptions {
            labels: labels.labels.clone(),
            now_ns: self.from_ns,
            ..read_options(app, &limits, bounds)
        };
        let read = match self.format {
            BodyFormat::Pprof => self.pprof(sent, &options)?,
            BodyFormat::Jfr => self.jfr(sent, &options)?,
            BodyFormat::Groups => self.typed(
                &named,
                candela_formats::read_groups(&sent.body[..], &options),
            ),
            BodyFormat::Lines => self.typed(
                &named,
                candela_formats::read_lines(&sent.body[..], &options),
            ),
            BodyFormat::Tree => {
                self.typed(&named, candela_formats::read_tree(&sent.body[..], &options))
            }
            BodyFormat::Trie => {
                self.typed(&named, candela_formats::read_trie(&sent.body[..], &options))
            }
            BodyFormat::Speedscope => self.typed(
                &named,
                candela_formats::read_speedscope(&sent.body[..], &options),
            ),
        };
        let (mut profile, report) = read.map_err(|error| unprocessable(read_error(&error)))?;
        app.tenants.charge(tenant, sent.body.len() as u64);
        for series in &mut profile.series {
            if series.start_ns < NANOSECONDS_OF_1970 {
                series.start_ns = self.from_ns;
            }
        }
        let mut pushed = Pushed::default();
        pushed.add(app, tenant, &labels, profile, report);
        Ok(pushed)
    }

    fn pprof(&self, sent: &Sent, options: &ReadOptions) -> Result<Read, ApiError> {
        if sent.part("prev_profile").is_some() {
            let message = "prev_profile: differences are taken by the client";
            return Err(ApiError::unprocessable("previous_profile", message)
                .hint("use a newer version of the SDK"));
        }
        let config = sent.part("sample_type_config");
        let config = config.map(|bytes| {
            serde_json::from_slice::<BTreeMap<String, SampleTypeConfig>>(bytes).map_err(|error| {
                let message = format!("sample_type_config cannot be read: {error}");
                ApiError::unprocessable("bad_config", message)
            })
        });
        let config = config.transpose()?.unwrap_or_default();
        let mut read = candela_formats::read_pprof(&sent.file("profile")?[..], options);
        if let Ok((profile, _)) = &mut read {
            for series in &mut profile.series {
                let sample_type = &mut series.profile_type;
                let Some(known) = config.get(&sample_type.sample_type) else {
                    continue;
                };
                if let Some(name) = known.profile_name() {
                    name.clone_into(&mut sample_type.name);
                }
                if !known.units.is_empty() && sample_type.sample_unit.is_empty() {
                    sample_type.sample_unit.clone_from(&known.units);
                }
            }
        }
        Ok(read)
    }

    fn jfr(&self, sent: &Sent, options: &ReadOptions) -> Result<Read, ApiError> {
        let jfr = JfrOptions {
            sample_rate_hz: Some(self.rate),
            labels_snapshot: sent
                .part("labels")
                .map(|part| part.to_vec())
                .unwrap_or_default(),
            drop_times: true,
        };
        let file = sent.file("jfr")?;
        Ok(candela_formats::read_jfr(&file[..], &jfr, options))
    }

    /// A profile without types gets that of the name.
    fn typed(&self, named: &NamedType, read: Read) -> Read {
        let (mut profile, report) = read?;
        for series in &mut profile.series {
            series.profile_type = named.profile_type.clone();
            if named.factor > 1 {
                series.period = named.factor;
            }
            if series.duration_ns == 0 {
                series.duration_ns = self.until_ns.saturating_sub(self.from_ns).max(0);
            }
            for sample in &mut series.samples {
                sample.value = sample.value.saturating_mul(named.factor);
            }
        }
        Ok((profile, report))
    }
}
