//! How sure `/api/v1/diff` is of what changed.

use candela_model::FrameKind;
use candela_model::Labels;
use candela_model::Location;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;
use serde_json::Value;
use serde_json::json;

use crate::support::NOW_NS;
use crate::support::TestServer;
use crate::support::cpu_type;

const HOUR_NS: i64 = 3_600_000_000_000;
const PERIOD: i64 = 10;
const HOSTS: i64 = 8;

/// Samples of functions below `main`.
type Functions = [(&'static str, i64); 4];

fn profile(host: i64, start_ns: i64, functions: Functions) -> Profile {
    let stacks = functions.map(|(name, samples)| (["main", name], samples));
    let stacks = stacks
        .each_ref()
        .map(|(stack, samples)| (&stack[..], *samples));
    profile_of_stacks(host, start_ns, &stacks)
}

/// Of stacks with the root first.
fn profile_of_stacks(host: i64, start_ns: i64, stacks: &[(&[&str], i64)]) -> Profile {
    let mut profile = Profile::default();
    let labels = [
        ("service_name", "shop".to_owned()),
        ("host", format!("host-{host}")),
    ];
    let mut series = ProfileSeries {
        start_ns,
        duration_ns: 10_000_000_000,
        period: PERIOD,
        ..ProfileSeries::new(Labels::from_pairs(labels), cpu_type())
    };
    for (names, samples) in stacks.iter().filter(|(_, samples)| *samples > 0) {
        let leaf_first = names.iter().rev().map(|name| {
            let symbols = &mut profile.symbols;
            let function = symbols.intern_function(name, "", "shop.c", 1);
            let place = Location::new(FrameKind::Native, 0);
            symbols.intern_location(&place, &[(function, 2, 0)])
        });
        let leaf_first: Vec<_> = leaf_first.collect();
        let stack = profile.stacks.intern(&leaf_first);
        series.samples.push(Sample::new(stack, samples * PERIOD));
    }
    profile.series.push(series);
    profile
}

/// Two hours of a few hosts. `parse` grew by half, `fresh` is new, `old` is gone, and `noise` differs
/// from host to host more than from hour to hour.
fn server(hosts: i64) -> TestServer {
    let server = TestServer::start();
    let wobble = |host: i64| host * 37 % 11;
    server.runtime.block_on(async {
        for host in 0..hosts {
            let before = [
                ("parse", 400 + wobble(host)),
                ("noise", 3000 + 90 * wobble(host + 3)),
                ("fresh", 0),
                ("old", 60 + wobble(host)),
            ];
            let after = [
                ("parse", 600 + wobble(host + 1)),
                ("noise", 3000 + 90 * wobble(host + 5)),
                ("fresh", 55 + wobble(host)),
                ("old", 0),
            ];
            for (hours, functions) in [(2, before), (1, after)] {
                let profile = profile(host, NOW_NS - hours * HOUR_NS + 1_000_000, functions);
                let appended = server.store.append("anonymous", profile).await;
                appended.expect("appends");
            }
        }
    });
    server
}

const SIDES: &str = "/api/v1/diff?from=now-1h&to=now&base_from=now-2h&base_to=now-1h";

fn function<'a>(diff: &'a Value, name: &str) -> &'a Value {
    let functions = diff["functions"].as_array().expect("an array");
    let found = functions.iter().find(|function| function["name"] == name);
    found.unwrap_or_else(|| panic!("{name} in {functions:?}"))
}

fn names(diff: &Value) -> Vec<&str> {
    let functions = diff["functions"].as_array().expect("an array").iter();
    let names = functions.map(|function| function["name"].as_str().expect("text"));
    names.collect()
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is a number"))
}

