//! The five tables: columns, their meaning, how each is encoded.

use parquet::basic::Compression;
use parquet::basic::Encoding;
use parquet::basic::ZstdLevel;
use parquet::file::metadata::KeyValue;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::EnabledStatistics;
use parquet::file::properties::WriterProperties;
use parquet::file::properties::WriterVersion;
use parquet::schema::types::ColumnPath;

/// The version of the tables that is written. A reader refuses later ones.
pub const SCHEMA_VERSION: u32 = 2;

/// Metadata key of the version.
pub(crate) const VERSION_KEY: &str = "candela.schema_version";

/// Rows of a row group: about 5 MB of samples.
const ROW_GROUP_ROWS: usize = if cfg!(test) { 50_000 } else { 4 << 20 };
/// Rows of a page, the smallest unit that a query can skip.
pub(crate) const PAGE_ROWS: usize = if cfg!(test) { 4096 } else { 64 << 10 };
/// Values are few and repeat (multiples of a period): a large dictionary still beats none.
const DICTIONARY_BYTES: usize = if cfg!(test) { 200 << 10 } else { 8 << 20 };
/// Blocks that are soon merged into others.
const QUICK_ZSTD_LEVEL: i32 = 3;
/// Blocks that stay: 3 % smaller, and they are written once a day.
const LASTING_ZSTD_LEVEL: i32 = 9;

/// Profiles with fewer samples are small.
const SMALL_PROFILE_SAMPLES: u64 = 32;

/// A table of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    /// One row a sample.
    Samples,
    /// One row a series and window.
    Profiles,
    /// One row a set of labels.
    LabelSets,
    /// One row a node of the stack trees.
    StackNodes,
    /// One row a source line.
    Locations,
}

/// What a file is written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriteGoal {
    /// Asks for a bloom filter that finds a trace id.
    pub(crate) has_traces: bool,
    /// Asks for fewer bytes at more work.
    pub(crate) is_lasting: bool,
    /// Mean number of samples of a profile.
    pub(crate) samples_per_profile: u64,
}

/// A column and what it means.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
    packing: Packing,
}

/// How a column is encoded before compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Dictionary,
    /// Dictionary, with minimum and maximum of each page.
    DictionaryPaged,
    Delta,
    /// Delta, with minimum and maximum of each page.
    DeltaPaged,
    Plain,
}

const fn column(name: &'static str, packing: Packing, meaning: &'static str) -> Column {
    Column {
        name,
        meaning,
        packing,
    }
}

const BLOCK_ID: Column = column(
    "block_id",
    Packing::Dictionary,
    "the block, the same in all rows; joins the tables of several blocks",
);

const SAMPLES: &[Column] = &[
    BLOCK_ID,
    column(
        "service_name",
        Packing::DictionaryPaged,
        "label service_name of the series",
    ),
    column(
        "profile_type",
        Packing::DictionaryPaged,
        "name:sample_type:sample_unit:period_type:period_unit",
    ),
    column(
        "time",
        Packing::DeltaPaged,
        "start of the profile's window, UTC",
    ),
    column(
        "profile_id",
        Packing::Delta,
        "the profile, in table profiles",
    ),
    column(
        "stack_id",
        Packing::Delta,
        "the stack: the row of stack_nodes with this stack_id; 0 is the most frequent of the first service",
    ),
    column(
        "value",
        Packing::Dictionary,
        "in the profile's value_unit, never 0",
    ),
    column(
        "label_set_id",
        Packing::Dictionary,
        "the sample's own labels, in table label_sets; null when it has none",
    ),
    column(
        "event_time",
        Packing::Delta,
        "when the sample was taken, UTC; null when only the window is known",
    ),
    column(
        "trace_id",
        Packing::Dictionary,
        "W3C trace id, 16 bytes; null when none",
    ),
    column(
        "span_id",
        Packing::Dictionary,
        "W3C span id, 8 bytes; null when none",
    ),
];

