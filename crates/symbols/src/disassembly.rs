//! The machine code of functions as text, each instruction with the source that it stands for.

use std::ops::Range;
use std::sync::Arc;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Formatter, Instruction, IntelFormatter};
use object::{Architecture, Object};

use crate::frame::SourceFrame;
use crate::object_file::ObjectFile;
use crate::symbolizer::Symbolizer;

/// The most code that is looked at, of all functions together, bytes. Each instruction is named by
/// itself, which takes microseconds.
const MOST_BYTES: u64 = 32 << 10;
/// The most functions: one that is inlined everywhere is in many.
const MOST_FUNCTIONS: usize = 8;

/// A function of an object, by its symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionRange {
    /// The readable name.
    pub name: String,
    /// Addresses as linked.
    pub addresses: Range<u64>,
}

/// The instructions of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisassembledFunction {
    /// Its symbol.
    pub function: FunctionRange,
    /// As far as its code was looked at.
    pub instructions: Vec<DisassembledInstruction>,
    /// Whether the function is longer.
    pub is_cut: bool,
}

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisassembledInstruction {
    /// Address as linked.
    pub address: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// In Intel's syntax; `(bad)` where the bytes are no instruction.
    pub text: String,
    /// Where a call or a jump out of the function leads, by symbol.
    pub target: Option<String>,
    /// What it stands for, innermost first; empty when unknown.
    pub frames: Arc<[SourceFrame]>,
}

/// Why there is no code to be shown.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DisassemblyError {
    /// Another processor.
    #[error("{path} is code of another processor than x86")]
    OtherProcessor {
        /// The object file.
        path: String,
    },
    /// A debug file, from which the code was taken out.
    #[error("{path} has symbols and no code")]
    NoCode {
        /// The object file.
        path: String,
    },
    /// None of the addresses is in a function.
    #[error("no symbol of {path} covers the addresses of the profile")]
    NoFunction {
        /// The object file.
        path: String,
    },
}

/// The functions at these addresses (as linked). The first addresses count most: what is too much is
/// left out behind them.
///
/// # Errors
/// As [`DisassemblyError`] says.
pub fn disassemble(
    symbolizer: &Symbolizer,
    addresses: impl IntoIterator<Item = u64>,
) -> Result<Vec<DisassembledFunction>, DisassemblyError> {
    let object = symbolizer.object();
    let path = || object.path().display().to_string();
    let Some(bitness) = bitness_of(object) else {
        return Err(DisassemblyError::OtherProcessor { path: path() });
    };
    if !object.has_code() {
        return Err(DisassemblyError::NoCode { path: path() });
    }
    let mut functions: Vec<DisassembledFunction> = Vec::new();
    let mut budget = MOST_BYTES;
    for address in addresses {
        let is_known = |known: &DisassembledFunction| known.function.addresses.contains(&address);
        if functions.len() == MOST_FUNCTIONS || functions.iter().any(is_known) {
            continue;
        }
        let Some(function) = symbolizer.function_range(address) else {
            continue;
        };
        let Some(code) = code_of(object, &function.addresses, budget) else {
            continue;
        };
        budget -= code.len() as u64;
        functions.push(disassemble_function(symbolizer, bitness, function, code));
    }
    if functions.is_empty() {
        return Err(DisassemblyError::NoFunction { path: path() });
    }
    functions.sort_by_key(|found| found.function.addresses.start);
    Ok(functions)
}

fn bitness_of(object: &ObjectFile) -> Option<u32> {
    match object.elf()?.architecture() {
        Architecture::X86_64 => Some(64),
        Architecture::I386 => Some(32),
        _ => None,
    }
}

/// The bytes of a function, `most` of them; `None` where the file does not have them.
fn code_of<'a>(object: &'a ObjectFile, addresses: &Range<u64>, most: u64) -> Option<&'a [u8]> {
    let length = addresses.end.checked_sub(addresses.start)?.min(most);
    let start = object.file_offset(addresses.start)?;
    // The last byte is asked for by its address, too: a segment may end in between.
    let last = object.file_offset(addresses.start + length.saturating_sub(1))?;
    let start = usize::try_from(start).ok()?;
    let end = usize::try_from(last).ok()?.checked_add(1)?;
    let code = object.data().get(start..end)?;
    Some(if length == 0 { &[] } else { code })
}

fn disassemble_function(
    symbolizer: &Symbolizer,
    bitness: u32,
    function: FunctionRange,
    code: &[u8],
) -> DisassembledFunction {
    let start = function.addresses.start;
    let mut decoder = Decoder::with_ip(bitness, code, start, DecoderOptions::NONE);
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_space_after_operand_separator(true);
    options.set_branch_leading_zeros(false);
    options.set_show_branch_size(false);
    let mut instructions = Vec::new();
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let address = instruction.ip();
        let first = (address - start) as usize;
        let bytes = &code[first..first + instruction.len()];
        let mut text = String::new();
        if instruction.is_invalid() {
            text.push_str("(bad)");
        } else {
            formatter.format(&instruction, &mut text);
        }
        instructions.push(DisassembledInstruction {
            address,
            bytes: bytes.to_vec(),
            text,
            target: target_of(symbolizer, &function, &instruction),
            frames: symbolizer.resolve(address).frames,
        });
    }
    DisassembledFunction {
        is_cut: start + (code.len() as u64) < function.addresses.end,
        function,
        instructions,
    }
}

fn target_of(
    symbolizer: &Symbolizer,
    from: &FunctionRange,
    instruction: &Instruction,
) -> Option<String> {
    let is_branch = matches!(
        instruction.flow_control(),
        FlowControl::Call | FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
    );
    let target = instruction.near_branch_target();
    if !is_branch || target == 0 || from.addresses.contains(&target) {
        return None;
    }
    let function = symbolizer.function_range(target)?;
    let offset = target - function.addresses.start;
    Some(match offset {
        0 => function.name,
        _ => format!("{}+{offset:#x}", function.name),
    })
}
