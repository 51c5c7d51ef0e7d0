//! The graph of functions in the language of Graphviz (<https://graphviz.org/doc/info/lang.html>), laid
//! out as users of `pprof -dot` know it: boxes as large as their self value, arrows as thick as what
//! goes through them.

mod graph;

use std::io::Write;

use candela_model::FlameTree;
use candela_model::ProfileType;

use crate::dot::graph::Edge;
use crate::dot::graph::FunctionNode;
use crate::dot::graph::Graph;
use crate::error::WriteError;
use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
use crate::format::Writer;
use crate::units::format_share;
use crate::units::format_value;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::Dot,
    name: "dot",
    extensions: &["dot", "gv"],
    description: "graph of functions for Graphviz, one sample type",
    keeps: &[Part::NegativeValues],
    detects: None,
    read: None,
    write: Some(Writer::Tree(|tree, profile_type, output, options| {
        write_dot(tree, profile_type, &options.dot, output)
    })),
};

/// What of a graph is drawn. All figures are computed before anything is left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DotOptions {
    /// Functions to draw, those with the largest totals; 0 draws all.
    pub max_nodes: usize,
    /// Leave out functions with a smaller share of the total, 0 to 1.
    pub min_node_share: f64,
    /// Leave out arrows with a smaller share of the total, 0 to 1.
    pub min_edge_share: f64,
}

impl Default for DotOptions {
    fn default() -> Self {
        Self {
            max_nodes: 100,
            min_node_share: 0.005,
            min_edge_share: 0.001,
        }
    }
}

/// Points: the smallest and the largest text of a box.
const FONT_SIZES: (f64, f64) = (8.0, 24.0);

/// Writes the graph. Calls that go through functions which are not drawn are dotted arrows. Without
/// any value only the legend is there.
///
/// # Errors
/// When the sink fails.
pub fn write_dot(
    tree: &FlameTree,
    profile_type: &ProfileType,
    options: &DotOptions,
    mut output: impl Write,
) -> Result<(), WriteError> {
    let graph = Graph::of(tree, options);
    let drawing = Drawing {
        graph: &graph,
        unit: &profile_type.sample_unit,
    };
    writeln!(output, "digraph {} {{", quoted(&profile_type.to_string()))?;
    writeln!(output, "node [style=filled fillcolor=\"#f8f8f8\"]")?;
    drawing.legend(profile_type, &mut output)?;
    for (position, node) in graph.nodes.iter().enumerate() {
        drawing.node(position + 1, node, &mut output)?;
    }
    for edge in &graph.edges {
        drawing.edge(edge, &mut output)?;
    }
    writeln!(output, "}}")?;
    output.flush()?;
    Ok(())
}

struct Drawing<'a> {
    graph: &'a Graph<'a>,
    unit: &'a str,
}

impl Drawing<'_> {
    fn legend(
        &self,
        profile_type: &ProfileType,
        output: &mut impl Write,
    ) -> Result<(), WriteError> {
        let graph = self.graph;
        let shown = graph
            .nodes
            .iter()
            .fold(0_i64, |sum, node| sum.saturating_add(node.self_value));
        let mut lines = vec![
            format!("Type: {}", profile_type.sample_type),
            format!(
                "Showing nodes accounting for {}, {} of {} total",
                self.value(shown),
                self.share(shown),
                self.value(graph.total)
            ),
        ];
        if graph.nodes_left_out > 0 {
            lines.push(format!("Dropped {} nodes", graph.nodes_left_out));
        }
        if graph.edges_left_out > 0 {
            lines.push(format!("Dropped {} edges", graph.edges_left_out));
        }
        let label: String = lines
            .iter()
            .map(|line| format!("{}\\l", escaped(line)))
            .collect();
        let name = quoted(&lines[0]);
        writeln!(
            output,
            "subgraph cluster_L {{ {name} [shape=box fontsize=16 label=\"{label}\"] }}"
        )?;
        Ok(())
    }

    fn node(
        &self,
        number: usize,
        node: &FunctionNode<'_>,
        output: &mut impl Write,
    ) -> Result<(), WriteError> {
        let (total, own) = (self.value(node.total), self.value(node.self_value));
        let name = escaped(node.name);
        let own_part = match node.self_value {
            0 => "0".to_owned(),
            value => format!("{own} ({})", self.share(value)),
        };
        let of_total = match node.total == node.self_value {
            true => String::new(),
            false => format!("\\nof {total} ({})", self.share(node.total)),
        };
        let (smallest, largest) = FONT_SIZES;
        // The area of a box follows its value, as the eye compares areas.
        let font_size = smallest + (largest - smallest) * self.part(node.self_value).sqrt();
        let (line, fill) = (self.color(node.total, 0.35), self.color(node.total, 0.88));
        writeln!(
            output,
            "N{number} [label=\"{name}\\n{own_part}{of_total}\" id=\"node{number}\" fontsize={font_size:.0} shape=box tooltip=\"{name} ({total})\" color=\"{line}\" fillcolor=\"{fill}\"]"
        )?;
        Ok(())
    }

    fn edge(&self, edge: &Edge, output: &mut impl Write) -> Result<(), WriteError> {
        let name = |node: usize| escaped(self.graph.nodes[node].name);
        let (from, to) = (name(edge.from), name(edge.to));
        let value = self.value(edge.value);
        let part = self.part(edge.value);
        let weight = 1.0 + 99.0 * part;
        let (arrow, style) = match edge.is_direct {
            true => ("->", String::new()),
            false => ("...", " style=\"dotted\"".to_owned()),
        };
        let tip = format!("{from} {arrow} {to} ({value})");
        writeln!(
            output,
            "N{} -> N{} [label=\" {value}\" weight={weight:.0} penwidth={:.0} color=\"{}\" tooltip=\"{tip}\" labeltooltip=\"{tip}\"{style}]",
            edge.from + 1,
            edge.to + 1,
            1.0 + 4.0 * part,
            self.color(edge.value, 0.35),
        )?;
        Ok(())
    }

    fn value(&self, value: i64) -> String {
        format_value(value, self.unit)
    }

    fn share(&self, value: i64) -> String {
        format_share(value, self.graph.total)
    }

    /// The share of a value, 0 to 1.
    fn part(&self, value: i64) -> f64 {
        let total = self.graph.total.unsigned_abs().max(1) as f64;
        (value.unsigned_abs() as f64 / total).min(1.0)
    }

    /// From grey to red as the value grows, or to green as it falls below zero.
    fn color(&self, value: i64, lightness: f64) -> String {
        let part = self.part(value).sqrt();
        let channel = |lightness: f64| (255.0 * lightness.clamp(0.0, 1.0)) as u8;
        // Dark lines show their color best; what lies behind a text stays pale.
        let strength = 0.5 * part * (1.0 - lightness);
        let strong = channel(lightness + strength);
        let weak = channel(lightness * (1.0 - strength));
        match value < 0 {
            true => format!("#{weak:02x}{strong:02x}{weak:02x}"),
            false => format!("#{strong:02x}{weak:02x}{weak:02x}"),
        }
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

/// Text inside of a quoted string, where a backslash begins an escape of Graphviz.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                escaped.push('\\');
                escaped.push(character);
            }
            '\n' | '\r' => escaped.push_str("\\n"),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_ends_its_string() {
        assert_eq!(quoted("a\"b\\c\nd\u{1}"), "\"a\\\"b\\\\c\\nd\u{fffd}\"");
    }
}