#[test]
fn what_changed_is_told_from_what_differs_anyway() {
    let server = server(HOSTS);
    let diff = server.json(SIDES);
    let statistics = &diff["statistics"];
    assert_eq!(
        (&statistics["normalization"], &statistics["fdr"]),
        (&json!("share"), &json!(0.05))
    );
    assert_eq!(statistics["clusters_are"], "instances");
    assert_eq!(statistics["clusters_before"], HOSTS);
    assert_eq!(statistics["clusters_after"], HOSTS);
    assert_eq!(statistics["is_paired"], true);
    assert_eq!(statistics["reason"], Value::Null);
    assert_eq!(statistics["tested"], 5);
    let parse = &function(&diff, "parse")["change"];
    assert_eq!(
        (&parse["class"], &parse["is_significant"]),
        (&json!("changed"), &json!(true))
    );
    assert!(
        number(&parse["low"]) > 1.2 && number(&parse["high"]) < 1.7,
        "{parse}"
    );
    assert!(number(&parse["low"]) < number(&parse["ratio"]));
    assert!(number(&parse["p"]) <= number(&parse["q"]));
    // Each host against itself, all ways to exchange sides; of those two make so much of it.
    assert_eq!(statistics["arrangements"], 256);
    assert_eq!(parse["confirmation"], "confirmed");
    assert_eq!(number(&parse["permutation_p"]), 2.0 / 256.0);
    // By share it has less of more; by time nothing is known to have changed.
    let by_time = server.json(&format!("{SIDES}&normalization=absolute"));
    let noise = function(&by_time, "noise");
    assert_eq!(noise["change"]["class"], "same");
    assert_eq!(noise["change"]["confirmation"], Value::Null);
    assert_eq!(noise["total_change"]["is_significant"], false);
    let fresh = &function(&diff, "fresh")["total_change"];
    assert_eq!(
        (&fresh["class"], &fresh["is_significant"]),
        (&json!("new"), &json!(true))
    );
    assert_eq!(
        (&fresh["ratio"], &fresh["high"]),
        (&Value::Null, &Value::Null)
    );
    assert!(number(&fresh["low"]) > 10.0, "{fresh}");
    let old = &function(&diff, "old")["change"];
    assert_eq!(
        (&old["class"], &old["ratio"]),
        (&json!("gone"), &json!(0.0))
    );
    // Everything is everything.
    let main = &function(&diff, "main")["total_change"];
    assert_eq!(
        (&main["class"], &main["ratio"]),
        (&json!("same"), &json!(1.0))
    );

    // Frames of the tree have what their functions have.
    for frame in diff["tree"]["frames"].as_array().expect("an array") {
        let name = frame["name"].as_str().expect("text");
        if name == "total" {
            assert_eq!(frame["q"], Value::Null);
            continue;
        }
        let total = &function(&diff, name)["total_change"];
        for field in ["ratio", "q", "is_significant"] {
            assert_eq!(frame[field], total[field], "{name} {field}");
        }
    }
}

