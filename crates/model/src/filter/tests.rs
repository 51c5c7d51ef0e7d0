//! What each filter does, and that a pass over a tree equals stack by stack.

use super::*;
use crate::frame_kind::FrameKind;
use proptest::prelude::*;

/// The filters that regular expressions for frames make.
pub(super) const FRAME_FILTERS: [FilterKind; 5] = [
    FilterKind::Focus,
    FilterKind::Ignore,
    FilterKind::Hide,
    FilterKind::Show,
    FilterKind::ShowFrom,
];

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
            .map(|(kind, name)| Filter::new(*kind, &format!("^{name}$")).expect("a pattern"));
        let filters_of_path = path
            .iter()
            .map(|name| Filter::new(FilterKind::Path, &name.to_string()).expect("a name"));
        let chain = filters_of_path.chain(filters_of_frames).collect();
        let result = Filters::new(chain).expect("few").apply(build(&stacks));
        let expected = build(&naive(&stacks, &filters, &path));
        let lines = |tree: &FlameTree| {
            let mut lines = Vec::new();
            tree.for_each_stack(|frames, value| {
                let names: Vec<_> = frames.iter().map(|&id| tree.frames.name(id).to_owned()).collect();
                lines.push((names, value));
            });
            lines.sort();
            lines
        };
        prop_assert_eq!(lines(&result), lines(&expected));
        prop_assert_eq!(result.root_total(), expected.root_total());
    }
}
