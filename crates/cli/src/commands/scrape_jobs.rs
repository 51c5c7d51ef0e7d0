//! `agent.scrape` as the agent takes it.

use std::path::PathBuf;

use candela_agent::Credentials;
use candela_agent::RelabelAction;
use candela_agent::RelabelRule;
use candela_agent::RelabelSpec;
use candela_agent::ScrapeJob;
use candela_agent::ScrapeScheme;
use candela_agent::ScrapedProfile;
use candela_agent::SecretSource;
use candela_agent::parse_target_groups;
use serde_json::Value as Node;

use super::scrape_fields::Fields;
use super::scrape_fields::problem;
use crate::config::Settings;
use crate::config::key_search::nearest_of;
use crate::errors::CliError;

const KEY: &str = "agent.scrape";

const JOB_KEYS: &[&str] = &[
    "name",
    "static_targets",
    "target_files",
    "relabel",
    "scrape_interval",
    "scrape_timeout",
    "delta_profiling_duration",
    "scheme",
    "path_prefix",
    "basic_auth",
    "bearer_token",
    "bearer_token_file",
    "ca_file",
    "profiles",
];

const RULE_KEYS: &[&str] = &[
    "source_labels",
    "separator",
    "regex",
    "modulus",
    "target_label",
    "replacement",
    "action",
];

/// The jobs, in the order of the file.
///
/// # Errors
/// What is none of a job's, with its place.
pub(super) fn scrape_jobs(settings: &Settings) -> Result<Vec<ScrapeJob>, CliError> {
    match settings.structure(KEY) {
        Node::Array(nodes) => {
            let numbered = nodes.iter().enumerate();
            numbered
                .map(|(position, node)| job(node, &format!("{KEY}[{position}]")))
                .collect()
        }
        _ => Ok(Vec::new()),
    }
}

fn job(node: &Node, place: &str) -> Result<ScrapeJob, CliError> {
    let fields = Fields::of(node, place, JOB_KEYS)?;
    let name = fields.text("name")?;
    let name = name.ok_or_else(|| problem(place, "the job has no name"))?;
    let mut job = ScrapeJob::new(&name);
    if let Some(groups) = fields.node("static_targets") {
        job.static_targets = parse_target_groups(groups)
            .map_err(|error| problem(&fields.at("static_targets"), &error.to_string()))?;
    }
    job.target_files = fields.texts("target_files")?;
    if job.static_targets.is_empty() && job.target_files.is_empty() {
        let missing = "the job has neither static_targets nor target_files";
        return Err(problem(place, missing));
    }
    let rules = fields.nodes("relabel")?.iter().enumerate();
    job.relabel = rules
        .map(|(position, node)| rule(node, &format!("{place}.relabel[{position}]")))
        .collect::<Result<_, _>>()?;
    if let Some(interval) = fields.duration("scrape_interval")? {
        job.interval = interval;
        job.delta_duration = ScrapeJob::delta_duration_of(interval);
    }
    if let Some(timeout) = fields.duration("scrape_timeout")? {
        job.timeout = timeout;
    }
    if let Some(duration) = fields.duration("delta_profiling_duration")? {
        job.delta_duration = duration;
    }
    job.scheme = match fields.text("scheme")?.as_deref() {
        None | Some("http") => ScrapeScheme::Http,
        Some("https") => ScrapeScheme::Https,
        Some(other) => {
            let message = format!("{other:?} is neither http nor https");
            return Err(problem(&fields.at("scheme"), &message));
        }
    };
    job.path_prefix = fields.text("path_prefix")?.unwrap_or_default();
    job.credentials = credentials(&fields)?;
    job.ca_file = fields.text("ca_file")?.map(PathBuf::from);
    if let Some(node) = fields.node("profiles") {
        profiles(node, &fields.at("profiles"), &mut job.profiles)?;
    }
    Ok(job)
}

fn rule(node: &Node, place: &str) -> Result<RelabelRule, CliError> {
    let fields = Fields::of(node, place, RULE_KEYS)?;
    let mut spec = RelabelSpec::default();
    if let Some(name) = fields.text("action")? {
        spec.action = RelabelAction::of_name(&name).ok_or_else(|| {
            let known = RelabelAction::NAMES.map(|(name, _)| name);
            let hint = match nearest_of(&name, known.into_iter()) {
                Some(nearest) => format!("did you mean {nearest}?"),
                None => format!("there are {}", known.join(", ")),
            };
            problem(&fields.at("action"), &format!("no action {name:?}, {hint}"))
        })?;
    }
    spec.source_labels = fields.texts("source_labels")?;
    let texts = [
        ("separator", &mut spec.separator),
        ("regex", &mut spec.regex),
        ("target_label", &mut spec.target_label),
        ("replacement", &mut spec.replacement),
    ];
    for (name, text) in texts {
        if let Some(given) = fields.any_text(name)? {
            *text = given;
        }
    }
    if let Some(modulus) = fields.integer("modulus")? {
        spec.modulus = modulus.unsigned_abs();
    }
    RelabelRule::new(spec).map_err(|error| problem(place, &error.to_string()))
}

