//! Why frames of a stored profile are missing or have no names, and what mends it: `candela doctor --frames FILE`.

mod causes;
mod ends;
mod place;

use std::collections::BTreeMap;
use std::path::Path;

use candela_model::LocationId;
use candela_model::Profile;
use candela_model::ProfileType;
use candela_model::Sample;
use candela_model::StackId;
use candela_symbols::BuildId;
use candela_symbols::Contents;
use candela_symbols::DebugFileSearch;
use candela_symbols::ObjectFile;
use hashbrown::HashMap;
use hashbrown::HashSet;
use serde::Serialize;

use crate::missing_frames::debug_packages::DebugPackages;
use crate::missing_frames::debug_packages::quoted;
use crate::missing_frames::explanation::Explanation;
use crate::missing_frames::explanation::filled;
use crate::missing_frames::process::Problem;
use crate::missing_frames::runtimes;
use crate::missing_frames::stored::causes::EndCause;
use crate::missing_frames::stored::causes::StoredCause;
use crate::missing_frames::stored::ends::Ends;
use crate::missing_frames::stored::place::Place;
use crate::missing_frames::stored::place::is_named;
use crate::missing_frames::stored::place::place_of;

/// What is missing in the frames of a profile, and why. Values are sums of the profile type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StoredFrameReport {
    /// The type whose values are summed.
    pub profile_type: String,
    /// The unit of the values.
    pub unit: String,
    /// The sum of all samples.
    pub total: i64,
    /// That of samples with a frame that has no name, or with a stack that ends before its beginning.
    pub incomplete: i64,
    /// Samples of this type.
    pub samples: u64,
    /// Frames of these samples; without the functions that are inlined into others.
    pub frames: u64,
    /// Those of them that have no name.
    pub unnamed_frames: u64,
    /// The runtime that was profiled, by the files of its code; empty where it is none that is known.
    pub runtime: String,
    /// Where frames without names are, those with the largest value first.
    pub code: Vec<StoredCode>,
    /// How stacks end before their beginning, those with the largest value first.
    pub ends: Vec<StoredEnds>,
}

/// A file of which frames have no name, or what stands for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoredCode {
    /// Its path as the profile has it; in brackets where there is no file.
    pub path: String,
    /// Its build id as hexadecimal digits; empty when the profile has none.
    pub build_id: String,
    /// The sum of samples with a frame there that has no name.
    pub value: i64,
    /// Frames of samples there.
    pub frames: u64,
    /// Those of them that have no name.
    pub unnamed_frames: u64,
    /// How many places in it have no name.
    pub unnamed_addresses: u64,
    /// Why, and what mends it.
    pub problem: Problem,
}

/// Stacks that end before their beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoredEnds {
    /// The sum of their samples.
    pub value: i64,
    /// How many samples there are.
    pub samples: u64,
    /// Why, and what mends it.
    pub problem: Problem,
}

#[derive(Debug, Default)]
struct CodeCounts {
    value: i64,
    frames: u64,
    unnamed_frames: u64,
    unnamed: HashSet<LocationId>,
}

#[derive(Debug, Default)]
struct EndCounts {
    value: i64,
    samples: u64,
    /// Value by the path that they end in.
    paths: BTreeMap<String, i64>,
}

/// What is known of one location.
struct Seen {
    place: Place,
    is_named: bool,
}

/// Looks into the samples of one type. `source` is what the profile was read from, for the commands that mend it.
#[must_use]
pub fn check_stored_frames(
    profile: &Profile,
    wanted: &ProfileType,
    source: &str,
) -> StoredFrameReport {
    let series = profile.series.iter();
    let series = series.filter(|series| series.profile_type == *wanted);
    let samples: Vec<&Sample> = series.flat_map(|series| &series.samples).collect();
    let mut look = Look::new(profile, &samples);
    for sample in samples {
        look.take(profile.stacks.get(sample.stack), sample.value);
    }
    look.report.profile_type = wanted.to_string();
    look.report.unit = wanted.sample_unit.clone();
    look.finish(source)
}

/// Counts what the samples have.
struct Look<'p> {
    profile: &'p Profile,
    ends_of_all: Ends,
    seen: HashMap<LocationId, Seen>,
    code: BTreeMap<Place, CodeCounts>,
    ends: BTreeMap<EndCause, EndCounts>,
    report: StoredFrameReport,
}

// === impl Look ===

impl<'p> Look<'p> {
    fn new(profile: &'p Profile, samples: &[&Sample]) -> Self {
        let stacks: HashSet<StackId> = samples.iter().map(|sample| sample.stack).collect();
        let stacks = stacks.into_iter().map(|id| profile.stacks.get(id));
        Self {
            profile,
            ends_of_all: Ends::of(&profile.symbols, stacks),
            seen: HashMap::new(),
            code: BTreeMap::new(),
            ends: BTreeMap::new(),
            report: StoredFrameReport::default(),
        }
    }

