//! A profile as the Firefox Profiler's processed format.

use std::io::Write;

use candela_model::FrameKind;
use candela_model::LabelValue;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::SERVICE_NAME_LABEL;
use candela_model::Sample;
use hashbrown::HashMap;
use serde_json::Map;
use serde_json::Number;
use serde_json::Value;
use serde_json::json;

use crate::error::WriteError;
use crate::firefox::columns::Samples;
use crate::firefox::process::OWN_KEY;
use crate::firefox::process::THREAD_LABELS;
use crate::firefox::write_tables::Tables;
use crate::firefox::write_tables::category_name;
use crate::report::Report;

/// The version of the processed format (August 2026) and that of raw profiles at that time.
const PROCESSED_VERSION: u32 = 70;
const GECKO_VERSION: u32 = 36;

const NANOSECONDS_PER_MILLISECOND: f64 = 1e6;

/// The samples of a series that have the same thread.
struct Thread<'p> {
    series: &'p ProfileSeries,
    labels: Map<String, Value>,
    samples: Vec<&'p Sample>,
}

/// Writes all series, each thread of each as one thread. Values of time are weights in milliseconds,
/// bytes are bytes, and everything else counts. Samples without times follow each other as they stand.
/// What Firefox has no place for stands under the key `candela`, so that it can be read again: exact
/// profile types, windows and address ranges.
///
/// # Errors
/// When the sink fails.
pub fn write_firefox(profile: &Profile, mut output: impl Write) -> Result<Report, WriteError> {
    let threads = threads(profile);
    let starts = profile.series.iter().map(first_ns);
    let start_ms = starts.min().unwrap_or(0).max(0) / NANOSECONDS_PER_MILLISECOND as i64;
    let mut tables = Tables::new(profile);
    let samples: Vec<Samples> = threads
        .iter()
        .map(|thread| samples(thread, start_ms, &mut tables))
        .collect();
    let meta = meta(profile, start_ms, &tables);
    write!(output, "{{\"meta\":{meta},\"libs\":")?;
    let io = |error: serde_json::Error| WriteError::Io(error.into());
    serde_json::to_writer(&mut output, &tables.libs).map_err(io)?;
    write!(output, ",\"pages\":[],\"counters\":[],\"shared\":")?;
    serde_json::to_writer(&mut output, &tables.shared).map_err(io)?;
    write!(output, ",\"threads\":[")?;
    let mut main_threads: Vec<String> = Vec::new();
    for (position, (thread, samples)) in threads.iter().zip(&samples).enumerate() {
        let separator = if position == 0 { "" } else { "," };
        let pid = pid(thread);
        let is_main = !main_threads.contains(&pid);
        let head = head(thread, &pid, is_main).to_string();
        // The head's closing bracket makes room for the samples.
        write!(
            output,
            "{separator}{},\"samples\":",
            &head[..head.len() - 1]
        )?;
        serde_json::to_writer(&mut output, samples).map_err(io)?;
        write!(output, "}}")?;
        if is_main {
            main_threads.push(pid);
        }
    }
    writeln!(output, "]}}")?;
    output.flush()?;
    Ok(Report::default())
}

/// The threads of all series, in the order in which they are found.
fn threads(profile: &Profile) -> Vec<Thread<'_>> {
    let mut threads: Vec<Thread<'_>> = Vec::new();
    for series in &profile.series {
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut thread_of_set: HashMap<u32, usize> = HashMap::new();
        for sample in &series.samples {
            let position = *thread_of_set.entry(sample.label_set.0).or_insert_with(|| {
                let labels = labels(profile, sample);
                let key = Value::Object(labels.clone()).to_string();
                *known.entry(key).or_insert_with(|| {
                    threads.push(Thread {
                        series,
                        labels,
                        samples: Vec::new(),
                    });
                    threads.len() - 1
                })
            });
            threads[position].samples.push(sample);
        }
        if series.samples.is_empty() {
            threads.push(Thread {
                series,
                labels: Map::new(),
                samples: Vec::new(),
            });
        }
    }
    threads
}

/// Those of a sample's labels that are of its thread.
fn labels(profile: &Profile, sample: &Sample) -> Map<String, Value> {
    let strings = &profile.symbols.strings;
    let mut labels = Map::new();
    for label in profile.label_sets.get(sample.label_set) {
        let key = strings.get(label.key);
        if THREAD_LABELS.iter().any(|(known, _)| *known == key) {
            let value = match label.value {
                LabelValue::Text(text) => json!(strings.get(text)),
                LabelValue::Number { value, .. } => json!(value),
            };
            labels.insert(key.to_owned(), value);
        }
    }
    labels
}

/// The first moment that is known of a series.
fn first_ns(series: &ProfileSeries) -> i64 {
    let times = series.samples.iter().map(|sample| sample.time_ns);
    let first = times.filter(|&time| time != 0).min();
    first.map_or(series.start_ns, |first| first.min(series.start_ns))
}