const PROFILES: &[Column] = &[
    BLOCK_ID,
    column("profile_id", Packing::Delta, "number in the block, from 0"),
    column(
        "series_id",
        Packing::Dictionary,
        "the series' labels: label_set_id of table label_sets",
    ),
    column(
        "service_name",
        Packing::DictionaryPaged,
        "label service_name of the series",
    ),
    column(
        "profile_type",
        Packing::DictionaryPaged,
        "name:sample_type:sample_unit:period_type:period_unit",
    ),
    column("value_unit", Packing::Dictionary, "unit of the values"),
    column("time", Packing::DeltaPaged, "start of the window, UTC"),
    column(
        "duration_ns",
        Packing::Dictionary,
        "length of the window, nanoseconds; 0 when unknown",
    ),
    column(
        "period",
        Packing::Dictionary,
        "distance between samples in the period unit; 0 when unknown",
    ),
    column(
        "temporality",
        Packing::Dictionary,
        "delta: values are summed over time; gauge: averaged",
    ),
    column("total_value", Packing::Delta, "sum of the profile's values"),
    column(
        "sample_count",
        Packing::Delta,
        "number of its rows in table samples",
    ),
    column(
        "first_row",
        Packing::Delta,
        "position of the first of them, from 0",
    ),
    column(
        "source",
        Packing::Dictionary,
        "the log that accepted the profile",
    ),
    column(
        "merged_profiles",
        Packing::Dictionary,
        "how many profiles were added up into this one: 1, or more in a rollup",
    ),
];

const LABEL_SETS: &[Column] = &[
    BLOCK_ID,
    column(
        "label_set_id",
        Packing::Delta,
        "number in the block; 0 is the empty set",
    ),
    column(
        "labels",
        Packing::Dictionary,
        "names and values; a name that occurs again has #2, #3 … appended",
    ),
    column(
        "number_units",
        Packing::Dictionary,
        "names of the labels that are numbers, and the unit of each",
    ),
    column("namespace", Packing::Dictionary, "label namespace"),
    column("pod", Packing::Dictionary, "label pod"),
    column("container", Packing::Dictionary, "label container"),
    column("node", Packing::Dictionary, "label node"),
    column("host", Packing::Dictionary, "label host"),
    column("version", Packing::Dictionary, "label version"),
];

const STACK_NODES: &[Column] = &[
    BLOCK_ID,
    column(
        "service_name",
        Packing::DictionaryPaged,
        "the service whose stacks these are",
    ),
    column(
        "node_id",
        Packing::DeltaPaged,
        "number in the block, in pre-order: a node comes before everything below it",
    ),
    column(
        "parent_id",
        Packing::Delta,
        "the caller's node; null at a service's root",
    ),
    column(
        "depth",
        Packing::Dictionary,
        "distance to the service's root, which is 0",
    ),
    column(
        "subtree_end",
        Packing::Plain,
        "node_id behind the last one below: everything below is node_id < n < subtree_end",
    ),
    column(
        "location_id",
        Packing::Delta,
        "in table locations; null at a service's root",
    ),
    column(
        "stack_id",
        Packing::Delta,
        "the stack that ends here; null when no sample's does",
    ),
    column(
        "is_recursive",
        Packing::Plain,
        "whether a node above has the same function: leave such nodes out of totals by function",
    ),
    column(
        "frames",
        Packing::Dictionary,
        "functions of the stack, root first; null where not written",
    ),
];

const LOCATIONS: &[Column] = &[
    BLOCK_ID,
    column("location_id", Packing::Delta, "number in the block, from 0"),
    column(
        "kind",
        Packing::Dictionary,
        "kernel, native, go, jvm … as OpenTelemetry's profile.frame.type; empty when unknown",
    ),
    column(
        "function_name",
        Packing::Dictionary,
        "readable name; binary+0xaddress without symbols",
    ),
    column(
        "system_name",
        Packing::Dictionary,
        "name in the object file; empty when the same",
    ),
    column(
        "file_name",
        Packing::Dictionary,
        "source file; empty when unknown",
    ),
    column("line", Packing::Dictionary, "source line; 0 when unknown"),
    column(
        "column",
        Packing::Dictionary,
        "source column; 0 when unknown",
    ),
    column(
        "start_line",
        Packing::Dictionary,
        "first line of the function; 0 when unknown",
    ),
    column(
        "is_inlined",
        Packing::Plain,
        "whether the function is inlined into the node above",
    ),
    column(
        "mapping_file",
        Packing::Dictionary,
        "path of the binary; empty when unknown",
    ),
    column(
        "build_id",
        Packing::Dictionary,
        "build id of the binary, hexadecimal; empty when unknown",
    ),
    column(
        "address",
        Packing::Delta,
        "instruction address; of a line with symbols, one of them",
    ),
    column(
        "mapping_start",
        Packing::Dictionary,
        "first address of the mapping",
    ),
    column(
        "mapping_limit",
        Packing::Dictionary,
        "end of the mapping, exclusive",
    ),
    column(
        "mapping_offset",
        Packing::Dictionary,
        "offset of the mapping in the file, bytes",
    ),
    column(
        "symbol_state",
        Packing::Dictionary,
        "symbolized or unsymbolized",
    ),
];

