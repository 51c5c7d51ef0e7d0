//! `candela demo`, the real program: what is planted is what its answers say.

use std::time::Duration;

use crate::support;
use crate::support::Running;
use candela_demo::DAY;
use candela_demo::Demo;
use candela_demo::LEAK;
use candela_demo::MISSING_SYMBOLS;
use candela_demo::PERTURBATION;
use candela_demo::REGRESSION;
use candela_demo::RENAME;
use candela_demo::SLOW_REGION;
use serde_json::Value;
use serde_json::json;

const SEED: u64 = 7;
const HALF_AN_HOUR: Duration = Duration::from_secs(1800);
const HOUR: Duration = Duration::from_secs(3600);
const NO_TIME: Duration = Duration::ZERO;

/// A demo, and the day that it shows.
struct Shown {
    server: Running,
    demo: Demo,
}

impl Shown {
    /// Starts it on a folder, which says when its day ends.
    fn start(folder: &std::path::Path) -> Self {
        let server = Running::start(&[
            "demo",
            "--listen",
            "127.0.0.1:0",
            "--seed",
            &SEED.to_string(),
            "--data-dir",
            folder.to_str().unwrap(),
        ]);
        let mark = std::fs::read(folder.join("demo.json")).unwrap();
        let mark: Value = serde_json::from_slice(&mark).unwrap();
        let demo = Demo::new(SEED, mark["end_ns"].as_i64().unwrap());
        Self { server, demo }
    }

    fn milliseconds(&self, before_end: Duration) -> i64 {
        self.demo.at_ns(before_end) / 1_000_000
    }

    /// What a route answers of a service, from so long before the end of the day until so long before it.
    fn ask(&self, route: &str, service: &str, range: [Duration; 2], more: &str) -> Value {
        let [from, to] = range.map(|before_end| self.milliseconds(before_end));
        let query = format!("%7Bservice_name%3D%22{service}%22%7D");
        let path = format!("/api/v1/{route}?query={query}&from={from}&to={to}{more}");
        support::get_json(&self.server.url(&path))
    }

    /// Own and total value of a function in a table.
    fn value(table: &Value, function: &str, column: &str) -> f64 {
        let functions = table["functions"].as_array().unwrap();
        let found = functions.iter().find(|row| row["name"] == function);
        found.map_or(0.0, |row| row[column].as_f64().unwrap())
    }

    /// Half an hour before a deploy and half an hour after it. What one function gains does not move the
    /// others (robust). A server that others leave no time to answers without statistics: it is asked again.
    fn diff_around(&self, service: &str, before_end: Duration) -> Value {
        let base = format!(
            "&limit=0&normalization=robust&base_from={}&base_to={}",
            self.milliseconds(before_end + HALF_AN_HOUR),
            self.milliseconds(before_end),
        );
        let range = [before_end, before_end - HALF_AN_HOUR];
        support::eventually("a comparison with statistics", || {
            let diff = self.ask("diff", service, range, &base);
            diff["statistics"]["reason"].is_null().then_some(diff)
        })
    }
}

fn row<'a>(diff: &'a Value, function: &str) -> &'a Value {
    let functions = diff["functions"].as_array().unwrap();
    let mut found = functions.iter().filter(|row| row["name"] == function);
    found.next().unwrap()
}

/// Both sides of a row of a comparison.
fn sides(diff: &Value, function: &str) -> [f64; 2] {
    let row = row(diff, function);
    ["before", "after"].map(|side| row[side]["self"].as_f64().unwrap())
}

/// The functions of which the own value is said to have changed.
fn significant(diff: &Value) -> Vec<&str> {
    let functions = diff["functions"].as_array().unwrap().iter();
    functions
        .filter(|row| row["change"]["is_significant"] == true)
        .map(|row| row["name"].as_str().unwrap())
        .collect()
}

#[test]
fn a_demo_shows_what_is_planted_and_is_shown_again() {
    let folder = tempfile::tempdir().unwrap();
    let shown = Shown::start(folder.path());
    services_are_there(&shown);
    the_regression_is_on_top_of_its_diff(&shown);
    the_rename_keeps_the_sum(&shown);
    the_heatmap_shows_the_perturbation_and_the_line_does_not(&shown);
    the_region_differs(&shown);
    the_leak_grows(&shown);
    frames_without_symbols_are_there(&shown);
    links_lead_to_all_of_them(&shown);
    assert_eq!(shown.server.terminate(), Some(0));

    let again = Shown::start(folder.path());
    let messages = again.server.messages();
    assert!(messages.contains("is shown again"), "{messages}");
    services_are_there(&again);
    again.server.kill();

    let other_seed = support::run(&["demo", "--data-dir", folder.path().to_str().unwrap()]);
    support::expect_code(&other_seed, 1);
    let message = support::stderr(&other_seed);
    assert!(message.contains("of seed 7, not of seed 1"), "{message}");
}

