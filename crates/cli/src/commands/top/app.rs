//! What the view shows, and what keys change of it. It draws nothing, reads nothing and knows no clock.

use candela_model::FlameTree;
use candela_model::FunctionRow;
use ratatui::crossterm::event::KeyCode;
use ratatui::crossterm::event::KeyEvent;
use ratatui::crossterm::event::KeyModifiers;

use super::frame_key::FrameKey;
use super::kind::Kind;
use super::marks::Compared;
use super::marks::Marks;
use super::place::Place;
use super::place::Step;
use super::sandwich::Sandwich;
use super::search::Search;
use super::selection::Selection;
use super::snapshot::Group;
use super::snapshot::Snapshot;
use super::source_view::SourceView;

/// How far a page goes, rows.
const PAGE: isize = 10;

/// The pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tab {
    Top,
    Flame,
    Tree,
    Sandwich,
    Diff,
}

/// The half of the first picture that keys move in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pane {
    Groups,
    Functions,
}

/// What lies over the picture.
#[derive(Clone, Debug)]
pub(crate) enum Overlay {
    Help,
    Source(SourceView),
    /// A text to be read or copied.
    Text(String),
}

/// What somebody else has to do after a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Quit,
    /// The process or service in [`App::group`] is another one.
    Regroup,
    /// Write what is shown to a file.
    Write,
    /// Show the address of this in the window.
    ShowUrl,
    /// Show the source of a function.
    ShowSource(FrameKey),
}

/// Everything that decides what is on the screen.
#[derive(Debug)]
pub(crate) struct App {
    /// What is looked at: this host, processes, a server.
    pub(crate) title: String,
    /// What the rows of the first table are: `PID` or `SERVICE`.
    pub(crate) group_heading: &'static str,
    pub(crate) snapshot: Snapshot,
    pub(crate) is_paused: bool,
    pub(crate) tab: Tab,
    pub(crate) kind: Kind,
    pub(crate) pane: Pane,
    /// The only process or service that is shown.
    pub(crate) group: Option<String>,
    pub(crate) search: Option<Search>,
    /// The text of a search while it is typed.
    pub(crate) typed: Option<String>,
    pub(crate) place: Place,
    pub(crate) sandwich: Sandwich,
    pub(crate) marks: Marks,
    pub(crate) overlay: Option<Overlay>,
    /// Two levels of the flame graph in one line, without names.
    pub(crate) is_dense: bool,
    /// The last line, until the next key.
    pub(crate) message: Option<String>,
    groups_selection: Selection<String>,
    functions_selection: Selection<FrameKey>,
    pub(crate) diff_top: usize,
}

// === impl Tab ===

impl Tab {
    pub(crate) const ALL: [Self; 5] = [
        Self::Top,
        Self::Flame,
        Self::Tree,
        Self::Sandwich,
        Self::Diff,
    ];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Top => "Top",
            Self::Flame => "Flame",
            Self::Tree => "Tree",
            Self::Sandwich => "Sandwich",
            Self::Diff => "Diff",
        }
    }
}

// === impl App ===

impl App {
    pub(crate) fn new(title: String, group_heading: &'static str) -> Self {
        Self {
            title,
            group_heading,
            snapshot: Snapshot::default(),
            is_paused: false,
            tab: Tab::Top,
            kind: Kind::Cpu,
            pane: Pane::Functions,
            group: None,
            search: None,
            typed: None,
            place: Place::default(),
            sandwich: Sandwich::default(),
            marks: Marks::default(),
            overlay: None,
            is_dense: false,
            message: None,
            groups_selection: Selection::default(),
            functions_selection: Selection::default(),
            diff_top: 0,
        }
    }

    /// The stacks that are shown.
    pub(crate) fn tree(&self) -> &FlameTree {
        self.snapshot.tree(self.kind)
    }

    /// The rows of the first table.
    pub(crate) fn groups(&self) -> Vec<&Group> {
        self.snapshot.groups_by(self.kind)
    }

    /// The rows of the second table: all functions, or those that match the search.
    pub(crate) fn functions(&self) -> Vec<FunctionRow> {
        let tree = self.tree();
        let mut rows = tree.function_table();
        if let Some(search) = &self.search {
            let matches = search.matches(&tree.frames);
            rows.retain(|row| matches[row.frame.index()]);
        }
        rows
    }

