//! Uploaded profiles as flame graphs.

use axum::http::StatusCode;
use candela_formats::FlameDocument;
use candela_formats::Flamebearer;
use candela_formats::FlamebearerDiff;
use candela_formats::Graph;
use candela_model::FlameTree;
use candela_model::FlameTreeBuilder;
use candela_model::Profile;
use candela_model::ProfileType;
use candela_model::resolve_profile_type;
use candela_query::Cancellation;
use candela_query::Query;
use candela_query::QueryError;

use crate::api::errors::query_error;
use crate::api_error::ApiError;

/// Units in the order in which they are shown when nobody asks for one.
const UNIT_ORDER: [&str; 3] = ["nanoseconds", "bytes", "count"];

/// Bytes that a node takes while a tree is made: in the builder, whose columns grow by doubling, in
/// what orders the children, and in the tree.
const NODE_BYTES: u64 = 120;

/// What the trees of one answer may take, as those of a query may.
#[derive(Debug)]
pub(super) struct Room {
    cancellation: Cancellation,
    max_bytes: u64,
    /// Of trees that are done.
    nodes: u64,
}

/// One profile as it is shown.
pub(super) struct View {
    pub(super) profile_type: String,
    pub(super) profile_types: Vec<String>,
    /// The JSON that render has, too.
    pub(super) document: String,
}

impl Room {
    pub(super) fn new(query: &Query, cancellation: Cancellation) -> Self {
        Self {
            cancellation,
            max_bytes: query.budget.max_memory,
            nodes: 0,
        }
    }

    /// # Errors
    /// 413 when a tree of so many nodes is too much besides those that are done; when nobody waits
    /// for the answer any more.
    fn check(&self, nodes: usize) -> Result<(), ApiError> {
        if self.cancellation.is_cancelled() {
            return Err(query_error(QueryError::Cancelled));
        }
        let nodes = self.nodes.saturating_add(nodes as u64);
        if nodes.saturating_mul(NODE_BYTES) <= self.max_bytes {
            return Ok(());
        }
        let message = format!(
            "the flame graph takes more than {} bytes of memory, which is what an answer may take",
            self.max_bytes
        );
        Err(
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
                .hint("its stacks are too many, too long and too different: upload a part of it"),
        )
    }
}

impl View {
    /// # Errors
    /// 400 when the profile has no samples, or none of the wanted type; 413 when there is no room
    /// for its flame graph.
    pub(super) fn of(
        profile: &Profile,
        wanted: Option<&str>,
        max_nodes: usize,
        mut room: Room,
    ) -> Result<Self, ApiError> {
        let types = types_of(profile);
        let profile_type = chosen(&types, wanted)?;
        let tree = tree_of(profile, profile_type, &mut room)?;
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
/// 400 when they do not have the wanted type; 413 when there is no room for both flame graphs.
pub(super) fn diff_document(
    [left, right]: [&Profile; 2],
    types: &[ProfileType],
    wanted: Option<&str>,
    max_nodes: usize,
    mut room: Room,
) -> Result<String, ApiError> {
    let profile_type = chosen(types, wanted)?;
    let left = tree_of(left, profile_type, &mut room)?;
    let right = tree_of(right, profile_type, &mut room)?;
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

fn tree_of(
    profile: &Profile,
    profile_type: &ProfileType,
    room: &mut Room,
) -> Result<FlameTree, ApiError> {
    let mut builder = FlameTreeBuilder::new();
    for (position, series) in profile.series.iter().enumerate() {
        if series.profile_type == *profile_type {
            builder.try_add_series(profile, position, |nodes| room.check(nodes))?;
        }
    }
    room.nodes = room.nodes.saturating_add(builder.len() as u64);
    Ok(builder.finish())
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

#[cfg(test)]
mod tests {
    use candela_formats::ReadOptions;

    use super::*;

    /// 40 nodes besides the root.
    fn profile() -> Profile {
        let stacks = (0..4).map(|stack| {
            let frames: Vec<String> = (0..10).map(|frame| format!("f{stack}_{frame}")).collect();
            format!("{} 1\n", frames.join(";"))
        });
        let text: String = stacks.collect();
        let options = ReadOptions::default();
        let read =
            candela_formats::read(candela_formats::Format::Folded, text.as_bytes(), &options);
        read.expect("folded stacks").0
    }

    fn room(nodes: u64) -> (Room, Cancellation) {
        let mut query = Query::new("t");
        query.budget.max_memory = nodes * NODE_BYTES;
        let cancellation = Cancellation::default();
        (Room::new(&query, cancellation.clone()), cancellation)
    }

    #[test]
    fn a_graph_takes_no_more_memory_than_an_answer_may() {
        let profile = profile();
        let view = |nodes| View::of(&profile, None, 100, room(nodes).0).map(|_| ());
        assert_eq!(view(41), Ok(()));
        let error = view(40).expect_err("one node too many");
        assert_eq!(error.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert!(error.message.contains("4800 bytes"), "{}", error.message);

        let types = types_of(&profile);
        let diff = |nodes| {
            let both = [&profile, &profile];
            diff_document(both, &types, None, 100, room(nodes).0).map(|_| ())
        };
        assert_eq!(diff(82), Ok(()));
        assert!(diff(81).is_err());
    }

    #[test]
    fn nothing_is_made_when_nobody_waits() {
        let (room, cancellation) = room(1000);
        cancellation.cancel();
        let error = View::of(&profile(), None, 100, room).map(|_| ());
        assert_eq!(error.expect_err("nobody waits").code, "cancelled");
    }
}
