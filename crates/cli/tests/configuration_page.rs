//! The page of the documentation that lists the keys of the configuration.

use std::fmt::Write;
use std::path::Path;

use crate::support;

#[test]
fn the_configuration_page_lists_every_key() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let output = support::run(&["config", "show", "--json"]);
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut table = "| key | default | environment | meaning |\n|---|---|---|---|\n".to_owned();
    for key in shown["keys"].as_array().unwrap() {
        let text = |name: &str| key[name].as_str().unwrap();
        let name = text("key");
        let value = key["value"].as_str().unwrap_or("(not set)");
        writeln!(
            table,
            "| `{name}` | {value} | `{}` | {} |",
            text("variable"),
            text("summary")
        )
        .unwrap();
    }
    let start = page.find("| key |").expect("the page has the table");
    let end = page[start..]
        .find("\n\n")
        .map_or(page.len(), |length| start + length + 1);
    if page[start..end] == table {
        return;
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, format!("{}{table}{}", &page[..start], &page[end..])).unwrap();
        return;
    }
    panic!("docs/configuration.md differs from the keys: run with UPDATE_GOLDEN=1\n{table}");
}
