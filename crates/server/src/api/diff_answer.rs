//! What is answered of two selections side by side: JSON, tables and pictures.

use candela_formats::BeforeScale;
use candela_formats::DiffSides;
use candela_formats::DiffTable;
use candela_formats::HtmlDiffOptions;
use candela_formats::HtmlOptions;
use candela_formats::Orientation;
use candela_formats::SvgDiffOptions;
use candela_formats::SvgOptions;
use candela_formats::write_diff_csv;
use candela_formats::write_diff_json;
use candela_formats::write_diff_markdown;
use candela_formats::write_html_diff;
use candela_formats::write_svg_diff;
use candela_model::FlameDiff;
use candela_model::FlameTree;
use candela_model::ProfileType;
use candela_query::Answer;
use candela_query::Query;
use candela_store::TimeRange;
use serde_json::Value;
use serde_json::json;

use crate::api::document;
use crate::api::document::file_name;
use crate::api::document::orientation_of;
use crate::api::document::page_template;
use crate::api::head::add_remarks;
use crate::api::head::answer_head;
use crate::api::head::milliseconds;
use crate::api::head::profiled_ms;
use crate::api_error::ApiError;
use crate::parameters::Parameters;
use crate::reply::Reply;

/// As many as the window shows: what is cut of the picture stays in the table.
const MOST_NODES_OF_PAGE: usize = 20_000;

/// What the answer looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Json,
    Csv,
    Markdown,
    Svg,
    Html,
}

/// Both sides, and what is known of their difference.
pub(crate) struct Compared {
    pub(crate) base: Query,
    pub(crate) query: Query,
    pub(crate) before: Answer<FlameTree>,
    pub(crate) after: Answer<FlameTree>,
    pub(crate) union: FlameDiff,
    pub(crate) table: DiffTable,
    pub(crate) profile_type: ProfileType,
}

/// How a picture is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawing {
    pub(crate) orientation: Orientation,
    /// Widths are those before, so that what is gone is seen.
    pub(crate) by_widths_before: bool,
}

impl Shape {
    /// # Errors
    /// 400 with what is known.
    pub(crate) fn of(parameters: &Parameters) -> Result<Self, ApiError> {
        match parameters.one("format").unwrap_or("json") {
            "json" => Ok(Self::Json),
            "csv" => Ok(Self::Csv),
            "markdown" => Ok(Self::Markdown),
            "svg" => Ok(Self::Svg),
            "html" => Ok(Self::Html),
            other => {
                let message = format!("format {other:?} is not known here");
                Err(ApiError::bad_request("unknown_format", message)
                    .hint("known: json, csv, markdown, svg, html"))
            }
        }
    }
}

impl Drawing {
    /// # Errors
    /// 400 with the parameter and what is known.
    pub(crate) fn of(parameters: &Parameters) -> Result<Self, ApiError> {
        let by_widths_before = match parameters.one("widths") {
            None | Some("after") => false,
            Some("before") => true,
            Some(other) => {
                let message = format!("widths: {other:?} is not known");
                return Err(
                    ApiError::bad_request("bad_choice", message).hint("known: after, before")
                );
            }
        };
        Ok(Self {
            orientation: orientation_of(parameters)?,
            by_widths_before,
        })
    }
}

impl Compared {
    /// The answer in a shape; a table has at most `limit` functions (0: all).
    ///
    /// # Errors
    /// 501 for a page in a build without the window.
    pub(crate) fn reply(
        self,
        shape: Shape,
        drawing: Drawing,
        limit: usize,
    ) -> Result<Reply, ApiError> {
        // JSON has a place for it.
        let partial = (shape != Shape::Json).then(|| self.partial()).flatten();
        let reply = match shape {
            Shape::Json => self.json(limit),
            Shape::Csv => self.csv(limit),
            Shape::Markdown => self.markdown(limit),
            Shape::Svg => self.svg(drawing),
            Shape::Html => self.html(drawing)?,
        };
        Ok(reply.partial(partial.as_deref()))
    }

