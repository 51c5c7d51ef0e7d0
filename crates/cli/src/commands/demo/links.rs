//! What is planted, and the addresses of the window that show it.

use std::fmt::Write;
use std::time::Duration;

use candela_demo::DAY;
use candela_demo::Demo;
use candela_demo::LEAK;
use candela_demo::MISSING_SYMBOLS;
use candela_demo::PERTURBATION;
use candela_demo::REGRESSION;
use candela_demo::RENAME;
use candela_demo::SLOW_REGION;

use crate::percent::percent_encoded;

const HALF_AN_HOUR: Duration = Duration::from_secs(1800);
const HOUR: Duration = Duration::from_secs(3600);
const QUARTER_OF_AN_HOUR: Duration = Duration::from_secs(900);
const NO_TIME: Duration = Duration::ZERO;
const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;
const MIB: i64 = 1 << 20;

/// One thing to find.
struct Finding {
    what: String,
    /// Parameters of the window.
    state: Vec<(&'static str, String)>,
}

/// Some lines for who started the demo.
pub(crate) fn description(demo: &Demo, seed: u64, url: &str) -> String {
    let services = demo.services().count();
    let mut text = format!(
        "24 h of a shop of {services} services, made up of seed {seed}; nothing of this host is sampled\n\
         planted, and where to look:\n"
    );
    for Finding { what, state } in findings(demo) {
        let parameters = state.iter();
        let parameters =
            parameters.map(|(name, value)| format!("&{name}={}", percent_encoded(value)));
        let parameters: String = parameters.collect();
        writeln!(text, "- {what}\n  {url}/?v=1&live=0{parameters}").expect("a string takes all");
    }
    text.push_str("it is shown until Ctrl-C");
    text
}

fn findings(demo: &Demo) -> Vec<Finding> {
    let deploy = |before_end: Duration| {
        let mut state = range(demo, before_end, before_end - HALF_AN_HOUR);
        let base = range(demo, before_end + HALF_AN_HOUR, before_end);
        let base = base.into_iter().map(|(name, value)| (base_of(name), value));
        state.extend(base);
        state
    };
    let finding = |what: String, service: &str, screen: &str, state| {
        let mut all = vec![
            ("screen", screen.to_owned()),
            ("query", format!("{{service_name=\"{service}\"}}")),
        ];
        all.extend::<Vec<_>>(state);
        Finding { what, state: all }
    };
    let regression = format!(
        "{} {} spends {:.0} % more in {} than {}",
        REGRESSION.service,
        REGRESSION.version_after,
        (REGRESSION.factor - 1.0) * 100.0,
        REGRESSION.function,
        REGRESSION.version_before,
    );
    let rename = format!(
        "{} {} calls {} {}, which costs the same",
        RENAME.service, RENAME.version_after, RENAME.from, RENAME.to,
    );
    let perturbation = format!(
        "for {} s one {} does the work of all; the heatmap shows it, the line does not",
        PERTURBATION.duration.as_secs(),
        PERTURBATION.service,
    );
    let slow_region = format!(
        "in region {} {} of {} takes {} times as long",
        SLOW_REGION.region, SLOW_REGION.function, SLOW_REGION.service, SLOW_REGION.factor,
    );
    let leak = format!(
        "{} leaks {} MiB an hour and replica in {}",
        LEAK.service,
        LEAK.bytes_per_hour / MIB,
        LEAK.function,
    );
    let missing = format!(
        "{} of {} has no symbols",
        MISSING_SYMBOLS.binary, MISSING_SYMBOLS.service,
    );
    let mut by_region = range(demo, HOUR, NO_TIME);
    by_region.push(("by", "region".to_owned()));
    let mut in_use = range(demo, DAY, NO_TIME);
    in_use.push(("type", "inuse".to_owned()));
    let around_perturbation = range(
        demo,
        PERTURBATION.before_end + QUARTER_OF_AN_HOUR,
        PERTURBATION.before_end - QUARTER_OF_AN_HOUR,
    );
    let mut by_binary = range(demo, HOUR, NO_TIME);
    by_binary.push(("color", "binary".to_owned()));
    vec![
        finding(
            regression,
            REGRESSION.service,
            "compare",
            deploy(REGRESSION.before_end),
        ),
        finding(rename, RENAME.service, "compare", deploy(RENAME.before_end)),
        finding(
            perturbation,
            PERTURBATION.service,
            "profile",
            around_perturbation,
        ),
        finding(slow_region, SLOW_REGION.service, "labels", by_region),
        finding(leak, LEAK.service, "profile", in_use),
        finding(missing, MISSING_SYMBOLS.service, "profile", by_binary),
    ]
}

fn base_of(name: &str) -> &'static str {
    if name == "from" {
        "base_from"
    } else {
        "base_to"
    }
}

/// From one moment before the end of the day to another.
fn range(demo: &Demo, from: Duration, to: Duration) -> Vec<(&'static str, String)> {
    let milliseconds =
        |before_end| (demo.at_ns(before_end) / NANOSECONDS_PER_MILLISECOND).to_string();
    vec![("from", milliseconds(from)), ("to", milliseconds(to))]
}
