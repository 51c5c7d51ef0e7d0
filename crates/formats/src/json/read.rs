//! Our own JSON to a profile.

use std::io::BufRead;

use candela_model::FrameKind;
use candela_model::FunctionId;
use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::Labels;
use candela_model::Link;
use candela_model::LinkId;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::MappingId;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use candela_model::SampleLabel;
use candela_model::StackId;
use candela_model::StringId;
use serde::Deserialize;

use crate::error::ReadError;
use crate::json::NAME;
use crate::json::SCHEMA;
use crate::json::rows::FunctionRow;
use crate::json::rows::LabelRow;
use crate::json::rows::LinkRow;
use crate::json::rows::LocationRow;
use crate::json::rows::MappingRow;
use crate::json::rows::SeriesRow;
use crate::json_input;
use crate::options::Limits;
use crate::options::ReadOptions;
use crate::report::Report;

#[derive(Deserialize)]
struct File<'a> {
    schema: String,
    #[serde(default)]
    mappings: Vec<MappingRow<'a>>,
    #[serde(default)]
    functions: Vec<FunctionRow<'a>>,
    #[serde(default)]
    locations: Vec<LocationRow<'a>>,
    #[serde(default)]
    stacks: Vec<Vec<u32>>,
    #[serde(default)]
    label_sets: Vec<Vec<LabelRow<'a>>>,
    #[serde(default)]
    links: Vec<LinkRow<'a>>,
    series: Vec<SeriesRow<'a>>,
}

/// Reads all of a profile. Labels of [`ReadOptions`] are added, as everywhere.
///
/// # Errors
/// When the input cannot be read, is no such JSON, exceeds a limit, or refers to what is not there.
pub fn read_json(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let mut report = Report::default();
    let bytes = json_input::read_json(input, &options.limits, &mut report)?;
    let file: File<'_> = serde_json::from_slice(&bytes)
        .map_err(|error| invalid(format!("the bytes are no profile: {error}")))?;
    if file.schema != SCHEMA {
        let found = options.limits.cut(&file.schema);
        return Err(invalid(format!(
            "the schema is {found:?}, this reads {SCHEMA:?}"
        )));
    }
    let mut reader = Reader {
        limits: &options.limits,
        profile: Profile::default(),
        report,
        samples: 0,
    };
    let tables = reader.tables(&file)?;
    for (position, row) in file.series.iter().enumerate() {
        let series = reader.series(&tables, row, options);
        let series = series.map_err(|problem| problem.of("series", position))?;
        reader.profile.series.push(series);
    }
    let validity = reader.profile.validate();
    validity.map_err(|error| invalid(error.to_string()))?;
    Ok((reader.profile, reader.report))
}

/// What the positions in the file's tables are here.
struct Tables {
    stacks: Vec<StackId>,
    label_sets: Vec<LabelSetId>,
    links: Vec<LinkId>,
}

struct Reader<'a> {
    limits: &'a Limits,
    profile: Profile,
    report: Report,
    samples: usize,
}

/// What is wrong with an entry.
enum Problem {
    Entry(String),
    Limit(ReadError),
}

impl Problem {
    fn of(self, table: &str, position: usize) -> ReadError {
        match self {
            Self::Entry(problem) => invalid(format!("{table}[{position}]: {problem}")),
            Self::Limit(error) => error,
        }
    }
}

