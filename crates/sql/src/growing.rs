//! Functions that make more than they are given, within the budget of the query.

use std::hash::Hash;
use std::hash::Hasher;
use std::sync::Arc;

use datafusion::arrow::array::Array;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::array::BooleanArray;
use datafusion::arrow::compute::is_null;
use datafusion::arrow::compute::kernels::length::length;
use datafusion::arrow::compute::nullif;
use datafusion::arrow::compute::or;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::datatypes::FieldRef;
use datafusion::arrow::datatypes::Int32Type;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::common::Result;
use datafusion::common::ScalarValue;
use datafusion::common::exec_err;
use datafusion::logical_expr::ColumnarValue;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::ReturnFieldArgs;
use datafusion::logical_expr::ScalarFunctionArgs;
use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::ScalarUDFImpl;
use datafusion::logical_expr::Signature;

use crate::made_texts::MadeTexts;

/// The longest that functions make of constants, bytes: as long as a query may be. Each row may get a
/// copy.
const CONSTANT_BYTES: usize = 16 << 10;

/// More than a number, a time or what a list needs for one of its elements, bytes.
const ELEMENT_BYTES: usize = 48;

/// More than one letter of a format of times becomes, bytes.
const FORMATTED_BYTES: usize = 32;

/// How much a function makes at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Growth {
    /// All arguments together.
    Sum,
    /// All arguments together, where any null makes null: the operator `||`.
    SumOrNull,
    /// All arguments but the first, and that between them.
    Separated,
    /// The elements of the first, and the others between them.
    Joined,
    /// The first, with the third for each that is the second.
    Replaced,
    /// The first, with the third, which may repeat parts of it, for each match of the second.
    PatternReplaced,
    /// A time by a format, the second.
    Formatted,
}

/// A function of DataFusion whose results are asked of the query's budget before they are made.
#[derive(Debug)]
pub(crate) struct Growing {
    function: Arc<ScalarUDF>,
    growth: Growth,
    made: Arc<MadeTexts>,
}

/// The bytes of the values of an argument.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    total: usize,
    longest: usize,
    shortest: usize,
    /// Elements of lists, or values.
    elements: usize,
}

impl Growing {
    pub(crate) fn new(function: Arc<ScalarUDF>, growth: Growth, made: Arc<MadeTexts>) -> Self {
        Self {
            function,
            growth,
            made,
        }
    }

    /// The same as an operator: any null makes null.
    pub(crate) fn or_null(&self) -> Self {
        Self {
            function: Arc::clone(&self.function),
            growth: Growth::SumOrNull,
            made: Arc::clone(&self.made),
        }
    }
}

impl Growth {
    fn most_bytes(self, arguments: &[Size], rows: usize) -> usize {
        let argument = |index: usize| arguments.get(index).copied().unwrap_or_default();
        let totals = arguments.iter().map(|size| size.total);
        let sum = totals.fold(0, usize::saturating_add);
        let overhead = rows.saturating_mul(ELEMENT_BYTES);
        let made = match self {
            Self::Sum | Self::SumOrNull => sum,
            Self::Separated => {
                let gaps = arguments.len().saturating_sub(2);
                sum.saturating_add(argument(0).total.saturating_mul(gaps))
            }
            Self::Joined => {
                let others = arguments.iter().skip(1).map(|size| size.longest);
                let between = others.fold(0, usize::saturating_add);
                let list = argument(0);
                let gaps = list.elements.saturating_mul(between);
                list.total.saturating_add(gaps)
            }
            Self::Replaced => {
                let (text, from, to) = (argument(0), argument(1), argument(2));
                let found = text.total / from.shortest.max(1);
                let found = found.saturating_add(rows);
                let longer = to.longest.saturating_sub(from.shortest);
                text.total.saturating_add(found.saturating_mul(longer))
            }
            // The parts that one match repeats are in it, so that each reference adds a text at most;
            // a reference has two letters.
            Self::PatternReplaced => {
                let (text, to) = (argument(0), argument(2));
                let found = text.total.saturating_add(rows);
                let longer = to.longest.saturating_mul(2);
                text.total.saturating_add(found.saturating_mul(longer))
            }
            Self::Formatted => {
                let row = argument(1).longest.saturating_mul(FORMATTED_BYTES);
                rows.saturating_mul(row)
            }
        };
        made.saturating_add(overhead)
    }
}

impl Size {
    fn of(value: &ColumnarValue, rows: usize) -> Result<Self> {
        let scalar = match value {
            ColumnarValue::Array(array) => return Self::of_array(array),
            ColumnarValue::Scalar(scalar) => scalar,
        };
        let one = Self::of_array(&scalar.to_array()?)?;
        Ok(Self {
            total: one.total.saturating_mul(rows),
            elements: one.elements.saturating_mul(rows),
            ..one
        })
    }

