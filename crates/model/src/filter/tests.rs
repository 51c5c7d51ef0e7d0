//! What each filter does, and that a pass over a tree equals stack by stack.

use super::*;
use crate::flame_builder::FlameTreeBuilder;
use crate::frame_kind::FrameKind;
use proptest::prelude::*;

/// The filters that regular expressions for frames make.
pub(super) const FRAME_FILTERS: [FilterKind; 6] = [
    FilterKind::Focus,
    FilterKind::Ignore,
    FilterKind::Hide,
    FilterKind::Show,
    FilterKind::ShowFrom,
    FilterKind::Collapse,
];

/// The filter of this kind for functions that are named by single digits.
pub(super) fn text_of(kind: FilterKind, name: u8) -> String {
    match (kind, name) {
        (FilterKind::Collapse, 0) => "recursion".to_owned(),
        (FilterKind::Collapse, 1) => "recursion:fn:^[12]$".to_owned(),
        (FilterKind::Collapse, 2) => "fn:^[23]$".to_owned(),
        (FilterKind::Collapse, 3) => "fn:^([34])$".to_owned(),
        (FilterKind::Collapse, _) => "recursion:4".to_owned(),
        _ => format!("fn:^{name}$"),
    }
}

fn tree(stacks: &[(&[&str], i64)]) -> FlameTree {
    let mut builder = FlameTreeBuilder::new();
    for (names, value) in stacks {
        let frames: Vec<_> = names
            .iter()
            .map(|name| {
                builder
                    .frames
                    .intern(name, &format!("{name}.c"), "/bin/x", FrameKind::Native, 0)
            })
            .collect();
        builder.add_stack(frames, *value);
    }
    builder.finish()
}

fn filtered(tree: FlameTree, filters: &[(FilterKind, &str)]) -> Vec<String> {
    let filters = filters
        .iter()
        .map(|&(kind, pattern)| Filter::new(kind, pattern).expect("a pattern"))
        .collect();
    let tree = Filters::new(filters).expect("few").apply(tree);
    let mut lines = Vec::new();
    tree.for_each_stack(|frames, value| {
        let names: Vec<&str> = frames.iter().map(|&id| tree.frames.name(id)).collect();
        lines.push(format!("{} {value}", names.join(";")));
    });
    lines.sort();
    lines
}

fn example() -> FlameTree {
    tree(&[
        (&["main", "serve", "parse", "malloc"], 5),
        (&["main", "serve", "write"], 3),
        (&["main", "gc"], 2),
        (&["thread", "serve", "parse"], 1),
    ])
}

#[test]
fn focus_and_ignore_choose_stacks() {
    assert_eq!(
        filtered(example(), &[(FilterKind::Focus, "^parse$")]),
        ["main;serve;parse;malloc 5", "thread;serve;parse 1"]
    );
    assert_eq!(
        filtered(example(), &[(FilterKind::Ignore, "malloc|gc")]),
        ["main;serve;write 3", "thread;serve;parse 1"]
    );
}

#[test]
fn hide_and_show_choose_frames() {
    assert_eq!(
        filtered(example(), &[(FilterKind::Hide, "serve|malloc")]),
        [
            "main;gc 2",
            "main;parse 5",
            "main;write 3",
            "thread;parse 1"
        ]
    );
    assert_eq!(
        filtered(example(), &[(FilterKind::Show, "serve")]),
        [" 2", "serve 9"]
    );
}

#[test]
fn show_from_cuts_what_is_above() {
    assert_eq!(
        filtered(example(), &[(FilterKind::ShowFrom, "serve|malloc")]),
        ["serve;parse 1", "serve;parse;malloc 5", "serve;write 3"]
    );
}

#[test]
fn what_is_hidden_is_not_seen_by_later_filters() {
    let hide = (FilterKind::Hide, "malloc");
    let focus = (FilterKind::Focus, "malloc");
    assert_eq!(filtered(example(), &[focus, hide]), ["main;serve;parse 5"]);
    assert_eq!(filtered(example(), &[hide, focus]), [""; 0]);
}

#[test]
fn prefixes_choose_the_field() {
    assert_eq!(
        filtered(example(), &[(FilterKind::Focus, "file:^gc\\.c$")]),
        ["main;gc 2"]
    );
    assert_eq!(
        filtered(example(), &[(FilterKind::Focus, "fn:\\.c$")]),
        [""; 0]
    );
    assert_eq!(
        filtered(example(), &[(FilterKind::Ignore, "bin:^/bin/")]),
        [""; 0]
    );
    assert_eq!(
        filtered(example(), &[(FilterKind::Focus, "kind:native")]).len(),
        4
    );
}

