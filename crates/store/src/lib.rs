//! Durable log, head, Parquet blocks and catalog.
