//! A profile as a callgrind file.

use std::io::Write;

use candela_model::Profile;
use candela_model::ProfileType;
use candela_model::SERVICE_NAME_LABEL;

use crate::callgrind::NAME;
use crate::callgrind::write_graph::Place;
use crate::callgrind::write_graph::Texts;
use crate::callgrind::write_graph::WriteGraph;
use crate::error::WriteError;
use crate::report::Report;

/// Writes all profile types as events of one part, with names compressed. Stacks become a call graph:
/// own costs stay, and inclusive ones as long as no function calls itself in a circle.
///
/// # Errors
/// When the sink fails or a function has a negative cost.
pub fn write_callgrind(profile: &Profile, mut output: impl Write) -> Result<Report, WriteError> {
    let graph =
        WriteGraph::of(profile).map_err(|name| WriteError::Negative { format: NAME, name })?;
    write_header(profile, &graph, &mut output)?;
    let mut named = Named::new(&graph);
    for (function, costs) in graph.functions.iter().zip(&graph.costs) {
        writeln!(output)?;
        named.write("ob", Kind::Object, function.object, &mut output)?;
        named.write("fl", Kind::File, function.file, &mut output)?;
        named.write("fn", Kind::Function, function.name, &mut output)?;
        for (place, values) in &costs.own {
            write_place(*place, &graph, &mut output)?;
            write_costs(values, &mut output)?;
        }
        for ((place, callee), (count, values)) in &costs.calls {
            let callee = graph.functions[*callee];
            named.write("cob", Kind::Object, callee.object, &mut output)?;
            named.write("cfi", Kind::File, callee.file, &mut output)?;
            named.write("cfn", Kind::Function, callee.name, &mut output)?;
            write!(output, "calls={count} ")?;
            write_place((0, 0), &graph, &mut output)?;
            writeln!(output)?;
            write_place(*place, &graph, &mut output)?;
            write_costs(values, &mut output)?;
        }
    }
    write!(output, "\ntotals:")?;
    write_costs(&graph.totals, &mut output)?;
    output.flush()?;
    Ok(Report::default())
}

/// Which names are written already.
struct Named<'a> {
    graph: &'a WriteGraph,
    written: [Vec<bool>; 3],
}

#[derive(Clone, Copy)]
enum Kind {
    Object,
    File,
    Function,
}

impl<'a> Named<'a> {
    fn new(graph: &'a WriteGraph) -> Self {
        let none = |texts: &Texts| vec![false; texts.texts.len()];
        Self {
            graph,
            written: [none(&graph.objects), none(&graph.files), none(&graph.names)],
        }
    }

    /// The number of a name, the first time with the name.
    fn write(
        &mut self,
        key: &str,
        kind: Kind,
        number: usize,
        output: &mut impl Write,
    ) -> std::io::Result<()> {
        let texts = match kind {
            Kind::Object => &self.graph.objects,
            Kind::File => &self.graph.files,
            Kind::Function => &self.graph.names,
        };
        let is_written = &mut self.written[kind as usize][number];
        let id = number + 1;
        if std::mem::replace(is_written, true) {
            return writeln!(output, "{key}=({id})");
        }
        writeln!(output, "{key}=({id}) {}", texts.texts[number])
    }
}

fn write_header(
    profile: &Profile,
    graph: &WriteGraph,
    output: &mut impl Write,
) -> std::io::Result<()> {
    writeln!(output, "# callgrind format\nversion: 1\ncreator: candela")?;
    let labels = profile.series.first().map(|series| &series.labels);
    let label = |name| labels.and_then(|labels| labels.get(name));
    let headers = [
        ("pid", label("pid")),
        (
            "cmd",
            label("process_executable_name").or(label(SERVICE_NAME_LABEL)),
        ),
    ];
    for (key, value) in headers {
        if let Some(value) = value {
            let value = value.replace(|character: char| character.is_control(), " ");
            writeln!(output, "{key}: {value}")?;
        }
    }
    let positions = if graph.has_addresses {
        "instr line"
    } else {
        "line"
    };
    writeln!(output, "part: 1\n\npositions: {positions}")?;
    let names = event_names(&graph.types);
    for (name, profile_type) in names.iter().zip(&graph.types) {
        let id = profile_type.to_string();
        // The short name alone does not tell the type.
        if !id.contains(char::is_control) {
            writeln!(output, "event: {name} : {id}")?;
        }
    }
    writeln!(output, "events: {}", names.join(" "))?;
    write!(output, "summary:")?;
    write_costs(&graph.totals, output)
}

/// Names of letters and digits, as the format wants them, each once.
fn event_names(types: &[ProfileType]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for profile_type in types {
        let unit = match profile_type.sample_unit.as_str() {
            "nanoseconds" => "_ns",
            "bytes" => "_bytes",
            _ => "",
        };
        let plain = format!("{}{unit}", profile_type.sample_type);
        let mut name = plain.replace(
            |character: char| !character.is_ascii_alphanumeric() && character != '_',
            "_",
        );
        if !name.starts_with(|character: char| character.is_ascii_alphabetic()) {
            name.insert(0, 'e');
        }
        let base = name.clone();
        let mut number = 2;
        while names.contains(&name) {
            name = format!("{base}_{number}");
            number += 1;
        }
        names.push(name);
    }
    names
}

fn write_place(
    (address, line): Place,
    graph: &WriteGraph,
    output: &mut impl Write,
) -> std::io::Result<()> {
    if graph.has_addresses {
        write!(output, "{address:#x} ")?;
    }
    write!(output, "{line}")
}

fn write_costs(values: &[i64], output: &mut impl Write) -> std::io::Result<()> {
    for value in values {
        write!(output, " {value}")?;
    }
    writeln!(output)
}