    fn take(&mut self, stack: &[LocationId], value: i64) {
        let symbols = &self.profile.symbols;
        // Places that this sample counts for already, however often it is there.
        let mut counted: Vec<Place> = Vec::new();
        for &id in stack {
            let seen = self.seen.entry(id).or_insert_with(|| Seen {
                place: place_of(symbols, id),
                is_named: is_named(symbols, id),
            });
            // Most frames are of code that is met already, whose place need not be copied.
            if !self.code.contains_key(&seen.place) {
                self.code.insert(seen.place.clone(), CodeCounts::default());
            }
            let counts = self.code.get_mut(&seen.place).expect("it was put there");
            counts.frames += 1;
            self.report.frames += 1;
            if seen.is_named {
                continue;
            }
            counts.unnamed_frames += 1;
            counts.unnamed.insert(id);
            self.report.unnamed_frames += 1;
            if !counted.contains(&seen.place) {
                counts.value = counts.value.saturating_add(value);
                counted.push(seen.place.clone());
            }
        }
        let end = self.ends_of_all.cause(symbols, stack);
        if let Some(cause) = end {
            let path = stack.last().map(|root| self.seen[root].place.path.clone());
            let counts = self.ends.entry(cause).or_default();
            counts.value = counts.value.saturating_add(value);
            counts.samples += 1;
            let of_path = counts.paths.entry(path.unwrap_or_default()).or_default();
            *of_path = of_path.saturating_add(value);
        }
        let report = &mut self.report;
        report.samples += 1;
        report.total = report.total.saturating_add(value);
        if end.is_some() || !counted.is_empty() {
            report.incomplete = report.incomplete.saturating_add(value);
        }
    }

    fn finish(mut self, source: &str) -> StoredFrameReport {
        let paths: Vec<&str> = self.code.keys().map(|place| place.path.as_str()).collect();
        let runtime = runtimes::runtime_of(&paths);
        let names = runtime.unwrap_or(&runtimes::UNKNOWN).names;
        self.code.retain(|_, counts| counts.unnamed_frames > 0);
        let files: Vec<&str> = self.code.keys().map(|place| place.path.as_str()).collect();
        let packages = DebugPackages::of(Path::new("/"), &files);
        let profile = quoted(source);
        let code = self.code.iter().map(|(place, counts)| StoredCode {
            path: place.path.clone(),
            build_id: place.build_id.clone(),
            value: counts.value,
            frames: counts.frames,
            unnamed_frames: counts.unnamed_frames,
            unnamed_addresses: counts.unnamed.len() as u64,
            problem: problem_of(place, names, &profile, &packages),
        });
        let mut code: Vec<StoredCode> = code.collect();
        code.sort_by(|left, right| {
            let weight = |code: &StoredCode| (code.value, code.unnamed_frames);
            weight(right).cmp(&weight(left))
        });
        let depth = self.ends_of_all.depth().to_string();
        let ends = self.ends.iter().map(|(cause, counts)| {
            let most = counts.paths.iter().max_by_key(|(_, value)| **value);
            let place = shown_place(most.map_or("", |(path, _)| path));
            let known = [("{depth}", depth.as_str()), ("{place}", place.as_str())];
            StoredEnds {
                value: counts.value,
                samples: counts.samples,
                problem: problem(cause.explanation(), &known),
            }
        });
        let mut ends: Vec<StoredEnds> = ends.collect();
        ends.sort_by_key(|ends| std::cmp::Reverse(ends.value));
        StoredFrameReport {
            runtime: runtime.map_or_else(String::new, |runtime| runtime.name.to_owned()),
            code,
            ends,
            ..self.report
        }
    }
}

/// Why frames of a place have no names, with what this machine knows of its file.
fn problem_of(place: &Place, names: &str, profile: &str, packages: &DebugPackages) -> Problem {
    let symbols = match place.cause {
        StoredCause::NotSymbolized => file_with_symbols(place),
        _ => None,
    };
    let path = match place.path.as_str() {
        "" => "FILE".to_owned(),
        path => quoted(path),
    };
    let found = match &symbols {
        Some(file) => format!("this machine has its symbols, in {file}: "),
        None => String::new(),
    };
    let install = match packages.install(&place.path) {
        none if none.is_empty() => none,
        command => format!("; where it runs: {}", command.trim_end_matches(", or ")),
    };
    let known = [
        ("{names}", names.replace("{pid}", "PID")),
        ("{found}", found),
        ("{install}", install),
        ("{symbols}", symbols.unwrap_or_else(|| path.clone())),
        ("{profile}", profile.to_owned()),
        // A profile may have any text there.
        ("{build_id}", quoted(&place.build_id)),
        ("{debuginfod}", packages.server().to_owned()),
    ];
    let known = known
        .each_ref()
        .map(|(word, value)| (*word, value.as_str()));
    problem(place.cause.explanation(), &known)
}

