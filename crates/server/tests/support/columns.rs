//! A second, independent reader of `format=columns`, written from `docs/api.md` alone.

use serde_json::Value;
use serde_json::json;

/// The header, and the nodes nested as `format=json` nests them.
pub(crate) fn decode(bytes: &[u8]) -> (Value, Value) {
    assert_eq!(&bytes[..4], b"CFG1");
    let length = u32::from_le_bytes(bytes[4..8].try_into().expect("4 bytes")) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + length]).expect("JSON");
    let data_start = (8 + length).div_ceil(8) * 8;
    assert!(bytes[8 + length..data_start].iter().all(|byte| *byte == 0));
    let file = File {
        header: &header,
        data: &bytes[data_start..],
    };
    let nodes = file.column("frame").len();
    assert_eq!(header["nodes"], nodes);
    assert_eq!(header["frames"], file.column("frame_name").len());
    let tree = file.node(0);
    assert_eq!(file.column("subtree_end")[0] as usize, nodes);
    (header.clone(), tree)
}

struct File<'a> {
    header: &'a Value,
    data: &'a [u8],
}

impl File<'_> {
    fn column(&self, name: &str) -> Vec<f64> {
        let columns = self.header["columns"].as_array().expect("an array");
        let entry = columns
            .iter()
            .find(|entry| entry["name"] == name)
            .expect(name);
        let offset = entry["offset"].as_u64().expect("a number") as usize;
        assert_eq!(offset % 8, 0, "{name}");
        let length = entry["length"].as_u64().expect("a number") as usize;
        let width = match entry["type"].as_str().expect("a string") {
            "u8" => 1,
            "u16" => 2,
            "u32" => 4,
            "f64" => 8,
            other => panic!("type {other}"),
        };
        let bytes = &self.data[offset..offset + length * width];
        bytes.chunks(width).map(number).collect()
    }

    fn string(&self, index: f64) -> String {
        let offsets = self.column("string_offsets");
        let (start, end) = (
            offsets[index as usize] as usize,
            offsets[index as usize + 1] as usize,
        );
        let bytes: Vec<u8> = self.column("string_bytes")[start..end]
            .iter()
            .map(|byte| *byte as u8)
            .collect();
        String::from_utf8(bytes).expect("UTF-8")
    }

    fn node(&self, index: usize) -> Value {
        let frame = self.column("frame")[index] as usize;
        let text = |column: &str| self.string(self.column(column)[frame]);
        let kind = self.column("frame_kind")[frame] as usize;
        let (ends, depths) = (self.column("subtree_end"), self.column("depth"));
        let mut children = Vec::new();
        let mut child = index + 1;
        while child < ends[index] as usize {
            assert_eq!(depths[child], depths[index] + 1.0);
            children.push(self.node(child));
            child = ends[child] as usize;
        }
        json!({
            "name": text("frame_name"),
            "file": text("frame_file"),
            "mapping": text("frame_mapping"),
            "kind": self.header["kinds"][kind],
            "line": self.column("frame_line")[frame] as u64,
            "total": self.column("total")[index] as i64,
            "self": self.column("self")[index] as i64,
            "children": children,
        })
    }
}

fn number(bytes: &[u8]) -> f64 {
    match *bytes {
        [a] => f64::from(a),
        [a, b] => f64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => f64::from(u32::from_le_bytes([a, b, c, d])),
        _ => f64::from_le_bytes(bytes.try_into().expect("8 bytes")),
    }
}
