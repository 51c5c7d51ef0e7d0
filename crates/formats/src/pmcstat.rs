//! The call graph that FreeBSD's `pmcstat -G` prints: inverted trees of functions with the share and
//! the number of samples, a section for each event.

use std::io::BufRead;

use candela_model::FrameKind;
use candela_model::LocationId;
use candela_model::Profile;
use candela_model::ProfileType;

use crate::error::ReadError;
use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
use crate::indented_tree::IndentedTree;
use crate::named_stacks::FrameText;
use crate::named_stacks::NamedStacks;
use crate::naming;
use crate::options::ReadOptions;
use crate::report::Report;
use crate::series_index::SeriesIndex;
use crate::text_lines::TextLines;
use crate::text_lines::decode_prefix;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::Pmcstat,
    name: NAME,
    extensions: &["pmcstat"],
    description: "call graph of FreeBSD's pmcstat",
    keeps: &[Part::AllTypes, Part::FrameKinds],
    detects: Some(looks_like_pmcstat),
    read: Some(|input, options| read_pmcstat(input, options)),
    write: None,
};

/// The format's name in messages.
const NAME: &str = "pmcstat";

/// ` 50.62%  [2610]      arc_cksum_verify @ /boot/kernel/zfs.ko`
struct NodeLine<'t> {
    indent: usize,
    samples: i64,
    name: &'t str,
    /// `None` for the file of the line above.
    file: Option<&'t str>,
}

/// Reads the call graph of `pmcstat -G`. A sample counts 1, as the text does not tell of how many
/// events. Samples of callers too rare to be shown end at the last function that is.
///
/// # Errors
/// When the input cannot be read, exceeds a limit, or has no function with samples.
pub fn read_pmcstat(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut lines = TextLines::new(input, &options.limits)?;
    let mut stacks = NamedStacks::new(&options.limits);
    let mut tree = IndentedTree::new(true, options.limits.max_stack_depth);
    let mut types: Vec<ProfileType> = Vec::new();
    let mut index = SeriesIndex::new(&options.limits);
    let mut series = None;
    let (mut told, mut shown) = (0_i64, 0_i64);
    while let Some(line) = lines.next_line()? {
        if line.trim().is_empty() {
            continue;
        }
        if let Some((event, samples)) = parse_section(line) {
            tree.close(&mut stacks)?;
            told = told.saturating_add(samples);
            let profile_type = type_of(event, &mut stacks);
            series = Some(match index.get(&profile_type) {
                Some(known) => known,
                None => {
                    let position = index.add(&profile_type)?;
                    types.push(profile_type);
                    position
                }
            });
            continue;
        }
        let (Some(node), Some(series)) = (parse_node(line), series) else {
            stacks.report.note(
                "lines_not_understood",
                "lines that are neither an event nor a function were left out",
            );
            continue;
        };
        if node.indent == 0 {
            shown = shown.saturating_add(node.samples);
        }
        let location = location_of(&node, &tree, &mut stacks)?;
        let place = (node.indent, location);
        tree.enter(place, series, node.samples, None, &mut stacks)?;
    }
    tree.close(&mut stacks)?;
    lines.note_repairs(&mut stacks.report);
    if stacks.is_empty() {
        return Err(ReadError::Invalid {
            format: NAME,
            problem: "no line has the form `20.86%  [7447]  function @ file` below `@ event [35705 samples]`".to_owned(),
        });
    }
    stacks.report.note_many(
        "samples_not_shown",
        "samples of functions too rare to be printed are not in the text",
        told.saturating_sub(shown).max(0) as u64,
    );
    Ok(stacks.finish(types, options))
}

/// Whether the start of some input looks like it. Comments, which people put in, may stand anywhere.
fn looks_like_pmcstat(prefix: &[u8]) -> bool {
    let text = decode_prefix(prefix);
    let is_comment = |line: &str| line.starts_with('#') || line.starts_with("//");
    let mut lines = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !is_comment(line));
    let begins = lines
        .next()
        .is_some_and(|line| parse_section(line).is_some());
    // The second may be cut.
    begins
        && lines
            .next()
            .is_none_or(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit()))
}

/// `@ inst_retired.any [35705 samples]`
fn parse_section(line: &str) -> Option<(&str, i64)> {
    let (event, samples) = line.strip_prefix("@ ")?.rsplit_once('[')?;
    let samples = samples.trim_end().strip_suffix("samples]")?.trim();
    Some((event.trim(), samples.parse().ok()?))
}

fn parse_node(line: &str) -> Option<NodeLine<'_>> {
    let text = line.trim_start_matches(' ');
    let indent = line.len() - text.len();
    let (share, rest) = text.split_once('%')?;
    share.parse::<f64>().ok()?;
    let (samples, name) = rest.trim_start().strip_prefix('[')?.split_once(']')?;
    let name = name.trim();
    let (name, file) = match name.rsplit_once(" @ ") {
        Some((name, file)) => (name.trim_end(), Some(file.trim())),
        None => (name, None),
    };
    let samples = samples
        .trim()
        .parse()
        .ok()
        .filter(|samples| *samples >= 0)?;
    (!name.is_empty()).then_some(NodeLine {
        indent,
        samples,
        name,
        file,
    })
}

fn type_of(event: &str, stacks: &mut NamedStacks<'_>) -> ProfileType {
    let event = stacks.cut(event);
    let event = if event.is_empty() { "samples" } else { event };
    naming::typed(event, ("samples", "count"), (event, "count"))
}

fn location_of(
    node: &NodeLine<'_>,
    tree: &IndentedTree,
    stacks: &mut NamedStacks<'_>,
) -> Result<LocationId, ReadError> {
    let inherited = tree.parent(node.indent).map(|parent| {
        let symbols = &stacks.profile.symbols;
        let mapping = symbols.location(parent).mapping;
        symbols
            .strings
            .get(symbols.mapping(mapping).file)
            .to_owned()
    });
    let mapping = match node.file {
        Some(file) => file,
        None => inherited.as_deref().unwrap_or(""),
    };
    let is_kernel = mapping.starts_with("/boot/");
    stacks.frame_of(&FrameText {
        name: node.name,
        mapping,
        kind: if is_kernel {
            FrameKind::Kernel
        } else {
            FrameKind::Unknown
        },
        ..FrameText::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::detect;

    #[test]
    fn comments_do_not_hide_what_a_text_is() {
        let text = "# of a host\n@ inst_retired.any [35705 samples]\n\n# ok\n// ignored\n\n\
            20.86%  [7447]     zfs_lz4_compress @ /boot/kernel/zfs.ko\n \
            100.0%  [7447]      zio_compress_data\n";
        assert_eq!(detect(text.as_bytes()), Some(Format::Pmcstat));
        let (profile, report) =
            read_pmcstat(text.as_bytes(), &ReadOptions::default()).expect("a call graph");
        assert_eq!(profile.series[0].total(), 7447);
        assert_eq!(report.count("lines_not_understood"), 3);
        assert_eq!(detect(b"# a\n// b\n"), None);
    }
}