fn has_times(thread: &Thread<'_>) -> bool {
    thread.samples.iter().any(|sample| sample.time_ns != 0)
}

fn samples(thread: &Thread<'_>, start_ms: i64, tables: &mut Tables<'_>) -> Samples {
    let mut ordered = thread.samples.clone();
    ordered.sort_by_key(|sample| sample.time_ns);
    let has_times = has_times(thread);
    let weight_type = weight_type(thread.series);
    let start_ns = start_ms.saturating_mul(NANOSECONDS_PER_MILLISECOND as i64);
    let mut samples = Samples {
        weight_type,
        length: ordered.len(),
        ..Samples::default()
    };
    let mut behind = 0.0;
    for sample in ordered {
        let weight = match weight_type {
            "tracing-ms" => milliseconds(sample.value),
            _ => sample.value as f64,
        };
        let time = if has_times {
            milliseconds(sample.time_ns.saturating_sub(start_ns).max(0))
        } else {
            behind
        };
        // Without times time passes as the values say, or by an interval.
        behind += if weight_type == "tracing-ms" {
            weight.max(0.0)
        } else {
            1.0
        };
        samples.stack.push(tables.stack(sample.stack));
        samples.time.push(time);
        samples.weight.push(match weight_type {
            "tracing-ms" => Number::from_f64(weight).unwrap_or(Number::from(0)),
            _ => Number::from(sample.value),
        });
        samples.event_delay.push(None);
    }
    samples
}

fn weight_type(series: &ProfileSeries) -> &'static str {
    match series.profile_type.sample_unit.as_str() {
        "nanoseconds" => "tracing-ms",
        "bytes" => "bytes",
        _ => "samples",
    }
}

fn milliseconds(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / NANOSECONDS_PER_MILLISECOND
}

fn meta(profile: &Profile, start_ms: i64, tables: &Tables<'_>) -> Value {
    let in_nanoseconds = |series: &&ProfileSeries| {
        series.period > 0 && series.profile_type.period_unit == "nanoseconds"
    };
    let period = profile.series.iter().find(in_nanoseconds);
    let interval = period.map_or(1.0, |series| milliseconds(series.period));
    let categories = tables.categories.iter().map(|&kind| {
        json!({
            "name": category_name(kind),
            "color": category_color(kind),
            "subcategories": ["Other"],
        })
    });
    json!({
        "interval": interval,
        "startTime": start_ms,
        "processType": 0,
        "product": "Candela",
        "stackwalk": 1,
        "debug": false,
        "version": GECKO_VERSION,
        "preprocessedProfileVersion": PROCESSED_VERSION,
        "categories": categories.collect::<Vec<Value>>(),
        "markerSchema": [],
        "symbolicated": tables.is_symbolicated,
        "sourceCodeIsNotOnSearchfox": true,
        "importedFrom": "Candela",
        OWN_KEY: true,
    })
}

fn category_color(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Unknown => "grey",
        FrameKind::Kernel => "orange",
        FrameKind::Native | FrameKind::Go | FrameKind::Rust => "blue",
        FrameKind::V8js | FrameKind::Luajit => "yellow",
        FrameKind::Jvm | FrameKind::Dotnet => "green",
        FrameKind::Other => "darkgrey",
        _ => "purple",
    }
}

/// All of a thread but its samples.
fn head(thread: &Thread<'_>, pid: &str, is_main: bool) -> Value {
    let series = thread.series;
    let text = |label: &str| match thread.labels.get(label) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let mut name = text("thread_name");
    if name.is_empty() {
        name = series.profile_type.sample_type.clone();
    } else if series.profile_type.sample_unit != "nanoseconds" {
        name = format!("{name} ({})", series.profile_type.sample_type);
    }
    let mut process_name = text("process_name");
    if process_name.is_empty() {
        process_name = series
            .labels
            .get(SERVICE_NAME_LABEL)
            .unwrap_or("")
            .to_owned();
    }
    json!({
        "processType": "default",
        "processName": process_name,
        "processStartupTime": 0,
        "processShutdownTime": null,
        "registerTime": 0,
        "unregisterTime": null,
        "pausedRanges": [],
        "name": name,
        "isMainThread": is_main,
        "pid": pid,
        "tid": text("thread_id"),
        "markers": {
            "data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": [],
            "length": 0,
        },
        OWN_KEY: {
            "type": series.profile_type.to_string(),
            "period": series.period,
            "start": series.start_ns,
            "duration": series.duration_ns,
            "hasTimes": has_times(thread),
            "labels": thread.labels,
        },
    })
}

fn pid(thread: &Thread<'_>) -> String {
    match thread.labels.get("pid") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => "0".to_owned(),
    }
}
