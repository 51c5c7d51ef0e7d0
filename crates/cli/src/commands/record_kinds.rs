//! The kinds of profile that `candela record -e` takes, and how they share a result.

use std::path::Path;
use std::path::PathBuf;

use candela_agent::Kinds;
use candela_formats::Format;
use candela_formats::Part;
use candela_model::Labels;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;

use crate::errors::CliError;

/// A kind of profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Cpu,
    OffCpu,
    Fault,
}

/// What is written to one place.
#[derive(Debug)]
pub(crate) struct KindResult {
    /// The one that it is of, where others go elsewhere.
    pub(crate) kind: Option<Kind>,
    pub(crate) profile: Profile,
}

// === impl Kind ===

impl Kind {
    const ALL: [Self; 3] = [Self::Cpu, Self::OffCpu, Self::Fault];

    /// As `-e` has it.
    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::OffCpu => "off-cpu",
            Self::Fault => "fault",
        }
    }

    /// What stands for the kind in formats of one type.
    fn profile_type(self) -> ProfileType {
        match self {
            Self::Cpu => {
                ProfileType::new("process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds")
            }
            Self::OffCpu => ProfileType::new(
                "off_cpu",
                "off_cpu",
                "nanoseconds",
                "off_cpu",
                "nanoseconds",
            ),
            Self::Fault => ProfileType::new("page_faults", "faults", "count", "faults", "count"),
        }
    }

    /// `NAME.EXT` with the kind before the extension.
    pub(crate) fn path(self, path: &Path, format: Format) -> PathBuf {
        let text = path.to_string_lossy();
        let extensions = format.extensions().iter();
        let known = extensions
            .filter_map(|extension| text.strip_suffix(&format!(".{extension}")))
            .min_by_key(|stem| stem.len());
        let stem = known.unwrap_or_else(|| {
            let extension = path.extension().map_or(0, |it| it.len() + 1);
            text.split_at(text.len().saturating_sub(extension)).0
        });
        PathBuf::from(format!("{stem}.{}{}", self.name(), &text[stem.len()..]))
    }
}

/// The kinds by their names.
///
/// # Errors
/// A name that is none, with those that are.
pub(crate) fn parse(names: &[String]) -> Result<Vec<Kind>, CliError> {
    let mut kinds = Vec::new();
    for name in names {
        let found = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        let Some(kind) = found else {
            let known = Kind::ALL.map(Kind::name).join(", ");
            return Err(CliError::usage(format!(
                "-e {name:?} is no kind of profile that this version records: {known}"
            )));
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    Ok(kinds)
}

pub(crate) fn to_agent(kinds: &[Kind]) -> Kinds {
    Kinds {
        cpu: kinds.contains(&Kind::Cpu),
        off_cpu: kinds.contains(&Kind::OffCpu),
        fault: kinds.contains(&Kind::Fault),
    }
}

/// What to write: everything to one place where the format holds it, else each kind to its own.
pub(crate) fn results(profile: &Profile, kinds: &[Kind], format: Format) -> Vec<KindResult> {
    if format.keeps().contains(&Part::AllTypes) {
        let mut profile = profile.clone();
        declare(&mut profile, kinds);
        return vec![KindResult {
            kind: None,
            profile,
        }];
    }
    let of_kind = |&kind: &Kind| {
        let profile_type = kind.profile_type();
        let mut profile = profile.clone();
        profile
            .series
            .retain(|series| series.profile_type == profile_type);
        declare(&mut profile, &[kind]);
        KindResult {
            kind: (kinds.len() > 1).then_some(kind),
            profile,
        }
    };
    kinds.iter().map(of_kind).collect()
}

/// A profile without samples still says of what there are none, which most formats need.
fn declare(profile: &mut Profile, kinds: &[Kind]) {
    if !profile.series.is_empty() {
        return;
    }
    let series = kinds
        .iter()
        .map(|kind| ProfileSeries::new(Labels::default(), kind.profile_type()));
    profile.series.extend(series);
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Kind; 2] = [Kind::Cpu, Kind::OffCpu];

    #[test]
    fn an_unknown_kind_is_told_with_the_known_ones() {
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|&name| name.to_owned())
                .collect::<Vec<_>>()
        };
        let kinds = parse(&names(&["off-cpu", "cpu", "cpu"])).expect("known");
        assert_eq!(kinds, [Kind::OffCpu, Kind::Cpu]);
        let error = parse(&names(&["cpu", "heap"])).expect_err("unknown");
        assert!(error.to_string().contains("\"heap\""), "{error}");
        assert!(error.to_string().contains("cpu, off-cpu, fault"), "{error}");
    }

    #[test]
    fn formats_of_one_type_get_a_result_for_each_kind() {
        let mut profile = Profile::default();
        declare(&mut profile, &BOTH);
        assert_eq!(results(&profile, &BOTH, Format::Pprof).len(), 1);
        let folded = results(&profile, &BOTH, Format::Folded);
        let kinds: Vec<Option<Kind>> = folded.iter().map(|result| result.kind).collect();
        assert_eq!(kinds, BOTH.map(Some));
        assert!(folded.iter().all(|result| result.profile.series.len() == 1));
        let only = results(&profile, &[Kind::OffCpu], Format::Folded);
        assert!(only[0].kind.is_none(), "it keeps its name");
    }

    #[test]
    fn the_kind_stands_before_the_extension() {
        let path = |path: &str, format| Kind::OffCpu.path(Path::new(path), format);
        assert_eq!(path("a/b.svg", Format::Svg), Path::new("a/b.off-cpu.svg"));
        assert_eq!(
            path("b.speedscope.json", Format::Speedscope),
            Path::new("b.off-cpu.speedscope.json")
        );
        assert_eq!(path("plain", Format::Svg), Path::new("plain.off-cpu"));
        assert_eq!(path("x.out", Format::Svg), Path::new("x.off-cpu.out"));
    }
}
