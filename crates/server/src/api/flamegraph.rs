//! `GET /api/v1/flamegraph`.

use candela_formats::FoldedOptions;
use candela_formats::HtmlOptions;
use candela_formats::Orientation;
use candela_formats::OtlpOptions;
use candela_formats::PprofOptions;
use candela_formats::SvgOptions;
use candela_formats::encode_columns;
use candela_formats::encode_otlp_bytes;
use candela_formats::tree_json;
use candela_formats::write_firefox;
use candela_formats::write_flamebearer;
use candela_formats::write_folded;
use candela_formats::write_html;
use candela_formats::write_pprof;
use candela_formats::write_speedscope;
use candela_formats::write_svg;
use candela_model::FlameTree;
use candela_model::Profile;
use candela_query::Answer;
use candela_query::Query;
use serde_json::json;

use crate::api::asked::Asked;
use crate::api::document;
use crate::api::document::file_name;
use crate::api::document::orientation_of;
use crate::api::document::page_template;
use crate::api::errors::query_error;
use crate::api::head::answer_head;
use crate::api::pprof::type_of_empty;
use crate::api_error::ApiError;
use crate::parameters::Parameters;
use crate::reply::Reply;
use crate::turns::Lane;

/// Nodes kept when nothing is said: more than fit on any screen.
const DEFAULT_MAX_NODES: usize = 50_000;

/// A picture has fewer: boxes of less than a pixel only make it large.
const DEFAULT_MAX_NODES_SVG: usize = 10_000;

/// What the answer looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Columns,
    Json,
    Folded,
    Speedscope,
    Svg,
    Flamebearer,
    Pprof,
    Firefox,
    Html,
    Otlp,
}

pub(crate) async fn flamegraph(asked: Asked) -> Result<Reply, ApiError> {
    let shape = Shape::of(&asked.parameters)?;
    let max_nodes = asked.parameters.number::<usize>("max_nodes")?;
    let max_nodes = max_nodes.unwrap_or(shape.default_max_nodes());
    let orientation = orientation_of(&asked.parameters)?;
    let with_rare_stacks = asked.parameters.is_on("rare_stacks")?;
    asked
        .answer(Lane::Queries, move |engine, query| {
            let answer = if with_rare_stacks {
                engine.flame_tree_with_rare_stacks(query)
            } else {
                engine.flame_tree(query)
            };
            let answer = answer.map_err(query_error)?;
            shape.reply(query, &answer, max_nodes, orientation)
        })
        .await
}

impl Shape {
    fn of(parameters: &Parameters) -> Result<Self, ApiError> {
        match parameters.one("format").unwrap_or("columns") {
            "columns" => Ok(Self::Columns),
            "json" => Ok(Self::Json),
            "folded" => Ok(Self::Folded),
            "speedscope" => Ok(Self::Speedscope),
            "svg" => Ok(Self::Svg),
            "flamebearer" => Ok(Self::Flamebearer),
            "pprof" => Ok(Self::Pprof),
            "firefox" => Ok(Self::Firefox),
            "html" => Ok(Self::Html),
            "otlp" => Ok(Self::Otlp),
            other => {
                let message = format!("format {other:?} is not known here");
                Err(ApiError::bad_request("unknown_format", message)
                    .hint("known: columns, json, folded, speedscope, svg, flamebearer, pprof, firefox, html, otlp"))
            }
        }
    }

    fn default_max_nodes(self) -> usize {
        match self {
            Self::Columns | Self::Json | Self::Flamebearer | Self::Html => DEFAULT_MAX_NODES,
            Self::Svg => DEFAULT_MAX_NODES_SVG,
            Self::Folded | Self::Speedscope | Self::Pprof | Self::Firefox | Self::Otlp => 0,
        }
    }

    fn reply(
        self,
        query: &Query,
        answer: &Answer<FlameTree>,
        max_nodes: usize,
        orientation: Orientation,
    ) -> Result<Reply, ApiError> {
        let tree = answer.value.pruned(max_nodes);
        let reply = match self {
            Self::Columns => columns(query, answer, &tree),
            Self::Json => nested(query, answer, &tree),
            Self::Folded => folded(&tree)?,
            Self::Speedscope => speedscope(query, answer, &tree)?,
            Self::Svg => svg(query, answer, &tree, orientation)?,
            Self::Flamebearer => flamebearer(answer, &tree)?,
            Self::Pprof => pprof(query, answer, &tree)?,
            Self::Firefox => firefox(query, answer, &tree)?,
            Self::Otlp => otlp(query, answer, &tree),
            // Its table is exact: the page prunes by itself, after the functions were counted.
            Self::Html => html(query, answer, max_nodes)?,
        };
        Ok(reply.partial(answer.partial.as_deref()))
    }
}

fn columns(query: &Query, answer: &Answer<FlameTree>, tree: &FlameTree) -> Reply {
    let mut header = answer_head(query, answer);
    header["schema"] = json!("candela/flamegraph/v1");
    header["total"] = json!(tree.root_total());
    header["samples"] = json!(answer.samples);
    Reply::new(
        "application/vnd.candela.columns",
        encode_columns(tree, header),
    )
}

