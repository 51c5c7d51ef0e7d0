//! What a push to `/ingest` says of its profile, and the profile as it is stored.

use axum::http::HeaderMap;
use candela_formats::JfrOptions;
use candela_formats::ReadError;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_model::Profile;
use candela_model::SERVICE_NAME_LABEL;

use super::app_name::AppName;
use super::format::BodyFormat;
use super::names::DEFAULT_RATE;
use super::names::NamedType;
use super::sample_types::SampleTypes;
use crate::api_error::ApiError;
use crate::app::App;
use crate::auth::TenantName;
use crate::ingest::batch::Batch;
use crate::ingest::body::BodyBounds;
use crate::ingest::form::Sent;
use crate::ingest::pushed_labels::PushedLabels;
use crate::ingest::read::read_error;
use crate::ingest::read::read_options;
use crate::parameters::Parameters;
use crate::pyroscope::attime::parse_attime;

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
    ) -> Result<Batch, ApiError> {
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
        let read = read.map_err(|error| read_error(&error).into_unprocessable());
        let (mut profile, mut report) = read?;
        app.tenants.charge(tenant, sent.body.len() as u64);
        for series in &mut profile.series {
            if series.start_ns < NANOSECONDS_OF_1970 {
                series.start_ns = self.from_ns;
            }
        }
        let mut batch = Batch::default();
        batch.add(app, tenant, profile, &mut report);
        Ok(batch)
    }

    fn pprof(&self, sent: &Sent, options: &ReadOptions) -> Result<Read, ApiError> {
        if sent.part("prev_profile").is_some() {
            let message = "prev_profile: differences are taken by the client";
            return Err(ApiError::unprocessable("previous_profile", message)
                .hint("use a newer version of the SDK"));
        }
        let mut repairs = Report::default();
        let config = sent.part("sample_type_config");
        let config = config.map(|part| SampleTypes::parse(part, &mut repairs));
        let config = config.transpose()?.unwrap_or_default();
        let read = candela_formats::read_pprof(&sent.file("profile")?[..], options);
        Ok(read.map(|(mut profile, mut report)| {
            report.absorb_notes(repairs);
            for series in &mut profile.series {
                config.complete(series, self.rate);
            }
            (profile, report)
        }))
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

    /// A profile gets the type of the name as far as it has none.
    fn typed(&self, named: &NamedType, read: Read) -> Read {
        let (mut profile, report) = read?;
        for series in &mut profile.series {
            named.complete(series);
            if series.duration_ns == 0 {
                series.duration_ns = self.until_ns.saturating_sub(self.from_ns).max(0);
            }
        }
        Ok((profile, report))
    }
}
