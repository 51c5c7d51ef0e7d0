//! `GET /api/v1/disassembly` and `POST /api/v1/files/disassembly`: the instructions of a function, where its binary is on this host or was
//! sent as a symbol file.
//!
//! Blocks keep one address for each line and column of a function, not one for each sample. So values
//! are those of positions in the source, and each instruction says which position it stands for.

use std::collections::BTreeMap;

use candela_model::CodeValue;
use candela_model::SourcePlace;
use candela_model::SourceQuestion;
use candela_symbols::DisassembledFunction;
use candela_symbols::DisassembledInstruction;
use candela_symbols::MappedRange;
use candela_symbols::Symbolizer;
use candela_symbols::disassemble;
use serde_json::Value;
use serde_json::json;

use crate::api::asked::Asked;
use crate::api::code::AskedCode;
use crate::api::code::availability;
use crate::api::code::question_of;
use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::binaries::find_binary;
use crate::reply::Reply;
use crate::turns::Lane;

/// The positions of one build of a function, with how many instructions stand for each.
struct Positions<'a> {
    function: Option<&'a str>,
    file: &'a str,
    /// By line and column.
    numbers: BTreeMap<(u32, u32), usize>,
    rows: Vec<Position>,
}

struct Position {
    line: u32,
    column: u32,
    value: CodeValue,
    instructions: usize,
}

pub(crate) async fn disassembly(asked: Asked) -> Result<Reply, ApiError> {
    let question = question_of(&asked)?;
    let build_id = asked.parameters.one("build_id").map(str::to_owned);
    let app = SharedApp::clone(&asked.app);
    let is_of_files = asked.is_of_files;
    asked
        .answer(Lane::Queries, move |engine, query| {
            let code = AskedCode::load(engine, query, &question)?;
            let mut value = code.head(query);
            value["binary"] = json!(code.place().map(|place| &place.binary));
            value["file"] = json!(code.place().map(|place| &place.file));
            value["build_id"] = Value::Null;
            value["code"] = Value::Null;
            value["positions"] = json!([]);
            value["functions"] = json!([]);
            if is_of_files {
                value["code"] = availability(
                    "not_stored",
                    "programs on the server are read for stored profiles only",
                    "store the profile (Store…, or candela push), or use candela open on the host that has the program",
                );
            } else if let Some(place) = code.place() {
                let build_id = build_id.or_else(|| place.build_ids.first().cloned());
                value["build_id"] = json!(build_id);
                let found = find_binary(
                    app.symbolization.as_ref(),
                    &place.binary,
                    build_id.as_deref(),
                );
                let strings = &code.answer.value.symbols.strings;
                match found {
                    Err(missing) => {
                        value["code"] = availability(missing.state, &missing.message, missing.hint);
                    }
                    Ok(symbolizer) => {
                        let addresses = linked_addresses(place, &symbolizer, |id| {
                            Some(strings.get(id)) == build_id.as_deref()
                        });
                        add_code(&mut value, &symbolizer, addresses, || {
                            Positions::of(&question, place, build_id.as_deref())
                        });
                    }
                }
            }
            let partial = code.answer.partial.as_deref();
            Ok(Reply::json("disassembly", value).partial(partial))
        })
        .await
}

/// The addresses of a build as linked, the heaviest first.
fn linked_addresses(
    place: &SourcePlace,
    symbolizer: &Symbolizer,
    is_of_build: impl Fn(candela_model::StringId) -> bool,
) -> Vec<u64> {
    let of_build = place.addresses.iter();
    let mut of_build: Vec<_> = of_build
        .filter(|at| is_of_build(at.mapping.build_id))
        .collect();
    of_build.sort_by_key(|at| std::cmp::Reverse(at.value.total));
    let linked = of_build.into_iter().filter_map(|at| {
        let range = MappedRange {
            start: at.mapping.memory_start,
            limit: at.mapping.memory_limit,
            file_offset: at.mapping.file_offset,
        };
        symbolizer.object().linked_address(at.address, range)
    });
    linked.collect()
}

