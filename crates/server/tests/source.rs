//! What source lines and instructions of functions took, and that no file is read but those it may.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use candela_model::FrameKind;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::Sample;
use candela_server::AuthOptions;
use candela_server::ServerOptions;
use candela_symbols::ObjectFile;
use candela_symbols::SourceRoots;
use candela_symbols::Symbolizer;
use candela_symbols::SymbolizerOptions;
use serde_json::Value;
use serde_json::json;

use crate::support;
use crate::support::TestServer;
use crate::support::demo_profile;
use crate::support::pprof_bytes;
use crate::support::request;

/// Frames as function, file and line; stacks leaf first.
type Frames<'a> = &'a [(&'a str, &'a str, u32)];

fn profile_of(stacks: &[(Frames<'_>, i64)]) -> Profile {
    let mut profile = Profile::default();
    let mut series = demo_profile().series.remove(0);
    series.samples.clear();
    for (stack, value) in stacks {
        let locations: Vec<LocationId> = stack
            .iter()
            .map(|&(name, file, line)| {
                let function = profile.symbols.intern_function(name, "", file, 1);
                let place = Location::new(FrameKind::Native, u64::from(line));
                profile
                    .symbols
                    .intern_location(&place, &[(function, line, 0)])
            })
            .collect();
        let stack = profile.stacks.intern(&locations);
        series.samples.push(Sample::new(stack, *value));
    }
    profile.series.push(series);
    profile
}

fn server_with(roots: &[String], profile: &Profile) -> TestServer {
    let server = TestServer::start_with(ServerOptions {
        source_roots: SourceRoots::parse(roots).expect("folders"),
        ..support::options()
    });
    push(&server, profile);
    server
}

fn push(server: &TestServer, profile: &Profile) {
    let answer = server.post("/api/v1/ingest?service=shop", &pprof_bytes(profile));
    assert_eq!(answer.status, 200, "{}", answer.text());
}

fn lines(answer: &Value) -> Vec<(u64, i64, i64)> {
    let lines = answer["place"]["lines"].as_array().expect("a list").iter();
    let number = |value: &Value| value.as_i64().expect("a number");
    lines
        .map(|line| {
            let at = line["line"].as_u64().expect("a line");
            (at, number(&line["self"]), number(&line["total"]))
        })
        .collect()
}

fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[test]
fn lines_add_up_to_the_table_of_functions_in_memory_and_in_blocks() {
    let profile = profile_of(&[
        (
            &[
                ("spin", "shop.c", 7),
                ("work", "shop.c", 20),
                ("main", "shop.c", 40),
            ],
            50,
        ),
        (
            &[
                ("spin", "shop.c", 8),
                ("work", "shop.c", 21),
                ("main", "shop.c", 40),
            ],
            30,
        ),
        (
            &[
                ("spin", "shop.c", 0),
                ("work", "shop.c", 21),
                ("main", "shop.c", 40),
            ],
            7,
        ),
        // Recursion, over the same line and over another.
        (
            &[
                ("work", "shop.c", 20),
                ("work", "shop.c", 22),
                ("work", "shop.c", 22),
                ("main", "shop.c", 41),
            ],
            13,
        ),
        (&[("spin", "other.c", 3)], 5),
    ]);
    let server = server_with(&[], &profile);
    for is_flushed in [false, true] {
        if is_flushed {
            server
                .runtime
                .block_on(server.store.flush())
                .expect("flushes");
        }
        let top = server.json("/api/v1/top");
        for row in top["functions"].as_array().expect("a list") {
            let name = row["name"].as_str().expect("a name");
            let file = row["file"].as_str().expect("a file");
            let answer = server.json(&format!("/api/v1/source?function={name}&file={file}"));
            assert_eq!(answer["total"], top["total"], "{name}");
            let place = &answer["place"];
            assert_eq!(
                (&place["self"], &place["total"]),
                (&row["self"], &row["total"]),
                "{name}"
            );
            let own: i64 = lines(&answer).iter().map(|(_, own, _)| own).sum();
            let unknown = place["unknown"]["self"].as_i64().expect("a number");
            assert_eq!(json!(own + unknown), row["self"], "{name}");
        }
        let work = server.json("/api/v1/source?function=work");
        assert_eq!(lines(&work), [(20, 13, 63), (21, 0, 37), (22, 0, 13)]);
        assert_eq!(work["place"]["hottest_line"], 20);
        let spin = server.json("/api/v1/source?function=spin");
        assert_eq!(spin["places"].as_array().expect("a list").len(), 2);
        assert_eq!(spin["place"]["file"], "shop.c");
        assert_eq!(spin["place"]["unknown"], json!({"self": 7, "total": 7}));
        let file = server.json("/api/v1/source?file=shop.c");
        assert_eq!(file["place"]["total"], 100);
        assert_eq!(lines(&file).last(), Some(&(41, 0, 13)));
    }
}

#[test]
fn a_path_gives_the_lines_of_that_caller_alone() {
    let profile = profile_of(&[
        (&[("work", "shop.c", 7), ("morning", "shop.c", 30)], 50),
        (&[("work", "shop.c", 8), ("evening", "shop.c", 31)], 30),
        (&[("work", "shop.c", 7), ("evening", "shop.c", 31)], 10),
    ]);
    let server = server_with(&[], &profile);
    let all = server.json("/api/v1/source?function=work");
    assert_eq!(all["place"]["hottest_line"], 7);
    let evening = server.json("/api/v1/source?function=work&path=evening");
    assert_eq!(evening["total"], 40);
    assert_eq!(lines(&evening), [(7, 10, 10), (8, 30, 30)]);
    assert_eq!(evening["place"]["hottest_line"], 8);
    let filtered = server.json("/api/v1/source?function=work&ignore=evening");
    assert_eq!(lines(&filtered), [(7, 50, 50)]);
    let nothing = server.json("/api/v1/source?function=nobody");
    assert!(nothing["place"].is_null());
    assert!(nothing["hint"].as_str().expect("a hint").contains("nobody"));
}

#[test]
fn texts_are_those_of_named_files_below_the_roots_alone() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let sources = folder.path().join("sources");
    fs::create_dir(&sources).expect("a folder");
    fs::write(sources.join("shop.c"), "int main;\n").expect("a file");
    fs::write(sources.join("other.c"), "int other;\n").expect("a file");
    fs::write(folder.path().join("secret"), "secret text").expect("a file");
    symlink(folder.path().join("secret"), sources.join("leak.c")).expect("a link");
    let inside = |name: &str| sources.join(name).to_str().expect("text").to_owned();
    let (shop, leak) = (inside("shop.c"), inside("leak.c"));
    let (up, gone) = (inside("../secret"), inside("gone.c"));
    let profile = profile_of(&[
        (&[("main", &shop, 1)], 10),
        (&[("leak", &leak, 1)], 10),
        (&[("up", &up, 1)], 10),
        (&[("gone", &gone, 1)], 10),
        (&[("etc", "/etc/passwd", 1)], 10),
        (&[("built", "/builds/shop/shop.c", 1)], 10),
        (&[("climbs", "/builds/shop/../../etc/passwd", 1)], 10),
        (&[("nameless", "", 0)], 10),
    ]);
    let roots = [
        sources.to_str().expect("text").to_owned(),
        format!("/builds/shop={}", sources.display()),
    ];
    let server = server_with(&roots, &profile);
    let state = |name: &str| {
        let answer = server.get(&format!("/api/v1/source?function={name}"));
        assert!(!answer.text().contains("secret text"), "{name}");
        assert!(!answer.text().contains("root:"), "{name}");
        answer.json()["source"]["state"]
            .as_str()
            .expect(name)
            .to_owned()
    };
    let main = server.json("/api/v1/source?function=main");
    assert_eq!(main["source"]["state"], "found");
    assert_eq!(main["source"]["text"], "int main;\n");
    assert_eq!(state("built"), "found");
    assert_eq!(state("leak"), "outside");
    assert_eq!(state("up"), "outside");
    assert_eq!(state("etc"), "outside");
    assert_eq!(state("climbs"), "outside");
    assert_eq!(state("gone"), "missing");
    assert_eq!(state("nameless"), "unnamed");
    // A file that is there and below a root, and that no profile names.
    let unnamed = format!("/api/v1/source?file={}", encoded(&inside("other.c")));
    let answer = server.json(&unnamed);
    assert!(
        answer["source"].is_null() && answer["place"].is_null(),
        "{answer}"
    );
    let named = format!(
        "/api/v1/source?function=main&file={}",
        encoded(&inside("other.c"))
    );
    assert!(server.json(&named)["source"].is_null());
    // Without folders nothing is read at all.
    let without = server_with(&[], &profile);
    let answer = without.json("/api/v1/source?function=main");
    assert_eq!(answer["source"]["state"], "no_roots");
    assert!(answer["source"]["text"].is_null());
}

#[test]
fn a_file_that_another_tenant_named_is_not_read() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    fs::write(folder.path().join("shop.c"), "int main;\n").expect("a file");
    let root = folder.path().to_str().expect("text").to_owned();
    let file = format!("{root}/shop.c");
    let server = TestServer::start_with(ServerOptions {
        source_roots: SourceRoots::parse(&[root]).expect("a folder"),
        auth: AuthOptions {
            multi_tenancy: true,
            ..AuthOptions::default()
        },
        ..support::options()
    });
    let body = pprof_bytes(&profile_of(&[(&[("main", &file, 1)], 10)]));
    let alpha = [("X-Scope-OrgID", "alpha")];
    let pushed = request(
        server.address,
        "POST",
        "/api/v1/ingest?service=shop",
        &alpha,
        &body,
    );
    assert_eq!(pushed.status, 200, "{}", pushed.text());
    let path = format!("/api/v1/source?file={}", encoded(&file));
    let own = request(server.address, "GET", &path, &alpha, b"");
    assert_eq!(own.json()["source"]["text"], "int main;\n");
    let beta = [("X-Scope-OrgID", "beta")];
    let foreign = request(server.address, "GET", &path, &beta, b"");
    assert_eq!(foreign.status, 200, "{}", foreign.text());
    assert!(foreign.json()["source"].is_null(), "{}", foreign.text());
}

