//! `format=columns`: a flame tree as packed little-endian columns, which a page views as typed
//! arrays without parsing anything per node. The layout is described in `docs/api.md`.

use std::io;
use std::io::Write;

use candela_model::FlameTree;
use candela_model::FrameId;
use candela_model::FrameKind;
use candela_model::FrameTable;
use candela_model::StringId;
use serde_json::Value;
use serde_json::json;

/// The first bytes of the format.
const MAGIC: &[u8; 4] = b"CFG1";

/// Columns start at multiples of this, so that arrays of 8-byte numbers can view them in place.
const ALIGNMENT: usize = 8;

/// Writes magic, header and columns of a tree, and further columns by their names. `header` is a JSON object; what
/// describes the columns is added to it.
///
/// # Errors
/// When the sink fails.
pub fn write_columns<'a>(
    tree: &FlameTree,
    mut header: Value,
    further: impl IntoIterator<Item = (&'a str, Vec<i64>)>,
    mut output: impl Write,
) -> io::Result<()> {
    let frames = UsedFrames::of(tree);
    let mut columns = ColumnWriter::default();
    columns.u32(
        "frame",
        tree.frame.iter().map(|frame| frames.index_of(*frame)),
    );
    columns.u16("depth", tree.depth.iter().copied());
    columns.u32("subtree_end", tree.subtree_end.iter().copied());
    columns.f64("total", tree.total.iter().map(|value| *value as f64));
    columns.f64("self", tree.self_value.iter().map(|value| *value as f64));
    for (name, values) in further {
        columns.f64(name, values.into_iter().map(|value| value as f64));
    }
    frames.write(&tree.frames, &mut columns);

    header["nodes"] = json!(tree.len());
    header["frames"] = json!(frames.used.len());
    header["pruned"] = json!(tree.pruned_nodes);
    header["kinds"] = json!(FrameKind::ALL.map(FrameKind::as_str));
    header["columns"] = Value::Array(columns.directory);
    let header = header.to_string();

    let header_length = u32::try_from(header.len()).expect("a header is a few hundred bytes");
    let mut head = MAGIC.to_vec();
    head.extend_from_slice(&header_length.to_le_bytes());
    head.extend_from_slice(header.as_bytes());
    head.resize(head.len().next_multiple_of(ALIGNMENT), 0);
    output.write_all(&head)?;
    output.write_all(&columns.data)
}

/// Frames that nodes refer to. A pruned tree keeps the frame table of the whole tree, most of
/// which nobody would look at.
struct UsedFrames {
    used: Vec<FrameId>,
    new_index: Vec<u32>,
}

const UNUSED: u32 = u32::MAX;

impl UsedFrames {
    fn of(tree: &FlameTree) -> Self {
        let mut frames = Self {
            used: Vec::new(),
            new_index: vec![UNUSED; tree.frames.frames().len()],
        };
        frames.use_frame(FrameTable::ROOT);
        for frame in &tree.frame {
            frames.use_frame(*frame);
        }
        frames
    }

    fn use_frame(&mut self, frame: FrameId) {
        let slot = &mut self.new_index[frame.index()];
        if *slot == UNUSED {
            *slot = self.used.len() as u32;
            self.used.push(frame);
        }
    }

    fn index_of(&self, frame: FrameId) -> u32 {
        self.new_index[frame.index()]
    }

    fn write(&self, table: &FrameTable, columns: &mut ColumnWriter) {
        let frames = || self.used.iter().map(|frame| table.get(*frame));
        let mut strings = UsedStrings::new(table);
        let names: Vec<u32> = frames().map(|frame| strings.index_of(frame.name)).collect();
        let files: Vec<u32> = frames().map(|frame| strings.index_of(frame.file)).collect();
        let mappings: Vec<u32> = frames()
            .map(|frame| strings.index_of(frame.mapping))
            .collect();
        columns.u32("frame_name", names);
        columns.u32("frame_file", files);
        columns.u32("frame_mapping", mappings);
        columns.u8("frame_kind", frames().map(|frame| frame.kind as u8));
        columns.u32("frame_line", frames().map(|frame| frame.start_line));
        columns.u32("string_offsets", strings.offsets);
        columns.u8("string_bytes", strings.bytes);
    }
}

/// Strings in the order of their first use; string 0 is empty.
struct UsedStrings<'a> {
    table: &'a FrameTable,
    new_index: Vec<u32>,
    offsets: Vec<u32>,
    bytes: Vec<u8>,
}

impl<'a> UsedStrings<'a> {
    fn new(table: &'a FrameTable) -> Self {
        Self {
            table,
            new_index: vec![UNUSED; table.strings.len()],
            offsets: vec![0, 0],
            bytes: Vec::new(),
        }
    }

    fn index_of(&mut self, id: StringId) -> u32 {
        let text = self.table.strings.get(id);
        if text.is_empty() {
            return 0;
        }
        let slot = &mut self.new_index[id.index()];
        if *slot == UNUSED {
            *slot = (self.offsets.len() - 1) as u32;
            self.bytes.extend_from_slice(text.as_bytes());
            self.offsets.push(self.bytes.len() as u32);
        }
        *slot
    }
}

/// The data area and the directory of its columns.
#[derive(Default)]
struct ColumnWriter {
    directory: Vec<Value>,
    data: Vec<u8>,
}

impl ColumnWriter {
    fn u8(&mut self, name: &str, values: impl IntoIterator<Item = u8>) {
        self.column(name, "u8", values, |value| [value]);
    }

    fn u16(&mut self, name: &str, values: impl IntoIterator<Item = u16>) {
        self.column(name, "u16", values, u16::to_le_bytes);
    }

    fn u32(&mut self, name: &str, values: impl IntoIterator<Item = u32>) {
        self.column(name, "u32", values, u32::to_le_bytes);
    }

    fn f64(&mut self, name: &str, values: impl IntoIterator<Item = f64>) {
        self.column(name, "f64", values, f64::to_le_bytes);
    }

    fn column<T, const N: usize>(
        &mut self,
        name: &str,
        kind: &str,
        values: impl IntoIterator<Item = T>,
        to_bytes: impl Fn(T) -> [u8; N],
    ) {
        let offset = self.data.len().next_multiple_of(ALIGNMENT);
        self.data.resize(offset, 0);
        self.data.extend(values.into_iter().flat_map(to_bytes));
        let length = (self.data.len() - offset) / N;
        let entry = json!({"name": name, "type": kind, "offset": offset, "length": length});
        self.directory.push(entry);
    }
}