fn credentials(fields: &Fields<'_>) -> Result<Option<Credentials>, CliError> {
    let token = secret(fields, "bearer_token")?;
    let basic = match fields.node("basic_auth") {
        None => None,
        Some(node) => {
            let known = &["username", "password", "password_file"];
            let inner = Fields::of(node, &fields.at("basic_auth"), known)?;
            let lacks = |what| problem(&inner.place, &format!("has no {what}"));
            Some(Credentials::Basic {
                username: inner.text("username")?.ok_or_else(|| lacks("username"))?,
                password: secret(&inner, "password")?
                    .ok_or_else(|| lacks("password or password_file"))?,
            })
        }
    };
    match (token, basic) {
        (Some(_), Some(_)) => {
            let message = "basic_auth and a bearer token are both set; drop one";
            Err(problem(&fields.place, message))
        }
        (Some(token), None) => Ok(Some(Credentials::Bearer(token))),
        (None, basic) => Ok(basic),
    }
}

/// The secret itself, or the file that the key with `_file` names.
fn secret(fields: &Fields<'_>, name: &str) -> Result<Option<SecretSource>, CliError> {
    let file_key = format!("{name}_file");
    match (fields.text(name)?, fields.text(&file_key)?) {
        (Some(_), Some(_)) => {
            let message = format!("{name} and {file_key} are both set; drop one");
            Err(problem(&fields.place, &message))
        }
        (Some(secret), None) => Ok(Some(SecretSource::Inline(secret))),
        (None, file) => Ok(file.map(|path| SecretSource::File(PathBuf::from(path)))),
    }
}

/// Changes the kinds that everybody has, and adds those below `custom`.
fn profiles(node: &Node, place: &str, known: &mut Vec<ScrapedProfile>) -> Result<(), CliError> {
    let kinds: Vec<&str> = known.iter().map(|profile| profile.kind.as_str()).collect();
    let names: Vec<&str> = kinds.into_iter().chain(["custom"]).collect();
    let fields = Fields::of(node, place, &names)?;
    let mut customs = Vec::new();
    if let Some(node) = fields.node("custom") {
        let inner = Fields::any(node, &fields.at("custom"))?;
        for (name, node) in inner.entries {
            customs.push(custom(name, node, &inner.at(name), &names)?);
        }
    }
    for profile in known.iter_mut() {
        let Some(node) = fields.node(&profile.kind) else {
            continue;
        };
        // `block: false` is short for `block: {enabled: false}`.
        if let Node::Bool(enabled) = node {
            profile.enabled = Some(*enabled);
            continue;
        }
        let inner = Fields::of(node, &fields.at(&profile.kind), &["enabled", "path"])?;
        if let Some(enabled) = inner.boolean("enabled")? {
            profile.enabled = Some(enabled);
        }
        if let Some(path) = inner.text("path")? {
            profile.path = path;
        }
    }
    known.extend(customs);
    Ok(())
}

