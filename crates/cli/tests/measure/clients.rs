//! The shares that published clients find in programs of known shares.

use crate::host::clients::asked::Shares;
use crate::host::clients::go;
use crate::host::clients::java;
use crate::host::clients::node;
use crate::host::clients::python;
use crate::host::clients::rust;

#[test]
fn the_go_sdk_finds_shares_as_written() {
    go::find_by_query("the_go_sdk_finds_shares_as_written", Shares::AsWritten);
}

#[test]
fn the_java_agent_finds_shares_as_written() {
    java::find_by_query("the_java_agent_finds_shares_as_written", Shares::AsWritten);
}

#[test]
fn the_node_sdk_finds_shares_as_written() {
    node::find_by_query("the_node_sdk_finds_shares_as_written", Shares::AsWritten);
}

#[test]
fn the_python_sdk_finds_shares_as_written() {
    python::find_by_query("the_python_sdk_finds_shares_as_written", Shares::AsWritten);
}

#[test]
fn the_rust_sdk_finds_shares_as_written() {
    rust::find_by_query("the_rust_sdk_finds_shares_as_written", Shares::AsWritten);
}
