//! The `candela` command.

fn main() {}