fn custom(
    name: &str,
    node: &Node,
    place: &str,
    taken: &[&str],
) -> Result<ScrapedProfile, CliError> {
    if taken.contains(&name) {
        return Err(problem(place, "the name is taken; give it one of its own"));
    }
    let fields = Fields::of(node, place, &["enabled", "path", "delta"])?;
    let path = fields.text("path")?;
    let path = path.ok_or_else(|| problem(place, "has no path"))?;
    let has_window = fields.boolean("delta")?.unwrap_or(false);
    let mut profile = ScrapedProfile::custom(name, &path, has_window);
    profile.enabled = Some(fields.boolean("enabled")?.unwrap_or(true));
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use candela_agent::ProfileReading;

    use super::*;
    use crate::config::Inputs;
    use crate::config::load;

    fn jobs(yaml: &str) -> Result<Vec<ScrapeJob>, CliError> {
        let name = "CANDELA_AGENT__SCRAPE".to_owned();
        let settings = load(&Inputs {
            environment: [(name, yaml.to_owned())].into_iter().collect(),
            ..Inputs::default()
        })?;
        scrape_jobs(&settings)
    }

    #[test]
    fn a_job_with_everything() {
        let yaml = r#"
- name: shop
  static_targets:
    - targets: [web:6060, "cart:6060"]
      labels: {env: prod, shard: 7}
  target_files: [/etc/candela/*.yml]
  relabel:
    - source_labels: [__address__]
      regex: '(.+):\d+'
      target_label: host
    - {action: labeldrop, regex: shard}
  scrape_interval: 30s
  scrape_timeout: 5s
  scheme: https
  path_prefix: /app
  basic_auth: {username: me, password_file: /run/secret}
  ca_file: /etc/ca.pem
  profiles:
    block: false
    memory: {path: /heap}
    godeltaprof_mutex: {enabled: true}
    custom:
      jobs: {path: /jobs}
      slow: {path: /slow, delta: true, enabled: false}
"#;
        let jobs = jobs(yaml).expect("sound");
        let job = &jobs[0];
        assert_eq!((jobs.len(), job.name.as_str()), (1, "shop"));
        assert_eq!(job.static_targets[0].addresses, ["web:6060", "cart:6060"]);
        assert_eq!(job.static_targets[0].labels.get("shard"), Some("7"));
        assert_eq!(job.target_files, ["/etc/candela/*.yml"]);
        assert_eq!(job.relabel.len(), 2);
        let seconds = [job.interval, job.timeout, job.delta_duration];
        assert_eq!(seconds.map(|time| time.as_secs()), [30, 5, 29]);
        assert_eq!(
            (job.scheme, job.path_prefix.as_str()),
            (ScrapeScheme::Https, "/app")
        );
        let secret = SecretSource::File("/run/secret".into());
        let basic = Credentials::Basic {
            username: "me".to_owned(),
            password: secret,
        };
        assert_eq!(job.credentials, Some(basic));
        let profile = |kind: &str| {
            let mut all = job.profiles.iter();
            all.find(|profile| profile.kind == kind)
                .expect("there")
                .clone()
        };
        assert_eq!(profile("block").enabled, Some(false));
        assert_eq!(profile("memory").path, "/heap");
        assert_eq!(profile("memory").enabled, None);
        assert_eq!(profile("godeltaprof_mutex").enabled, Some(true));
        assert_eq!(profile("jobs").reading, ProfileReading::Moment);
        assert_eq!(profile("slow").reading, ProfileReading::Window);
        assert_eq!(profile("slow").enabled, Some(false));
    }

    #[test]
    fn without_keys_there_are_the_defaults() {
        let jobs = jobs("[{name: a, target_files: [x.yml]}]").expect("sound");
        let job = &jobs[0];
        let times = [job.interval, job.timeout, job.delta_duration];
        assert_eq!(times, [15, 10, 14].map(Duration::from_secs));
        assert_eq!(job.profiles, candela_agent::default_profiles());
    }

    #[test]
    fn what_is_no_job_is_said_with_its_place() {
        let with = |part: &str| format!("[{{name: a, target_files: [x.yml], {part}}}]");
        let cases = [
            (
                "[{target_files: [x]}]".to_owned(),
                "agent.scrape[0]: the job has no name",
            ),
            (
                "[{name: a}]".to_owned(),
                "neither static_targets nor target_files",
            ),
            (
                with("scrape_intervall: 1s"),
                "did you mean scrape_interval?",
            ),
            (
                with("scrape_interval: soon"),
                "agent.scrape[0].scrape_interval: \"soon\"",
            ),
            (with("scheme: ftp"), "neither http nor https"),
            (
                with("static_targets: [a:1]"),
                "static_targets: group 1: must have",
            ),
            (
                with("relabel: [{action: kep, regex: x}]"),
                "did you mean keep?",
            ),
            (
                with("relabel: [{regexp: x}]"),
                "relabel[0]: regexp: no such key, did you mean regex?",
            ),
            (
                with("relabel: [{action: keep, regex: ((}]"),
                "relabel[0]: relabel pattern",
            ),
            (with("relabel: [{regex: x}]"), "needs a target_label"),
            (with("profiles: {memori: true}"), "did you mean memory?"),
            (
                with("profiles: {memory: 7}"),
                "profiles.memory: must be names and values",
            ),
            (
                with("profiles: {custom: {memory: {path: x}}}"),
                "the name is taken",
            ),
            (with("profiles: {custom: {x: {}}}"), "custom.x: has no path"),
            (
                with("basic_auth: {password: x}"),
                "basic_auth: has no username",
            ),
            (
                with("bearer_token: x, bearer_token_file: y"),
                "are both set; drop one",
            ),
            (
                with("bearer_token: x, basic_auth: {username: u, password: hunter2}"),
                "are both set; drop one",
            ),
        ];
        for (yaml, part) in cases {
            let error = jobs(&yaml).expect_err(&yaml).to_string();
            assert!(error.contains(part), "{yaml}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
