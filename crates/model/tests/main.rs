//! Profiles, by what holds of all of them.

mod flame_tree;
mod stack_cut;