#[test]
fn a_path_leads_to_one_subtree() {
    let path = |text| (FilterKind::Path, text);
    assert_eq!(
        filtered(example(), &[path("main"), path("serve")]),
        ["main;serve;parse;malloc 5", "main;serve;write 3"]
    );
    assert_eq!(filtered(example(), &[path("ser")]), [""; 0], "exact names");
    assert_eq!(
        filtered(example(), &[path("thread\tthread.c"), path("serve")]).len(),
        1
    );
    assert_eq!(filtered(example(), &[path("thread\tmain.c")]), [""; 0]);
    // It is the path in what is shown.
    let hide = (FilterKind::Hide, "^main$");
    assert_eq!(
        filtered(example(), &[path("serve"), hide]),
        ["serve;parse;malloc 5", "serve;write 3"]
    );
}

#[test]
fn bad_patterns_are_named() {
    let error = Filter::new(FilterKind::Focus, "fn:(").expect_err("no pattern");
    assert!(error.to_string().starts_with("focus=fn:(: "), "{error}");
    let one = Filter::new(FilterKind::Hide, "x").expect("a pattern");
    assert_eq!(
        Filters::new(vec![one; 64])
            .map(|_| ())
            .expect_err("too many"),
        FilterError::TooMany {
            given: 64,
            most: 63
        }
    );
}

#[test]
fn filters_are_counted_before_they_are_compiled() {
    // No expression is one: compiling any of them would say so.
    let texts = vec![r"(".to_owned(); 9000].join(",");
    let too_many = FilterError::TooMany {
        given: 9000,
        most: 64,
    };
    let tags = [(FilterKind::TagFocus, texts.as_str())];
    let error = Filters::parse(&tags).expect_err("too many");
    assert_eq!(error, too_many);
    let error = Filter::new(FilterKind::TagFocus, &texts).expect_err("too many");
    assert_eq!(error, too_many);
    let frames = [(FilterKind::Hide, "("); 64];
    let error = Filters::parse(&frames).expect_err("too many");
    assert_eq!(
        error,
        FilterError::TooMany {
            given: 64,
            most: 63
        }
    );
}

#[test]
fn patterns_of_filters_share_one_limit() {
    // About half of what a single pattern may take.
    let large = "[0-9]{4000}";
    let parse = |count: usize| Filters::parse(&vec![(FilterKind::Focus, large); count]);
    assert!(parse(8).is_ok());
    assert!(parse(40).is_err());
    let tag = |count: usize| Filter::new(FilterKind::TagIgnore, &vec![large; count].join(","));
    assert!(tag(8).is_ok());
    assert!(tag(40).is_err());
}

/// What the documentation of each kind says, stack by stack.
fn naive(
    stacks: &[(Vec<u8>, i64)],
    filters: &[(FilterKind, u8)],
    path: &[u8],
) -> Vec<(Vec<u8>, i64)> {
    let mut kept = Vec::new();
    'stacks: for (frames, value) in stacks {
        let mut frames = frames.clone();
        for &(kind, wanted) in filters {
            let has = frames.contains(&wanted);
            match kind {
                FilterKind::Focus if !has => continue 'stacks,
                FilterKind::Ignore if has => continue 'stacks,
                FilterKind::Hide => frames.retain(|&frame| frame != wanted),
                FilterKind::Show => frames.retain(|&frame| frame == wanted),
                FilterKind::ShowFrom => match frames.iter().position(|&frame| frame == wanted) {
                    Some(first) => drop(frames.drain(..first)),
                    None => continue 'stacks,
                },
                FilterKind::Collapse => frames = naively_collapsed(&frames, wanted),
                _ => {}
            }
        }
        if !frames.starts_with(path) {
            continue;
        }
        kept.push((frames, *value));
    }
    kept
}

/// What [`text_of`] folds.
fn naively_collapsed(frames: &[u8], wanted: u8) -> Vec<u8> {
    let mut shown: Vec<u8> = Vec::new();
    for &frame in frames {
        let first = shown.iter().position(|&shown| shown == frame);
        let last = shown.last().copied();
        match (wanted, first, last) {
            (0, Some(first), _) => shown.truncate(first + 1),
            (1, Some(first), _) if frame == 1 || frame == 2 => shown.truncate(first + 1),
            (2, _, Some(2 | 3)) if frame == 2 || frame == 3 => {}
            (3, _, Some(last)) if last == frame && (frame == 3 || frame == 4) => {}
            (4, Some(first), _) if frame == 4 => shown.truncate(first + 1),
            _ => shown.push(frame),
        }
    }
    shown
}

