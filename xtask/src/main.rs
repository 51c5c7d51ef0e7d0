//! Everything CI does, as `cargo xtask` commands.

fn main() {}