impl Reader<'_> {
    fn tables(&mut self, file: &File<'_>) -> Result<Tables, ReadError> {
        let mappings: Vec<MappingId> = file.mappings.iter().map(|row| self.mapping(row)).collect();
        let functions = file.functions.iter();
        let functions: Vec<FunctionId> = functions.map(|row| self.function(row)).collect();
        let locations = each("locations", &file.locations, |row| {
            self.location(row, &mappings, &functions)
        })?;
        let stacks = each("stacks", &file.stacks, |row| self.stack(row, &locations))?;
        let label_sets = each("label_sets", &file.label_sets, |row| self.label_set(row))?;
        let links = each("links", &file.links, |row| {
            let link = Link {
                trace_id: id_bytes("trace_id", &row.trace_id)?,
                span_id: id_bytes("span_id", &row.span_id)?,
            };
            Ok(self.profile.intern_link(link))
        })?;
        Ok(Tables {
            stacks,
            label_sets,
            links,
        })
    }

    fn string(&mut self, text: &str) -> StringId {
        let kept = self.limits.cut(text);
        if kept.len() < text.len() {
            self.report
                .note("strings_cut", "strings were longer than the limit: cut");
        }
        self.profile.symbols.strings.intern(kept)
    }

    fn mapping(&mut self, row: &MappingRow<'_>) -> MappingId {
        let mapping = Mapping {
            memory_start: row.start.0,
            memory_limit: row.limit.0,
            file_offset: row.offset.0,
            file: self.string(&row.file),
            build_id: self.string(&row.build_id),
        };
        self.profile.symbols.intern_mapping(mapping)
    }

    fn function(&mut self, row: &FunctionRow<'_>) -> FunctionId {
        let function = candela_model::Function {
            name: self.string(&row.name),
            system_name: self.string(&row.system_name),
            file: self.string(&row.file),
            start_line: row.start_line,
        };
        self.profile.symbols.intern_function_ids(function)
    }

    fn location(
        &mut self,
        row: &LocationRow<'_>,
        mappings: &[MappingId],
        functions: &[FunctionId],
    ) -> Result<LocationId, Problem> {
        let mapping = entry("mapping", mappings, row.mapping)?;
        let lines = row.lines.iter().map(|line| {
            let function = functions.get(line.function as usize).copied();
            let function =
                function.ok_or_else(|| missing("function", line.function, functions.len()))?;
            Ok((function, line.line, line.column))
        });
        let lines: Vec<(FunctionId, u32, u32)> = lines.collect::<Result<_, Problem>>()?;
        let location = Location::new(FrameKind::from_name(&row.kind), row.address.0);
        let location = location.in_mapping(mapping);
        Ok(self.profile.symbols.intern_location(&location, &lines))
    }

    fn stack(&mut self, row: &[u32], locations: &[LocationId]) -> Result<StackId, Problem> {
        let cut = row.len().saturating_sub(self.limits.max_stack_depth);
        if cut > 0 {
            self.report.note(
                "stacks_cut",
                "stacks were deeper than the limit: cut at the leaf",
            );
        }
        let kept = row[cut..].iter().map(|&position| {
            let location = locations.get(position as usize).copied();
            location.ok_or_else(|| missing("location", position, locations.len()))
        });
        let stack: Vec<LocationId> = kept.collect::<Result<_, _>>()?;
        Ok(self.profile.stacks.intern(&stack))
    }

    fn label_set(&mut self, row: &[LabelRow<'_>]) -> Result<LabelSetId, Problem> {
        if row.len() > self.limits.max_labels_per_sample {
            return Err(Problem::Limit(ReadError::TooLarge {
                what: "the number of labels of a sample",
                limit: self.limits.max_labels_per_sample,
            }));
        }
        let labels = row.iter().map(|label| {
            let value = match (&label.text, label.number) {
                (Some(text), None) => LabelValue::Text(self.string(text)),
                (None, Some(value)) => LabelValue::Number {
                    value,
                    unit: self.string(&label.unit),
                },
                _ => {
                    let problem = format!("label {:?} needs a text or a number", label.key);
                    return Err(Problem::Entry(problem));
                }
            };
            let key = self.string(&label.key);
            Ok(SampleLabel { key, value })
        });
        let labels: Vec<SampleLabel> = labels.collect::<Result<_, _>>()?;
        Ok(self.profile.label_sets.intern(labels))
    }

    fn series(
        &mut self,
        tables: &Tables,
        row: &SeriesRow<'_>,
        options: &ReadOptions,
    ) -> Result<ProfileSeries, Problem> {
        let profile_type = row.profile_type.parse();
        let profile_type = profile_type
            .map_err(|error: candela_model::ProfileTypeError| Problem::Entry(error.to_string()))?;
        let labels = row.labels.iter();
        let labels = Labels::from_pairs(labels.map(|(name, value)| (&**name, &**value)));
        let mut series = ProfileSeries::new(options.series_labels(labels), profile_type);
        series.start_ns = match row.start_ns {
            0 => options.now_ns.max(0),
            start => start,
        };
        series.duration_ns = row.duration_ns;
        series.period = row.period;

        let columns = &row.samples;
        let count = columns.stack.len();
        self.samples = self.samples.saturating_add(count);
        if self.samples > self.limits.max_samples {
            return Err(Problem::Limit(ReadError::TooLarge {
                what: "the number of samples",
                limit: self.limits.max_samples,
            }));
        }
        let lengths = [
            ("value", columns.value.len(), false),
            ("label_set", columns.label_set.len(), true),
            ("link", columns.link.len(), true),
            ("time_ns", columns.time_ns.len(), true),
        ];
        for (name, length, may_be_missing) in lengths {
            if length != count && !(may_be_missing && length == 0) {
                return Err(Problem::Entry(format!(
                    "column {name} has {length} entries, stack has {count}"
                )));
            }
        }
        let or_zero = |column: &[u32], position| column.get(position).copied().unwrap_or(0);
        for (position, (&stack, &value)) in columns.stack.iter().zip(&columns.value).enumerate() {
            series.samples.push(Sample {
                stack: entry("stack", &tables.stacks, stack)?,
                value,
                label_set: entry(
                    "label set",
                    &tables.label_sets,
                    or_zero(&columns.label_set, position),
                )?,
                link: entry("link", &tables.links, or_zero(&columns.link, position))?,
                time_ns: columns.time_ns.get(position).copied().unwrap_or(0),
            });
        }
        Ok(series)
    }
}

