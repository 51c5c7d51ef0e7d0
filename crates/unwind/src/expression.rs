//! The DWARF expressions that compilers and assembly authors really use, recognised by shape.

use crate::registers::dwarf;
use gimli::{EndianSlice, Expression, LittleEndian, Operation};

pub(crate) type Slice<'data> = EndianSlice<'data, LittleEndian>;

/// No known shape is longer: the PLT expression has nine operations.
const MAX_OPERATIONS: usize = 9;

/// A recognised expression; offsets are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// register + offset
    Register { register: u8, offset: i64 },
    /// *(register + offset) + addend
    Deref {
        register: u8,
        offset: i64,
        addend: i64,
    },
    /// rsp + 8 + ((rip & 15) >= threshold) << 3
    Plt { threshold: u8 },
}

impl Shape {
    /// The shape of `expression`, or `None` if it is not a known one.
    pub(crate) fn of(
        expression: Expression<Slice<'_>>,
        encoding: gimli::Encoding,
    ) -> Option<Shape> {
        let mut operations = [const { Step::Other }; MAX_OPERATIONS];
        let mut count = 0;
        let mut iterator = expression.operations(encoding);
        while let Some(operation) = iterator.next().ok()? {
            *operations.get_mut(count)? = Step::of(&operation);
            count += 1;
        }
        match operations[..count] {
            [Step::Register(register, offset)] => Some(Shape::Register { register, offset }),
            [Step::Register(register, offset), Step::Deref] => Some(Shape::Deref {
                register,
                offset,
                addend: 0,
            }),
            [
                Step::Register(register, offset),
                Step::Deref,
                Step::PlusConstant(addend),
            ]
            | [
                Step::Register(register, offset),
                Step::Deref,
                Step::Constant(addend),
                Step::Plus,
            ] => Some(Shape::Deref {
                register,
                offset,
                addend,
            }),
            // The linkers' .plt expression; see "elf_x86_64_eh_frame_plt" in any binutils.
            [
                Step::Register(dwarf::RSP, 8),
                Step::Register(dwarf::RETURN_ADDRESS, 0),
                Step::Constant(15),
                Step::And,
                Step::Constant(threshold @ 0..=15),
                Step::GreaterOrEqual,
                Step::Constant(3),
                Step::ShiftLeft,
                Step::Plus,
            ] => Some(Shape::Plt {
                threshold: threshold as u8,
            }),
            _ => None,
        }
    }
}

/// An operation, reduced to what the shapes need.
#[derive(Clone, Copy, Debug)]
enum Step {
    Register(u8, i64),
    Constant(i64),
    PlusConstant(i64),
    Deref,
    Plus,
    And,
    GreaterOrEqual,
    ShiftLeft,
    Other,
}

impl Step {
    fn of(operation: &Operation<Slice<'_>>) -> Step {
        match *operation {
            Operation::RegisterOffset {
                register, offset, ..
            } if register.0 <= 16 => Step::Register(register.0 as u8, offset),
            Operation::UnsignedConstant { value } => match i64::try_from(value) {
                Ok(value) => Step::Constant(value),
                Err(_) => Step::Other,
            },
            Operation::SignedConstant { value } => Step::Constant(value),
            Operation::PlusConstant { value } => match i64::try_from(value) {
                Ok(value) => Step::PlusConstant(value),
                Err(_) => Step::Other,
            },
            Operation::Deref {
                size: 8,
                space: false,
                ..
            } => Step::Deref,
            Operation::Plus => Step::Plus,
            Operation::And => Step::And,
            Operation::Ge => Step::GreaterOrEqual,
            Operation::Shl => Step::ShiftLeft,
            _ => Step::Other,
        }
    }
}
