//! What is asked for where: labels of a target become the URLs of its profiles.

use std::time::Duration;

use candela_model::Labels;
use candela_model::SERVICE_NAME_LABEL;
use twox_hash::XxHash3_128;

use crate::scrape::discovery::ADDRESS_LABEL;
use crate::scrape::job::ScrapeJob;
use crate::scrape::profiles::ProfileReading;
use crate::scrape::profiles::ScrapedProfile;
use crate::scrape::profiles::enabled;
use crate::scrape::relabel::relabel;

const JOB_LABEL: &str = "job";
const INSTANCE_LABEL: &str = "instance";
const SCHEME_LABEL: &str = "__scheme__";
const PREFIX_LABEL: &str = "__profile_path_prefix__";

/// `__param_NAME` is a parameter of the URL.
const PARAMETER_PREFIX: &str = "__param_";

/// Says to receivers that still subtract by themselves that there is nothing to subtract.
pub(crate) const DELTA_LABEL: &str = "__delta__";

/// The service of a target of which nobody says what it is.
const UNSPECIFIED_SERVICE: &str = "unspecified";

/// One profile of one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// Position of the job.
    pub(crate) job: usize,
    pub(crate) profile: ScrapedProfile,
    pub(crate) url: String,
    /// Labels of its series.
    pub(crate) labels: Labels,
    /// The time that an answer covers, where it is asked for.
    pub(crate) window: Option<Duration>,
}

/// Why a target has no endpoints.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TargetProblem {
    #[error("{0}")]
    Relabel(#[from] crate::scrape::relabel::RelabelError),
    #[error("a target has no __address__ after relabelling: {labels}")]
    NoAddress { labels: String },
    #[error("target {address:?}: {problem}")]
    BadTarget { address: String, problem: String },
}

// === impl Endpoint ===

impl Endpoint {
    /// What tells it from others, also those of a changed configuration.
    pub(crate) fn key(&self) -> u128 {
        let mut hasher = XxHash3_128::new();
        let mut write = |text: &str| {
            hasher.write(&(text.len() as u64).to_le_bytes());
            hasher.write(text.as_bytes());
        };
        write(&self.job.to_string());
        write(&self.profile.kind);
        write(&self.url);
        for (name, value) in self.labels.iter() {
            write(name);
            write(value);
        }
        hasher.finish_128()
    }

    /// Its place in every interval, nanoseconds. By a hash, so that it stays the same over restarts
    /// and targets do not come all at once.
    pub(crate) fn phase_ns(&self, interval: Duration) -> u64 {
        let interval_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        XxHash3_128::oneshot(self.url.as_bytes()) as u64 % interval_ns.max(1)
    }
}

/// The endpoints of a target of the job at position `job`; `None` when a rule drops it.
///
/// # Errors
/// Why a target that no rule drops cannot be asked.
pub(crate) fn endpoints(
    position: usize,
    job: &ScrapeJob,
    discovered: &Labels,
) -> Result<Option<Vec<Endpoint>>, TargetProblem> {
    let mut labels = discovered.clone();
    labels.set_default(JOB_LABEL, &job.name);
    labels.set_default(SCHEME_LABEL, job.scheme.as_str());
    labels.set_default(PREFIX_LABEL, &job.path_prefix);
    let Some(labels) = relabel(labels, &job.relabel)? else {
        return Ok(None);
    };
    let base = base_url(&labels)?;
    let public = public_labels(&labels);
    let is_on = |kind: &str| {
        let said = said(&labels, kind, "enabled").or_else(|| said(&labels, kind, "scrape"));
        let said = said.or_else(|| labels.get(&format!("__profile_{kind}")));
        said.and_then(|text| text.parse().ok())
    };
    let made = enabled(&job.profiles, is_on).into_iter().map(|profile| {
        let has_window = profile.reading == ProfileReading::Window;
        let window = has_window.then_some(job.delta_duration);
        Ok(Endpoint {
            job: position,
            profile: profile.clone(),
            url: base.url(&labels, profile, window)?,
            labels: series_labels(&public, profile),
            window,
        })
    });
    made.collect::<Result<_, _>>().map(Some)
}

/// What an annotation of the target says of a kind of profile: `__profile_memory_path`.
fn said<'a>(labels: &'a Labels, kind: &str, what: &str) -> Option<&'a str> {
    labels.get(&format!("__profile_{kind}_{what}"))
}

struct Base<'a> {
    scheme: &'a str,
    address: &'a str,
    prefix: &'a str,
}

fn base_url(labels: &Labels) -> Result<Base<'_>, TargetProblem> {
    let address = labels
        .get(ADDRESS_LABEL)
        .ok_or_else(|| TargetProblem::NoAddress {
            labels: labels.to_string(),
        })?;
    let refused = |problem: String| TargetProblem::BadTarget {
        address: address.to_owned(),
        problem,
    };
    let scheme = labels.get(SCHEME_LABEL).unwrap_or("http");
    if !matches!(scheme, "http" | "https") {
        return Err(refused(format!(
            "__scheme__ {scheme:?} is neither http nor https"
        )));
    }
    if address.contains(['/', '?', '#', '@', '\\']) || !is_plain(address) {
        return Err(refused(
            "an address is host:port, without scheme and path".to_owned(),
        ));
    }
    Ok(Base {
        scheme,
        address,
        prefix: labels.get(PREFIX_LABEL).unwrap_or_default(),
    })
}

