//! Filters by the most obvious means.

use candela_model::Filter;
use candela_model::FilterKind;
use candela_model::Filters;
use candela_model::Labels;

use super::StackText;

/// A filter as it is written, and what it matches, by hand: the value of a label with its name, or
/// the name of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainFilter {
    pub(crate) kind: FilterKind,
    pub(crate) text: &'static str,
    matches: fn(&str, &str) -> bool,
}

const fn filter(
    kind: FilterKind,
    text: &'static str,
    matches: fn(&str, &str) -> bool,
) -> PlainFilter {
    PlainFilter {
        kind,
        text,
        matches,
    }
}

/// Chains that are asked with every kind of query.
pub(crate) fn chains() -> Vec<Vec<PlainFilter>> {
    use FilterKind::Collapse;
    use FilterKind::Focus;
    use FilterKind::Hide;
    use FilterKind::Ignore;
    use FilterKind::Path;
    use FilterKind::Show;
    use FilterKind::ShowFrom;
    use FilterKind::TagFocus;
    use FilterKind::TagIgnore;
    let is_worker = |_: &str, value: &str| value == "worker";
    let is_api = |name: &str, value: &str| name == "service_name" && value == "api";
    vec![
        vec![filter(TagFocus, "thread_name=^work", |name, value| {
            name == "thread_name" && value == "worker"
        })],
        // A thread may be one, and a pod.
        vec![filter(TagFocus, "worker", is_worker)],
        vec![
            filter(TagIgnore, "worker", is_worker),
            filter(TagIgnore, "service_name=api", is_api),
        ],
        vec![filter(TagFocus, "thread_name=5:9", |name, value| {
            name == "thread_name" && value == "7"
        })],
        vec![
            filter(Focus, "fn:^function_[12]$", |_, name| {
                name == "function_1" || name == "function_2"
            }),
            filter(Hide, "fn:^function_2$", |_, name| name == "function_2"),
        ],
        vec![
            filter(Ignore, "fn:^inner$", |_, name| name == "inner"),
            filter(TagFocus, "service_name=api", is_api),
            filter(ShowFrom, "fn:^function_3$", |_, name| name == "function_3"),
        ],
        vec![filter(Show, "fn:^function_[0-4]$", |_, name| {
            ["function_0", "function_1", "function_2"].contains(&name)
                || ["function_3", "function_4"].contains(&name)
        })],
        vec![
            filter(Collapse, "recursion", |_, _| true),
            filter(Focus, "fn:^function_[12]$", |_, name| {
                name == "function_1" || name == "function_2"
            }),
        ],
        vec![
            filter(Hide, "fn:^outer$", |_, name| name == "outer"),
            filter(Collapse, "recursion:fn:^function_1$", |_, name| {
                name == "function_1"
            }),
            filter(Ignore, "fn:^function_4$", |_, name| name == "function_4"),
        ],
        vec![
            filter(Path, "function_1", |_, name| name == "function_1"),
            filter(Hide, "fn:^outer$", |_, name| name == "outer"),
            filter(Path, "inner\tdemo.c", |_, name| name == "inner"),
        ],
    ]
}

pub(crate) fn parsed(chain: &[PlainFilter]) -> Filters {
    let filters = chain
        .iter()
        .map(|it| Filter::new(it.kind, it.text).expect("a filter"));
    Filters::new(filters.collect()).expect("few")
}

/// Whether a sample with these labels passes.
pub(crate) fn passes(chain: &[PlainFilter], labels: &Labels) -> bool {
    chain.iter().all(|filter| {
        let mut labels = labels.iter();
        let is_match = labels.any(|(name, value)| (filter.matches)(name, value));
        match filter.kind {
            FilterKind::TagFocus => is_match,
            FilterKind::TagIgnore => !is_match,
            _ => true,
        }
    })
}

/// Each function that is looked for where it is first.
fn without_recursion(stack: &StackText, is_match: impl Fn(&String) -> bool) -> StackText {
    let mut shown = StackText::default();
    for name in stack {
        match shown.iter().position(|shown| shown == name) {
            Some(first) if is_match(name) => shown.truncate(first + 1),
            _ => shown.push(name.clone()),
        }
    }
    shown
}

/// What is shown of a stack, root first; `None` when it does not count.
pub(crate) fn shown(chain: &[PlainFilter], stack: &StackText) -> Option<StackText> {
    let mut stack = stack.clone();
    for filter in chain {
        let is_match = |name: &String| (filter.matches)("", name);
        match filter.kind {
            FilterKind::Focus if !stack.iter().any(is_match) => return None,
            FilterKind::Ignore if stack.iter().any(is_match) => return None,
            FilterKind::Hide => stack.retain(|name| !is_match(name)),
            FilterKind::Show => stack.retain(is_match),
            FilterKind::ShowFrom => {
                let first = stack.iter().position(is_match)?;
                stack.drain(..first);
            }
            FilterKind::Collapse => stack = without_recursion(&stack, is_match),
            _ => {}
        }
    }
    let path: Vec<&PlainFilter> = chain
        .iter()
        .filter(|filter| filter.kind == FilterKind::Path)
        .collect();
    let is_on_path = path.len() <= stack.len()
        && path
            .iter()
            .zip(&stack)
            .all(|(filter, name)| (filter.matches)("", name));
    is_on_path.then_some(stack)
}
