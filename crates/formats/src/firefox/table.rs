//! Tables of Firefox profiles: arrays by column in processed files, rows with a schema in raw ones.

use serde_json::Value;

/// A table in either form; one that is not there is empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table<'a> {
    value: &'a Value,
    rows: Option<&'a [Value]>,
}

/// A column of a table; what it lacks is null.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Column<'a> {
    Missing,
    Whole(&'a [Value]),
    InRows(&'a [Value], usize),
}

static NULL: Value = Value::Null;

impl<'a> Table<'a> {
    pub(crate) fn new(value: &'a Value) -> Self {
        let data = value.get("schema").and_then(|_| value.get("data"));
        Self {
            value,
            rows: data.and_then(Value::as_array).map(Vec::as_slice),
        }
    }

    pub(crate) fn column(&self, name: &str) -> Column<'a> {
        let Some(rows) = self.rows else {
            let column = self.value.get(name).and_then(Value::as_array);
            return column.map_or(Column::Missing, |column| Column::Whole(column));
        };
        let place = self.value["schema"].get(name).and_then(Value::as_u64);
        let place = place.and_then(|place| usize::try_from(place).ok());
        place.map_or(Column::Missing, |place| Column::InRows(rows, place))
    }

    /// What is not a column: `weightType`.
    pub(crate) fn word(&self, name: &str) -> Option<&'a str> {
        self.value.get(name)?.as_str()
    }
}

impl<'a> Column<'a> {
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Missing => 0,
            Self::Whole(values) | Self::InRows(values, _) => values.len(),
        }
    }

    pub(crate) fn get(self, row: usize) -> &'a Value {
        let value = match self {
            Self::Missing => None,
            Self::Whole(values) => values.get(row),
            Self::InRows(rows, place) => rows.get(row).and_then(|row| row.get(place)),
        };
        value.unwrap_or(&NULL)
    }

    pub(crate) fn number(self, row: usize) -> Option<f64> {
        self.get(row).as_f64()
    }

    /// A position in another table; -1 and null are none.
    pub(crate) fn index(self, row: usize) -> Option<u32> {
        u32::try_from(self.get(row).as_i64()?).ok()
    }

    /// A line or column, 0 when unknown.
    pub(crate) fn line(self, row: usize) -> u32 {
        // As a cast saturates, what is negative is 0.
        self.number(row).unwrap_or(0.0) as u32
    }
}

/// A member that is a text; empty when it is not there.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or("")
}

/// A member that is a list; empty when it is not there.
pub(crate) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    let list = value.get(name).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_forms_are_the_same_table() {
        let columns =
            json!({"length": 2, "stack": [null, 3], "time": [0.5, 2], "weightType": "bytes"});
        let rows = json!({"data": [[0.5], [2, 3]], "schema": {"time": 0, "stack": 1}});
        for value in [&columns, &rows] {
            let table = Table::new(value);
            let (stack, time) = (table.column("stack"), table.column("time"));
            assert_eq!(time.len(), 2);
            assert_eq!(
                [stack.index(0), stack.index(1), stack.index(2)],
                [None, Some(3), None]
            );
            assert_eq!([time.number(0), time.number(1)], [Some(0.5), Some(2.0)]);
            assert_eq!(table.column("rss").len(), 0);
        }
        assert_eq!(Table::new(&columns).word("weightType"), Some("bytes"));
    }
}
