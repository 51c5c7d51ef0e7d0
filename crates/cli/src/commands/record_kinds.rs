//! The kinds of profile that `candela record -e` takes, and how they share a result.

use std::path::Path;
use std::path::PathBuf;

use candela_agent::ExplicitEvent;
use candela_agent::Kinds;
use candela_agent::MOST_EXPLICIT_EVENTS;
use candela_agent::Missing;
use candela_formats::Format;
use candela_formats::Part;
use candela_model::Labels;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;

use crate::config::key_search::nearest_of;

/// What other tools, and profile types, call the kinds.
const SYNONYMS: [(&str, &str); 12] = [
    ("allocs", "alloc"),
    ("block", "io"),
    ("blocked", "off-cpu"),
    ("contention", "lock"),
    ("disk", "io"),
    ("futex", "lock"),
    ("heap", "alloc"),
    ("inuse", "alloc"),
    ("malloc", "alloc"),
    ("memory", "alloc"),
    ("mutex", "lock"),
    ("sched", "runq"),
];

/// What `fault` stands for: memory that is touched, and memory that is asked for.
const MEMORY: [Kind; 2] = [Kind::FAULT, Kind::GROWTH];

/// A kind of profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sampled(candela_agent::Kind),
    /// All of a thread's time: no sampler's kind, but what it does on CPUs and off them as one.
    Wall,
    /// An event that somebody names.
    Event(ExplicitEvent),
}

/// What is written to one place.
#[derive(Debug)]
pub(crate) struct KindResult {
    /// What it is of, where others go elsewhere.
    pub(crate) part: Option<String>,
    pub(crate) profile: Profile,
}

/// What a format of one type says of a kind.
#[derive(Debug)]
struct KindPart {
    /// In names of files.
    name: String,
    profile_type: ProfileType,
}

// === impl Kind ===

impl Kind {
    pub(crate) const ALLOC: Self = Self::Sampled(candela_agent::Kind::Alloc);
    pub(crate) const CPU: Self = Self::Sampled(candela_agent::Kind::Cpu);
    const OFF_CPU: Self = Self::Sampled(candela_agent::Kind::OffCpu);
    const FAULT: Self = Self::Sampled(candela_agent::Kind::Fault);
    const GROWTH: Self = Self::Sampled(candela_agent::Kind::Growth);

    fn all() -> impl Iterator<Item = Self> {
        let sampled = candela_agent::Kind::ALL.map(Self::Sampled);
        sampled.into_iter().chain([Self::Wall])
    }

    /// As `-e` has it.
    fn name(&self) -> String {
        match self {
            Self::Sampled(kind) => kind.name().to_owned(),
            Self::Wall => "wall".to_owned(),
            // In the name of a file.
            Self::Event(event) => event.short_name().replace('/', "-"),
        }
    }

    /// What of the kind goes to a place of its own in formats of one type.
    fn parts(&self) -> Vec<KindPart> {
        let mut parts = vec![KindPart {
            name: self.name(),
            profile_type: self.profile_type(),
        }];
        // What was allocated and what is left of it are two questions, and neither answers the other.
        if *self == Self::ALLOC {
            let profile_type = ProfileType::new("memory", "inuse_space", "bytes", "space", "bytes");
            parts.push(KindPart {
                name: "inuse".to_owned(),
                profile_type,
            });
        }
        parts
    }

    /// What stands for the kind where one type must.
    pub(crate) fn profile_type(&self) -> ProfileType {
        match self {
            Self::Sampled(kind) => kind.profile_type(),
            Self::Wall => ProfileType::new("wall", "wall", "nanoseconds", "wall", "nanoseconds"),
            Self::Event(event) => candela_agent::event_type(event),
        }
    }
}

// === impl KindResult ===

impl KindResult {
    /// `path`, with the part before its extension where others go elsewhere.
    pub(crate) fn path(&self, path: &Path, format: Format) -> PathBuf {
        let Some(part) = &self.part else {
            return path.to_owned();
        };
        let text = path.to_string_lossy();
        let extensions = format.extensions().iter();
        let known = extensions
            .filter_map(|extension| text.strip_suffix(&format!(".{extension}")))
            .min_by_key(|stem| stem.len());
        let stem = known.unwrap_or_else(|| {
            let extension = path.extension().map_or(0, |it| it.len() + 1);
            text.split_at(text.len().saturating_sub(extension)).0
        });
        PathBuf::from(format!("{stem}.{part}{}", &text[stem.len()..]))
    }
}

