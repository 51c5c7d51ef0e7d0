//! The parts of a profile that not every format has a place for.

use candela_model::FrameKind;
use candela_model::Profile;
use candela_model::SERVICE_NAME_LABEL;

/// A part of a profile that a format keeps or loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// More than one profile type.
    AllTypes,
    /// Labels of samples.
    SampleLabels,
    /// Labels of series.
    SeriesLabels,
    /// Trace and span ids.
    Links,
    /// The time of each sample.
    SampleTimes,
    /// Start and duration.
    Window,
    /// The distance between samples.
    Period,
    /// Instruction addresses.
    Addresses,
    /// Mapped files with their ranges.
    Mappings,
    /// Build ids.
    BuildIds,
    /// Source files.
    SourceFiles,
    /// Line numbers.
    Lines,
    /// Column numbers.
    Columns,
    /// Where functions start.
    StartLines,
    /// Mangled names.
    SystemNames,
    /// The kind of code: kernel, native, JVM …
    FrameKinds,
    /// Negative values, as differences have.
    NegativeValues,
}

impl Part {
    /// Every part.
    pub const ALL: [Self; 17] = [
        Self::AllTypes,
        Self::SampleLabels,
        Self::SeriesLabels,
        Self::Links,
        Self::SampleTimes,
        Self::Window,
        Self::Period,
        Self::Addresses,
        Self::Mappings,
        Self::BuildIds,
        Self::SourceFiles,
        Self::Lines,
        Self::Columns,
        Self::StartLines,
        Self::SystemNames,
        Self::FrameKinds,
        Self::NegativeValues,
    ];

    /// What it is called in lists.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllTypes => "all sample types",
            Self::SampleLabels => "sample labels",
            Self::SeriesLabels => "series labels",
            Self::Links => "trace and span ids",
            Self::SampleTimes => "sample times",
            Self::Window => "start and duration",
            Self::Period => "period",
            Self::Addresses => "addresses",
            Self::Mappings => "mappings",
            Self::BuildIds => "build ids",
            Self::SourceFiles => "source files",
            Self::Lines => "lines",
            Self::Columns => "columns",
            Self::StartLines => "start lines",
            Self::SystemNames => "mangled names",
            Self::FrameKinds => "frame kinds",
            Self::NegativeValues => "negative values",
        }
    }

    /// Whether a profile has it.
    #[must_use]
    pub fn is_in(self, profile: &Profile) -> bool {
        let symbols = &profile.symbols;
        let mut series = profile.series.iter();
        let mut samples = profile.series.iter().flat_map(|series| &series.samples);
        let mut locations = symbols.locations().iter();
        let mut functions = symbols.functions().iter();
        let mut mappings = symbols.mappings().iter();
        let is_text = |id| !symbols.strings.get(id).is_empty();
        match self {
            Self::AllTypes => {
                let first = series.next().map(|series| &series.profile_type);
                series.any(|series| Some(&series.profile_type) != first)
            }
            Self::SampleLabels => samples.any(|sample| sample.label_set.index() != 0),
            Self::SeriesLabels => series.any(|series| {
                let mut labels = series.labels.iter();
                labels.any(|(name, value)| name != SERVICE_NAME_LABEL && !value.is_empty())
            }),
            Self::Links => samples.any(|sample| sample.link.index() != 0),
            Self::SampleTimes => samples.any(|sample| sample.time_ns != 0),
            Self::Window => series.any(|series| series.start_ns != 0 || series.duration_ns != 0),
            Self::Period => series.any(|series| series.period != 0),
            Self::Addresses => locations.any(|location| location.address != 0),
            Self::Mappings => mappings.any(|mapping| is_text(mapping.file)),
            Self::BuildIds => mappings.any(|mapping| is_text(mapping.build_id)),
            Self::SourceFiles => functions.any(|function| is_text(function.file)),
            Self::Lines => symbols.all_lines().iter().any(|line| line.line != 0),
            Self::Columns => symbols.all_lines().iter().any(|line| line.column != 0),
            Self::StartLines => functions.any(|function| function.start_line != 0),
            Self::SystemNames => functions.any(|function| {
                is_text(function.system_name) && function.system_name != function.name
            }),
            Self::FrameKinds => locations.any(|location| location.kind != FrameKind::Unknown),
            Self::NegativeValues => samples.any(|sample| sample.value < 0),
        }
    }
}
