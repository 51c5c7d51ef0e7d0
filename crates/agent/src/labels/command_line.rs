//! The name of a program from its executable and its arguments.

/// A family of interpreters: programs that say nothing, run by arguments that say everything.
struct Interpreter {
    /// The name that stands before the colon.
    name: &'static str,
    /// Options that take the next argument as their value.
    options_with_value: &'static [&'static str],
    /// Options after which no script follows: the program is in the argument or on standard input.
    options_with_program: &'static [&'static str],
    /// Words before the script that are no options (`deno run`, `dotnet exec`).
    subcommands: &'static [&'static str],
    /// The letter of a cluster of short options that takes the program: `bash -lc`, `perl -ne`.
    program_letter: Option<char>,
}

const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        name: "python",
        options_with_value: &["-W", "-X", "-Q", "--check-hash-based-pycs"],
        options_with_program: &["-c", "-"],
        subcommands: &[],
        program_letter: Some('c'),
    },
    Interpreter {
        name: "pypy",
        options_with_value: &["-W", "-X", "--jit"],
        options_with_program: &["-c", "-"],
        subcommands: &[],
        program_letter: Some('c'),
    },
    Interpreter {
        name: "java",
        options_with_value: &[
            "-cp",
            "-classpath",
            "--class-path",
            "-p",
            "--module-path",
            "--upgrade-module-path",
            "--add-modules",
            "--add-exports",
            "--add-opens",
            "--add-reads",
            "--enable-native-access",
            "--limit-modules",
            "--patch-module",
        ],
        options_with_program: &[],
        subcommands: &[],
        program_letter: None,
    },
    Interpreter {
        name: "node",
        options_with_value: &[
            "-r",
            "--require",
            "--import",
            "--loader",
            "--experimental-loader",
            "-C",
            "--conditions",
            "--env-file",
            "--title",
            "--icu-data-dir",
        ],
        options_with_program: &["-e", "--eval", "-p", "--print", "-i", "-"],
        subcommands: &[],
        program_letter: None,
    },
    Interpreter {
        name: "bun",
        options_with_value: &["--cwd", "-c", "--config", "-r", "--preload"],
        options_with_program: &["-e", "--eval"],
        subcommands: &["run"],
        program_letter: None,
    },
    Interpreter {
        name: "deno",
        options_with_value: &["-c", "--config", "--import-map"],
        options_with_program: &["eval", "repl"],
        subcommands: &["run"],
        program_letter: None,
    },
    Interpreter {
        name: "ruby",
        options_with_value: &["-r", "-I", "-E", "-C", "--encoding"],
        options_with_program: &["-e", "-"],
        subcommands: &[],
        program_letter: Some('e'),
    },
    Interpreter {
        name: "perl",
        options_with_value: &["-I"],
        options_with_program: &["-e", "-E", "-"],
        subcommands: &[],
        program_letter: Some('e'),
    },
    Interpreter {
        name: "php",
        options_with_value: &["-c", "-d", "-z", "-S", "-t"],
        options_with_program: &["-r", "-B", "-R", "-E", "-a"],
        subcommands: &[],
        program_letter: None,
    },
    Interpreter {
        name: "dotnet",
        options_with_value: &["--additionalprobingpath", "--fx-version", "--roll-forward"],
        options_with_program: &[],
        subcommands: &["exec"],
        program_letter: None,
    },
    Interpreter {
        name: "lua",
        options_with_value: &["-l"],
        options_with_program: &["-e", "-i", "-"],
        subcommands: &[],
        program_letter: None,
    },
    Interpreter {
        name: "Rscript",
        options_with_value: &[],
        options_with_program: &["-e"],
        subcommands: &[],
        program_letter: None,
    },
    Interpreter {
        name: "bash",
        options_with_value: &["-o", "-O", "--rcfile", "--init-file"],
        options_with_program: &["-c", "-s", "-i", "-l", "-"],
        subcommands: &[],
        program_letter: Some('c'),
    },
    Interpreter {
        name: "dash",
        options_with_value: &["-o"],
        options_with_program: &["-c", "-s", "-i", "-l", "-"],
        subcommands: &[],
        program_letter: Some('c'),
    },
    Interpreter {
        name: "sh",
        options_with_value: &["-o"],
        options_with_program: &["-c", "-s", "-i", "-l", "-"],
        subcommands: &[],
        program_letter: Some('c'),
    },
    Interpreter {
        name: "zsh",
        options_with_value: &["-o"],
        options_with_program: &["-c", "-s", "-i", "-l", "-"],
        subcommands: &[],
        program_letter: Some('c'),
    },
];