impl Base<'_> {
    fn url(
        &self,
        labels: &Labels,
        profile: &ScrapedProfile,
        window: Option<Duration>,
    ) -> Result<String, TargetProblem> {
        let path = said(labels, &profile.kind, "path").unwrap_or(&profile.path);
        let refused = |problem: String| TargetProblem::BadTarget {
            address: self.address.to_owned(),
            problem,
        };
        let path = joined(self.prefix, path);
        if path.contains('#') || !is_plain(&path) {
            return Err(refused(format!("{path:?} is no path of a URL")));
        }
        let address = match said(labels, &profile.kind, "port") {
            None => self.address.to_owned(),
            Some(port) => {
                let port: u16 = port
                    .parse()
                    .map_err(|_| refused(format!("{port:?} is no port")))?;
                format!("{}:{port}", host_of(self.address))
            }
        };
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in labels.iter() {
            if let Some(name) = name.strip_prefix(PARAMETER_PREFIX) {
                query.append_pair(name, value);
            }
        }
        if let Some(window) = window {
            // Go takes whole seconds only.
            query.append_pair("seconds", &window.as_secs().to_string());
        }
        let query = query.finish();
        let separator = match (query.is_empty(), path.contains('?')) {
            (true, _) => "",
            (false, true) => "&",
            (false, false) => "?",
        };
        let url = format!("{}://{address}{path}{separator}{query}", self.scheme);
        match ureq::http::Uri::try_from(url.as_str()) {
            Ok(uri) if uri.host().is_some_and(|host| !host.is_empty()) => Ok(url),
            Ok(_) => Err(refused("it names no host".to_owned())),
            Err(error) => Err(refused(error.to_string())),
        }
    }
}

/// The address without its port; `[::1]:80` is `[::1]`.
fn host_of(address: &str) -> &str {
    match address.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => address,
    }
}

