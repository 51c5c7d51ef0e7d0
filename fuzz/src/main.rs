//! `candela-fuzz seeds TARGET DIRECTORY` writes sound inputs, `candela-fuzz run TARGET FILE…` runs
//! inputs; `candela-fuzz targets` lists what there is.
//!
//! With the cargo feature `libfuzzer` it is libFuzzer's program instead, for the target that
//! `CANDELA_FUZZ_TARGET` names; `cargo xtask fuzz` does that.
#![cfg_attr(feature = "libfuzzer", no_main)]
#![cfg_attr(not(feature = "libfuzzer"), forbid(unsafe_code))]

#[cfg(feature = "libfuzzer")]
mod libfuzzer;

#[cfg(not(feature = "libfuzzer"))]
fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(message) => {
            use std::io::Write;
            // A closed stderr is no reason to fail in another way.
            let _ = writeln!(std::io::stderr(), "candela-fuzz: {message}");
            std::process::ExitCode::from(2)
        }
    }
}

#[cfg(not(feature = "libfuzzer"))]
fn run(arguments: &[String]) -> Result<(), String> {
    use std::io::Write;

    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let find = |name: &str| {
        candela_fuzz::target(name).ok_or_else(|| format!("no target {name}; see `targets`"))
    };
    match &arguments[..] {
        ["targets"] => {
            for target in candela_fuzz::TARGETS {
                writeln!(std::io::stdout(), "{}", target.name).map_err(|it| it.to_string())?;
            }
            Ok(())
        }
        ["seeds", name, directory] => {
            let directory = std::path::Path::new(directory);
            for (number, seed) in (find(name)?.seeds)().iter().enumerate() {
                let path = directory.join(format!("seed-{number}"));
                std::fs::write(&path, seed).map_err(|it| format!("{}: {it}", path.display()))?;
            }
            Ok(())
        }
        ["run", name, files @ ..] => {
            let target = find(name)?;
            for file in files {
                let input = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
                (target.run)(&input);
            }
            Ok(())
        }
        _ => Err("usage: targets | seeds TARGET DIRECTORY | run TARGET FILE…".to_owned()),
    }
}
