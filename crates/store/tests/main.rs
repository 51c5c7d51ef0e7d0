//! A store through its life, with good days and bad ones.

mod bad_days;
mod buckets;
mod common;
mod compaction;
mod corruption;
mod duplicates;
mod durability;
mod erasure;
mod failpoints;
mod log_damage;
mod moments;
mod object_faults;
mod object_log;
mod object_storage;
mod parquet;
mod recovery;
mod resymbolize;
