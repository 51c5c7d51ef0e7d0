//! Selector and time range to sums by (block, stack), flame trees, series and tables.