fn add_code<'a>(
    value: &mut Value,
    symbolizer: &Symbolizer,
    addresses: Vec<u64>,
    positions: impl FnOnce() -> Positions<'a>,
) {
    let functions = match disassemble(symbolizer, addresses) {
        Ok(functions) => functions,
        Err(error) => {
            let hint = "what has the code is the program as it ran, not its debug file alone";
            value["code"] = availability("no_code", &error.to_string(), hint);
            return;
        }
    };
    let mut positions = positions();
    let functions: Vec<Value> = functions
        .iter()
        .map(|function| positions.function_json(function))
        .collect();
    value["functions"] = functions.into();
    value["positions"] = positions.json();
    value["code"] = availability("found", "", "");
}

impl<'a> Positions<'a> {
    fn of(question: &'a SourceQuestion, place: &'a SourcePlace, build_id: Option<&str>) -> Self {
        let mut positions = Self {
            function: question.function.as_deref(),
            file: &place.file,
            numbers: BTreeMap::new(),
            rows: Vec::new(),
        };
        let of_build = place.positions.iter();
        for at in of_build.filter(|at| Some(at.build_id.as_str()) == build_id) {
            let number = positions.number(at.line, at.column);
            positions.rows[number].value = at.value;
        }
        positions
    }

    fn number(&mut self, line: u32, column: u32) -> usize {
        let next = self.rows.len();
        let number = *self.numbers.entry((line, column)).or_insert(next);
        if number == next {
            self.rows.push(Position {
                line,
                column,
                value: CodeValue::default(),
                instructions: 0,
            });
        }
        number
    }

    /// The position of the code in question that an instruction stands for, and whether nothing is
    /// inlined into it there.
    fn of_instruction(&mut self, instruction: &DisassembledInstruction) -> Option<(usize, bool)> {
        let mut frames = instruction.frames.iter().enumerate();
        // Other profilers name files in their own way, so the name of the function is enough.
        let (depth, frame) = frames.find(|(_, frame)| match self.function {
            Some(name) => *name == *frame.function,
            None => frame.file.as_deref().unwrap_or("") == self.file,
        })?;
        // Profiles that keep no columns have values of whole lines.
        let key = [(frame.line, frame.column), (frame.line, 0)];
        let known = key.into_iter().find_map(|key| self.numbers.get(&key));
        let number = match known {
            Some(&known) => known,
            None => self.number(frame.line, frame.column),
        };
        Some((number, depth == 0))
    }

    fn function_json(&mut self, found: &DisassembledFunction) -> Value {
        let mut instructions = Vec::with_capacity(found.instructions.len());
        for instruction in &found.instructions {
            let position = self.of_instruction(instruction);
            if let Some((number, _)) = position {
                self.rows[number].instructions += 1;
            }
            let innermost = instruction.frames.first();
            let inlined = innermost.filter(|_| position.is_none_or(|(_, is_own)| !is_own));
            instructions.push(json!({
                "address": format!("{:#x}", instruction.address),
                "bytes": hex(&instruction.bytes),
                "text": instruction.text,
                "target": instruction.target,
                "position": position.map(|(number, _)| number),
                "other": inlined.map(|frame| json!({
                    "function": *frame.function,
                    "file": frame.file.as_deref().unwrap_or(""),
                    "line": frame.line,
                })),
            }));
        }
        let addresses = &found.function.addresses;
        json!({
            "name": found.function.name,
            "address": format!("{:#x}", addresses.start),
            "size": addresses.end - addresses.start,
            "is_cut": found.is_cut,
            "instructions": instructions,
        })
    }

    fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            json!({
                "line": row.line,
                "column": row.column,
                "self": row.value.self_value,
                "total": row.value.total,
                "instructions": row.instructions,
            })
        });
        rows.collect::<Vec<Value>>().into()
    }
}

fn hex(bytes: &[u8]) -> String {
    let bytes = bytes.iter().map(|byte| format!("{byte:02x}"));
    bytes.collect::<Vec<String>>().join(" ")
}