proptest! {
    #[test]
    fn a_pass_over_the_tree_is_the_same_as_stack_by_stack(
        stacks in prop::collection::vec((prop::collection::vec(0_u8..5, 0..6), 1_i64..9), 0..30),
        filters in prop::collection::vec(
            (prop::sample::select(FRAME_FILTERS.to_vec()), 0_u8..5),
            0..4,
        ),
        path in prop::collection::vec(0_u8..5, 0..3),
    ) {
        let build = |stacks: &[(Vec<u8>, i64)]| {
            let mut builder = FlameTreeBuilder::new();
            for (frames, value) in stacks {
                let ids: Vec<_> = frames
                    .iter()
                    .map(|name| builder.frames.intern(&name.to_string(), "", "", FrameKind::Go, 0))
                    .collect();
                builder.add_stack(ids, *value);
            }
            builder.finish()
        };
        let filters_of_frames = filters
            .iter()
            .map(|(kind, name)| Filter::new(*kind, &text_of(*kind, *name)).expect("a pattern"));
        let filters_of_path = path
            .iter()
            .map(|name| Filter::new(FilterKind::Path, &name.to_string()).expect("a name"));
        let chain = filters_of_path.chain(filters_of_frames).collect();
        let result = Filters::new(chain).expect("few").apply(build(&stacks));
        let expected = build(&naive(&stacks, &filters, &path));
        prop_assert_eq!(lines(&result), lines(&expected));
        prop_assert_eq!(result.root_total(), expected.root_total());
    }

    #[test]
    fn nodes_are_looked_at_as_stacks_are(
        stacks in prop::collection::vec((prop::collection::vec(0_u8..5, 0..6), 1_i64..9), 0..20),
        filters in prop::collection::vec(
            (prop::sample::select(FRAME_FILTERS.to_vec()), 0_u8..5),
            0..5,
        ),
        path in prop::collection::vec(0_u8..5, 0..2),
    ) {
        let mut builder = FlameTreeBuilder::new();
        let ends: Vec<usize> = stacks.iter().map(|(frames, _)| {
            let mut node = FlameTreeBuilder::ROOT;
            for name in frames {
                let frame = builder.frames.intern(&name.to_string(), "", "", FrameKind::Go, 0);
                node = builder.child(node, frame);
            }
            node.0 as usize
        }).collect();
        let nodes: Vec<_> = std::iter::once((0, FrameTable::ROOT)).chain(builder.nodes()).collect();
        let texts = filters.iter().map(|(kind, name)| (*kind, text_of(*kind, *name)));
        let texts = texts.chain(path.iter().map(|name| (FilterKind::Path, name.to_string())));
        let texts: Vec<_> = texts.collect();
        let texts: Vec<_> = texts.iter().map(|(kind, text)| (*kind, text.as_str())).collect();
        let chain = Filters::parse(&texts).expect("few");
        let mut frames = builder.frames.clone();
        let looks = chain.shown_nodes(&mut frames, nodes.len(), |node| nodes[node]);
        let counting = chain.counting_nodes(&builder.frames, nodes.len(), |node| nodes[node]);
        for (stack, end) in stacks.iter().zip(ends) {
            let expected = naive(std::slice::from_ref(stack), &filters, &path);
            prop_assert_eq!(looks.counts(end), !expected.is_empty());
            prop_assert_eq!(counting[end], !expected.is_empty());
            if let Some((shown, _)) = expected.first() {
                let mut names: Vec<u8> = looks
                    .frames(end)
                    .map(|frame| frames.name(frame).parse().expect("a digit"))
                    .collect();
                names.reverse();
                prop_assert_eq!(&names, shown);
            }
        }
    }

    #[test]
    fn folding_keeps_the_sum_and_does_nothing_twice(
        stacks in prop::collection::vec(
            (prop::collection::vec(prop::sample::select(REAL_NAMES.to_vec()), 0..9), 1_i64..9),
            0..20,
        ),
        text in prop::sample::select(REAL_FOLDS.to_vec()),
    ) {
        let mut builder = FlameTreeBuilder::new();
        for (frames, value) in &stacks {
            let ids: Vec<_> = frames
                .iter()
                .map(|(name, file, binary, kind)| builder.frames.intern(name, file, binary, *kind, 7))
                .collect();
            builder.add_stack(ids, *value);
        }
        let tree = builder.finish();
        let before = tree.root_total();
        let fold = Filters::parse(&[(FilterKind::Collapse, text)]).expect("a pattern");
        let once = fold.apply(tree);
        prop_assert_eq!(once.root_total(), before);
        let own: i64 = once.self_value.iter().sum();
        prop_assert_eq!(own, before);
        prop_assert!(fold.counts_every_stack());
        let first = lines(&once);
        prop_assert_eq!(lines(&fold.apply(once)), first);
    }
}