/// The name of a program: that of its executable, or for an interpreter the interpreter's name
/// without version, a colon, and the script, module or archive that it runs.
///
/// `executable` is the base name of the executable; `arguments` start with `argv[0]`.
#[must_use]
pub fn program_name(executable: &str, arguments: &[&str]) -> String {
    let Some(interpreter) = interpreter_of(executable) else {
        return executable.to_owned();
    };
    match script_of(interpreter, arguments.get(1..).unwrap_or_default()) {
        Some(script) if !script.is_empty() => format!("{}:{script}", interpreter.name),
        _ => interpreter.name.to_owned(),
    }
}

fn interpreter_of(executable: &str) -> Option<&'static Interpreter> {
    // python3.11, python3.13t (free-threaded), ruby2.7, php8.2, perl5.36.0, lua5.4
    let is_version = |character: char| character.is_ascii_digit() || character == '.';
    let without_thread_letter = executable
        .strip_suffix('t')
        .filter(|rest| rest.ends_with(is_version))
        .unwrap_or(executable);
    let name = match without_thread_letter.trim_end_matches(is_version) {
        "nodejs" => "node",
        "luajit" => "lua",
        name => name,
    };
    INTERPRETERS
        .iter()
        .find(|interpreter| interpreter.name == name)
}

fn script_of(interpreter: &Interpreter, arguments: &[&str]) -> Option<String> {
    let mut arguments = arguments.iter().copied();
    while let Some(argument) = arguments.next() {
        if interpreter.subcommands.contains(&argument) {
            continue;
        }
        if interpreter.options_with_program.contains(&argument) {
            return None;
        }
        if interpreter.options_with_value.contains(&argument) {
            arguments.next();
            continue;
        }
        if argument == "--" {
            return arguments.next().map(|program| shown(interpreter, program));
        }
        // Glued forms: python -mhttp.server, python -Wignore, ruby -Ilib.
        if interpreter.name == "python" && argument.starts_with("-m") && argument.len() > 2 {
            return Some(shown(interpreter, &argument[2..]));
        }
        if is_short_options_with_program(interpreter, argument) {
            return None;
        }
        if argument.starts_with('-') || argument.starts_with('+') || argument.is_empty() {
            continue;
        }
        return Some(shown(interpreter, argument));
    }
    None
}

/// `bash -lc 'make'`, `perl -ne '…'`, `python -Ic '…'`: the last letter takes the program.
fn is_short_options_with_program(interpreter: &Interpreter, argument: &str) -> bool {
    let (Some(letter), Some(cluster)) = (interpreter.program_letter, argument.strip_prefix('-'))
    else {
        return false;
    };
    let is_cluster = cluster.len() <= 4 && cluster.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_cluster && cluster.ends_with(letter)
}

