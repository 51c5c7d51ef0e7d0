//! The tables of a processed profile as they are written, column by column (version 70).

use serde::Serialize;

/// Indices that may be missing.
pub(crate) type Index = Option<u32>;

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Shared {
    pub(crate) stack_table: StackTable,
    pub(crate) frame_table: FrameTable,
    pub(crate) func_table: FuncTable,
    pub(crate) resource_table: ResourceTable,
    pub(crate) native_symbols: NativeSymbols,
    pub(crate) string_array: Vec<String>,
    pub(crate) sources: SourceTable,
    pub(crate) source_location_table: SourceLocationTable,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StackTable {
    pub(crate) frame: Vec<u32>,
    /// How far the parent is in front; 0 is a root.
    pub(crate) prefix_offset: Vec<u32>,
    pub(crate) length: usize,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FrameTable {
    /// Relative to the library; -1 when unknown.
    pub(crate) address: Vec<i64>,
    /// -1 when unknown.
    pub(crate) lib: Vec<i64>,
    pub(crate) inline_depth: Vec<u32>,
    pub(crate) category: Vec<u32>,
    pub(crate) subcategory: Vec<Index>,
    pub(crate) func: Vec<u32>,
    pub(crate) native_symbol: Vec<Index>,
    #[serde(rename = "innerWindowID")]
    pub(crate) inner_window_id: Vec<Index>,
    pub(crate) line: Vec<Index>,
    pub(crate) column: Vec<Index>,
    pub(crate) original_location: Vec<Index>,
    /// For our own reader: addresses that are others in the process, or too large for JavaScript.
    pub(crate) candela: Vec<Option<u64>>,
    pub(crate) length: usize,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FuncTable {
    pub(crate) name: Vec<u32>,
    #[serde(rename = "isJS")]
    pub(crate) is_js: Vec<bool>,
    #[serde(rename = "relevantForJS")]
    pub(crate) relevant_for_js: Vec<bool>,
    /// -1 when unknown.
    pub(crate) resource: Vec<i64>,
    pub(crate) source: Vec<Index>,
    pub(crate) line_number: Vec<Index>,
    pub(crate) column_number: Vec<Index>,
    pub(crate) original_location: Vec<Index>,
    pub(crate) length: usize,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourceTable {
    pub(crate) name: Vec<u32>,
    pub(crate) host: Vec<Index>,
    #[serde(rename = "type")]
    pub(crate) kind: Vec<u32>,
    pub(crate) length: usize,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NativeSymbols {
    pub(crate) lib_index: Vec<u32>,
    pub(crate) address: Vec<i64>,
    pub(crate) name: Vec<u32>,
    pub(crate) function_size: Vec<Index>,
    pub(crate) length: usize,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SourceTable {
    pub(crate) id: Vec<Index>,
    pub(crate) filename: Vec<u32>,
    pub(crate) start_line: Vec<u32>,
    pub(crate) start_column: Vec<u32>,
    #[serde(rename = "sourceMapURL")]
    pub(crate) source_map_url: Vec<Index>,
    pub(crate) content: Vec<Index>,
    pub(crate) length: usize,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SourceLocationTable {
    pub(crate) source: Vec<u32>,
    pub(crate) line: Vec<u32>,
    pub(crate) column: Vec<u32>,
    pub(crate) length: usize,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Samples {
    pub(crate) stack: Vec<Index>,
    /// Milliseconds since the start of the profile.
    pub(crate) time: Vec<f64>,
    pub(crate) weight: Vec<serde_json::Number>,
    pub(crate) weight_type: &'static str,
    pub(crate) event_delay: Vec<Index>,
    pub(crate) length: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Lib {
    pub(crate) arch: &'static str,
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) debug_name: String,
    pub(crate) debug_path: String,
    pub(crate) breakpad_id: String,
    pub(crate) code_id: Option<String>,
    /// Where the mapping was, for our own reader: first address, end and offset in the file.
    pub(crate) candela: [u64; 3],
}
