//! What people write: selectors and filters.

use candela_model::Filter;
use candela_model::FilterKind;
use candela_model::Filters;
use candela_model::Selector;

/// A selector that is understood says so in its own words, which mean the same.
pub(crate) fn selector(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(selector) = text.parse::<Selector>() else {
        return;
    };
    let written = selector.to_string();
    let again: Selector = written
        .parse()
        .unwrap_or_else(|error| panic!("{text:?} is written {written:?}: {error}"));
    assert_eq!(again.to_string(), written, "of {text:?}");
    let known = [("service_name", "api"), ("pod", "web-1"), ("a", "b")];
    let value_of = |name: &str| {
        let label = known.into_iter().find(|label| label.0 == name);
        label.map_or("", |label| label.1)
    };
    let (first, second) = (selector.matches(value_of), again.matches(value_of));
    assert_eq!(first, second, "{text:?} and {written:?}");
}

pub(crate) fn selector_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "{}",
        "",
        r#"{service_name="api", pod=~"web-.*"}"#,
        r#"{a!="b",c!~"d|e(f)?", "quoted name"="\"\\\n\t\u{1f}"}"#,
        r#"process_cpu:cpu:nanoseconds:cpu:nanoseconds{namespace="x"}"#,
        "{a='single', b=`raw\\`, c=\"\\u00e4\\x41\\101\",}",
        r#"{k8s.pod/name=~"(?i)[a-z]{1,3}\\d+$"}"#,
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}

/// One filter a line: its kind, a space, its text.
pub(crate) fn filter(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let filters: Vec<Filter> = text
        .lines()
        .filter_map(|line| {
            let (name, text) = line.split_once(' ')?;
            Filter::new(FilterKind::from_name(name)?, text).ok()
        })
        .collect();
    let Ok(filters) = Filters::new(filters) else {
        return;
    };
    let tree = crate::store::example_tree();
    let before = tree.root_total();
    let after = filters.apply(tree).root_total();
    assert!(after <= before, "filters add nothing: {before} to {after}");
    if filters.counts_every_stack() {
        assert_eq!(after, before, "no filter of frames takes anything");
    }
}

pub(crate) fn filter_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "focus parse\nignore ^main$\nhide runtime\\.\nshow fn:walk\nshow_from file:main.c",
        "tagfocus thread=worker.*\ntagignore bytes=1kb:4mb\ntagfocus :16",
        "path main\npath read\npath walk",
        "focus pkg:acme::\nfocus bin:/usr/bin\nignore kind:kernel\nfocus (",
        "collapse recursion\ncollapse recursion:fn:walk\nfocus main",
        "collapse bin:.\nhide x\ncollapse pkg:^(a)(::|$)\ncollapse file:\\.c\ncollapse kind:.\ncollapse parse",
        "hide .*\nshow .*\nshow_from z{1000}{1000}",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}
