//! An answer and the forms that it is sent in.

use std::sync::Arc;

use candela_formats::csv_field;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::datatypes::Field;
use datafusion::arrow::datatypes::Schema;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::arrow::json::StructMode;
use datafusion::arrow::json::WriterBuilder;
use datafusion::arrow::json::writer::JsonArray;
use serde_json::Value;
use serde_json::json;

use crate::error::SqlError;

/// The key in an Arrow schema of why an answer is only a part.
const PARTIAL_REASON: &str = "candela.partial_reason";

/// Rows under named columns.
#[derive(Clone, Debug)]
pub struct SqlAnswer {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    partial_reason: Option<String>,
}

impl SqlAnswer {
    /// Batches have the columns of the schema.
    pub(crate) fn new(
        schema: SchemaRef,
        batches: Vec<RecordBatch>,
        partial_reason: Option<String>,
    ) -> Self {
        Self {
            schema,
            batches,
            partial_reason,
        }
    }

    /// Names and Arrow types of the columns.
    pub fn columns(&self) -> impl Iterator<Item = (&str, String)> {
        let fields = self.schema.fields().iter();
        fields.map(|field| {
            (
                field.name().as_str(),
                plain_type(field.data_type()).to_string(),
            )
        })
    }

    /// The number of rows.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Why the answer leaves something out; `None` when it does not.
    #[must_use]
    pub fn partial_reason(&self) -> Option<&str> {
        self.partial_reason.as_deref()
    }

    /// A JSON object `candela/sql/v1`: `columns` with `name` and `type`, and `rows` as lists of
    /// values. Times are RFC 3339, bytes are hexadecimal.
    ///
    /// # Errors
    /// When a column is of a type that JSON cannot have.
    pub fn to_json(&self) -> Result<Vec<u8>, SqlError> {
        let columns = self.columns();
        let columns = columns.map(|(name, kind)| json!({"name": name, "type": kind}));
        let head = json!({
            "schema": "candela/sql/v1",
            "columns": columns.collect::<Vec<Value>>(),
            "partial": self.partial_reason.is_some(),
            "partial_reason": self.partial_reason,
        });
        let mut body = head.to_string().into_bytes();
        body.pop();
        body.extend_from_slice(b",\"rows\":");
        body.extend(rows_as_json(&self.batches)?);
        body.push(b'}');
        Ok(body)
    }

    /// RFC 4180 with line feeds: a line of names, then the rows. Null is an empty cell; lists and
    /// maps are JSON.
    ///
    /// # Errors
    /// As [`to_json`](Self::to_json).
    pub fn to_csv(&self) -> Result<Vec<u8>, SqlError> {
        let names = self.schema.fields().iter();
        let names = names.map(|field| csv_field(field.name()));
        let mut text = names.collect::<Vec<String>>().join(",");
        text.push('\n');
        for batch in &self.batches {
            let rows = rows_as_json(std::slice::from_ref(batch))?;
            let rows: Vec<Vec<Value>> =
                serde_json::from_slice(&rows).map_err(|error| SqlError::Bug(error.to_string()))?;
            for row in rows {
                let cells: Vec<String> = row.iter().map(csv_value).collect();
                text.push_str(&cells.join(","));
                text.push('\n');
            }
        }
        Ok(text.into_bytes())
    }

    /// An Arrow IPC stream. Texts are plain ones, which every reader knows. Why it leaves something
    /// out is in the schema's metadata, as `candela.partial_reason`.
    ///
    /// # Errors
    /// When a column cannot be written, which would be a bug.
    pub fn to_arrow_stream(&self) -> Result<Vec<u8>, SqlError> {
        self.write_stream()
            .map_err(|error| SqlError::Bug(error.to_string()))
    }

    fn write_stream(&self) -> Result<Vec<u8>, ArrowError> {
        let fields = self.schema.fields().iter().map(|field| {
            let kind = plain_type(field.data_type()).clone();
            Field::new(field.name(), kind, field.is_nullable())
        });
        let reason = self.partial_reason.iter();
        let metadata = reason.map(|reason| (PARTIAL_REASON.to_owned(), reason.clone()));
        let schema = Schema::new(fields.collect::<Vec<Field>>());
        let schema = Arc::new(schema.with_metadata(metadata.collect()));
        let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
        for batch in &self.batches {
            let columns = batch.columns().iter().zip(schema.fields());
            let columns = columns.map(|(column, field)| cast(column, field.data_type()));
            let columns: Result<Vec<_>, ArrowError> = columns.collect();
            writer.write(&RecordBatch::try_new(Arc::clone(&schema), columns?)?)?;
        }
        writer.into_inner()
    }
}

/// What readers of all ages know instead of a type that is only quicker.
fn plain_type(kind: &DataType) -> &DataType {
    match kind {
        DataType::Utf8View => &DataType::Utf8,
        DataType::BinaryView => &DataType::Binary,
        DataType::Dictionary(_, value) => plain_type(value),
        other => other,
    }
}

fn rows_as_json(batches: &[RecordBatch]) -> Result<Vec<u8>, SqlError> {
    let unwritable = |error: ArrowError| SqlError::Bad(format!("{error}; cast the column to text"));
    let mut writer = WriterBuilder::new()
        .with_struct_mode(StructMode::ListOnly)
        .with_explicit_nulls(true)
        .build::<_, JsonArray>(Vec::new());
    let batches: Vec<&RecordBatch> = batches.iter().collect();
    writer.write_batches(&batches).map_err(unwritable)?;
    writer.finish().map_err(unwritable)?;
    let rows = writer.into_inner();
    Ok(if rows.is_empty() {
        b"[]".to_vec()
    } else {
        rows
    })
}

fn csv_value(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => csv_field(text),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(_) | Value::Object(_) => csv_field(&value.to_string()),
    }
}