/// Where a function is called from says which of its callers changed.
#[test]
fn nodes_are_tested_from_the_root_down() {
    let server = TestServer::start();
    server.runtime.block_on(async {
        for host in 0..HOSTS {
            for (hours, of_export) in [(2, 1000), (1, 1400)] {
                let profile = profile_of_stacks(
                    host,
                    NOW_NS - hours * HOUR_NS + 1_000_000,
                    &[
                        (&["main", "export", "compress"], of_export + host * 37 % 11),
                        (&["main", "import", "compress"], 1000 + host * 31 % 11),
                        (&["main", "import", "read"], 2000 + host * 29 % 13),
                        (&["main", "serve"], 3000 + host * 23 % 17),
                    ],
                );
                let appended = server.store.append("anonymous", profile).await;
                appended.expect("appends");
            }
        }
    });
    let diff = server.json(&format!("{SIDES}&normalization=absolute"));
    let tree = &diff["tree"];
    let column = |name: &str| tree[name].as_array().expect("an array").clone();
    let (frames, depths) = (column("frame"), column("depth"));
    let (q, verdicts) = (column("q"), column("is_significant"));
    let mut path: Vec<String> = Vec::new();
    let mut of_path = std::collections::BTreeMap::new();
    for node in 0..frames.len() {
        let frame = frames[node].as_u64().expect("an index") as usize;
        let name = tree["frames"][frame]["name"].as_str().expect("text");
        path.truncate(depths[node].as_u64().expect("a depth") as usize);
        path.push(name.to_owned());
        assert_eq!(verdicts[node].is_null(), q[node].is_null(), "{path:?}");
        of_path.insert(path[1..].join(";"), verdicts[node].clone());
    }
    let verdict = |path: &str| &of_path[path];
    assert_eq!(verdict("main;export"), true);
    assert_eq!(verdict("main;export;compress"), true);
    assert_eq!(verdict("main;import"), false);
    // What is called from there was not asked: it is compress as such that changed.
    assert_eq!(verdict("main;import;compress"), &Value::Null);
    let compress = &function(&diff, "compress")["total_change"];
    assert_eq!(compress["is_significant"], true);
    let tested = verdicts.iter().filter(|verdict| !verdict.is_null()).count();
    assert_eq!(diff["statistics"]["tested_nodes"], tested);

    // Nodes that are not shown are not tested.
    let pruned = server.json(&format!("{SIDES}&normalization=absolute&max_nodes=3"));
    assert_eq!(pruned["functions"], diff["functions"]);
    assert!(pruned["statistics"]["tested_nodes"].as_u64() < Some(tested as u64));
    let without = server.json(&format!("{SIDES}&statistics=false"));
    assert_eq!(without["statistics"]["tested_nodes"], 0);
    let verdicts = without["tree"]["is_significant"].as_array();
    assert!(verdicts.expect("an array").iter().all(Value::is_null));
}

#[test]
fn changes_are_listed_by_what_became_of_them() {
    let server = server(HOSTS);
    let listed = |changes: &str| {
        let diff = server.json(&format!("{SIDES}&normalization=absolute&changes={changes}"));
        let mut names: Vec<String> = names(&diff).into_iter().map(str::to_owned).collect();
        assert_eq!(diff["truncated"]["total"], names.len());
        assert_eq!(diff["tree"]["nodes"], 6, "the tree is whole");
        names.sort();
        names
    };
    assert_eq!(listed("all"), ["fresh", "main", "noise", "old", "parse"]);
    assert_eq!(listed("significant"), ["fresh", "old", "parse"]);
    assert_eq!(listed("changed"), ["parse"]);
    assert_eq!(listed("new"), ["fresh"]);
    assert_eq!(listed("gone"), ["old"]);
}

#[test]
fn the_order_follows_the_normalization_and_values_do_not() {
    let server = TestServer::start();
    // Twice the load: by share and by what most do nothing changed but `b`.
    let before = [("a", 1000), ("b", 300), ("c", 500), ("d", 700)];
    let after = [("a", 2000), ("b", 300), ("c", 1000), ("d", 1400)];
    server.runtime.block_on(async {
        for host in 0..3 {
            for (hours, functions) in [(2, before), (1, after)] {
                let profile = profile(host, NOW_NS - hours * HOUR_NS + 1_000_000, functions);
                let appended = server.store.append("anonymous", profile).await;
                appended.expect("appends");
            }
        }
    });
    let with = |normalization: &str| server.json(&format!("{SIDES}&normalization={normalization}"));
    let robust = with("robust");
    assert_eq!(robust["statistics"]["size_factor"], 2.0);
    assert_eq!(names(&robust)[0], "b");
    let change = &function(&robust, "b")["change"];
    assert_eq!(
        (&change["ratio"], &change["class"]),
        (&json!(0.5), &json!("changed"))
    );
    assert_eq!(function(&robust, "a")["change"]["class"], "same");
    let absolute = with("absolute");
    assert_eq!(absolute["statistics"]["size_factor"], 1.0);
    assert_eq!(names(&absolute)[0], "a");
    assert_eq!(function(&absolute, "a")["change"]["ratio"], 2.0);
    for diff in [&robust, &absolute, &with("share")] {
        assert_eq!(diff["before"]["total"], 3 * 2500 * PERIOD);
        assert_eq!(function(diff, "a")["after"]["self"], 3 * 2000 * PERIOD);
    }
}