fn nested(query: &Query, answer: &Answer<FlameTree>, tree: &FlameTree) -> Reply {
    let mut head = answer_head(query, answer);
    head["schema"] = json!("candela/flamegraph/v1");
    head["total"] = json!(tree.root_total());
    head["samples"] = json!(answer.samples);
    head["nodes"] = json!(tree.len());
    head["pruned"] = json!(tree.pruned_nodes);
    // The tree is spliced in as text: a value of it would nest as deep as the stacks.
    let mut text = head.to_string();
    text.pop();
    text.push_str(",\"tree\":");
    text.push_str(&tree_json(tree));
    text.push('}');
    Reply::new("application/json", text.into_bytes())
}

fn folded(tree: &FlameTree) -> Result<Reply, ApiError> {
    let mut bytes = Vec::new();
    write_folded(tree, &mut bytes, &FoldedOptions::default()).map_err(ApiError::unwritten)?;
    Ok(Reply::new("text/plain; charset=utf-8", bytes))
}

fn speedscope(
    query: &Query,
    answer: &Answer<FlameTree>,
    tree: &FlameTree,
) -> Result<Reply, ApiError> {
    let profile_type = answer.profile_type.clone().unwrap_or_default();
    let mut bytes = Vec::new();
    write_speedscope(tree, &profile_type, &mut bytes).map_err(ApiError::unwritten)?;
    Ok(Reply::new("application/json", bytes).file_name(&file_name(query, "speedscope.json")))
}

fn flamebearer(answer: &Answer<FlameTree>, tree: &FlameTree) -> Result<Reply, ApiError> {
    let profile_type = answer.profile_type.clone().unwrap_or_default();
    let mut bytes = Vec::new();
    write_flamebearer(tree, &profile_type, &mut bytes).map_err(ApiError::unwritten)?;
    Ok(Reply::new("application/json", bytes))
}

/// The merged stacks for what reads pprof. Sums answer it as they answer a picture, which they do not
/// at `/api/v1/pprof`: there are addresses, lines and labels, which only raw profiles have.
fn pprof(query: &Query, answer: &Answer<FlameTree>, tree: &FlameTree) -> Result<Reply, ApiError> {
    let comments = answer.hint.iter().chain(&answer.partial).cloned().collect();
    let options = PprofOptions {
        // The transport compresses, as it does other answers.
        compress: false,
        comments,
        ..PprofOptions::default()
    };
    let mut bytes = Vec::new();
    write_pprof(&profile_of(query, answer, tree), &mut bytes, &options)
        .map_err(ApiError::unwritten)?;
    Ok(Reply::new("application/vnd.google.protobuf", bytes).file_name(&file_name(query, "pb")))
}

/// Stacks and their values: a merged answer has no times, so samples stand one after another.
fn firefox(query: &Query, answer: &Answer<FlameTree>, tree: &FlameTree) -> Result<Reply, ApiError> {
    let mut bytes = Vec::new();
    write_firefox(&profile_of(query, answer, tree), &mut bytes).map_err(ApiError::unwritten)?;
    Ok(Reply::new("application/json", bytes).file_name(&file_name(query, "firefox.json")))
}

/// A request as a profiler would push it, of protocol 1.10 and later.
fn otlp(query: &Query, answer: &Answer<FlameTree>, tree: &FlameTree) -> Reply {
    let profile = profile_of(query, answer, tree);
    let bytes = encode_otlp_bytes(&profile, &OtlpOptions::default());
    Reply::new("application/x-protobuf", bytes).file_name(&file_name(query, "otlp"))
}

/// The window's flame graph and table as a page of one file.
fn html(query: &Query, answer: &Answer<FlameTree>, max_nodes: usize) -> Result<Reply, ApiError> {
    let options = HtmlOptions {
        template: Some(page_template()?),
        title: title_of(query, answer),
        max_nodes,
    };
    let profile_type = type_of_empty(query, answer.profile_type.as_ref());
    let profile = profile_of(query, answer, &answer.value);
    let mut bytes = Vec::new();
    write_html(&profile, &profile_type, &mut bytes, &options).map_err(ApiError::unwritten)?;
    Ok(document::page(bytes, query))
}

/// The merged stacks as a profile of the range that was asked for.
fn profile_of(query: &Query, answer: &Answer<FlameTree>, tree: &FlameTree) -> Profile {
    let profile_type = type_of_empty(query, answer.profile_type.as_ref());
    let mut profile = tree.to_profile(profile_type);
    for series in &mut profile.series {
        series.start_ns = query.range.from_ns;
        series.duration_ns = query.range.to_ns.saturating_sub(query.range.from_ns);
    }
    profile
}

/// A picture is kept and sent around without its headers.
fn title_of(query: &Query, answer: &Answer<FlameTree>) -> String {
    let part = if answer.partial.is_some() {
        "only a part, blocks are left out: "
    } else {
        ""
    };
    format!("{part}{} {}", query.profile_type, query.selector)
}

fn svg(
    query: &Query,
    answer: &Answer<FlameTree>,
    tree: &FlameTree,
    orientation: Orientation,
) -> Result<Reply, ApiError> {
    let options = SvgOptions {
        title: title_of(query, answer),
        orientation,
        ..SvgOptions::default()
    };
    // Without a type there is nothing to draw, and so no unit to name.
    let profile_type = answer.profile_type.clone().unwrap_or_default();
    let mut bytes = Vec::new();
    write_svg(tree, &profile_type, &mut bytes, &options).map_err(ApiError::unwritten)?;
    Ok(document::picture(bytes))
}