/// A place where stacks end, which is a path or a few words in brackets.
fn shown_place(path: &str) -> String {
    if path.is_empty() {
        return "a file that is not known".to_owned();
    }
    let words = path.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" ._-".contains(&byte);
    match words.is_some_and(|words| words.bytes().all(is_plain)) {
        true => path.to_owned(),
        false => quoted(path),
    }
}

fn problem(explanation: Explanation, known: &[(&str, &str)]) -> Problem {
    Problem {
        cause: explanation.name,
        meaning: filled(explanation.meaning, known),
        remedy: filled(explanation.remedy, known),
    }
}

/// The file of this machine that has the symbols: the very file, or its debug file.
fn file_with_symbols(place: &Place) -> Option<String> {
    let search = DebugFileSearch::default();
    let has_names = |file: &ObjectFile| file.contents() != Contents::default();
    let shown = |file: &ObjectFile| quoted(&file.path().display().to_string());
    let own = ObjectFile::open_named_in_profile(Path::new(&place.path)).ok();
    let own = own.filter(|file| file.build_id().to_string() == place.build_id);
    if let Some(own) = own {
        if has_names(&own) {
            return Some(shown(&own));
        }
        let debug_file = search.find(&own).filter(|file| has_names(file));
        return debug_file.map(|file| shown(&file));
    }
    let build_id = BuildId::from_gnu_hex(&place.build_id)?;
    let found = search.find_build_id(&build_id);
    found
        .filter(|file| has_names(file))
        .map(|file| shown(&file))
}

#[cfg(test)]
mod tests {
    use candela_model::FrameKind;
    use candela_model::Labels;
    use candela_model::Location;
    use candela_model::Mapping;
    use candela_model::ProfileSeries;

    use super::*;

    const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
    const OFF_CPU: &str = "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds";

    fn profile_type(id: &str) -> ProfileType {
        id.parse().expect("a profile type")
    }

    fn add_sample(profile: &mut Profile, id: &str, stack: &[LocationId]) {
        let stack = profile.stacks.intern(stack);
        let mut series = ProfileSeries::new(Labels::default(), profile_type(id));
        series.samples.push(Sample::new(stack, 10));
        profile.series.push(series);
    }

    #[test]
    fn stacks_are_judged_by_those_of_their_type() {
        let mut profile = Profile::default();
        let location = |profile: &mut Profile, name: &str, address| {
            let symbols = &mut profile.symbols;
            let function = symbols.intern_function(name, "", "", 0);
            let location = Location::new(FrameKind::Native, address);
            symbols.intern_location(&location, &[(function, 0, 0)])
        };
        let work = location(&mut profile, "work", 1);
        let main = location(&mut profile, "main", 2);
        add_sample(&mut profile, CPU, &[work]);
        add_sample(&mut profile, OFF_CPU, &[work, main]);
        let report = check_stored_frames(&profile, &profile_type(CPU), "x.pb.gz");
        let causes: Vec<&str> = report.ends.iter().map(|it| it.problem.cause).collect();
        assert_eq!(causes, ["leaf_only"]);
    }

    #[test]
    fn texts_of_a_profile_are_quoted_in_commands() {
        let mut profile = Profile::default();
        let symbols = &mut profile.symbols;
        let file = symbols.strings.intern("/srv/{profile};$(reboot)");
        let build_id = symbols.strings.intern("ab;$(reboot)");
        let mapping = symbols.intern_mapping(Mapping {
            file,
            build_id,
            ..Mapping::default()
        });
        let location = Location::new(FrameKind::Native, 0x1000).in_mapping(mapping);
        let location = symbols.intern_location(&location, &[]);
        add_sample(&mut profile, CPU, &[location, location]);
        let report = check_stored_frames(&profile, &profile_type(CPU), "it's");
        let problem = &report.code[0].problem;
        let upload = "candela symbols upload '/srv/{profile};$(reboot)';";
        assert!(problem.remedy.contains(upload), "{problem:?}");
        let push = r"candela push 'it'\''s' --service NAME";
        assert!(problem.remedy.contains(push), "{problem:?}");
        assert!(
            problem.meaning.ends_with("is 'ab;$(reboot)'"),
            "{problem:?}"
        );
        let ends = &report.ends[0].problem;
        let place = "most of them in '/srv/{profile};$(reboot)':";
        assert!(ends.meaning.contains(place), "{ends:?}");
    }
}
