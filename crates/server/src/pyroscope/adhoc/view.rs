//! Uploaded profiles as flame graphs.

use candela_formats::FlameDocument;
use candela_formats::Flamebearer;
use candela_formats::FlamebearerDiff;
use candela_formats::Graph;
use candela_model::FlameTree;
use candela_model::FlameTreeBuilder;
use candela_model::Profile;
use candela_model::ProfileType;
use candela_model::resolve_profile_type;

use crate::api_error::ApiError;

/// Units in the order in which they are shown when nobody asks for one.
const UNIT_ORDER: [&str; 3] = ["nanoseconds", "bytes", "count"];

/// One profile as it is shown.
pub(super) struct View {
    pub(super) profile_type: String,
    pub(super) profile_types: Vec<String>,
    /// The JSON that render has, too.
    pub(super) document: String,
}

impl View {
    /// # Errors
    /// 400 when the profile has no samples, or none of the wanted type.
    pub(super) fn of(
        profile: &Profile,
        wanted: Option<&str>,
        max_nodes: usize,
    ) -> Result<Self, ApiError> {
        let types = types_of(profile);
        let profile_type = chosen(&types, wanted)?;
        let tree = tree_of(profile, profile_type);
        let graph = Flamebearer::new(&tree, max_nodes).map_err(ApiError::unwritten)?;
        Ok(Self {
            document: written(profile_type, Graph::Single(&graph))?,
            profile_type: profile_type.to_string(),
            profile_types: types.iter().map(ToString::to_string).collect(),
        })
    }
}

/// The types of a profile: as they are ordered in it, each once.
pub(super) fn types_of(profile: &Profile) -> Vec<ProfileType> {
    let mut types: Vec<ProfileType> = Vec::new();
    for series in &profile.series {
        if !types.contains(&series.profile_type) {
            types.push(series.profile_type.clone());
        }
    }
    types
}

/// What two profiles both have.
///
/// # Errors
/// 400 when that is nothing.
pub(super) fn common_types(
    left: &[ProfileType],
    right: &[ProfileType],
) -> Result<Vec<ProfileType>, ApiError> {
    let both: Vec<ProfileType> = left
        .iter()
        .filter(|profile_type| right.contains(profile_type))
        .cloned()
        .collect();
    if both.is_empty() {
        let message = format!(
            "the profiles have no type in common: {} and {}",
            names(left),
            names(right)
        );
        return Err(ApiError::bad_request("bad_type", message));
    }
    Ok(both)
}

/// Two profiles side by side.
///
/// # Errors
/// 400 when they do not have the wanted type.
pub(super) fn diff_document(
    left: &Profile,
    right: &Profile,
    types: &[ProfileType],
    wanted: Option<&str>,
    max_nodes: usize,
) -> Result<String, ApiError> {
    let profile_type = chosen(types, wanted)?;
    let (left, right) = (tree_of(left, profile_type), tree_of(right, profile_type));
    let graph = FlamebearerDiff::new(&left, &right, max_nodes).map_err(ApiError::unwritten)?;
    written(profile_type, Graph::Double(&graph))
}

/// The type that is asked for by its identifier, short name or sample type; without one time wins
/// over bytes, and bytes over counts.
fn chosen<'a>(types: &'a [ProfileType], wanted: Option<&str>) -> Result<&'a ProfileType, ApiError> {
    let rank = |profile_type: &&ProfileType| {
        let unit = &profile_type.sample_unit;
        let found = UNIT_ORDER.iter().position(|known| known == unit);
        found.unwrap_or(UNIT_ORDER.len())
    };
    let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) else {
        return types
            .iter()
            .min_by_key(rank)
            .ok_or_else(|| ApiError::bad_request("bad_profile", "the profile has no sample type"));
    };
    let exact = types.iter().find(|it| it.to_string() == wanted);
    exact
        .or_else(|| resolve_profile_type(wanted, types).ok())
        .or_else(|| types.iter().find(|it| it.sample_type == wanted))
        .ok_or_else(|| {
            let shown: String = wanted.chars().take(200).collect();
            let message = format!("there is no profile type {shown:?}");
            ApiError::bad_request("bad_type", message).hint(format!("there are {}", names(types)))
        })
}

fn names(types: &[ProfileType]) -> String {
    let names: Vec<String> = types.iter().map(ToString::to_string).collect();
    names.join(", ")
}

fn tree_of(profile: &Profile, profile_type: &ProfileType) -> FlameTree {
    let mut builder = FlameTreeBuilder::new();
    for (position, series) in profile.series.iter().enumerate() {
        if series.profile_type == *profile_type {
            builder.add_series(profile, position);
        }
    }
    builder.finish()
}

fn written(profile_type: &ProfileType, graph: Graph<'_>) -> Result<String, ApiError> {
    let document = FlameDocument {
        profile_type,
        graph,
        timeline: None,
        groups: None,
    };
    serde_json::to_string(&document).map_err(ApiError::unwritten)
}
