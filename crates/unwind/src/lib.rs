//! Compact unwind tables from .eh_frame, .debug_frame and Go pclntab, and the user-space stack walk.