pub(super) const REAL_NAMES: [(&str, &str, &str, FrameKind); 9] = [
    ("main.main", "/src/main.go", "/bin/shop", FrameKind::Go),
    (
        "net/http.(*conn).serve",
        "/go/net/http/server.go",
        "/bin/shop",
        FrameKind::Go,
    ),
    (
        "net/http.HandlerFunc.ServeHTTP",
        "/go/net/http/server.go",
        "/bin/shop",
        FrameKind::Go,
    ),
    (
        "hyper::runtime::task::poll",
        "task.rs",
        "/bin/cart",
        FrameKind::Rust,
    ),
    (
        "<hyper::time::Sleep as Future>::poll",
        "time.rs",
        "/bin/cart",
        FrameKind::Rust,
    ),
    ("read", "read.c", "/usr/lib/libc.so.6", FrameKind::Native),
    (
        "malloc",
        "malloc.c",
        "/usr/lib/libc.so.6",
        FrameKind::Unknown,
    ),
    ("vfs_read", "", "[kernel.kallsyms]", FrameKind::Kernel),
    ("java.util.List.add", "List.java", "", FrameKind::Jvm),
];

pub(super) const REAL_FOLDS: [&str; 12] = [
    "recursion",
    "recursion:kind:go",
    "pkg:.",
    "pkg:^net/http$",
    "pkg:^(hyper)(::|$)",
    "pkg:^([^:/.]+)",
    "bin:.",
    r"bin:(lib[a-z]+)\.so",
    "file:.",
    "kind:kernel",
    "fn:poll|serve",
    "read",
];

fn lines(tree: &FlameTree) -> Vec<(Vec<String>, i64)> {
    let mut lines = Vec::new();
    tree.for_each_stack(|frames, value| {
        let names = frames.iter().map(|&id| tree.frames.name(id).to_owned());
        lines.push((names.collect(), value));
    });
    lines.sort();
    lines
}

#[test]
fn recursion_folds_into_its_first_frame() {
    let recursive = || {
        tree(&[
            (&["a", "b", "a", "b", "c"], 4),
            (&["a", "a", "b"], 2),
            (&["a", "b", "a"], 1),
        ])
    };
    let fold = |text| filtered(recursive(), &[(FilterKind::Collapse, text)]);
    assert_eq!(fold("recursion"), ["a 1", "a;b 2", "a;b;c 4"]);
    assert_eq!(fold("recursion:fn:^b$"), ["a;a;b 2", "a;b;a 1", "a;b;c 4"]);
}

#[test]
fn neighbours_become_one_frame_that_is_named_after_them() {
    let mut builder = FlameTreeBuilder::new();
    let frames = REAL_NAMES
        .map(|(name, file, binary, kind)| builder.frames.intern(name, file, binary, kind, 0));
    builder.add_stack(frames, 3);
    let real = builder.finish();
    let fold = |text| {
        let tree = Filters::parse(&[(FilterKind::Collapse, text)]).expect("a pattern");
        lines(&tree.apply(real.clone()))[0].0.join(" ")
    };
    let hyper = "hyper::runtime::task::poll <hyper::time::Sleep as Future>::poll";
    let go = "net/http.(*conn).serve net/http.HandlerFunc.ServeHTTP";
    let rest = "read malloc vfs_read java.util.List.add";
    assert_eq!(
        fold("pkg:^net/http$"),
        format!("main.main net/http.* {hyper} {rest}")
    );
    assert_eq!(
        fold("pkg:^(hyper)(::|$)"),
        format!("main.main {go} hyper::* {rest}")
    );
    assert_eq!(
        fold("bin:."),
        "shop cart libc.so.6 [kernel.kallsyms] java.util.List.add",
        "nobody knows the binary of the last"
    );
    assert_eq!(
        fold("fn:poll$"),
        format!("main.main {go} hyper::runtime::task::poll {rest}")
    );
    assert!(fold("kind:(ker)nel").contains(" ker "));
    assert!(fold("file:server.go$").starts_with("main.main server.go hyper"));
}

#[test]
fn later_filters_see_what_was_folded() {
    let stacks = || tree(&[(&["a", "b", "a", "c"], 4), (&["a", "b"], 2)]);
    let fold = (FilterKind::Collapse, "recursion");
    let focus = (FilterKind::Focus, "^b$");
    assert_eq!(filtered(stacks(), &[fold, focus]), ["a;b 2"]);
    assert_eq!(filtered(stacks(), &[focus, fold]), ["a;b 2", "a;c 4"]);
    let named = (FilterKind::Collapse, "fn:^([bc])$");
    let path = (FilterKind::Path, "a");
    assert_eq!(filtered(stacks(), &[path, named]).len(), 2);
}

#[test]
fn what_to_fold_must_be_said() {
    let error = Filter::new(FilterKind::Collapse, "").expect_err("nothing");
    assert!(error.to_string().contains("recursion"), "{error}");
    let error = Filter::new(FilterKind::Collapse, "recursion:fn:(").expect_err("no pattern");
    assert!(error.to_string().starts_with("collapse=fn:(: "), "{error}");
}
