//! Tables and walks, by what they find on stacks.

mod broken_parts;
mod code_without_information;
mod go_scheduler;
mod host;
mod hostile_objects;
mod image;
mod recorded_stacks;
mod support;
mod table_model;
mod walk_rules;
