//! `candela top` on a real terminal: `script` gives it a pseudo terminal, and an emulator knows what is on it.

use std::fmt::Write as _;
use std::io::Read;
use std::io::Write;
use std::process::Child;
use std::process::ChildStdin;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;

use crate::support;
use crate::support::Program;
use candela_formats::PprofOptions;
use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::Sample;

/// A program on a terminal of its own.
struct Session {
    script: Child,
    keyboard: ChildStdin,
    terminal: Arc<Mutex<vt100::Parser>>,
}

impl Session {
    /// Runs `candela`, and after it `stty`, which tells how the terminal was left.
    fn start(arguments: &[&str], rows: u16, columns: u16, environment: &[(&str, &str)]) -> Self {
        let candela = support::candela();
        let mut line = format!("stty rows {rows} cols {columns}; ");
        write!(line, "'{}'", candela.get_program().display()).unwrap();
        for argument in arguments {
            write!(line, " '{argument}'").unwrap();
        }
        line.push_str("; code=$?; case $(stty -a) in *-icanon*|*'-echo '*) echo raw;; esac");
        line.push_str("; echo left with $code");
        let mut script = support::on_terminal(&line)
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let terminal = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let shown = Arc::clone(&terminal);
        let mut output = script.stdout.take().unwrap();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                shown.lock().unwrap().process(&bytes[..count]);
            }
        });
        Self {
            keyboard: script.stdin.take().unwrap(),
            script,
            terminal,
        }
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
    }

    fn text(&self) -> String {
        self.terminal.lock().unwrap().screen().contents()
    }

    #[track_caller]
    fn wait_for(&self, part: &str) -> String {
        self.wait_until(part, |text| text.contains(part))
    }

    #[track_caller]
    fn wait_until(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let start = std::time::Instant::now();
        loop {
            let text = self.text();
            if is_there(&text) {
                return text;
            }
            assert!(
                start.elapsed() < support::PATIENCE,
                "{what}: not in\n{text}"
            );
            std::thread::park_timeout(std::time::Duration::from_millis(20));
        }
    }

    fn resize(&self, rows: u16, columns: u16) {
        // The emulator first: what is drawn for the new size is to find it so.
        self.terminal
            .lock()
            .unwrap()
            .screen_mut()
            .set_size(rows, columns);
        let terminal = std::fs::read_link(format!("/proc/{}/fd/1", self.pid())).unwrap();
        let status = Command::new("stty")
            .arg("-F")
            .arg(terminal)
            .args(["rows", &rows.to_string(), "cols", &columns.to_string()])
            .status();
        assert!(status.unwrap().success());
    }

    /// The process of `candela`: a child of the shell under `script`.
    fn pid(&self) -> u32 {
        let child_of = |pid: u32| {
            let output = Command::new("pgrep")
                .args(["-P", &pid.to_string()])
                .output();
            support::stdout(&output.ok()?).trim().parse::<u32>().ok()
        };
        support::eventually("candela runs", || child_of(child_of(self.script.id())?))
    }

    /// Waits for the end, and looks at what it left behind.
    #[track_caller]
    fn expect_restored(mut self, code: i32) {
        let text = self.wait_for("left with");
        assert!(text.contains(&format!("left with {code}")), "{text}");
        let is_raw = text.lines().any(|line| line.trim() == "raw");
        assert!(!is_raw, "lines and echo are off: {text}");
        let terminal = self.terminal.lock().unwrap();
        let screen = terminal.screen();
        assert!(
            !screen.alternate_screen() && !screen.hide_cursor(),
            "{text}"
        );
        drop(terminal);
        support::eventually("script ends", || self.script.try_wait().unwrap());
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

/// CPU time of two functions, now, as pprof.
fn shop() -> Vec<u8> {
    let mut profile = Profile::default();
    let cpu = ProfileType::new("process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds");
    let mut series = ProfileSeries::new(Labels::default(), cpu);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    series.start_ns = i64::try_from(now.unwrap().as_nanos()).unwrap() - 5_000_000_000;
    series.duration_ns = 5_000_000_000;
    for (name, seconds) in [("wrap", 3), ("count", 2)] {
        let function = profile.symbols.intern_function(name, "", "shop.c", 1);
        let location = Location::new(FrameKind::Native, seconds);
        let lines = [(function, 7, 0)];
        let location = profile.symbols.intern_location(&location, &lines);
        let stack = profile.stacks.intern(&[location]);
        let value = i64::try_from(seconds).unwrap() * 1_000_000_000;
        series.samples.push(Sample::new(stack, value));
    }
    profile.series.push(series);
    let mut bytes = Vec::new();
    candela_formats::write_pprof(&profile, &mut bytes, &PprofOptions::default()).unwrap();
    bytes
}

#[test]
fn a_busy_process_is_seen_and_walked_through() {
    let test = "a_busy_process_is_seen_and_walked_through";
    if !support::is_root(test) || !support::has_tool(test, "script") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = support::compile_shares(folder.path());
    let burner = Program::start(Command::new(&program).arg("100000"));
    let pid = burner.pid().to_string();
    let mut session = Session::start(&["top", "-p", &pid], 40, 100, &[]);
    let top = session.wait_for("burn_fifty");
    assert!(top.contains("FUNCTION") && top.contains(&pid), "{top}");
    session.press("2");
    session.wait_for("descend");
    session.press("3");
    session.wait_for("- total");
    session.press("1/burn_thirty\r");
    session.wait_until("only one function", |text| {
        text.contains("%  burn_thirty") && !text.contains("burn_fifty")
    });
    session.press("s");
    session.wait_for("↑ ");
    session.press("o");
    session.wait_for("shares.c");
    session.press("x1");
    session.wait_for("FUNCTION");
    // Alone: with a letter behind it, it would be another key.
    session.press("\x1b");
    session.wait_until("no search", |text| {
        text.contains("burn_fifty") && !text.contains("Esc clears")
    });
    session.press("p");
    session.wait_for("PAUSED");
    session.press("p");
    session.resize(12, 50);
    session.wait_until("everything fits", |text| {
        let is_narrow = text.lines().all(|line| line.chars().count() <= 50);
        is_narrow && text.lines().count() <= 12 && text.contains("burn_fifty")
    });
    session.press("q");
    session.expect_restored(0);
}

#[test]
fn signals_give_the_terminal_back() {
    let test = "signals_give_the_terminal_back";
    if !support::is_root(test) || !support::has_tool(test, "script") {
        return;
    }
    for how in ["key", "INT", "TERM"] {
        let mut session = Session::start(&["top"], 24, 80, &[]);
        session.wait_for("FUNCTION");
        match how {
            "key" => session.press("\x03"),
            signal => support::signal(session.pid(), signal),
        }
        session.expect_restored(0);
    }
}

#[test]
fn colours_can_be_turned_off() {
    let test = "colours_can_be_turned_off";
    if !support::is_root(test) || !support::has_tool(test, "script") {
        return;
    }
    let is_colored = |session: &Session| {
        let terminal = session.terminal.lock().unwrap();
        let screen = terminal.screen();
        let (rows, columns) = screen.size();
        let mut cells = (0..rows).flat_map(|y| (0..columns).map(move |x| (y, x)));
        cells.any(|(y, x)| {
            screen.cell(y, x).is_some_and(|cell| {
                cell.fgcolor() != vt100::Color::Default || cell.bgcolor() != vt100::Color::Default
            })
        })
    };
    let no_color = [("NO_COLOR", "1")];
    let cases: [(&[&str], usize, bool); 3] = [
        (&["top"], 0, true),
        (&["top"], 1, false),
        (&["top", "--color", "never"], 0, false),
    ];
    for (arguments, variables, expected) in cases {
        let mut session = Session::start(arguments, 24, 80, &no_color[..variables]);
        session.wait_for("FUNCTION");
        assert_eq!(is_colored(&session), expected, "{arguments:?} {variables}");
        session.press("q");
        session.expect_restored(0);
    }
}

#[test]
fn a_report_is_printed_where_there_is_no_terminal() {
    let test = "a_report_is_printed_where_there_is_no_terminal";
    if !support::is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = support::compile_shares(folder.path());
    let burner = Program::start(Command::new(&program).arg("100000"));
    let pid = burner.pid().to_string();
    let output = support::run(&["top", "-p", &pid, "-d", "1s"]);
    support::expect_code(&output, 0);
    let report = support::stdout(&output);
    assert!(report.starts_with("PID"), "{report}");
    for part in [&pid, "Total CPU time: ", "Flat%", "burn_fifty", "shares"] {
        assert!(report.contains(part), "{part} in {report}");
    }
    let output = support::run(&["top", "-p", support::NO_PID, "-d", "1s"]);
    support::expect_code(&output, 1);
    assert!(support::stderr(&output).contains(support::NO_PID));
}

#[test]
fn a_server_is_asked_instead() {
    let test = "a_server_is_asked_instead";
    if !support::has_tool(test, "script") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = support::Running::start(&[
        "server",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        data.to_str().unwrap(),
    ]);
    let url = server.url("");
    let output = support::run(&["top", "--server", &url]);
    support::expect_code(&output, 5);

    let file = folder.path().join("shop.pb.gz");
    std::fs::write(&file, shop()).unwrap();
    let path = file.to_str().unwrap();
    let output = support::run(&["push", path, "--service", "shop", "--server", &url]);
    support::expect_code(&output, 0);
    let report = support::eventually("the report has the profile", || {
        let output = support::run(&["top", "--server", &url]);
        let text = support::stdout(&output);
        text.contains("wrap").then_some(text)
    });
    assert!(report.starts_with("SERVICE"), "{report}");
    assert!(report.contains("shop"), "{report}");
    // Five of five seconds: there was nothing before, of which it could be a share.
    let shop = report.lines().find(|line| line.contains("shop")).unwrap();
    assert!(shop.contains("100.0%"), "{report}");

    let mut session = Session::start(&["top", "--server", &url], 24, 140, &[]);
    session.wait_for("wrap");
    session.press("\t\r");
    session.wait_for("CPU of shop");
    session.press("u");
    session.wait_for("query=%7Bservice_name%3D%22shop%22%7D");
    session.press("q");
    session.press("q");
    session.expect_restored(0);
    drop(server);
    let output = support::run(&["top", "--server", &url]);
    support::expect_code(&output, 7);
}