    /// The row of the first table that is chosen.
    pub(crate) fn chosen_group(&self) -> Option<usize> {
        self.groups_selection.position(&self.group_keys())
    }

    /// The row of the second table that is chosen.
    pub(crate) fn chosen_row(&self) -> Option<usize> {
        self.functions_selection.position(&self.function_keys())
    }

    /// The function that `s` and `o` are about.
    pub(crate) fn chosen_function(&self) -> Option<FrameKey> {
        let tree = self.tree();
        match self.tab {
            Tab::Top => self.functions_selection.key(&self.function_keys()),
            Tab::Flame | Tab::Tree => {
                let node = self.place.chosen(tree).filter(|&node| node > 0)?;
                Some(FrameKey::of(&tree.frames, tree.frame[node]))
            }
            Tab::Sandwich => {
                let lines = self.sandwich.lines(tree);
                let chosen = self.sandwich.chosen(&lines)?;
                Some(lines[chosen].function.clone())
            }
            Tab::Diff => {
                let changes = self.marks.changes(&self.snapshot);
                changes
                    .get(self.diff_top)
                    .map(|change| change.function.clone())
            }
        }
    }

    /// Takes a key; says what is to be done besides.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> Option<Effect> {
        self.message = None;
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return (key.code == KeyCode::Char('c')).then_some(Effect::Quit);
        }
        if self.typed.is_some() {
            self.on_typed(key.code);
            return None;
        }
        if self.overlay.is_some() {
            return self.on_overlay_key(key.code);
        }
        match key.code {
            KeyCode::Char('q') => return Some(Effect::Quit),
            KeyCode::Char('?') => self.overlay = Some(Overlay::Help),
            KeyCode::Char(digit @ '1'..='5') => {
                let position = usize::from(digit as u8 - b'1');
                self.tab = Tab::ALL[position];
            }
            KeyCode::Char('e') => self.kind = self.kind.other(),
            KeyCode::Char('p') => self.is_paused = !self.is_paused,
            KeyCode::Char('/') => self.typed = Some(String::new()),
            KeyCode::Char('z') => self.is_dense = !self.is_dense,
            KeyCode::Char('d') => self.mark(),
            KeyCode::Char('w') => return Some(Effect::Write),
            KeyCode::Char('u') => return Some(Effect::ShowUrl),
            KeyCode::Char('s') => self.show_sandwich(),
            KeyCode::Char('o') => return self.source_effect(),
            KeyCode::Tab => {
                self.pane = match self.pane {
                    Pane::Groups => Pane::Functions,
                    Pane::Functions => Pane::Groups,
                }
            }
            KeyCode::Esc => return self.leave(),
            KeyCode::Enter => return self.enter(),
            KeyCode::Backspace => return self.back(),
            code => self.on_move(code),
        }
        None
    }

    /// Shows the source that [`Effect::ShowSource`] asked for.
    pub(crate) fn show_source(&mut self, view: SourceView) {
        self.overlay = Some(Overlay::Source(view));
    }

    fn on_typed(&mut self, code: KeyCode) {
        let Some(typed) = &mut self.typed else {
            return;
        };
        match code {
            KeyCode::Char(character) => typed.push(character),
            KeyCode::Backspace => {
                typed.pop();
            }
            KeyCode::Esc => self.typed = None,
            KeyCode::Enter => {
                let text = self.typed.take().unwrap_or_default();
                if text.is_empty() {
                    self.search = None;
                    return;
                }
                match Search::new(&text) {
                    Ok(search) => self.search = Some(search),
                    Err(error) => self.message = Some(error.to_string()),
                }
            }
            _ => {}
        }
    }

    fn on_overlay_key(&mut self, code: KeyCode) -> Option<Effect> {
        if let Some(Overlay::Source(view)) = &mut self.overlay {
            match code {
                KeyCode::Char('j') | KeyCode::Down => view.step(1),
                KeyCode::Char('k') | KeyCode::Up => view.step(-1),
                KeyCode::PageDown => view.step(PAGE),
                KeyCode::PageUp => view.step(-PAGE),
                _ => self.overlay = None,
            }
            return None;
        }
        self.overlay = None;
        None
    }

    fn on_move(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char('h') | KeyCode::Left => self.step(Step::Left),
            KeyCode::Char('j') | KeyCode::Down => self.step(Step::Down),
            KeyCode::Char('k') | KeyCode::Up => self.step(Step::Up),
            KeyCode::Char('l') | KeyCode::Right => self.step(Step::Right),
            KeyCode::PageDown => (0..PAGE).for_each(|_| self.step(Step::Down)),
            KeyCode::PageUp => (0..PAGE).for_each(|_| self.step(Step::Up)),
            _ => {}
        }
    }

    fn step(&mut self, step: Step) {
        let distance = match step {
            Step::Down => 1,
            Step::Up => -1,
            Step::Left | Step::Right => 0,
        };
        let tree = self.snapshot.tree(self.kind);
        match self.tab {
            Tab::Top if self.pane == Pane::Groups => {
                let keys = self.group_keys();
                self.groups_selection.step(&keys, distance);
            }
            Tab::Top => {
                let keys = self.function_keys();
                self.functions_selection.step(&keys, distance);
            }
            Tab::Flame => self.place.step_in_flame(tree, step),
            Tab::Tree => self.place.step_in_tree(tree, step),
            Tab::Sandwich => {
                let lines = self.sandwich.lines(tree);
                self.sandwich.step(&lines, distance);
            }
            Tab::Diff => {
                let rows = self.marks.changes(&self.snapshot).len();
                let wanted = self.diff_top.saturating_add_signed(distance);
                self.diff_top = wanted.min(rows.saturating_sub(1));
            }
        }
    }

    fn enter(&mut self) -> Option<Effect> {
        let tree = self.snapshot.tree(self.kind);
        match self.tab {
            Tab::Top if self.pane == Pane::Groups => {
                let key = self.groups_selection.key(&self.group_keys())?;
                self.group = Some(key);
                self.pane = Pane::Functions;
                return Some(Effect::Regroup);
            }
            Tab::Flame | Tab::Tree => self.place.focus_on_chosen(tree),
            Tab::Top | Tab::Sandwich | Tab::Diff => self.show_sandwich(),
        }
        None
    }

    fn back(&mut self) -> Option<Effect> {
        match self.tab {
            Tab::Top => return self.ungroup(),
            Tab::Flame | Tab::Tree => self.place.focus_out(),
            Tab::Sandwich => self.sandwich.back(),
            Tab::Diff => {}
        }
        None
    }

    /// Takes back the last thing that leaves something out.
    fn leave(&mut self) -> Option<Effect> {
        if self.search.take().is_some() {
            return None;
        }
        if !self.place.focus.is_empty() {
            self.place = Place::default();
            return None;
        }
        self.ungroup()
    }

    fn ungroup(&mut self) -> Option<Effect> {
        self.group.take().map(|_| Effect::Regroup)
    }

    fn show_sandwich(&mut self) {
        match self.chosen_function() {
            Some(function) => {
                self.sandwich.show(function);
                self.tab = Tab::Sandwich;
            }
            None => self.message = Some("no function is chosen".to_owned()),
        }
    }

    fn source_effect(&mut self) -> Option<Effect> {
        let function = self.chosen_function();
        match function.filter(|function| !function.file.is_empty()) {
            Some(function) => Some(Effect::ShowSource(function)),
            None => {
                self.message = Some("the source file of this function is not known".to_owned());
                None
            }
        }
    }

    fn mark(&mut self) {
        let compared = self
            .marks
            .mark(self.kind, self.group.as_deref(), &self.snapshot);
        self.diff_top = 0;
        if compared == Compared::Both {
            self.tab = Tab::Diff;
            return;
        }
        self.message = Some("A is marked: d again marks B, 5 compares with now".to_owned());
    }

    fn group_keys(&self) -> Vec<String> {
        self.groups()
            .iter()
            .map(|group| group.key.clone())
            .collect()
    }

    fn function_keys(&self) -> Vec<FrameKey> {
        let frames = &self.tree().frames;
        let rows = self.functions();
        rows.iter()
            .map(|row| FrameKey::of(frames, row.frame))
            .collect()
    }
}