/// The kinds by their names.
///
/// # Errors
/// A name that is none, with those that are, as a sentence that begins with the name.
pub(crate) fn parse(names: &[String]) -> Result<Vec<Kind>, String> {
    let mut kinds = Vec::new();
    for name in names {
        let named = parse_one(name)?;
        let alike = match named == Kind::FAULT {
            true => MEMORY.to_vec(),
            false => vec![named],
        };
        for kind in alike {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
    Ok(kinds)
}

fn parse_one(name: &str) -> Result<Kind, String> {
    let found = Kind::all().find(|kind| kind.name() == name);
    match (found, name.parse::<ExplicitEvent>()) {
        (Some(kind), _) => Ok(kind),
        (None, Ok(event)) => Ok(Kind::Event(event)),
        // Only an event has colons in it.
        (None, Err(error)) if name.contains(':') => Err(error.to_string()),
        (None, Err(_)) => Err(unknown_kind(name)),
    }
}

/// A name that is neither a kind nor an event, with the kind that it may stand for.
fn unknown_kind(name: &str) -> String {
    let names: Vec<String> = Kind::all().map(|kind| kind.name()).collect();
    let synonym = SYNONYMS.iter().find(|(synonym, _)| *synonym == name);
    let meant = synonym.map(|(_, kind)| *kind);
    let meant = meant.or_else(|| nearest_of(name, names.iter().map(String::as_str)));
    let meant = meant.map_or_else(String::new, |kind| format!(" (did you mean {kind}?)"));
    let known = names.join(", ");
    format!(
        "{name:?} is no kind of profile that this version records{meant}: name {known}, a counter of perf list, \
         tracepoint:SUBSYSTEM:NAME or uprobe:PATH:FUNCTION"
    )
}

/// Kinds of the agent that are there for `wall`, which is nothing without both of them. A `cpu` that is asked
/// for itself is worth something alone.
pub(crate) fn inseparable(kinds: &[Kind]) -> Kinds {
    let is_wall_alone = kinds.contains(&Kind::Wall) && !kinds.contains(&Kind::CPU);
    let parts: &[Kind] = if is_wall_alone { &[Kind::Wall] } else { &[] };
    to_agent(parts)
}

/// Leaves out what was not recorded because this host cannot give it.
pub(crate) fn retain_recorded(kinds: &mut Vec<Kind>, missing: &[Missing]) {
    let is_missing = |name: &str| missing.iter().any(|it| it.what == name);
    let lacks = |kind: &Kind| match kind {
        Kind::Sampled(kind) => is_missing(kind.name()),
        Kind::Event(event) => is_missing(&event.to_string()),
        Kind::Wall => false,
    };
    let lacks_wall = lacks(&Kind::CPU) || lacks(&Kind::OFF_CPU);
    kinds.retain(|kind| match kind {
        Kind::Wall => !lacks_wall,
        kind => !lacks(kind),
    });
}

pub(crate) fn to_agent(kinds: &[Kind]) -> Kinds {
    let sampled = |kind: &Kind| match kind {
        Kind::Sampled(kind) => vec![*kind],
        Kind::Wall => vec![candela_agent::Kind::Cpu, candela_agent::Kind::OffCpu],
        Kind::Event(_) => Vec::new(),
    };
    kinds.iter().flat_map(sampled).collect()
}

/// The events among the kinds.
///
/// # Errors
/// There are too many, or two that results could not tell apart.
pub(crate) fn events(kinds: &[Kind]) -> Result<Vec<ExplicitEvent>, String> {
    let event = |kind: &Kind| match kind {
        Kind::Event(event) => Some(event.clone()),
        Kind::Sampled(_) | Kind::Wall => None,
    };
    let events: Vec<ExplicitEvent> = kinds.iter().filter_map(event).collect();
    if events.len() > MOST_EXPLICIT_EVENTS {
        let count = events.len();
        return Err(format!(
            "{count} events are too many at a time: name {MOST_EXPLICIT_EVENTS} at most"
        ));
    }
    for (position, event) in events.iter().enumerate() {
        let name = event.short_name();
        let is_same = |other: &&ExplicitEvent| other.short_name() == name;
        if let Some(other) = events[..position].iter().find(is_same) {
            return Err(format!(
                "{other} and {event} would both be {name:?} in the result: record them apart"
            ));
        }
    }
    Ok(events)
}

/// Adds wall time, which is the time on and off CPU together, and leaves out what was recorded only for it.
pub(crate) fn add_wall(profile: &mut Profile, kinds: &[Kind]) {
    if !kinds.contains(&Kind::Wall) {
        return;
    }
    let parts = [Kind::CPU, Kind::OFF_CPU].map(|kind| kind.profile_type());
    let mut walls: Vec<ProfileSeries> = Vec::new();
    for series in &profile.series {
        if !parts.contains(&series.profile_type) {
            continue;
        }
        let known = walls.iter_mut().find(|wall| wall.labels == series.labels);
        if let Some(wall) = known {
            wall.samples.extend(&series.samples);
            continue;
        }
        walls.push(ProfileSeries {
            profile_type: Kind::Wall.profile_type(),
            ..series.clone()
        });
    }
    for wall in &mut walls {
        wall.samples.sort_by_key(|sample| sample.time_ns);
    }
    profile.series.retain(|series| {
        let name = series.profile_type.name.as_str();
        kinds.iter().any(|kind| kind.profile_type().name == name)
    });
    profile.series.extend(walls);
}

/// What to write: everything to one place where the format holds it, else each part of a kind to its own.
pub(crate) fn results(profile: &Profile, kinds: &[Kind], format: Format) -> Vec<KindResult> {
    if format.keeps().contains(&Part::AllTypes) {
        let mut profile = profile.clone();
        declare(&mut profile, kinds.iter().map(Kind::profile_type));
        return vec![KindResult {
            part: None,
            profile,
        }];
    }
    let parts: Vec<KindPart> = kinds.iter().flat_map(Kind::parts).collect();
    let is_only_one = parts.len() == 1;
    let of_part = |part: KindPart| {
        let mut profile = profile.clone();
        profile
            .series
            .retain(|series| series.profile_type == part.profile_type);
        declare(&mut profile, [part.profile_type]);
        KindResult {
            part: (!is_only_one).then_some(part.name),
            profile,
        }
    };
    parts.into_iter().map(of_part).collect()
}

/// A profile without samples still says of what there are none, which most formats need.
fn declare(profile: &mut Profile, types: impl IntoIterator<Item = ProfileType>) {
    if !profile.series.is_empty() {
        return;
    }
    let series = types
        .into_iter()
        .map(|profile_type| ProfileSeries::new(Labels::default(), profile_type));
    profile.series.extend(series);
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Kind; 2] = [Kind::CPU, Kind::OFF_CPU];

    #[test]
    fn an_unknown_kind_is_told_with_the_known_ones() {
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|&name| name.to_owned())
                .collect::<Vec<_>>()
        };
        let kinds = parse(&names(&["off-cpu", "cpu", "cpu"])).expect("known");
        assert_eq!(kinds, [Kind::OFF_CPU, Kind::CPU]);
        let memory = parse(&names(&["growth", "fault", "cpu", "fault"])).expect("known");
        assert_eq!(
            memory,
            [Kind::GROWTH, Kind::FAULT, Kind::CPU],
            "fault has growth"
        );
        assert_eq!(parse(&names(&["fault"])), Ok(MEMORY.to_vec()));
        assert_eq!(parse(&names(&["growth"])), Ok(vec![Kind::GROWTH]));
        let error = parse(&names(&["cpu", "heap"])).expect_err("unknown");
        assert!(error.to_string().contains("\"heap\""), "{error}");
        assert!(
            error
                .to_string()
                .contains("cpu, off-cpu, lock, runq, fault, growth, io, kernel-lock, alloc, wall"),
            "{error}"
        );
    }

    #[test]
    fn a_kind_by_another_name_is_suggested() {
        let refused = |name: &str| parse(&[name.to_owned()]).expect_err(name);
        for (name, kind) in SYNONYMS
            .into_iter()
            .chain([("off_cpu", "off-cpu"), ("locks", "lock")])
        {
            let error = refused(name);
            assert!(
                error.contains(&format!("(did you mean {kind}?)")),
                "{error}"
            );
            assert_eq!(error.matches(&format!("{name:?}")).count(), 1, "{error}");
        }
        assert!(!refused("nonsense").contains("did you mean"));
        let event = refused("tracepoint:sched");
        assert!(
            event.contains("no event") && !event.contains("kernel-lock"),
            "{event}"
        );
        for (_, kind) in SYNONYMS {
            assert!(parse(&[kind.to_owned()]).is_ok(), "{kind}");
        }
    }

    #[test]
    fn events_must_be_told_apart() {
        let parsed = |names: [&str; 2]| {
            let kinds = parse(&names.map(ToOwned::to_owned)).expect("events");
            events(&kinds)
        };
        assert_eq!(
            parsed(["cycles", "tracepoint:sched:sched_switch"]).map(|events| events.len()),
            Ok(2)
        );
        let error = parsed(["uprobe:/a/lib.so:f", "uprobe:/b/lib.so:f"]).expect_err("the same");
        assert!(
            error.contains("/a/lib.so") && error.contains("/b/lib.so"),
            "{error}"
        );
    }

    #[test]
    fn wall_time_is_what_runs_and_what_waits() {
        let labels = Labels::from_pairs([("service_name", "api")]);
        let series = |profile_type, value, time_ns| {
            let mut series = ProfileSeries::new(labels.clone(), profile_type);
            let sample = candela_model::Sample::new(candela_model::StackId::default(), value);
            series
                .samples
                .push(candela_model::Sample { time_ns, ..sample });
            series
        };
        let switches = ProfileType::new("off_cpu", "switches", "count", "off_cpu", "nanoseconds");
        let mut recorded = Profile::default();
        recorded.series = vec![
            series(Kind::CPU.profile_type(), 5, 20),
            series(Kind::OFF_CPU.profile_type(), 7, 10),
            series(switches, 1, 10),
        ];
        let mut only = recorded.clone();
        add_wall(&mut only, &[Kind::Wall]);
        assert_eq!(only.series.len(), 1);
        let values: Vec<i64> = only.series[0].samples.iter().map(|it| it.value).collect();
        assert_eq!(values, [7, 5], "by time");
        let mut beside = recorded;
        add_wall(&mut beside, &[Kind::OFF_CPU, Kind::Wall]);
        let names: Vec<String> = beside
            .series
            .iter()
            .map(|series| series.profile_type.to_string())
            .collect();
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(names[2].starts_with("wall:wall:"), "{names:?}");
    }

    #[test]
    fn wall_goes_with_either_of_its_parts() {
        let missing = |what: &str| Missing {
            what: what.to_owned(),
            reason: "why".to_owned(),
        };
        let left = |kinds: &[Kind], what: &str| {
            let mut kinds = kinds.to_vec();
            retain_recorded(&mut kinds, &[missing("BPF"), missing(what)]);
            kinds
        };
        assert_eq!(left(&BOTH, "off-cpu"), [Kind::CPU]);
        assert_eq!(left(&[Kind::CPU, Kind::Wall], "off-cpu"), [Kind::CPU]);
        assert_eq!(left(&BOTH, "cycles"), BOTH);
        assert_eq!(inseparable(&[Kind::Wall]), to_agent(&BOTH));
        assert!(inseparable(&[Kind::Wall, Kind::CPU]).is_empty());
        assert!(inseparable(&BOTH).is_empty());
    }

    #[test]
    fn formats_of_one_type_get_a_result_for_each_kind() {
        let mut profile = Profile::default();
        declare(&mut profile, BOTH.map(|kind| kind.profile_type()));
        assert_eq!(results(&profile, &BOTH, Format::Pprof).len(), 1);
        let parts = |kinds: &[Kind]| -> Vec<Option<String>> {
            let results = results(&profile, kinds, Format::Folded);
            assert!(results.iter().all(|it| it.profile.series.len() == 1));
            results.into_iter().map(|result| result.part).collect()
        };
        let named = |names: &[&str]| -> Vec<Option<String>> {
            names.iter().map(|&name| Some(name.to_owned())).collect()
        };
        assert_eq!(parts(&BOTH), named(&["cpu", "off-cpu"]));
        assert_eq!(parts(&[Kind::OFF_CPU]), [None], "it keeps its name");
        assert_eq!(parts(&[Kind::ALLOC]), named(&["alloc", "inuse"]));
    }

    #[test]
    fn the_kind_stands_before_the_extension() {
        let result = KindResult {
            part: Some("off-cpu".to_owned()),
            profile: Profile::default(),
        };
        let path = |path: &str, format| result.path(Path::new(path), format);
        assert_eq!(path("a/b.svg", Format::Svg), Path::new("a/b.off-cpu.svg"));
        assert_eq!(
            path("b.speedscope.json", Format::Speedscope),
            Path::new("b.off-cpu.speedscope.json")
        );
        assert_eq!(path("plain", Format::Svg), Path::new("plain.off-cpu"));
        assert_eq!(path("x.out", Format::Svg), Path::new("x.off-cpu.out"));
    }
}
