//! How long names take.

use std::hint::black_box;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use candela_symbols::SymbolCache;
use candela_symbols::SymbolCacheOptions;

use crate::Figure;
use crate::host::Bench;
use crate::process::output;
use crate::usage::least_of_turns;

const ADDRESSES: usize = 200;
const LEAST_BYTES: u64 = 100 << 20;
const TURNS: usize = 7;
/// A program that does nothing else, so that it can be compared with others.
pub(crate) const COMMAND: &str = "symbolize";

/// Y1: the names of addresses all over a large program with debug information, by a program that has just
/// started, and again once they are known.
pub(crate) fn symbolize(bench: &Bench) -> Result<Figure, String> {
    let object = subject(bench)?;
    let addresses = addresses_of(&object)?;
    let text = object.display().to_string();
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let command_of = |words: &[&str], last: &[String]| -> Vec<String> {
        let words = words.iter().map(|&word| word.to_owned());
        words.chain(last.iter().cloned()).collect()
    };
    let own = own.display().to_string();
    let mut programs = vec![
        command_of(&[&own, COMMAND, &text], &addresses),
        command_of(&["llvm-symbolizer", "--obj", &text], &addresses),
    ];
    let blazesym = bench.peer().filter(|peer| peer.ends_with("blazecli"));
    if let Some(blazesym) = blazesym {
        let words = [blazesym, "symbolize", "elf", "--path", &text];
        programs.push(command_of(&words, &addresses));
    }
    let used = least_of_turns(TURNS, &bench.folder("y1")?, &programs)?;
    let milliseconds = |index: usize| used.get(index).map(|usage| usage.seconds * 1e3);
    let (Some(ours), Some(llvm)) = (milliseconds(0), milliseconds(1)) else {
        return Err("not all programs ran".to_owned());
    };
    let (peer, ratio) = match milliseconds(2) {
        Some(peer) => (format!("blazesym {peer:.0} ms"), Some(ours / peer)),
        None => ("blazesym not run".to_owned(), None),
    };
    let warm = warm(&object, &addresses)?;
    let warm_ns = warm.as_nanos() as f64 / ADDRESSES as f64;
    let mib = object.metadata().map_or(0, |it| it.len()) >> 20;
    Ok(Figure {
        text: format!(
            "{ADDRESSES} addresses of {mib} MiB: {ours:.0} ms, {peer}, llvm-symbolizer {llvm:.0} ms; warm {warm_ns:.0} ns each"
        ),
        is_met: ratio.map(|ratio| ratio <= 1.5 && warm_ns <= 1_000.0),
    })
}

/// `symbolize FILE ADDRESS…`: prints the name of each.
pub(crate) fn print_names(arguments: &[String], print: &mut dyn FnMut(&str)) -> Result<(), String> {
    let (object, addresses) = arguments
        .split_first()
        .ok_or("symbolize takes a file and addresses")?;
    let names = Names::open(Path::new(object))?;
    for &address in &parse(addresses)? {
        for name in names.of(address) {
            print(&name);
        }
    }
    Ok(())
}

struct Names {
    cache: SymbolCache,
    object: std::sync::Arc<candela_symbols::ObjectFile>,
}

impl Names {
    fn open(path: &Path) -> Result<Self, String> {
        let cache = SymbolCache::new(SymbolCacheOptions::default());
        let object = cache
            .open_path(path, Path::new("/"))
            .map_err(|error| error.to_string())?;
        Ok(Self { cache, object })
    }

    fn of(&self, address: u64) -> Vec<String> {
        let resolution = self.cache.resolve(&self.object, address);
        let frames = resolution.frames.iter();
        frames.map(|frame| frame.function.to_string()).collect()
    }
}

/// The least time that all addresses take when their names are in memory.
fn warm(object: &Path, addresses: &[String]) -> Result<Duration, String> {
    let names = Names::open(object)?;
    let addresses = parse(addresses)?;
    let mut least = Duration::MAX;
    for _ in 0..20 {
        let begun = Instant::now();
        for &address in &addresses {
            black_box(names.cache.resolve(&names.object, black_box(address)));
        }
        least = least.min(begun.elapsed());
    }
    Ok(least)
}

fn parse(addresses: &[String]) -> Result<Vec<u64>, String> {
    let parse = |text: &String| {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        u64::from_str_radix(digits, 16).map_err(|_| format!("{text} is no address"))
    };
    addresses.iter().map(parse).collect()
}

/// Our own program as `cargo build` makes it: every developer has it, and it is large enough.
fn subject(bench: &Bench) -> Result<PathBuf, String> {
    let release = bench.binary("candela")?;
    let folder = release.parent().and_then(Path::parent);
    let debug = folder.ok_or("no target folder")?.join("debug/candela");
    match debug.metadata() {
        Ok(metadata) if metadata.len() >= LEAST_BYTES => Ok(debug),
        _ => Err(format!(
            "{} is not there or smaller than 100 MiB: cargo build --package candela",
            debug.display()
        )),
    }
}

/// Places in functions all over the program.
fn addresses_of(object: &Path) -> Result<Vec<String>, String> {
    let symbols = output(Command::new("nm").args(["--defined-only"]).arg(object))?;
    let mut functions: Vec<u64> = symbols
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            matches!(words.next()?, "t" | "T").then_some(address)
        })
        .collect();
    functions.sort_unstable();
    let every = functions.len() / ADDRESSES;
    if every == 0 {
        return Err(format!("{} has too few functions", object.display()));
    }
    let chosen = functions.iter().step_by(every).take(ADDRESSES);
    Ok(chosen
        .map(|address| format!("{:#x}", address + 4))
        .collect())
}
