//! Arrow arrays of the kinds that the tables have.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::DictionaryArray;
use arrow_array::FixedSizeBinaryArray;
use arrow_array::Int32Array;
use arrow_array::RecordBatch;
use arrow_array::StringArray;
use arrow_array::TimestampNanosecondArray;
use arrow_array::types::Int32Type;
use arrow_schema::ArrowError;
use arrow_schema::Field;
use arrow_schema::Schema;

use super::schema::Table;

/// Rows put together from the columns of a table, in the order of its schema.
pub(super) fn batch(
    table: Table,
    columns: Vec<(ArrayRef, bool)>,
) -> Result<RecordBatch, ArrowError> {
    let fields: Vec<Field> = table
        .columns()
        .iter()
        .zip(&columns)
        .map(|(column, (array, is_nullable))| {
            Field::new(column.name, array.data_type().clone(), *is_nullable)
        })
        .collect();
    let arrays = columns.into_iter().map(|(array, _)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

/// One text in every row.
pub(super) fn constant(text: &str, rows: usize) -> Result<ArrayRef, ArrowError> {
    repeated(vec![text], vec![0; rows])
}

/// For each row one of a few texts.
pub(super) fn repeated(texts: Vec<&str>, keys: Vec<i32>) -> Result<ArrayRef, ArrowError> {
    let values = Arc::new(StringArray::from(texts));
    let array = DictionaryArray::<Int32Type>::try_new(Int32Array::from(keys), values)?;
    Ok(Arc::new(array))
}

/// Times in UTC.
pub(super) fn times(values: TimestampNanosecondArray) -> ArrayRef {
    Arc::new(values.with_timezone("UTC"))
}

/// Fixed bytes, null where there are none.
pub(super) fn fixed_bytes<const N: usize>(
    values: impl Iterator<Item = Option<[u8; N]>>,
) -> Result<ArrayRef, ArrowError> {
    let width = i32::try_from(N).expect("trace and span ids");
    let array = FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, width)?;
    Ok(Arc::new(array))
}