const PROGRAM: &str = "\
__attribute__((noinline)) long spin(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++)
        __asm__ volatile(\"add %1, %0\" : \"+r\"(sum) : \"r\"(i));
    return sum;
}
int main(int argc, char **argv) {
    return (int)spin(argc) + argv[0][0];
}
";

/// A compiled program, and a profile with a sample at each instruction of `spin`, its value being the
/// line; `None` without a compiler.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn program_and_profile(folder: &Path) -> Option<Profile> {
    fs::write(folder.join("spin.c"), PROGRAM).expect("a file");
    let compiled = Command::new("gcc")
        .args(["-O1", "-g", "-o", "spin", "spin.c"])
        .current_dir(folder)
        .status();
    if let Err(error) = &compiled
        && error.kind() == ErrorKind::NotFound
    {
        eprintln!("skipped: gcc is not installed");
        return None;
    }
    assert!(compiled.expect("gcc starts").success());
    let program = folder.join("spin");
    let object = Arc::new(ObjectFile::open(&program).expect("an ELF file"));
    let symbolizer = Symbolizer::new(Arc::clone(&object), SymbolizerOptions::default());
    let code = object.segments().iter().find(|segment| segment.executable);
    let code = *code.expect("code");
    let mut profile = Profile::default();
    let symbols = &mut profile.symbols;
    let mapping = Mapping {
        memory_start: code.address,
        memory_limit: code.address + code.memory_size,
        file_offset: code.file_offset,
        file: symbols.strings.intern(program.to_str().expect("text")),
        build_id: symbols.strings.intern(&object.build_id().to_string()),
    };
    let mapping = symbols.intern_mapping(mapping);
    let mut series = demo_profile().series.remove(0);
    series.samples.clear();
    for address in code.address..code.address + code.memory_size {
        let frames = symbolizer.resolve(address).frames;
        let Some(frame) = frames.first().filter(|frame| *frame.function == *"spin") else {
            continue;
        };
        let file = frame.file.as_deref().expect("a file");
        let function = profile
            .symbols
            .intern_function("spin", "", file, frame.start_line);
        let place = Location::new(FrameKind::Native, address).in_mapping(mapping);
        let lines = [(function, frame.line, frame.column)];
        let location = profile.symbols.intern_location(&place, &lines);
        let stack = profile.stacks.intern(&[location]);
        series
            .samples
            .push(Sample::new(stack, i64::from(frame.line)));
    }
    profile.series.push(series);
    Some(profile)
}

