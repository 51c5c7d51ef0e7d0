//! A real PostgreSQL with work to do.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use crate::support;

/// Where Debian has one folder for each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// A server in a folder of its own, asked by pgbench until this is dropped.
pub(crate) struct Postgres {
    bench: Child,
    server: Child,
    _folder: tempfile::TempDir,
}

impl Postgres {
    /// None, with a word, where it is not installed.
    pub(crate) fn start(test: &str) -> Option<Self> {
        let (Some(programs), Some(user)) = (programs(), User::of_postgres()) else {
            println!("SKIP {test}: PostgreSQL is not installed");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(folder.path(), Some(user.uid), Some(user.gid)).unwrap();
        let place = folder.path().to_str().unwrap();
        let command = |program: &str| {
            let mut command = Command::new(programs.join(program));
            command
                .uid(user.uid)
                .gid(user.gid)
                .current_dir(place)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command
        };
        let run = |program: &str, arguments: &[&str]| {
            let status = command(program).args(arguments).status().unwrap();
            assert!(status.success(), "{program} {arguments:?}: {status}");
        };
        let data = format!("{place}/data");
        run(
            "initdb",
            &[
                "-D",
                &data,
                "-U",
                "postgres",
                "--auth=trust",
                "--no-sync",
                "--locale=C",
            ],
        );
        // A socket in the folder and no port: it meets no other server.
        let server = command("postgres")
            .args([
                "-D",
                &data,
                "-k",
                place,
                "-c",
                "listen_addresses=",
                "-c",
                "fsync=off",
            ])
            .spawn()
            .unwrap();
        support::eventually("PostgreSQL takes connections", || {
            let ready = command("pg_isready").args(["-q", "-h", place]).status();
            ready.unwrap().success().then_some(())
        });
        let client = ["-h", place, "-U", "postgres"];
        run(
            "pgbench",
            &[&client[..], &["-i", "-q", "postgres"]].concat(),
        );
        let bench = command("pgbench")
            .args(client)
            .args(["-c", "2", "-S", "-T", "3600", "postgres"])
            .spawn()
            .unwrap();
        Some(Self {
            bench,
            server,
            _folder: folder,
        })
    }

    /// The postmaster.
    pub(crate) fn pid(&self) -> u32 {
        self.server.id()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = self.bench.kill();
        let _ = self.bench.wait();
        // Immediate shutdown: it ends its children, which SIGKILL would leave behind.
        support::signal(self.server.id(), "QUIT");
        let _ = self.server.wait();
    }
}

/// The programs of the newest version.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir(Path::new(VERSIONS)).ok()?.flatten();
    let number = |path: &PathBuf| -> Option<u32> { path.file_name()?.to_str()?.parse().ok() };
    let newest = versions.map(|entry| entry.path()).max_by_key(number)?;
    let programs = newest.join("bin");
    programs.join("pgbench").is_file().then_some(programs)
}

/// PostgreSQL refuses to run as root.
struct User {
    uid: u32,
    gid: u32,
}

impl User {
    fn of_postgres() -> Option<Self> {
        let id = |flag: &str| -> Option<u32> {
            let output = Command::new("id").args([flag, "postgres"]).output().ok()?;
            support::stdout(&output).trim().parse().ok()
        };
        Some(Self {
            uid: id("-u")?,
            gid: id("-g")?,
        })
    }
}