fn services_are_there(shown: &Shown) {
    let [from, to] = [DAY, NO_TIME].map(|before_end| shown.milliseconds(before_end));
    for profile_type in ["cpu", "off_cpu", "alloc", "inuse", "lock"] {
        let path = format!("/api/v1/services?from={from}&to={to}&type={profile_type}");
        let answer = support::get_json(&shown.server.url(&path));
        let mut names: Vec<&str> = answer["services"]
            .as_array()
            .unwrap()
            .iter()
            .map(|service| service["service"].as_str().unwrap())
            .collect();
        names.sort_unstable();
        let mut expected: Vec<&str> = shown.demo.services().collect();
        expected.sort_unstable();
        assert_eq!(names, expected, "{profile_type}");
    }
    let path = format!("/api/v1/labels?from={from}&to={to}");
    let labels = support::get_json(&shown.server.url(&path)).to_string();
    for label in [
        "region",
        "host",
        "pod",
        "version",
        "route",
        "thread_name",
        "off_cpu_reason",
    ] {
        assert!(
            labels.contains(&format!("\"{label}\"")),
            "{label}: {labels}"
        );
    }
}

fn the_regression_is_on_top_of_its_diff(shown: &Shown) {
    let diff = shown.diff_around(REGRESSION.service, REGRESSION.before_end);
    assert_eq!(diff["functions"][0]["name"], REGRESSION.function);
    let [before, after] = sides(&diff, REGRESSION.function);
    let samples = |value: f64| value / candela_demo::PERIOD_NS as f64;
    let error = (1.0 / samples(before) + 1.0 / samples(after)).sqrt();
    let off_by = after / before / REGRESSION.factor - 1.0;
    assert!(
        off_by.abs() < 4.0 * error + 0.01,
        "{off_by} with an error of {error}"
    );
    // Nothing else changed, and nothing else is said to have.
    assert_eq!(significant(&diff), [REGRESSION.function]);
    let change = &row(&diff, REGRESSION.function)["change"];
    let [low, high] = ["low", "high"].map(|bound| change[bound].as_f64().unwrap());
    assert!((low..high).contains(&REGRESSION.factor), "{change}");
    assert!(low > 1.0, "{change}");
    assert_eq!(diff["statistics"]["clusters_are"], "instances");
}

fn the_rename_keeps_the_sum(shown: &Shown) {
    let diff = shown.diff_around(RENAME.service, RENAME.before_end);
    let [from, gone] = sides(&diff, RENAME.from);
    let [new, to] = sides(&diff, RENAME.to);
    assert_eq!((gone, new), (0.0, 0.0));
    assert!((to / from - 1.0).abs() < 0.1, "{from} to {to}");
    let [before, after] = ["before", "after"].map(|side| diff[side]["total"].as_f64().unwrap());
    assert!((after / before - 1.0).abs() < 0.05, "{before} to {after}");
    let class = |function| &row(&diff, function)["change"]["class"];
    assert_eq!(
        (class(RENAME.from), class(RENAME.to)),
        (&json!("gone"), &json!("new"))
    );
    let mut significant = significant(&diff);
    significant.sort_unstable();
    assert_eq!(significant, [RENAME.from, RENAME.to]);
}

fn the_heatmap_shows_the_perturbation_and_the_line_does_not(shown: &Shown) {
    let minutes = Duration::from_secs(300);
    let range = [
        PERTURBATION.before_end + minutes,
        PERTURBATION.before_end - minutes,
    ];
    let heatmap = shown.ask(
        "heatmap",
        PERTURBATION.service,
        range,
        "&step=10&buckets=10",
    );
    let from = shown.milliseconds(PERTURBATION.before_end);
    let to = shown.milliseconds(PERTURBATION.before_end - PERTURBATION.duration);
    let mut perturbed = 0;
    for column in heatmap["columns"].as_array().unwrap() {
        let counts = column["counts"].as_array().unwrap();
        let upper: i64 = counts[5..]
            .iter()
            .map(|count| count.as_i64().unwrap())
            .sum();
        let is_perturbed = (from..to).contains(&column["time"].as_i64().unwrap());
        assert_eq!(upper, i64::from(is_perturbed), "{column}");
        perturbed += upper;
    }
    assert_eq!(perturbed, 3);
    let line = shown.ask("series", PERTURBATION.service, range, "&step=30");
    let points = line["series"][0]["points"].as_array().unwrap();
    let values = || points.iter().map(|point| point[1].as_f64().unwrap());
    let mean = values().sum::<f64>() / points.len() as f64;
    assert!(
        values().all(|value| (value / mean - 1.0).abs() < 0.3),
        "{points:?}"
    );
}

