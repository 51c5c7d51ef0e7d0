//! `perf_collector`: dumps of samples at a steady rate, a file each minute (CH-10 to CH-18).

use crate::destination::Destination;
use crate::destination::read_destination;
use crate::fields::Choice;
use crate::fields::Fields;
use crate::fields::NumberRule;
use crate::json::Json;
use crate::object::ObjectWriter;
use crate::path::DocumentPath;
use crate::process_filter::ProcessFilter;
use crate::report::Report;

const NAMES: [&str; 8] = [
    "bucket_subdirectory",
    "call_graph",
    "dump_duration_seconds",
    "export_to",
    "max_dumps_retained",
    "perf_polling_frequency_hz",
    "process_filter",
    "profiler",
];
const FREQUENCY: NumberRule = NumberRule {
    name: "perf_polling_frequency_hz",
    range: 1..=1000,
    unit: " Hz",
    cure: "99 is usual, 49 costs half",
};
const DURATION: NumberRule = NumberRule {
    name: "dump_duration_seconds",
    range: 1..=86_400,
    unit: " seconds",
    cure: "60 is usual, 120 gives half as many files",
};
const RETAINED: NumberRule = NumberRule {
    name: "max_dumps_retained",
    range: 1..=1000,
    unit: "",
    cure: "3 is usual",
};
const PROFILERS: [Choice<Profiler>; 2] = [
    Choice {
        name: "candela",
        number: None,
        value: Profiler::Candela,
    },
    Choice {
        name: "perf",
        number: None,
        value: Profiler::Perf,
    },
];

/// Its fields as written: what is absent is `None`, which is not 0. The methods give what holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerfCollector {
    /// Folder in the bucket.
    pub bucket_subdirectory: Option<String>,
    /// Whether samples have stacks.
    pub call_graph: Option<bool>,
    /// How long one dump is, seconds: 1 to 86400.
    pub dump_duration_seconds: Option<u32>,
    /// The bucket: `s3://BUCKET` or `gs://BUCKET`.
    pub export_to: Option<String>,
    /// Dumps that stay on the node: 1 to 1000.
    pub max_dumps_retained: Option<u32>,
    /// Samples a second and CPU, Hz: 1 to 1000.
    pub perf_polling_frequency_hz: Option<u32>,
    /// Whose samples are kept. A field of ours.
    pub process_filter: Option<ProcessFilter>,
    /// Who takes the samples. A field of ours.
    pub profiler: Option<Profiler>,
}

/// Who takes the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Profiler {
    /// Our sampler; needs nothing installed.
    Candela,
    /// The `perf` of the node.
    Perf,
}

impl PerfCollector {
    /// Samples a second and CPU, Hz; 99 by default, which is in step with no timer.
    #[must_use]
    pub fn frequency_hz(&self) -> u32 {
        self.perf_polling_frequency_hz.unwrap_or(99)
    }

    /// Whether samples have stacks; by default they have.
    #[must_use]
    pub fn has_call_graph(&self) -> bool {
        self.call_graph.unwrap_or(true)
    }

    /// How long one dump is, seconds; 60 by default.
    #[must_use]
    pub fn dump_seconds(&self) -> u32 {
        self.dump_duration_seconds.unwrap_or(60)
    }

    /// Dumps that stay on the node; 3 by default.
    #[must_use]
    pub fn dumps_retained(&self) -> u32 {
        self.max_dumps_retained.unwrap_or(3)
    }

    /// Who takes the samples; we by default.
    #[must_use]
    pub fn profiler(&self) -> Profiler {
        self.profiler.unwrap_or(Profiler::Candela)
    }

    /// Where dumps go; always there in a document that was accepted.
    #[must_use]
    pub fn destination(&self) -> Option<Destination> {
        let folder = self.bucket_subdirectory.as_deref();
        Destination::parse(self.export_to.as_deref()?, folder).ok()
    }

    /// With every default written out.
    #[must_use]
    pub fn with_defaults(&self) -> Self {
        Self {
            bucket_subdirectory: Some(self.bucket_subdirectory.clone().unwrap_or_default()),
            call_graph: Some(self.has_call_graph()),
            dump_duration_seconds: Some(self.dump_seconds()),
            export_to: self.export_to.clone(),
            max_dumps_retained: Some(self.dumps_retained()),
            perf_polling_frequency_hz: Some(self.frequency_hz()),
            process_filter: Some(self.process_filter.clone().unwrap_or_default()),
            profiler: Some(self.profiler()),
        }
    }

    pub(crate) fn read(json: &Json, path: &DocumentPath, report: &mut Report) -> Option<Self> {
        let fields = Fields::of(json, path, &NAMES, report)?;
        fields.refuse_unknown(&NAMES, report);
        let (export_to, bucket_subdirectory) = read_destination(&fields, report);
        let filter = fields.json("process_filter");
        let filter_path = path.key("process_filter");
        let process_filter =
            filter.and_then(|json| ProcessFilter::read(json, &filter_path, report));
        let profiler = fields.choice("profiler", &PROFILERS, report);
        let has_labels = process_filter
            .as_ref()
            .is_some_and(ProcessFilter::has_pod_labels);
        if profiler == Some(Profiler::Perf) && has_labels {
            let message = "is unknown to profiler \"perf\", which tells of processes and threads alone; \
                 filter by cgroup, or remove profiler";
            report.problem_unless_applied(filter_path.key("pod_label"), message);
        }
        Some(Self {
            bucket_subdirectory,
            call_graph: fields.boolean("call_graph", report),
            dump_duration_seconds: fields.number(&DURATION, report),
            export_to,
            max_dumps_retained: fields.number(&RETAINED, report),
            perf_polling_frequency_hz: fields.number(&FREQUENCY, report),
            process_filter,
            profiler,
        })
    }

    pub(crate) fn to_json(&self) -> Json {
        let profiler = self.profiler.map(|profiler| match profiler {
            Profiler::Candela => "candela",
            Profiler::Perf => "perf",
        });
        ObjectWriter::default()
            .text("bucket_subdirectory", self.bucket_subdirectory.as_deref())
            .boolean("call_graph", self.call_graph)
            .number("dump_duration_seconds", self.dump_duration_seconds)
            .text("export_to", self.export_to.as_deref())
            .number("max_dumps_retained", self.max_dumps_retained)
            .number("perf_polling_frequency_hz", self.perf_polling_frequency_hz)
            .json(
                "process_filter",
                self.process_filter.as_ref().map(ProcessFilter::to_json),
            )
            .text("profiler", profiler)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_hold_and_are_not_written() {
        let json: Json = serde_json::from_str(r#"{"export_to": "s3://bucket"}"#).unwrap();
        let mut report = Report::default();
        let collector = PerfCollector::read(&json, &DocumentPath::top(), &mut report).unwrap();
        assert_eq!(report.problems, []);
        assert_eq!(collector.frequency_hz(), 99);
        assert!(collector.has_call_graph());
        assert_eq!(collector.dump_seconds(), 60);
        assert_eq!(collector.dumps_retained(), 3);
        assert_eq!(collector.profiler(), Profiler::Candela);
        assert_eq!(collector.to_json(), json);
        let explicit = collector.with_defaults();
        assert_eq!(explicit.with_defaults(), explicit);
        assert_eq!(explicit.perf_polling_frequency_hz, Some(99));
    }
}