fn each<R, T>(
    table: &str,
    rows: &[R],
    mut read: impl FnMut(&R) -> Result<T, Problem>,
) -> Result<Vec<T>, ReadError> {
    let rows = rows.iter().enumerate();
    rows.map(|(position, row)| read(row).map_err(|problem| problem.of(table, position)))
        .collect()
}

/// An entry of a table whose entry 0 is there even if the file leaves the table out.
fn entry<T: Copy + Default>(what: &str, table: &[T], position: u32) -> Result<T, Problem> {
    match table.get(position as usize) {
        Some(&id) => Ok(id),
        None if position == 0 => Ok(T::default()),
        None => Err(missing(what, position, table.len())),
    }
}

fn missing(what: &str, position: u32, count: usize) -> Problem {
    Problem::Entry(format!(
        "{what} {position} does not exist, the file has {count}"
    ))
}

/// The bytes of an id; of none zeros.
fn id_bytes<const N: usize>(name: &str, text: &str) -> Result<[u8; N], Problem> {
    let mut bytes = [0; N];
    if text.is_empty() {
        return Ok(bytes);
    }
    let is_hex = text.len() == 2 * N && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hex {
        let problem = format!("{name} is not {} hexadecimal digits", 2 * N);
        return Err(Problem::Entry(problem));
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16).unwrap_or(0) as u8;
        *byte = digit(digits[0]) << 4 | digit(digits[1]);
    }
    Ok(bytes)
}

fn invalid(problem: String) -> ReadError {
    ReadError::Invalid {
        format: NAME,
        problem,
    }
}

/// An object that names our schema; other tools may have sorted its keys.
pub(super) fn looks_like_json(bytes: &[u8]) -> bool {
    let text = bytes.trim_ascii_start();
    let quoted = concat!("\"", "candela/profile/v1", "\"").as_bytes();
    text.first() == Some(&b'{')
        && text
            .windows(quoted.len())
            .enumerate()
            .any(|(start, found)| {
                found == quoted && {
                    let before = text[..start].trim_ascii_end();
                    let key = before.strip_suffix(b":").map(<[u8]>::trim_ascii_end);
                    key.is_some_and(|key| key.ends_with(b"\"schema\""))
                }
            })
}