    fn of_array(array: &dyn Array) -> Result<Self> {
        match array.data_type() {
            DataType::Utf8 | DataType::Utf8View | DataType::Binary | DataType::BinaryView => {
                let lengths = length(array)?;
                let lengths = lengths.as_primitive::<Int32Type>().iter().flatten();
                Ok(Self::of_lengths(array, lengths.map(i64::from)))
            }
            DataType::LargeUtf8 | DataType::LargeBinary => {
                let lengths = length(array)?;
                let lengths = lengths.as_primitive::<Int64Type>().iter().flatten();
                Ok(Self::of_lengths(array, lengths))
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                let offsets = list.value_offsets();
                let (first, last) = (offsets.first(), offsets.last());
                let bounds = first.zip(last).map(|(&first, &last)| (first, last - first));
                let (first, count) = bounds.unwrap_or_default();
                let bounds = usize::try_from(first).ok().zip(usize::try_from(count).ok());
                let (first, count) = bounds.unwrap_or_default();
                let inner = Self::of_array(&list.values().slice(first, count))?;
                let places = ELEMENT_BYTES.saturating_mul(array.len());
                Ok(Self {
                    total: inner.total.saturating_add(places),
                    longest: inner.total,
                    shortest: 0,
                    elements: inner.elements.max(array.len()),
                })
            }
            DataType::Struct(_)
            | DataType::Map(..)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(..)
            | DataType::Dictionary(..) => {
                let bytes = array.get_array_memory_size();
                Ok(Self {
                    total: bytes,
                    longest: bytes,
                    shortest: 0,
                    elements: bytes,
                })
            }
            _ => Ok(Self {
                total: ELEMENT_BYTES.saturating_mul(array.len()),
                longest: ELEMENT_BYTES,
                shortest: 0,
                elements: array.len(),
            }),
        }
    }

    fn of_lengths(array: &dyn Array, lengths: impl Iterator<Item = i64>) -> Self {
        let empty = Self {
            shortest: usize::MAX,
            elements: array.len(),
            ..Self::default()
        };
        let size = lengths.fold(empty, |size, length| {
            let length = usize::try_from(length).unwrap_or_default();
            Self {
                total: size.total.saturating_add(length),
                longest: size.longest.max(length),
                shortest: size.shortest.min(length),
                elements: size.elements,
            }
        });
        Self {
            shortest: size.shortest.min(size.longest),
            ..size
        }
    }
}

impl ScalarUDFImpl for Growing {
    fn name(&self) -> &str {
        match self.growth {
            Growth::SumOrNull => "||",
            _ => self.function.name(),
        }
    }

    fn aliases(&self) -> &[String] {
        self.function.aliases()
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        let names = arguments
            .iter()
            .map(|argument| argument.schema_name().to_string());
        let names: Vec<String> = names.collect();
        Ok(match self.growth {
            Growth::SumOrNull => names.join(" || "),
            _ => format!("{}({})", self.name(), names.join(",")),
        })
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.function.return_type(arguments)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = self.function.return_field_from_args(arguments)?;
        Ok(match self.growth {
            Growth::SumOrNull => Arc::new(field.as_ref().clone().with_nullable(true)),
            _ => field,
        })
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.function.coerce_types(arguments)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut values = arguments.args.iter();
        let is_constant = values.all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if is_constant {
            1
        } else {
            arguments.number_rows
        };
        let sizes = arguments.args.iter().map(|value| Size::of(value, rows));
        let sizes: Vec<Size> = sizes.collect::<Result<_>>()?;
        let bytes = self.growth.most_bytes(&sizes, rows);
        let name = self.name();
        if is_constant && bytes > CONSTANT_BYTES {
            return exec_err!(
                "{name} would make up to {bytes} bytes of constants, more than {CONSTANT_BYTES}"
            );
        }
        let memory = self.made.reserve(name, bytes)?;
        let nulls = match self.growth {
            Growth::SumOrNull => Some(nulls(&arguments.args, rows)?),
            _ => None,
        };
        let made = self.function.invoke_with_args(arguments)?;
        let made = match nulls {
            Some(nulls) => with_nulls(made, &nulls)?,
            None => made,
        };
        if let ColumnarValue::Array(array) = &made {
            self.made.hold(array, memory);
        }
        Ok(made)
    }
}

/// Where any of the arguments is null.
fn nulls(arguments: &[ColumnarValue], rows: usize) -> Result<BooleanArray> {
    let mut nulls = BooleanArray::from(vec![false; rows]);
    for argument in arguments {
        nulls = match argument {
            ColumnarValue::Array(array) => or(&nulls, &is_null(array)?)?,
            ColumnarValue::Scalar(scalar) if scalar.is_null() => {
                BooleanArray::from(vec![true; rows])
            }
            ColumnarValue::Scalar(_) => nulls,
        };
    }
    Ok(nulls)
}

fn with_nulls(made: ColumnarValue, nulls: &BooleanArray) -> Result<ColumnarValue> {
    Ok(match made {
        ColumnarValue::Array(array) => ColumnarValue::Array(nullif(&array, nulls)?),
        ColumnarValue::Scalar(scalar) if nulls.true_count() > 0 => {
            ColumnarValue::Scalar(ScalarValue::try_from(&scalar.data_type())?)
        }
        made @ ColumnarValue::Scalar(_) => made,
    })
}

// The budget is the same for all functions of a query, within which expressions are compared.

impl PartialEq for Growing {
    fn eq(&self, other: &Self) -> bool {
        self.function == other.function && self.growth == other.growth
    }
}

impl Eq for Growing {}

impl Hash for Growing {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.hash(state);
        self.growth.hash(state);
    }
}
