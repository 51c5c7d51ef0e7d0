//! What the window takes in a real browser: `ui/bench/browser.mjs` on demo data, with the flame graph replaced by one of
//! a known size where a row asks for it. Medians of several runs.

use std::process::Command;

use serde_json::Value;

use crate::Figure;
use crate::host::Bench;
use crate::process::Program;
use crate::process::output;

const RUNS: usize = 3;
const FIFTY_THOUSAND: u64 = 50_000;
const MILLION: u64 = 1_000_000;
/// The moment of the pictures, as in `ui/e2e/goldens.mjs`.
const MOMENT_OF_PICTURES: &str = "1795176000";

/// A server with demo data, and what the browser measured of its window.
struct Demo {
    _server: Program,
    url: String,
}

/// The figures of one kind of run.
struct Figures(Vec<Value>);

// === impl Demo ===

impl Demo {
    fn start(bench: &Bench) -> Result<Self, String> {
        Self::start_with(bench, "window", &[])
    }

    /// A folder has one day: what holds another one is refused.
    fn start_with(bench: &Bench, folder: &str, options: &[&str]) -> Result<Self, String> {
        let mut command = Command::new(bench.binary("candela")?);
        command.args(["demo", "--listen", "127.0.0.1:0"]);
        command.args(options).arg("--data-dir");
        command.arg(bench.folder(folder)?.join("data"));
        let (server, url) = Program::start_candela(&mut command)?;
        Ok(Self {
            _server: server,
            url,
        })
    }

    fn figures(&self, bench: &Bench, options: &[&str], runs: usize) -> Result<Figures, String> {
        let run = || {
            let printed = output(
                Command::new("node")
                    .arg("bench/browser.mjs")
                    .args(["--url", &self.url])
                    .args(options)
                    .current_dir(bench.root().join("ui")),
            )?;
            serde_json::from_str(&printed).map_err(|error| format!("{error}: {printed:?}"))
        };
        (0..runs)
            .map(|_| run())
            .collect::<Result<Vec<Value>, String>>()
            .map(Figures)
    }

    /// What a walk through the window prints.
    fn walk(&self, bench: &Bench, script: &str, options: &[&str]) -> Result<Value, String> {
        let printed = output(
            Command::new("node")
                .arg(script)
                .arg(&self.url)
                .args(options)
                .current_dir(bench.root().join("ui/e2e")),
        )?;
        serde_json::from_str(&printed).map_err(|error| format!("{error}: {printed:?}"))
    }

    fn of_size(&self, bench: &Bench, nodes: u64) -> Result<Figures, String> {
        self.figures(bench, &["--nodes", &nodes.to_string()], RUNS)
    }
}

// === impl Figures ===

impl Figures {
    /// The median of a number, `pointer` as in RFC 6901.
    fn median(&self, pointer: &str) -> Result<f64, String> {
        let numbers = self.0.iter().map(|it| it.pointer(pointer)?.as_f64());
        let mut numbers: Vec<f64> = numbers
            .collect::<Option<_>>()
            .ok_or_else(|| format!("the browser did not measure {pointer}"))?;
        numbers.sort_by(f64::total_cmp);
        let middle = numbers.get(numbers.len() / 2).copied();
        middle.ok_or_else(|| "no run".to_owned())
    }
}

// === rows ===

/// U1: the first paint of the page, and how much the browser loads for it.
pub(crate) fn first_paint(bench: &Bench) -> Result<Figure, String> {
    let figures = Demo::start(bench)?.figures(bench, &["--only", "paint"], 5)?;
    let paint = figures.median("/first_paint_ms")?;
    let kib = figures.median("/first_paint_bytes")? / 1024.0;
    Ok(Figure {
        text: format!("{paint:.0} ms, {kib:.0} KiB"),
        is_met: Some(paint <= 300.0 && kib <= 150.0),
    })
}

/// U2: from the navigation to the first complete flame graph.
pub(crate) fn first_flame_graph(bench: &Bench) -> Result<Figure, String> {
    let demo = Demo::start(bench)?;
    let small = demo
        .of_size(bench, FIFTY_THOUSAND)?
        .median("/first_flame_graph_ms")?;
    let large = demo
        .of_size(bench, MILLION)?
        .median("/first_flame_graph_ms")?;
    Ok(Figure {
        text: format!("{small:.0} ms with 50 k nodes, {large:.0} ms with 1 M"),
        is_met: Some(small <= 1000.0 && large <= 3000.0),
    })
}

