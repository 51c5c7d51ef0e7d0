//! `GET /api/v1/flamegraph`.

use candela_formats::FoldedOptions;
use candela_formats::HtmlOptions;
use candela_formats::Orientation;
use candela_formats::OtlpOptions;
use candela_formats::PprofOptions;
use candela_formats::SvgOptions;
use candela_formats::encode_otlp_bytes;
use candela_formats::write_columns;
use candela_formats::write_firefox;
use candela_formats::write_flamebearer;
use candela_formats::write_folded;
use candela_formats::write_html;
use candela_formats::write_pprof;
use candela_formats::write_speedscope;
use candela_formats::write_svg;
use candela_formats::write_trees_json;
use candela_model::FlameTree;
use candela_model::Profile;
use candela_query::Answer;
use candela_query::Query;
use serde_json::Value;
use serde_json::json;

use crate::api::asked::Asked;
use crate::api::document;
use crate::api::document::file_name;
use crate::api::document::orientation_of;
use crate::api::document::page_template;
use crate::api::errors::query_error;
use crate::api::head::answer_head;
use crate::api::head::profiled_ms;
use crate::api::pprof::type_of_empty;
use crate::api_error::ApiError;
use crate::parameters::Parameters;
use crate::reply::Reply;
use crate::turns::Lane;

/// Nodes kept when nothing is said: more than fit on any screen.
const DEFAULT_MAX_NODES: usize = 50_000;

/// A picture has fewer: boxes of less than a pixel only make it large.
const DEFAULT_MAX_NODES_SVG: usize = 10_000;

/// How much more memory a profile takes, and what is written of it, than the tree that it is made of.
const PROFILE_OF_TREE: usize = 2;

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
            shape.reply(query, answer, max_nodes, orientation)
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
        mut answer: Answer<FlameTree>,
        max_nodes: usize,
        orientation: Orientation,
    ) -> Result<Reply, ApiError> {
        let whole = std::mem::take(&mut answer.value);
        let pruned = |whole: FlameTree| whole.into_pruned(max_nodes);
        let reply = match self {
            Self::Columns => columns(query, &answer, pruned(whole)),
            Self::Json => nested(query, &answer, pruned(whole)),
            Self::Folded => folded(pruned(whole)),
            Self::Speedscope => speedscope(query, &answer, pruned(whole)),
            Self::Svg => svg(query, &answer, pruned(whole), orientation),
            Self::Flamebearer => flamebearer(&answer, pruned(whole)),
            Self::Pprof => pprof(query, &answer, &pruned(whole)),
            Self::Firefox => firefox(query, &answer, &pruned(whole)),
            Self::Otlp => otlp(query, &answer, &pruned(whole)),
            // Its table is exact: the page prunes by itself, after the functions were counted.
            Self::Html => html(query, &answer, &whole, max_nodes)?,
        };
        Ok(reply.partial(answer.partial.as_deref()))
    }
}

fn columns(query: &Query, answer: &Answer<FlameTree>, tree: FlameTree) -> Reply {
    let head = head(query, answer, &tree);
    // The columns are there as numbers and as bytes.
    Reply::written(
        "application/vnd.candela.columns",
        2 * tree.bytes(),
        move |output| Ok(write_columns(&tree, head, [], output)?),
    )
}

fn nested(query: &Query, answer: &Answer<FlameTree>, tree: FlameTree) -> Reply {
    let mut head = head(query, answer, &tree);
    head["nodes"] = json!(tree.len());
    head["pruned"] = json!(tree.pruned_nodes);
    Reply::written("application/json", tree.bytes(), move |output| {
        Ok(write_trees_json(&head, &[("tree", &tree)], output)?)
    })
}

fn head(query: &Query, answer: &Answer<FlameTree>, tree: &FlameTree) -> Value {
    let mut head = answer_head(query, answer);
    head["schema"] = json!("candela/flamegraph/v1");
    head["total"] = json!(tree.root_total());
    head["samples"] = json!(answer.samples);
    head["profiled_ms"] = json!(answer.profiled_ns.map(profiled_ms));
    head
}

