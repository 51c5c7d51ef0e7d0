//! One element of `observability_daemons`: what runs on each node, and what it may use.

use crate::destination::Destination;
use crate::fields::Fields;
use crate::fields::unknown_key;
use crate::json::Json;
use crate::object::ObjectWriter;
use crate::path::DocumentPath;
use crate::perf_collector::PerfCollector;
use crate::perfetto_daemon::PerfettoDaemon;
use crate::report::Report;
use crate::resources::Resources;
use crate::resources::check_limit;

const NAMES: [&str; 6] = [
    "image_override",
    "keep_running_when_suspended",
    "limit",
    "perf_collector",
    "perfetto_daemon",
    "request",
];
/// Bodies of the published type that others run (CH-5).
const BODIES_OF_OTHERS: [&str; 6] = [
    "core_dump_collector",
    "directory_watcher",
    "network_inspector_daemon",
    "py_spy_stack_trace_collector",
    "streamed_watcher",
    "zombie_killer",
];

/// One daemon. Fields are as written: what is absent is `None`, which is not the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservabilityDaemon {
    /// What it does.
    pub body: DaemonBody,
    /// Another container image than ours, where it runs in a container.
    pub image_override: Option<String>,
    /// Whether it goes on while the document is `suspended`.
    pub keep_running_when_suspended: Option<bool>,
    /// What it must not exceed.
    pub limit: Option<Resources>,
    /// What it asks of its node.
    pub request: Option<Resources>,
}

/// What a daemon does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DaemonBody {
    /// Dumps of samples at a steady rate.
    PerfCollector(PerfCollector),
    /// Snapshots of a Perfetto trace.
    PerfettoDaemon(PerfettoDaemon),
}

impl DaemonBody {
    /// The key of the body in the document.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::PerfCollector(_) => "perf_collector",
            Self::PerfettoDaemon(_) => "perfetto_daemon",
        }
    }

    /// Where its results go; always there in a document that was accepted.
    #[must_use]
    pub fn destination(&self) -> Option<Destination> {
        match self {
            Self::PerfCollector(collector) => collector.destination(),
            Self::PerfettoDaemon(daemon) => daemon.destination(),
        }
    }

    fn to_json(&self) -> Json {
        match self {
            Self::PerfCollector(collector) => collector.to_json(),
            Self::PerfettoDaemon(daemon) => daemon.to_json(),
        }
    }
}

impl ObservabilityDaemon {
    /// Whether it goes on while the document is `suspended`; by default it does not.
    #[must_use]
    pub fn keeps_running_when_suspended(&self) -> bool {
        self.keep_running_when_suspended.unwrap_or(false)
    }

    /// What it asks of its node: 25m CPU and 64Mi memory where it says nothing.
    #[must_use]
    pub fn effective_request(&self) -> Resources {
        let request = self.request.clone().unwrap_or_default();
        request.with_default_request()
    }

    /// With every default written out.
    #[must_use]
    pub fn with_defaults(&self) -> Self {
        let body = match &self.body {
            DaemonBody::PerfCollector(collector) => {
                DaemonBody::PerfCollector(collector.with_defaults())
            }
            DaemonBody::PerfettoDaemon(daemon) => {
                DaemonBody::PerfettoDaemon(daemon.with_defaults())
            }
        };
        Self {
            body,
            image_override: self.image_override.clone(),
            keep_running_when_suspended: Some(self.keeps_running_when_suspended()),
            limit: Some(self.limit.clone().unwrap_or_default()),
            request: Some(self.effective_request()),
        }
    }

    /// The written form.
    #[must_use]
    pub fn to_json(&self) -> Json {
        ObjectWriter::default()
            .json(self.body.name(), Some(self.body.to_json()))
            .text("image_override", self.image_override.as_deref())
            .boolean(
                "keep_running_when_suspended",
                self.keep_running_when_suspended,
            )
            .json("limit", self.limit.as_ref().map(Resources::to_json))
            .json("request", self.request.as_ref().map(Resources::to_json))
            .finish()
    }

