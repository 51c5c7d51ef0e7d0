//! Keys in, screens out: compared with the files of `tests/golden/top`, which `UPDATE_GOLDEN=1` writes.

use std::path::Path;

use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::KeyCode;
use ratatui::crossterm::event::KeyEvent;
use ratatui::crossterm::event::KeyModifiers;
use ratatui::style::Color;

use super::app::App;
use super::app::Effect;
use super::draw::draw;
use super::kind::Kind;
use super::look::Colors;
use super::look::Look;
use super::snapshot::Group;
use super::snapshot::Snapshot;
use super::source_view::SourceView;
use super::source_view::line_values;

const SECOND: i64 = 1_000_000_000;

const PLAIN: Look = Look {
    colors: Colors::None,
    is_unicode: false,
};

const RICH: Look = Look {
    colors: Colors::True,
    is_unicode: true,
};

/// Ten seconds of two processes: stacks from the root as `FUNCTION:LINE`, and how many tenths they took.
const STACKS: [(Kind, &str, i64); 7] = [
    (Kind::Cpu, "main:40 serve:12 parse:31", 60),
    (Kind::Cpu, "main:40 serve:12 parse:33 alloc:5", 25),
    (Kind::Cpu, "main:40 serve:14 render:50", 40),
    (Kind::Cpu, "main:41 collect:70", 10),
    (Kind::Cpu, "loop:3 [kernel]entry [kernel]schedule", 15),
    (Kind::OffCpu, "main:42 wait:90 [kernel]futex_wait", 100),
    (Kind::OffCpu, "loop:4 read:8 [kernel]pipe_read", 70),
];

fn snapshot(changed: &str, factor: i64) -> Snapshot {
    let mut profile = Profile::default();
    for kind in Kind::ALL {
        let mut series = ProfileSeries::new(Labels::default(), kind.profile_type());
        for (_, stack, tenths) in STACKS.iter().filter(|(of, ..)| *of == kind) {
            let mut locations: Vec<_> = stack
                .split(' ')
                .map(|frame| location(&mut profile, frame))
                .collect();
            locations.reverse();
            let stack_id = profile.stacks.intern(&locations);
            let is_changed = !changed.is_empty() && stack.contains(changed);
            let value = tenths * SECOND / 10 * if is_changed { factor } else { 1 };
            series.samples.push(Sample::new(stack_id, value));
        }
        profile.series.push(series);
    }
    let group = |key: &str, name: &str, cpu: i64, off_cpu: i64| Group {
        key: key.to_owned(),
        name: name.to_owned(),
        values: [cpu * SECOND / 10, off_cpu * SECOND / 10],
    };
    let groups = vec![group("71", "loop", 15, 70), group("4242", "shop", 135, 100)];
    Snapshot::new(profile, 10.0, groups)
}

fn location(profile: &mut Profile, frame: &str) -> LocationId {
    let symbols = &mut profile.symbols;
    let (name, kind, binary) = match frame.strip_prefix("[kernel]") {
        Some(name) => (name, FrameKind::Kernel, "[kernel]"),
        None => (frame, FrameKind::Native, "/usr/bin/shop"),
    };
    let (name, line) = name.split_once(':').unwrap_or((name, "0"));
    let file = if line == "0" { "" } else { "/src/shop.c" };
    let function = symbols.intern_function(name, "", file, 1);
    let binary = symbols.strings.intern(binary);
    let mapping = symbols.intern_mapping(Mapping {
        file: binary,
        ..Mapping::default()
    });
    let line = line.parse().expect("a number");
    let location = Location::new(kind, u64::from(line)).in_mapping(mapping);
    symbols.intern_location(&location, &[(function, line, 0)])
}

fn app() -> App {
    let mut app = App::new("this host".to_owned(), "PID");
    app.snapshot = snapshot("", 1);
    app
}