fn joined(prefix: &str, path: &str) -> String {
    let prefix = prefix.trim_matches('/');
    let path = path.trim_start_matches('/');
    match prefix {
        "" => format!("/{path}"),
        prefix => format!("/{prefix}/{path}"),
    }
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The labels that others see, with a name for the service (KF-17).
fn public_labels(labels: &Labels) -> Labels {
    let public = labels.iter().filter(|(name, _)| !name.starts_with("__"));
    let mut public = Labels::from_pairs(public.collect::<Vec<_>>());
    let address = labels.get(ADDRESS_LABEL).unwrap_or_default();
    public.set_default(INSTANCE_LABEL, address);
    public.set_default(SERVICE_NAME_LABEL, &found_service(labels));
    public
}

/// The service's name from what discovery knows.
fn found_service(labels: &Labels) -> String {
    const ANNOTATIONS: [&str; 2] = [
        "__meta_kubernetes_pod_annotation_pyroscope_io_service_name",
        "__meta_kubernetes_pod_annotation_pyroscope_io_application_name",
    ];
    const CONTAINERS: [&str; 3] = [
        "__meta_docker_container_name",
        "__meta_dockerswarm_container_label_service_name",
        "__meta_dockerswarm_service_name",
    ];
    let first = |names: &[&str]| names.iter().find_map(|name| labels.get(name));
    if let Some(annotated) = first(&ANNOTATIONS) {
        return annotated.to_owned();
    }
    let namespace = labels.get("__meta_kubernetes_namespace");
    let container = labels.get("__meta_kubernetes_pod_container_name");
    if let (Some(namespace), Some(container)) = (namespace, container) {
        return format!("{namespace}/{container}");
    }
    let container = first(&CONTAINERS).map(|name| name.trim_start_matches('/'));
    container.unwrap_or(UNSPECIFIED_SERVICE).to_owned()
}

fn series_labels(public: &Labels, profile: &ScrapedProfile) -> Labels {
    let mut labels = public.clone();
    let is_delta = matches!(
        profile.reading,
        ProfileReading::Cumulative | ProfileReading::SinceLast
    );
    if is_delta {
        labels.set(DELTA_LABEL, "false");
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scrape::relabel::RelabelRule;
    use crate::scrape::relabel::RelabelSpec;

    fn urls(job: &ScrapeJob, labels: &[(&str, &str)]) -> Vec<String> {
        let labels = Labels::from_pairs(labels.iter().copied());
        let found = endpoints(0, job, &labels).expect("sound").expect("kept");
        found.into_iter().map(|endpoint| endpoint.url).collect()
    }

    #[test]
    fn urls_of_the_defaults() {
        let found = urls(&ScrapeJob::new("shop"), &[("__address__", "web:6060")]);
        let expected = [
            "http://web:6060/debug/pprof/allocs",
            "http://web:6060/debug/pprof/block",
            "http://web:6060/debug/pprof/mutex",
            "http://web:6060/debug/pprof/goroutine",
            "http://web:6060/debug/pprof/profile?seconds=14",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn annotations_change_single_profiles() {
        let found = urls(
            &ScrapeJob::new("shop"),
            &[
                ("__address__", "[::1]:80"),
                ("__scheme__", "https"),
                ("__profile_path_prefix__", "/app/"),
                ("__param_token", "a b"),
                ("__profile_block_enabled", "false"),
                ("__profile_mutex", "false"),
                ("__profile_goroutine_scrape", "false"),
                ("__profile_memory_path", "heap?gc=1"),
                ("__profile_process_cpu_port", "6061"),
            ],
        );
        let expected = [
            "https://[::1]:80/app/heap?gc=1&token=a+b",
            "https://[::1]:6061/app/debug/pprof/profile?token=a+b&seconds=14",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn labels_that_others_see() {
        let job = ScrapeJob::new("shop");
        let shown = |pairs: &[(&str, &str)]| {
            let labels = Labels::from_pairs(pairs.iter().copied());
            let found = endpoints(0, &job, &labels).expect("sound").expect("kept");
            found[3].labels.to_string()
        };
        assert_eq!(
            shown(&[("__address__", "web:6060"), ("env", "prod")]),
            r#"{env="prod", instance="web:6060", job="shop", service_name="unspecified"}"#
        );
        assert_eq!(
            shown(&[
                ("__address__", "web:6060"),
                ("__meta_kubernetes_namespace", "shop"),
                ("__meta_kubernetes_pod_container_name", "web"),
                ("instance", "web-1"),
                ("job", "own"),
            ]),
            r#"{instance="web-1", job="own", service_name="shop/web"}"#
        );
        let docker = ("__meta_docker_container_name", "/cart");
        assert!(shown(&[("__address__", "a:1"), docker]).contains(r#"service_name="cart""#));
    }

    #[test]
    fn totals_are_marked_as_subtracted() {
        let labels = Labels::from_pairs([("__address__", "a:1")]);
        let found = endpoints(0, &ScrapeJob::new("shop"), &labels);
        for endpoint in found.expect("sound").expect("kept") {
            let is_total = ["memory", "block", "mutex"].contains(&endpoint.profile.kind.as_str());
            let marked = endpoint.labels.get(DELTA_LABEL);
            assert_eq!(
                marked,
                is_total.then_some("false"),
                "{}",
                endpoint.profile.kind
            );
        }
    }

    #[test]
    fn targets_that_cannot_be_asked_are_named() {
        let job = ScrapeJob::new("shop");
        let problem = |pairs: &[(&str, &str)]| {
            let labels = Labels::from_pairs(pairs.iter().copied());
            endpoints(0, &job, &labels)
                .expect_err("a problem")
                .to_string()
        };
        assert!(problem(&[("env", "prod")]).contains(r#"env="prod""#));
        assert!(problem(&[("__address__", "http://a:1")]).contains("without scheme"));
        assert!(problem(&[("__address__", "a b")]).contains("\"a b\""));
        assert!(problem(&[("__address__", "a:1"), ("__scheme__", "ftp")]).contains("ftp"));
        let path = ("__profile_memory_path", "a b");
        assert!(problem(&[("__address__", "a:1"), path]).contains("no path"));
        let port = ("__profile_memory_port", "high");
        assert!(problem(&[("__address__", "a:1"), port]).contains("no port"));
    }

    #[test]
    fn rules_may_drop_a_target() {
        let spec = RelabelSpec {
            source_labels: vec!["env".to_owned()],
            regex: "prod".to_owned(),
            action: crate::scrape::relabel::RelabelAction::Keep,
            ..RelabelSpec::default()
        };
        let mut job = ScrapeJob::new("shop");
        job.relabel = vec![RelabelRule::new(spec).expect("a rule")];
        let labels = Labels::from_pairs([("__address__", "a:1")]);
        assert_eq!(endpoints(0, &job, &labels), Ok(None));
    }

    #[test]
    fn targets_are_spread_over_the_interval() {
        let interval = Duration::from_secs(15);
        let mut tenths = [0; 10];
        for number in 0..1000 {
            let address = format!("host-{number}:6060");
            let labels = Labels::from_pairs([("__address__", address.as_str())]);
            let found = endpoints(0, &ScrapeJob::new("shop"), &labels);
            for endpoint in found.expect("sound").expect("kept") {
                let phase_ns = endpoint.phase_ns(interval);
                tenths[(phase_ns * 10 / 15_000_000_000) as usize] += 1;
            }
        }
        assert!(
            tenths.iter().all(|&count| (400..600).contains(&count)),
            "{tenths:?}"
        );
    }
}