    fn json(self, limit: usize) -> Reply {
        let mut head = answer_head(&self.query, &self.after);
        head["schema"] = json!("candela/diff/v1");
        let totals = [&self.before, &self.after].map(|side| side.value.root_total());
        head["before"] = side(&self.base, totals[0], &self.before);
        head["after"] = side(&self.query, totals[1], &self.after);
        add_remarks(&mut head["before"], &self.before);
        let Self { union, table, .. } = self;
        let bytes = union.bytes() + bytes_of(&table);
        Reply::written("application/json", bytes, move |output| {
            Ok(write_diff_json(&head, &table, &union, limit, output)?)
        })
    }

    fn csv(self, limit: usize) -> Reply {
        let file_name = file_name(&self.query, "diff.csv");
        let Self {
            table,
            profile_type,
            ..
        } = self;
        let bytes = bytes_of(&table);
        let reply = Reply::written("text/csv; charset=utf-8", bytes, move |output| {
            write_diff_csv(&table, &profile_type, limit, output).map(drop)
        });
        reply.file_name(&file_name)
    }

    fn markdown(self, limit: usize) -> Reply {
        let bytes = bytes_of(&self.table) + self.before.value.bytes() + self.after.value.bytes();
        Reply::written("text/markdown; charset=utf-8", bytes, move |output| {
            let sides = DiffSides {
                before: &self.before.value,
                after: &self.after.value,
                profile_type: &self.profile_type,
            };
            write_diff_markdown(sides, &self.table, limit, output)
        })
    }

    fn svg(self, drawing: Drawing) -> Reply {
        let options = SvgDiffOptions {
            svg: SvgOptions {
                title: self.title(),
                orientation: drawing.orientation,
                ..SvgOptions::default()
            },
            negate: drawing.by_widths_before,
            scale: self.scale(),
        };
        let Self {
            before,
            after,
            profile_type,
            ..
        } = self;
        // Their union is made when it is drawn.
        let bytes = 2 * (before.value.bytes() + after.value.bytes());
        document::picture(bytes, move |output| {
            write_svg_diff(&before.value, &after.value, &profile_type, output, &options)
        })
    }

    fn html(self, drawing: Drawing) -> Result<Reply, ApiError> {
        let options = HtmlDiffOptions {
            html: HtmlOptions {
                template: Some(page_template()?),
                title: self.title(),
                max_nodes: MOST_NODES_OF_PAGE,
            },
            negate: drawing.by_widths_before,
            scale: self.scale(),
        };
        let Self {
            query,
            before,
            after,
            profile_type,
            ..
        } = self;
        let bytes = 2 * (before.value.bytes() + after.value.bytes());
        Ok(document::page(&query, bytes, move |output| {
            let sides = DiffSides {
                before: &before.value,
                after: &after.value,
                profile_type: &profile_type,
            };
            write_html_diff(sides, output, &options)
        }))
    }

    fn scale(&self) -> BeforeScale {
        match self.table.statistics.size_factor {
            factor if factor.is_finite() => BeforeScale::By(factor),
            _ => BeforeScale::AsMeasured,
        }
    }

    /// A picture is kept and sent around without its headers.
    fn title(&self) -> String {
        let side = |query: &Query| {
            let TimeRange { from_ns, to_ns } = query.range;
            let times = [from_ns, to_ns].map(candela_formats::utc);
            format!("{} {} – {}", query.selector, times[0], times[1])
        };
        let (before, after) = (side(&self.base), side(&self.query));
        format!("{}: {before} → {after}", self.query.profile_type)
    }

    fn partial(&self) -> Option<String> {
        let reasons = [&self.before, &self.after].map(|answer| answer.partial.as_ref());
        reasons.into_iter().flatten().next().cloned()
    }
}

/// Bytes of a table, about.
fn bytes_of(table: &DiffTable) -> usize {
    size_of_val(&*table.rows) + table.frames.bytes()
}

fn side(query: &Query, total: i64, answer: &Answer<FlameTree>) -> Value {
    json!({
        "query": query.selector.to_string(),
        "from": milliseconds(query.range.from_ns),
        "to": milliseconds(query.range.to_ns),
        "total": total,
        "samples": answer.samples,
        "profiled_ms": answer.profiled_ns.map(profiled_ms),
    })
}