/// Presses keys: characters, and `\n` Enter, `\x08` Backspace, `\x1b` Esc, `\t` Tab.
fn press(app: &mut App, keys: &str) -> Vec<Effect> {
    let effects = keys.chars().map(|character| {
        let code = match character {
            '\n' => KeyCode::Enter,
            '\u{8}' => KeyCode::Backspace,
            '\u{1b}' => KeyCode::Esc,
            '\t' => KeyCode::Tab,
            other => KeyCode::Char(other),
        };
        app.on_key(KeyEvent::new(code, KeyModifiers::NONE))
    });
    effects.flatten().collect()
}

fn terminal(app: &App, look: Look, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a screen");
    terminal
        .draw(|frame| draw(app, look, frame))
        .expect("drawn");
    terminal
}

/// The characters on the screen, without what is empty at the ends of lines.
fn screen(app: &App, look: Look, width: u16, height: u16) -> String {
    let terminal = terminal(app, look, width, height);
    let buffer = terminal.backend().buffer();
    let lines = (0..height).map(|y| {
        let cells = (0..width).map(|x| buffer[(x, y)].symbol());
        format!("{}\n", cells.collect::<String>().trim_end())
    });
    lines.collect()
}

#[track_caller]
fn expect_golden(name: &str, found: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/top");
    let path = folder.join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(&path, found).expect("written");
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        expected == found,
        "tests/golden/top/{name}.txt differs: run with UPDATE_GOLDEN=1\n{found}"
    );
}

#[test]
fn each_view_is_as_it_was() {
    for (name, keys) in [
        ("top", ""),
        ("top-processes", "\tj"),
        ("top-off-cpu", "e"),
        ("top-search", "/fn:^(parse|render)$\n"),
        ("flame", "2jjj"),
        ("flame-focused", "2jj\nj"),
        ("flame-search", "2/alloc\n"),
        ("tree", "3jj"),
        ("tree-closed", "3jjh"),
        ("sandwich", "js"),
        ("diff-nothing", "5"),
        ("help", "?"),
        ("typing", "/par"),
        ("bad-search", "/(\n"),
    ] {
        let mut app = app();
        press(&mut app, keys);
        expect_golden(name, &screen(&app, PLAIN, 80, 24));
    }
}

#[test]
fn sixty_columns_are_enough_and_less_does_no_harm() {
    for (name, keys) in [("top-60", ""), ("flame-60", "2jj"), ("tree-60", "3")] {
        let mut app = app();
        press(&mut app, keys);
        expect_golden(name, &screen(&app, PLAIN, 60, 16));
    }
    for keys in ["", "2j", "3j", "js", "dd5", "?", "2z"] {
        let mut app = app();
        press(&mut app, keys);
        for (width, height) in [
            (1, 1),
            (19, 5),
            (20, 6),
            (33, 7),
            (61, 9),
            (500, 3),
            (300, 90),
        ] {
            screen(&app, RICH, width, height);
        }
    }
}

#[test]
fn wide_terminals_show_binaries() {
    expect_golden("top-120", &screen(&app(), RICH, 120, 16));
}

#[test]
fn two_moments_are_compared() {
    let mut app = app();
    press(&mut app, "d");
    app.snapshot = snapshot("render", 2);
    press(&mut app, "5");
    expect_golden("diff-with-now", &screen(&app, PLAIN, 80, 12));
    press(&mut app, "d");
    app.snapshot = snapshot("parse", 5);
    let compared = screen(&app, PLAIN, 80, 12);
    assert!(
        compared.contains("+40.0%  "),
        "B stays as it was marked: {compared}"
    );
    press(&mut app, "e");
    assert_eq!(
        screen(&app, PLAIN, 80, 12).lines().nth(3),
        compared.lines().nth(3)
    );
}

#[test]
fn what_is_chosen_stays_chosen_in_the_next_picture() {
    let mut app = app();
    press(&mut app, "jj");
    let chosen = app.chosen_function().expect("a row").name;
    assert_eq!(chosen, "alloc");
    app.snapshot = snapshot("alloc", 9);
    assert_eq!(app.chosen_function().expect("a row").name, chosen);
    assert_eq!(app.chosen_row(), Some(0), "it is the heaviest now");
    press(&mut app, "2jjjl\n");
    assert_eq!(app.chosen_function().expect("a box").name, "render");
    app.snapshot = snapshot("serve", 3);
    assert_eq!(app.chosen_function().expect("a box").name, "render");
}