mod host {
    use super::*;

    #[test]
    fn instructions_have_the_values_of_their_positions() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let Some(profile) = program_and_profile(folder.path()) else {
            return;
        };
        let server = server_with(&[], &profile);
        let source = server.json("/api/v1/source?function=spin");
        let answer = server.json("/api/v1/disassembly?function=spin");
        assert_eq!(answer["code"]["state"], "found", "{answer:#}");
        assert_eq!(answer["build_id"], source["places"][0]["build_ids"][0]);
        let functions = answer["functions"].as_array().expect("a list");
        assert_eq!(functions.len(), 1);
        assert_eq!(functions[0]["name"], "spin");
        let positions = answer["positions"].as_array().expect("a list");
        let sum = |name: &str| -> i64 {
            positions
                .iter()
                .map(|at| at[name].as_i64().expect("a number"))
                .sum()
        };
        assert_eq!(json!(sum("self")), source["place"]["self"]);
        let instructions = functions[0]["instructions"].as_array().expect("a list");
        let with_position = instructions.iter().filter(|it| !it["position"].is_null());
        assert_eq!(sum("instructions"), with_position.count() as i64);
        let texts: Vec<&str> = instructions
            .iter()
            .map(|it| it["text"].as_str().expect("text"))
            .collect();
        assert!(texts.contains(&"ret"), "{texts:?}");
        assert!(
            texts.iter().any(|text| text.starts_with("add ")),
            "{texts:?}"
        );
        let last = instructions.iter().rfind(|it| it["text"] == "ret");
        let number = last.expect("it returns")["position"]
            .as_u64()
            .expect("a position");
        assert_eq!(positions[number as usize]["line"], 6);
    }

    #[test]
    fn code_is_shown_of_the_very_build_alone() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let Some(profile) = program_and_profile(folder.path()) else {
            return;
        };
        let server = server_with(&[], &profile);
        let path = "/api/v1/disassembly?function=spin";
        let other = server.json(&format!("{path}&build_id=c0ffee"));
        assert_eq!(other["code"]["state"], "other_build", "{other}");
        // The program is gone from its place, and was sent as a symbol file.
        let program = folder.path().join("spin");
        let bytes = fs::read(&program).expect("a program");
        fs::remove_file(&program).expect("removed");
        let gone = server.json(path);
        assert_eq!(gone["code"]["state"], "missing", "{gone}");
        assert_eq!(gone["functions"], json!([]));
        let sent = server.post("/api/v1/symbols", &bytes);
        assert_eq!(sent.status, 200, "{}", sent.text());
        let found = server.json(path);
        assert_eq!(found["code"]["state"], "found", "{found}");
        // Another file at its place has another build id.
        fs::copy("/proc/self/exe", &program).expect("copied");
        let without_upload = server_with(&[], &profile);
        let other = without_upload.json(path);
        assert_eq!(other["code"]["state"], "other_build", "{other}");
        assert_eq!(other["functions"], json!([]));
        let unknown = TestServer::with_demo_profile().json("/api/v1/disassembly?function=burn");
        assert_eq!(unknown["code"]["state"], "no_build_id", "{unknown}");
    }

    #[test]
    fn a_profile_file_has_lines_and_reads_nothing_of_the_host() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let Some(program) = program_and_profile(folder.path()) else {
            return;
        };
        let roots = [folder.path().to_str().expect("text").to_owned()];
        let server = server_with(&roots, &program);
        let stored = server.json("/api/v1/source?function=spin");
        assert_eq!(stored["source"]["state"], "found", "{stored}");
        let code = server.json("/api/v1/disassembly?function=spin");
        assert_eq!(code["code"]["state"], "found", "{code}");

        let file = pprof_bytes(&program);
        let asked = |question: &str| {
            let answer = server.post(&format!("/api/v1/files/{question}"), &file);
            assert_eq!(answer.status, 200, "{}", answer.text());
            answer.json()
        };
        let of_file = asked("source?function=spin");
        assert_eq!(of_file["place"], stored["place"]);
        assert_eq!(of_file["source"]["state"], "not_stored");
        assert!(of_file["source"]["text"].is_null(), "{of_file}");
        let named = of_file["place"]["file"].as_str().expect("a path");
        let by_file = asked(&format!("source?source_file={}", encoded(named)));
        assert_eq!(by_file["place"]["file"], named);
        let code = asked("disassembly?function=spin");
        assert_eq!(code["code"]["state"], "not_stored", "{code}");
        assert_eq!(code["functions"], json!([]));
    }
}