fn folded(tree: FlameTree) -> Reply {
    Reply::written("text/plain; charset=utf-8", tree.bytes(), move |output| {
        write_folded(&tree, output, &FoldedOptions::default())
    })
}

fn speedscope(query: &Query, answer: &Answer<FlameTree>, tree: FlameTree) -> Reply {
    let profile_type = answer.profile_type.clone().unwrap_or_default();
    let reply = Reply::written("application/json", tree.bytes(), move |output| {
        write_speedscope(&tree, &profile_type, output)
    });
    reply.file_name(&file_name(query, "speedscope.json"))
}

fn flamebearer(answer: &Answer<FlameTree>, tree: FlameTree) -> Reply {
    let profile_type = answer.profile_type.clone().unwrap_or_default();
    Reply::written("application/json", 2 * tree.bytes(), move |output| {
        write_flamebearer(&tree, &profile_type, output)
    })
}

/// The merged stacks for what reads pprof. Sums answer it as they answer a picture, which they do not
/// at `/api/v1/pprof`: there are addresses, lines and labels, which only raw profiles have.
fn pprof(query: &Query, answer: &Answer<FlameTree>, tree: &FlameTree) -> Reply {
    let comments = answer.hint.iter().chain(&answer.partial).cloned().collect();
    let options = PprofOptions {
        // The transport compresses, as it does other answers.
        compress: false,
        comments,
        ..PprofOptions::default()
    };
    let profile = profile_of(query, answer, tree);
    let bytes = PROFILE_OF_TREE * tree.bytes();
    let reply = Reply::written("application/vnd.google.protobuf", bytes, move |output| {
        write_pprof(&profile, output, &options).map(drop)
    });
    reply.file_name(&file_name(query, "pb"))
}

/// Stacks and their values: a merged answer has no times, so samples stand one after another.
fn firefox(query: &Query, answer: &Answer<FlameTree>, tree: &FlameTree) -> Reply {
    let profile = profile_of(query, answer, tree);
    let bytes = PROFILE_OF_TREE * tree.bytes();
    let reply = Reply::written("application/json", bytes, move |output| {
        write_firefox(&profile, output).map(drop)
    });
    reply.file_name(&file_name(query, "firefox.json"))
}

/// A request as a profiler would push it, of protocol 1.10 and later.
fn otlp(query: &Query, answer: &Answer<FlameTree>, tree: &FlameTree) -> Reply {
    let profile = profile_of(query, answer, tree);
    let bytes = PROFILE_OF_TREE * tree.bytes();
    let reply = Reply::written("application/x-protobuf", bytes, move |output| {
        let bytes = encode_otlp_bytes(&profile, &OtlpOptions::default());
        drop(profile);
        Ok(output.write_all(&bytes)?)
    });
    reply.file_name(&file_name(query, "otlp"))
}

/// The window's flame graph and table as a page of one file.
fn html(
    query: &Query,
    answer: &Answer<FlameTree>,
    tree: &FlameTree,
    max_nodes: usize,
) -> Result<Reply, ApiError> {
    let options = HtmlOptions {
        template: Some(page_template()?),
        title: title_of(query, answer),
        max_nodes,
    };
    let profile_type = type_of_empty(query, answer.profile_type.as_ref());
    let profile = profile_of(query, answer, tree);
    let bytes = PROFILE_OF_TREE * tree.bytes();
    Ok(document::page(query, bytes, move |output| {
        write_html(&profile, &profile_type, output, &options)
    }))
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
    tree: FlameTree,
    orientation: Orientation,
) -> Reply {
    let options = SvgOptions {
        title: title_of(query, answer),
        orientation,
        ..SvgOptions::default()
    };
    // Without a type there is nothing to draw, and so no unit to name.
    let profile_type = answer.profile_type.clone().unwrap_or_default();
    document::picture(tree.bytes(), move |output| {
        write_svg(&tree, &profile_type, output, &options)
    })
}