impl WriteGoal {
    /// Where profiles are small the ids of stacks jump from one to the next as far as ids go, and a
    /// block of deltas is as wide as its widest. Plain bytes, compressed, take a tenth less and
    /// twice the time to read: worth it for what is kept for weeks and rarely read.
    fn has_plain_stacks(self) -> bool {
        self.is_lasting && self.samples_per_profile < SMALL_PROFILE_SAMPLES
    }
}

impl Table {
    /// All tables, in the order in which they are written.
    pub const ALL: [Self; 5] = [
        Self::Samples,
        Self::Profiles,
        Self::LabelSets,
        Self::StackNodes,
        Self::Locations,
    ];

    /// The name of its directory.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::Profiles => "profiles",
            Self::LabelSets => "label_sets",
            Self::StackNodes => "stack_nodes",
            Self::Locations => "locations",
        }
    }

    pub(crate) const fn columns(self) -> &'static [Column] {
        match self {
            Self::Samples => SAMPLES,
            Self::Profiles => PROFILES,
            Self::LabelSets => LABEL_SETS,
            Self::StackNodes => STACK_NODES,
            Self::Locations => LOCATIONS,
        }
    }

    /// The columns by which rows are sorted.
    pub(crate) const fn sort_order(self) -> &'static [&'static str] {
        match self {
            Self::Samples => &[
                "service_name",
                "profile_type",
                "time",
                "profile_id",
                "stack_id",
            ],
            Self::Profiles => &["service_name", "profile_type", "time", "profile_id"],
            Self::LabelSets => &["label_set_id"],
            Self::StackNodes => &["service_name", "node_id"],
            Self::Locations => &["location_id"],
        }
    }

    /// Number of the column of this name, or of the one that its nested parts follow.
    pub(crate) fn position(self, name: &str) -> usize {
        self.columns()
            .iter()
            .position(|column| column.name == name)
            .expect("only columns of the tables above are asked for")
    }

    /// How its files are written.
    pub(crate) fn writer_properties(self, goal: WriteGoal) -> WriterProperties {
        let level = if goal.is_lasting {
            LASTING_ZSTD_LEVEL
        } else {
            QUICK_ZSTD_LEVEL
        };
        let zstd = ZstdLevel::try_new(level).expect("a level that zstd has");
        let sorting_columns = self.sort_order().iter().map(|name| SortingColumn {
            column_idx: i32::try_from(self.position(name)).expect("few columns"),
            descending: false,
            nulls_first: false,
        });
        let mut builder = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .set_created_by(concat!("candela ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(zstd))
            .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
            .set_data_page_row_count_limit(PAGE_ROWS)
            .set_write_batch_size(8 << 10)
            .set_dictionary_page_size_limit(DICTIONARY_BYTES)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_sorting_columns(Some(sorting_columns.collect()))
            .set_key_value_metadata(Some(self.metadata()));
        for column in self.columns() {
            let path = ColumnPath::from(column.name);
            let is_dictionary = matches!(
                column.packing,
                Packing::Dictionary | Packing::DictionaryPaged
            );
            builder = builder.set_column_dictionary_enabled(path.clone(), is_dictionary);
            let is_delta = matches!(column.packing, Packing::Delta | Packing::DeltaPaged);
            let is_plain =
                self == Self::Samples && column.name == "stack_id" && goal.has_plain_stacks();
            if is_delta && !is_plain {
                builder = builder.set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED);
            }
            if matches!(
                column.packing,
                Packing::DictionaryPaged | Packing::DeltaPaged
            ) {
                builder = builder.set_column_statistics_enabled(path, EnabledStatistics::Page);
            }
        }
        let bloom_column = match self {
            Self::Samples if goal.has_traces => Some("trace_id"),
            Self::Locations => Some("function_name"),
            _ => None,
        };
        if let Some(name) = bloom_column {
            builder = builder.set_column_bloom_filter_enabled(ColumnPath::from(name), true);
        }
        builder.build()
    }

    /// What a reader who has nothing but the file needs to know.
    fn metadata(self) -> Vec<KeyValue> {
        let mut entries = vec![
            KeyValue::new(VERSION_KEY.to_owned(), SCHEMA_VERSION.to_string()),
            KeyValue::new("candela.table".to_owned(), self.name().to_owned()),
            KeyValue::new(
                "candela.sort_order".to_owned(),
                self.sort_order().join(", "),
            ),
        ];
        entries.extend(self.columns().iter().map(|column| {
            KeyValue::new(
                format!("candela.column.{}", column.name),
                column.meaning.to_owned(),
            )
        }));
        entries
    }
}
