//! Blocks: immutable files of five Parquet tables.

mod arrays;
mod cache;
mod decode;
mod file;
mod label_rows;
mod layout;
mod load;
mod manifest;
mod reader;
mod rows;
mod sample_rows;
mod samples;
#[cfg(test)]
mod scan_tests;
mod schema;
mod service_tree;
mod stack_rows;
mod tables;
mod unpack;
mod writer;

pub(crate) use cache::TableCache;
pub(crate) use layout::BlockLayout;
pub use manifest::BlockMeta;
pub use manifest::FileMeta;
pub use manifest::ServiceMeta;
pub use reader::Block;
pub(crate) use reader::RemovedBlocks;
pub(crate) use reader::remove_files;
pub use samples::SampleChunk;
pub use samples::SampleColumns;
pub use schema::SCHEMA_VERSION;
pub use schema::Table;
pub use tables::LabelTable;
pub use tables::ProfileRow;
pub use tables::ProfileTable;
pub use tables::StackTree;
pub(crate) use writer::BlockIdentity;
pub(crate) use writer::write_block;
