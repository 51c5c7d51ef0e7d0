//! Go tables (thin).
use crate::frame::SourceFrame;
use crate::names::NamePool;
use crate::object_file::ObjectFile;

#[derive(Debug)]
pub(crate) struct GoTable;
impl GoTable {
    pub(crate) fn load(_object: &ObjectFile) -> Option<Self> {
        None
    }
    pub(crate) fn frames(
        &self,
        _object: &ObjectFile,
        _address: u64,
        _names: &mut NamePool,
    ) -> Option<Vec<SourceFrame>> {
        None
    }
}