/// A path is shown by its base name; a class or module as it is. A module of Java's
/// `module/class` form ends in the class.
fn shown(interpreter: &Interpreter, program: &str) -> String {
    let base_name = program
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(program);
    // `python /srv/app/__main__.py` and `python /srv/app` are the same program.
    if interpreter.name == "python" && base_name == "__main__.py" {
        let directory = program
            .trim_end_matches("__main__.py")
            .trim_end_matches('/');
        let package = directory.rsplit('/').next().unwrap_or_default();
        if !package.is_empty() {
            return package.to_owned();
        }
    }
    base_name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Executable, command line, name.
    const CASES: &[(&str, &str, &str)] = &[
        ("nginx", "nginx: worker process", "nginx"),
        ("postgres", "postgres: walwriter", "postgres"),
        ("python3.11", "python3 app.py", "python:app.py"),
        (
            "python3.11",
            "/usr/bin/python3 -u /srv/app/app.py --port 80",
            "python:app.py",
        ),
        (
            "python3.11",
            "python -m http.server 8000",
            "python:http.server",
        ),
        ("python3.11", "python -mhttp.server", "python:http.server"),
        (
            "python3.12",
            "python3 -X dev -W ignore worker.py",
            "python:worker.py",
        ),
        ("python3.12", "python3 -c print(1)", "python"),
        ("python3.12", "python3 -Ic import_x", "python"),
        ("python3.12", "python3", "python"),
        ("python3.13t", "python3.13t job.py", "python:job.py"),
        ("python2.7", "python old.py", "python:old.py"),
        (
            "python3",
            "/venv/bin/python /venv/bin/gunicorn app:app",
            "python:gunicorn",
        ),
        ("python3", "python3 /srv/tool/__main__.py", "python:tool"),
        ("python3", "gunicorn: master [app]", "python"),
        ("pypy3", "pypy3 bench.py", "pypy:bench.py"),
        (
            "java",
            "java -Xmx2g -jar /opt/my-service.jar --spring.profiles.active=prod",
            "java:my-service.jar",
        ),
        (
            "java",
            "java -cp /a:/b -Dx=y com.example.Main arg",
            "java:com.example.Main",
        ),
        (
            "java",
            "java --add-opens java.base/java.lang=ALL-UNNAMED -m app/com.example.Main",
            "java:com.example.Main",
        ),
        ("java", "java -version", "java"),
        ("node", "node server.js", "node:server.js"),
        (
            "node",
            "node --max-old-space-size=4096 -r dotenv/config /app/dist/server.js",
            "node:server.js",
        ),
        ("node", "node -e 1", "node"),
        ("nodejs", "nodejs index.js", "node:index.js"),
        ("ruby3.1", "ruby -Ilib bin/rails server", "ruby:rails"),
        ("ruby2.7", "ruby -e puts", "ruby"),
        ("perl", "perl -w /usr/bin/exiftool x.jpg", "perl:exiftool"),
        ("perl5.36.0", "perl -ne print", "perl"),
        (
            "php8.2",
            "php -d memory_limit=1G artisan queue:work",
            "php:artisan",
        ),
        ("php-fpm8.2", "php-fpm: pool www", "php-fpm8.2"),
        ("dotnet", "dotnet /app/Api.dll", "dotnet:Api.dll"),
        (
            "dotnet",
            "dotnet exec --fx-version 8.0 Api.dll",
            "dotnet:Api.dll",
        ),
        ("bash", "bash /opt/build.sh", "bash:build.sh"),
        ("bash", "bash -lc make", "bash"),
        ("bash", "-bash", "bash"),
        ("bash", "bash -xe ./ci.sh", "bash:ci.sh"),
        ("deno", "deno run --allow-net main.ts", "deno:main.ts"),
        ("dash", "/bin/sh -e ./run.sh", "dash:run.sh"),
        ("dash", "/bin/sh -c sleep", "dash"),
        ("luajit", "luajit game.lua", "lua:game.lua"),
        ("perlite", "perlite x", "perlite"),
        ("javascript", "javascript x", "javascript"),
        ("python3-config", "python3-config --libs", "python3-config"),
    ];

    #[test]
    fn command_lines_of_the_field() {
        for (executable, line, name) in CASES {
            // A program that writes its own title has one argument: the title.
            let separator = if line.contains(": ") { '\0' } else { ' ' };
            let arguments: Vec<&str> = line.split(separator).collect();
            assert_eq!(program_name(executable, &arguments), *name, "{line}");
        }
    }
}