fn the_region_differs(shown: &Shown) {
    let line = shown.ask(
        "series",
        SLOW_REGION.service,
        [HOUR, NO_TIME],
        "&step=3600&group_by=region&focus=fn:verify_chain",
    );
    let sums = line["series"].as_array().unwrap().iter().map(|series| {
        let region = series["labels"]["region"].as_str().unwrap();
        let points = series["points"].as_array().unwrap().iter();
        (
            region,
            points.map(|point| point[1].as_f64().unwrap()).sum::<f64>(),
        )
    });
    let (slow, others): (Vec<_>, Vec<_>) =
        sums.partition(|&(region, _)| region == SLOW_REGION.region);
    assert_eq!((slow.len(), others.len()), (1, 2));
    assert!(
        others.iter().all(|other| slow[0].1 > other.1 * 1.8),
        "{slow:?} {others:?}"
    );
}

fn the_leak_grows(shown: &Shown) {
    let in_use = |from: u64| {
        let range = [from, from - 1].map(|hours| HOUR * u32::try_from(hours).unwrap());
        let table = shown.ask("top", LEAK.service, range, "&type=inuse&limit=0");
        let rest = table["total"].as_f64().unwrap() - Shown::value(&table, LEAK.function, "total");
        (Shown::value(&table, LEAK.function, "total"), rest)
    };
    let (early, early_rest) = in_use(23);
    let (late, late_rest) = in_use(1);
    assert!(late > 5.0 * early, "{early} to {late}");
    assert!(
        (late_rest / early_rest - 1.0).abs() < 0.05,
        "{early_rest} to {late_rest}"
    );
}

fn frames_without_symbols_are_there(shown: &Shown) {
    let table = shown.ask("top", MISSING_SYMBOLS.service, [HOUR, NO_TIME], "&limit=0");
    let functions = table["functions"].as_array().unwrap();
    let of_binary = functions
        .iter()
        .filter(|row| row["mapping"] == MISSING_SYMBOLS.binary);
    let names: Vec<&str> = of_binary.map(|row| row["name"].as_str().unwrap()).collect();
    assert!(names.len() >= 4, "{names:?}");
    assert!(names.iter().all(|name| name.contains("+0x")), "{names:?}");
}

fn links_lead_to_all_of_them(shown: &Shown) {
    let messages = shown.server.messages();
    let links = messages.lines().filter(|line| line.contains("/?v=1"));
    assert_eq!(links.count(), 6, "{messages}");
    for part in [
        REGRESSION.function,
        RENAME.to,
        SLOW_REGION.region,
        LEAK.function,
    ] {
        assert!(messages.contains(part), "{part}: {messages}");
    }
}

#[test]
fn a_folder_of_something_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let output = support::run(&["demo", "--data-dir", folder.path().to_str().unwrap()]);
    support::expect_code(&output, 1);
    let message = support::stderr(&output);
    assert!(message.contains("something else than a demo"), "{message}");
    assert!(message.contains("choose another --data-dir"), "{message}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_folder_of_its_own_goes_away_with_the_demo() {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = support::candela();
    command
        .args(["demo", "--listen", "127.0.0.1:0"])
        .env("TMPDIR", temporary.path());
    let server = Running::launch(&mut command).unwrap();
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 1);
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}

#[test]
fn an_interrupted_start_leaves_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let mut child = support::candela()
        .args(["demo", "--listen", "127.0.0.1:0"])
        .env("TMPDIR", temporary.path())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    support::eventually("its folder is marked", || {
        let mut folders = std::fs::read_dir(temporary.path()).unwrap();
        let folder = folders.next()?.unwrap();
        folder.path().join("demo.json").is_file().then_some(())
    });
    support::signal(child.id(), "INT");
    let status = support::eventually("it ends", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(130));
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}
