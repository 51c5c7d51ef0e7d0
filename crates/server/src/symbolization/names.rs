//! One object file as a source of names for stored addresses.

use std::fmt;
use std::sync::Arc;

use candela_model::FrameKind;
use candela_store::BlockSymbolizer;
use candela_store::CodeLine;
use candela_store::CodePlace;
use candela_symbols::MappedRange;
use candela_symbols::ObjectFile;
use candela_symbols::SourceFrame;
use candela_symbols::Symbolizer;
use candela_symbols::SymbolizerOptions;

/// An object file or separate debug file, and the names in it.
pub(super) struct ObjectNames<'a> {
    build_id: String,
    source: String,
    symbolizer: Symbolizer,
    is_cancelled: &'a dyn Fn() -> bool,
}

impl<'a> ObjectNames<'a> {
    /// `source` tells this file from others of the build id.
    pub(super) fn new(
        build_id: String,
        source: String,
        object: Arc<ObjectFile>,
        is_cancelled: &'a dyn Fn() -> bool,
    ) -> Self {
        Self {
            build_id,
            source,
            symbolizer: Symbolizer::new(object, SymbolizerOptions::default()),
            is_cancelled,
        }
    }
}

impl BlockSymbolizer for ObjectNames<'_> {
    fn build_id(&self) -> &str {
        &self.build_id
    }

    fn source(&self) -> &str {
        &self.source
    }

    fn lines(&self, place: &CodePlace) -> Vec<CodeLine> {
        let range = MappedRange {
            start: place.mapping_start,
            limit: place.mapping_limit,
            file_offset: place.mapping_offset,
        };
        let object = self.symbolizer.object();
        let Some(address) = object.linked_address(place.address, range) else {
            return Vec::new();
        };
        let resolution = self.symbolizer.resolve(address);
        resolution.frames.iter().map(line).collect()
    }

    fn is_cancelled(&self) -> bool {
        (self.is_cancelled)()
    }
}

fn line(frame: &SourceFrame) -> CodeLine {
    let is_same = frame.system_name == frame.function;
    let nothing = || Arc::from("");
    CodeLine {
        kind: FrameKind::from_name(frame.language.name()),
        function_name: Arc::clone(&frame.function),
        system_name: if is_same {
            nothing()
        } else {
            Arc::clone(&frame.system_name)
        },
        file_name: frame.file.clone().unwrap_or_else(nothing),
        line: frame.line,
        column: frame.column,
        start_line: frame.start_line,
    }
}

impl fmt::Debug for ObjectNames<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ObjectNames")
            .field("build_id", &self.build_id)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}