/// U3: frames while the picture is moved.
pub(crate) fn motion(bench: &Bench) -> Result<Figure, String> {
    let demo = Demo::start(bench)?;
    let measure = |nodes| {
        let figures = demo.of_size(bench, nodes)?;
        let script = figures.median("/move_script_ms/p95")?;
        Ok::<_, String>((script, figures.median("/move_frame_ms/p95")?))
    };
    let (script, frame) = measure(MILLION)?;
    let (script_5, frame_5) = measure(5 * MILLION)?;
    Ok(Figure {
        text: format!(
            "p95 of script and frame {script:.1} / {frame:.1} ms with 1 M nodes, {script_5:.1} / {frame_5:.1} with 5 M"
        ),
        is_met: Some(script <= 6.0 && frame <= 20.0 && script_5 <= 10.0 && frame_5 <= 34.0),
    })
}

/// U4: from the pointer's move to the tooltip, and finding the box under it.
pub(crate) fn hover(bench: &Bench) -> Result<Figure, String> {
    let figures = Demo::start(bench)?.of_size(bench, MILLION)?;
    let hover = figures.median("/hover_ms/p95")?;
    // A page's clock goes in steps of 100 µs, so that a quantile is 0 or 100; a mean of many is not.
    let hit = figures.median("/hit_ms/mean")? * 1000.0;
    Ok(Figure {
        text: format!("p95 {hover:.2} ms, finding the box {hit:.1} µs on average, with 1 M nodes"),
        is_met: Some(hover <= 16.7 && hit <= 50.0),
    })
}

/// U5: a regular expression over the names.
pub(crate) fn search(bench: &Bench) -> Result<Figure, String> {
    let milliseconds = Demo::start(bench)?
        .of_size(bench, MILLION)?
        .median("/search_ms")?;
    Ok(Figure {
        text: format!("{milliseconds:.0} ms with 1 M nodes"),
        is_met: Some(milliseconds <= 100.0),
    })
}

/// U6: from a click on a frame to the tree that was asked for anew.
pub(crate) fn focus(bench: &Bench) -> Result<Figure, String> {
    let figures = Demo::start(bench)?.figures(bench, &["--only", "focus"], RUNS)?;
    let p95 = figures.median("/focus_ms/p95")?;
    Ok(Figure {
        text: format!("p95 {p95:.0} ms on demo data"),
        is_met: Some(p95 <= 300.0),
    })
}

/// U7: memory of the page for a node, and what 200 changes between two pictures leave.
pub(crate) fn memory(bench: &Bench) -> Result<Figure, String> {
    let demo = Demo::start(bench)?;
    let bytes = demo.of_size(bench, MILLION)?.median("/bytes_per_node")?;
    let cycles = demo.figures(bench, &["--only", "cycles"], 1)?;
    let growth = cycles.median("/cycle_growth_bytes")? / 1024.0;
    Ok(Figure {
        text: format!("{bytes:.0} B a node with 1 M; {growth:+.0} KiB after 200 changes"),
        // Timings that the browser keeps of the page come and go by so much.
        is_met: Some(bytes <= 60.0 && growth <= 64.0),
    })
}

/// U8: what axe finds on every screen.
pub(crate) fn barriers(bench: &Bench) -> Result<Figure, String> {
    let seen = Demo::start(bench)?.walk(bench, "axe.mjs", &["checkout"])?;
    let found = problems(&seen)?;
    let rules = seen["rules"].as_u64().unwrap_or(0);
    Ok(Figure {
        text: format!("{found} of {rules} checks"),
        is_met: Some(found == 0 && rules > 100),
    })
}

/// U9: pictures against those that were looked at.
pub(crate) fn pictures(bench: &Bench) -> Result<Figure, String> {
    let demo = Demo::start_with(
        bench,
        "window-of-pictures",
        &["--seed", "1", "--at", MOMENT_OF_PICTURES],
    )?;
    let seen = demo.walk(bench, "goldens.mjs", &[])?;
    if let Some(reason) = seen["skipped"].as_str() {
        return Err(reason.to_owned());
    }
    let found = problems(&seen)?;
    let compared = seen["compared"].as_u64().unwrap_or(0);
    Ok(Figure {
        text: format!("{found} of {compared}"),
        is_met: Some(found == 0 && compared == 24),
    })
}

fn problems(seen: &Value) -> Result<usize, String> {
    let problems = seen["problems"].as_array();
    problems
        .map(Vec::len)
        .ok_or_else(|| format!("the walk told no problems: {seen}"))
}