#[test]
fn a_process_is_chosen_and_let_go() {
    let mut app = app();
    assert_eq!(press(&mut app, "\tj\n"), [Effect::Regroup]);
    assert_eq!(app.group.as_deref(), Some("71"));
    assert_eq!(press(&mut app, "\u{8}"), [Effect::Regroup]);
    assert_eq!(app.group, None);
    press(&mut app, "\t\n");
    assert_eq!(app.group.as_deref(), Some("71"), "the chosen row stays");
    press(&mut app, "/x\n");
    assert!(
        press(&mut app, "\u{1b}").is_empty(),
        "first the search goes"
    );
    assert_eq!(press(&mut app, "\u{1b}"), [Effect::Regroup]);
}

#[test]
fn keys_ask_for_what_the_app_cannot_do() {
    let mut app = app();
    assert_eq!(
        press(&mut app, "wuq"),
        [Effect::Write, Effect::ShowUrl, Effect::Quit]
    );
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(app.on_key(control_c), Some(Effect::Quit));
    press(&mut app, "/");
    assert!(press(&mut app, "q").is_empty(), "a letter of the search");
    assert_eq!(app.on_key(control_c), Some(Effect::Quit));
}

#[test]
fn a_function_without_source_says_so() {
    let mut app = app();
    press(&mut app, "/schedule\n");
    assert!(press(&mut app, "o").is_empty());
    assert!(app.message.is_some());
}

#[test]
fn source_lines_have_the_time_of_their_stacks() {
    let mut app = app();
    let effects = press(&mut app, "o");
    let [Effect::ShowSource(function)] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(function.name, "parse");
    let values = line_values(&app.snapshot.profile, Kind::Cpu, function);
    assert_eq!(values[&31].own, 6 * SECOND);
    assert_eq!(values[&33].own, 0);
    assert_eq!(values[&33].total, 5 * SECOND / 2);
    let text: String = (1..=95).map(|line| format!("line {line};\n")).collect();
    let view = SourceView::new(&function.file, Ok(text), &values);
    app.show_source(view);
    press(&mut app, "kk");
    expect_golden("source", &screen(&app, PLAIN, 60, 20));
    let missing = SourceView::new(&function.file, Err("no such file".to_owned()), &values);
    assert_eq!(missing.lines.len(), values.len());
    press(&mut app, "q");
    assert!(app.overlay.is_none(), "a key closes it");
}

#[test]
fn a_paused_view_says_so_and_a_picture_without_samples_too() {
    let mut app = app();
    press(&mut app, "p");
    assert!(screen(&app, PLAIN, 80, 24).contains("PAUSED"));
    let mut empty = App::new("this host".to_owned(), "PID");
    for keys in ["1", "2", "3", "4", "5", "jkhl\n", "s", "o"] {
        press(&mut empty, keys);
        screen(&empty, RICH, 80, 24);
    }
    press(&mut empty, "2");
    let picture = screen(&empty, PLAIN, 80, 24);
    assert!(picture.contains("nothing of this"), "{picture}");
}

#[test]
fn colours_are_there_only_where_they_are_wanted() {
    let mut app = app();
    press(&mut app, "2");
    let is_colored = |look| {
        let terminal = terminal(&app, look, 80, 24);
        let cells = terminal.backend().buffer().content();
        cells
            .iter()
            .any(|cell| cell.bg != Color::Reset || cell.fg != Color::Reset)
    };
    assert!(is_colored(RICH));
    assert!(!is_colored(PLAIN));
    assert!(screen(&app, PLAIN, 80, 24).is_ascii());
}

#[test]
fn two_levels_fit_in_one_line() {
    let mut app = app();
    press(&mut app, "2z");
    let dense = screen(&app, RICH, 80, 24);
    assert!(dense.contains('▀'), "{dense}");
    expect_golden("flame-dense", &dense);
}