    pub(crate) fn read(json: &Json, path: &DocumentPath, report: &mut Report) -> Option<Self> {
        let fields = Fields::of(json, path, &NAMES, report)?;
        let has_body_of_others = refuse_unknown(&fields, report);
        let mut resources = |name: &'static str| {
            let json = fields.json(name)?;
            Resources::read(json, &path.key(name), report)
        };
        let (request, limit) = (resources("request"), resources("limit"));
        check_limit(request.as_ref(), limit.as_ref(), path, report);
        let image_override = read_image(&fields, report);
        let keep_running_when_suspended = fields.boolean("keep_running_when_suspended", report);
        let body = read_body(&fields, has_body_of_others, path, report)?;
        if let DaemonBody::PerfettoDaemon(daemon) = &body {
            warn_of_small_limit(daemon, limit.as_ref(), path, report);
        }
        Some(Self {
            body,
            image_override,
            keep_running_when_suspended,
            limit,
            request,
        })
    }
}

/// Whether one of the refused keys is a body.
fn refuse_unknown(fields: &Fields<'_>, report: &mut Report) -> bool {
    let mut has_body_of_others = false;
    for (key, _) in fields.unknown() {
        let body = crate::spelling::known_name(key, &BODIES_OF_OTHERS);
        has_body_of_others |= body.is_some();
        let message = match (body, *key) {
            (Some(_), _) => "is not run by Candela, which has perf_collector and perfetto_daemon; \
                 remove it"
                .to_owned(),
            (None, "scheduling") => "is not read by Candela, whose daemons run wherever an agent \
                 runs; remove it and choose nodes where agents are installed"
                .to_owned(),
            (None, _) => unknown_key(key, &NAMES),
        };
        report.problem(fields.path_of(body.unwrap_or(key)), message);
    }
    has_body_of_others
}

/// Both bodies are looked at even when one is too many, so that all problems are told.
fn read_body(
    fields: &Fields<'_>,
    has_body_of_others: bool,
    path: &DocumentPath,
    report: &mut Report,
) -> Option<DaemonBody> {
    let collector = fields.json("perf_collector");
    let perfetto = fields.json("perfetto_daemon");
    match (collector, perfetto) {
        (Some(_), Some(_)) => report.problem(
            path.clone(),
            "has two bodies, perf_collector and perfetto_daemon; write an element for each",
        ),
        (None, None) if !has_body_of_others => {
            report.problem(
                path.clone(),
                "has no body; write perf_collector or perfetto_daemon",
            );
        }
        _ => (),
    }
    let collector = collector.and_then(|json| {
        let path = path.key("perf_collector");
        PerfCollector::read(json, &path, report).map(DaemonBody::PerfCollector)
    });
    let perfetto = perfetto.and_then(|json| {
        let path = path.key("perfetto_daemon");
        PerfettoDaemon::read(json, &path, report).map(DaemonBody::PerfettoDaemon)
    });
    collector.or(perfetto)
}

fn read_image(fields: &Fields<'_>, report: &mut Report) -> Option<String> {
    let image = fields.text("image_override", report)?;
    let is_odd = |character: char| character.is_whitespace() || character.is_control();
    if image.is_empty() || image.contains(is_odd) {
        let message = format!(
            "{image:?} is no image; write for example registry.example/candela:1.2, or remove it"
        );
        report.problem(fields.path_of("image_override"), message);
    }
    Some(image)
}

/// The ring is memory of the daemon: with less than that it is killed whenever it fills.
fn warn_of_small_limit(
    daemon: &PerfettoDaemon,
    limit: Option<&Resources>,
    path: &DocumentPath,
    report: &mut Report,
) {
    let memory = limit.and_then(Resources::memory_quantity);
    let (Some(memory), Some(config)) = (memory, daemon.trace_config()) else {
        return;
    };
    let ring = config.buffer_bytes();
    if memory.bytes() <= ring {
        let message = format!(
            "{memory} bytes leave nothing beside the buffers of config_text, {ring} bytes; raise the limit or lower size_kb"
        );
        report.warning(path.key("limit").key("memory"), message);
    }
}