#[test]
fn who_knows_nothing_of_instances_says_so() {
    let one = server(1);
    let diff = one.json(SIDES);
    let statistics = &diff["statistics"];
    assert_eq!(statistics["clusters_are"], "none");
    let reason = statistics["reason"].as_str().expect("a reason");
    assert!(reason.contains("Poisson"), "{reason}");
    assert_eq!(function(&diff, "parse")["change"]["is_significant"], true);

    let without = one.json(&format!("{SIDES}&statistics=false"));
    let reason = without["statistics"]["reason"].as_str().expect("a reason");
    assert!(reason.contains("statistics=false"), "{reason}");
    assert_eq!(without["statistics"]["clusters_before"], 0);
    let parse = &function(&without, "parse")["change"];
    assert_eq!(
        (&parse["p"], &parse["q"], &parse["low"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(parse["class"], "changed");
    assert_eq!(parse["ratio"], function(&diff, "parse")["change"]["ratio"]);
    for part in ["before", "after"] {
        assert_eq!(without[part], diff[part]);
    }
    assert_eq!(without["tree"]["before_self"], diff["tree"]["before_self"]);

    let nothing = one.json("/api/v1/diff?base_from=now-4h&base_to=now-3h");
    let reason = nothing["statistics"]["reason"].as_str().expect("a reason");
    assert!(reason.contains("no samples"), "{reason}");
}

#[test]
fn three_hosts_are_too_few_to_confirm_anything() {
    let server = server(3);
    let diff = server.json(SIDES);
    let fresh = &function(&diff, "fresh")["change"];
    assert_eq!(fresh["is_significant"], true, "{fresh}");
    assert_eq!(fresh["confirmation"], "too_few", "{fresh}");
    assert_eq!(fresh["permutation_p"], Value::Null);
}

#[test]
fn a_comparison_leaves_as_table_and_as_picture() {
    let server = server(HOSTS);
    let of = |format: &str| {
        let answer = server.get(&format!(
            "{SIDES}&limit=0&normalization=robust&format={format}"
        ));
        assert_eq!(answer.status, 200, "{format}: {}", answer.text());
        answer
    };
    let diff = of("json").json();
    let csv = of("csv").text();
    let named = |line: &str| line.split(',').next().expect("a cell").to_owned();
    let rows: Vec<String> = csv.lines().skip(1).map(named).collect();
    assert_eq!(rows, names(&diff));
    let markdown = of("markdown").text();
    for name in names(&diff) {
        assert!(markdown.contains(name), "{name} in {markdown}");
    }
    let factor = number(&diff["statistics"]["size_factor"]);
    let svg = of("svg");
    assert!(
        svg.header("content-security-policy")
            .is_some_and(|it| it.contains("sandbox"))
    );
    let scale = format!("(before × {factor:.4})");
    assert!(svg.text().contains(&scale), "{scale}");
    assert!(svg.text().contains(r#"data-orientation="icicle""#));
    let before = of("svg&widths=before&orientation=flame").text();
    assert!(before.contains(r#"data-orientation="flame""#));
    let has = |svg: &str, name: &str| svg.contains(&format!(r#"data-name="{name}""#));
    assert!(has(&before, "old") && !has(&before, "fresh"));
    assert!(has(&svg.text(), "fresh") && !has(&svg.text(), "old"));
    let page = server.get(&format!("{SIDES}&format=html"));
    match page.status {
        501 => assert_eq!(page.json()["code"], "no_window"),
        _ => assert!(page.text().contains("cpu: {} "), "it says what it compares"),
    }
}
