//! A part of a head as rows of the five tables, for engines that read blocks by themselves.

use std::sync::Arc;
use std::sync::LazyLock;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use arrow_schema::DataType;
use arrow_schema::Field;
use arrow_schema::Schema;
use arrow_schema::SchemaRef;
use candela_model::Labels;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;

use super::layout::BlockLayout;
use super::level::Level;
use super::sample_rows::SampleLabels;
use super::sample_source::MemoryContent;
use super::sample_source::MemorySource;
use super::schema::Table;
use super::writer::BlockIdentity;
use super::writer::write_rows;
use crate::head::HeadProfile;
use crate::head::HeadTables;
use crate::snapshot::HeadView;

/// What a flush would write.
#[derive(Clone, Debug, Default)]
pub struct HeadRows {
    tables: [Vec<RecordBatch>; Table::ALL.len()],
}

impl HeadRows {
    /// The rows of a table. Texts that repeat are dictionaries; else columns and types are those of
    /// [`Table::schema`].
    #[must_use]
    pub fn batches(&self, table: Table) -> &[RecordBatch] {
        &self.tables[table as usize]
    }

    /// The profiles under a name that stands for their block, which they have none of yet.
    fn new(
        block_id: &str,
        tables: &HeadTables,
        profiles: &[&HeadProfile],
        has_frames: bool,
    ) -> Result<Self, String> {
        let content = MemoryContent::new(profiles, tables.parents().len());
        let layout = BlockLayout::new(tables, &content.list, &content.ends);
        let mut source = MemorySource::new(content.profiles);
        let mut labels = SampleLabels::new(tables, layout.labels.clone());
        // Of all that a block says of itself, only this is in its rows.
        let identity = BlockIdentity {
            block_id: block_id.to_owned(),
            tenant: String::new(),
            date: String::new(),
            level: Level::Flushed,
            created_at_ns: 0,
            writer_id: String::new(),
            first_sequence: 0,
            last_sequence: 0,
            sources: Vec::new(),
            has_frames,
        };
        let mut all = Self::default();
        for table in Table::ALL {
            let batches = &mut all.tables[table as usize];
            let mut keep = |batch: Result<RecordBatch, ArrowError>| {
                batches.push(batch.map_err(|error| error.to_string())?);
                Ok(())
            };
            write_rows(
                table,
                &identity,
                &layout,
                &mut source,
                &mut labels,
                &mut keep,
            )?;
        }
        Ok(all)
    }
}

impl HeadView {
    /// The profiles as rows of the five tables, with `block_id` in that column, and with readable
    /// stacks when asked for. Takes about as long as a flush without its files; appends go on
    /// meanwhile.
    ///
    /// # Errors
    /// When the rows do not fit together, which would be a bug.
    pub fn rows(&self, block_id: &str, has_frames: bool) -> Result<HeadRows, String> {
        let tables = self.tables().copy_to_read();
        let profiles = self.profiles.iter().map(|profile| &**profile);
        let profiles: Vec<&HeadProfile> = profiles.collect();
        HeadRows::new(block_id, &tables, &profiles, has_frames)
    }
}

impl Table {
    /// Its columns as Arrow has them. All may be null: a block of an earlier version lacks what was
    /// added since.
    #[must_use]
    pub fn schema(self) -> SchemaRef {
        static SCHEMAS: LazyLock<[SchemaRef; Table::ALL.len()]> = LazyLock::new(schemas);
        Arc::clone(&SCHEMAS[self as usize])
    }
}

/// Made from rows as they are written, so that they cannot say anything else.
fn schemas() -> [SchemaRef; Table::ALL.len()] {
    let mut profile = Profile::default();
    let unknown: ProfileType = "a:a:count:a:count".parse().expect("five parts");
    let series = ProfileSeries::new(Labels::default(), unknown);
    profile.series.push(series);
    let mut tables = HeadTables::default();
    let profiles = tables.intern_profile(&profile);
    let references: Vec<&HeadProfile> = profiles.iter().collect();
    let rows = HeadRows::new("", &tables, &references, false);
    let rows = rows.expect("a profile without samples has rows");
    Table::ALL.map(|table| {
        let schema = rows.batches(table)[0].schema();
        let fields = schema.fields().iter().map(|field| {
            let plain = match field.data_type() {
                DataType::Dictionary(_, value) => (**value).clone(),
                other => other.clone(),
            };
            Field::new(field.name(), plain, true)
        });
        Arc::new(Schema::new(fields.collect::<Vec<Field>>()))
    })
}
