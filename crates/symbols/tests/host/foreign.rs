//! Files that other users put in the way of a privileged reader: real users, namespaces, devices and races.

use super::workshop::{C_PROGRAM, Workshop, functions, has_tool, poll};
use candela_symbols::foreign::{ForeignProcess, MappedFileLine, Reader, Refusal};
use candela_symbols::{
    Error, ObjectFile, PerfMapReader, SymbolSource, Symbolizer, SymbolizerOptions,
};
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mkfifoat, mknodat, renameat_with};
use std::fs::{self, FileTimes, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

/// Users that need not exist.
const STRANGER: u32 = 12_345;
const ANOTHER: u32 = 54_321;

fn lacks_users() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: only root can give files away");
    }
    !is_root || !has_tool("setpriv", "--version") || !has_tool("unshare", "--version")
}

/// A file that only root may read, in a folder that everybody may enter, and the time at which it was read last.
struct Secret {
    folder: tempfile::TempDir,
}

impl Secret {
    fn new() -> Self {
        // Not in /tmp, where a namespace may have a folder of its own.
        let folder = tempfile::tempdir_in("/var/tmp").expect("a temporary directory");
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("our folder");
        let secret = Self { folder };
        secret.write(b"1000 10 secret\n");
        secret
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("secret")
    }

    fn write(&self, bytes: &[u8]) {
        fs::write(self.path(), bytes).expect("our file");
        fs::set_permissions(self.path(), Permissions::from_mode(0o600)).expect("our file");
        self.forget_reads();
    }

    /// Makes the file one that was read last so long ago that the next reading is noted.
    fn forget_reads(&self) {
        let times = FileTimes::new().set_accessed(SystemTime::now() - Duration::from_hours(72));
        let file = fs::File::options().write(true).open(self.path());
        file.and_then(|file| file.set_times(times))
            .expect("our file");
    }

    fn was_read(&self) -> bool {
        let accessed = fs::metadata(self.path()).and_then(|metadata| metadata.accessed());
        let ago = accessed.expect("our file").elapsed();
        ago.is_ok_and(|ago| ago < Duration::from_hours(48))
    }

    /// Some file systems note no reading: then only what was read shows it.
    fn assert_unread(&self, what: &str) {
        assert!(!self.was_read(), "{what}: the secret was read");
    }
}

/// A program of a user that does nothing, and what it has left in `/tmp`.
struct Program(Child);

impl Program {
    fn start(words: &[&str]) -> Self {
        let user = STRANGER.to_string();
        let child = Command::new("setpriv")
            .args(["--reuid", &user, "--regid", &user, "--clear-groups"])
            .args(words)
            .spawn()
            .expect("setpriv is in util-linux");
        let program = Self(child);
        poll("the start of the program", || {
            let name = fs::read_to_string(format!("/proc/{}/comm", program.0.id()));
            (name.ok()? == "sleep\n").then_some(())
        });
        program
    }

    fn directory(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}", self.0.id()))
    }

    fn map(&self) -> PathBuf {
        PathBuf::from(format!("/tmp/perf-{}.map", self.0.id()))
    }

    fn remove_map(&self) {
        // A folder or anything else, or nothing.
        drop(fs::remove_dir(self.map()));
        drop(fs::remove_file(self.map()));
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It can only have ended already.
        drop(self.0.kill());
        drop(self.0.wait());
        self.remove_map();
    }
}

/// The name at an address that the maps of these tests have, or why there is none.
fn name_in_map(program: &Program) -> Result<Option<String>, Error> {
    let mut reader = PerfMapReader::new(&program.directory());
    reader.refresh()?;
    Ok(reader
        .map()
        .find(0x1005)
        .map(|symbol| symbol.name.to_owned()))
}

fn give(path: &Path, user: u32) {
    lchown(path, Some(user), Some(user)).expect("root may");
}

#[test]
fn a_perf_map_is_read_only_if_its_process_made_it() {
    if lacks_users() {
        return;
    }
    let secret = Secret::new();
    let program = Program::start(&["sleep", "600"]);
    let map = program.map();
    let write_as = |user: u32| {
        fs::write(&map, "1000 10 planted\n").expect("/tmp is writable");
        give(&map, user);
    };
    write_as(STRANGER);
    assert_eq!(
        name_in_map(&program).expect("its own"),
        Some("planted".into())
    );
    program.remove_map();
    assert_eq!(name_in_map(&program).expect("none is no error"), None);

    type Plant<'a> = (&'a str, &'a dyn Fn(), fn(&Refusal) -> bool);
    let is_special = |refusal: &Refusal| matches!(refusal, Refusal::NotRegular);
    let is_anothers = |refusal: &Refusal| matches!(refusal, Refusal::Owner { .. });
    let plants: [Plant<'_>; 9] = [
        ("root's file", &|| write_as(0), is_anothers),
        ("another user's file", &|| write_as(ANOTHER), is_anothers),
        (
            "a link to the secret",
            &|| {
                symlink(secret.path(), &map).expect("a link");
                give(&map, STRANGER);
            },
            // Whose the link is was all right; that it is one was not.
            |refusal| matches!(refusal, Refusal::Link),
        ),
        (
            "another name of the secret",
            &|| {
                // Hard links do not lead from one file system to another.
                if fs::hard_link(secret.path(), &map).is_err() {
                    write_as(0);
                }
            },
            is_anothers,
        ),
        (
            "another name of its own file",
            &|| {
                write_as(STRANGER);
                let other = map.with_extension("other");
                fs::hard_link(&map, &other).expect("the same file system");
                fs::remove_file(&map).expect("our file");
                fs::hard_link(&other, &map).expect("the same file system");
            },
            |refusal| matches!(refusal, Refusal::ManyNames),
        ),
        (
            "a pipe",
            &|| {
                mkfifoat(CWD, &map, Mode::RWXU).expect("a pipe");
                give(&map, STRANGER);
            },
            is_special,
        ),
        (
            "a socket",
            &|| {
                drop(UnixListener::bind(&map).expect("a socket"));
                give(&map, STRANGER);
            },
            is_special,
        ),
        (
            "a folder",
            &|| {
                fs::create_dir(&map).expect("a folder");
                give(&map, STRANGER);
            },
            is_special,
        ),
        (
            "a device",
            &|| {
                let zero = rustix::fs::makedev(1, 5);
                if mknodat(CWD, &map, FileType::CharacterDevice, Mode::RWXU, zero).is_err() {
                    // Not where root may make no devices: then nobody else can either.
                    mkfifoat(CWD, &map, Mode::RWXU).expect("a pipe");
                }
                give(&map, STRANGER);
            },
            is_special,
        ),
    ];
    for (what, plant, is_expected) in plants {
        plant();
        match name_in_map(&program) {
            Err(Error::Refused { refusal, .. }) => {
                assert!(is_expected(&refusal), "{what}: {refusal}");
            }
            other => panic!("{what} was not refused: {other:?}"),
        }
        secret.assert_unread(what);
        program.remove_map();
        drop(fs::remove_file(map.with_extension("other")));
    }
    fs::read(secret.path()).expect("root may");
    if !secret.was_read() {
        eprintln!("this file system does not note when a file is read");
    }
}

#[test]
fn a_namespace_of_its_own_shows_a_user_no_secret() {
    if lacks_users() {
        return;
    }
    let user = STRANGER.to_string();
    let can = Command::new("setpriv")
        .args(["--reuid", &user, "--regid", &user, "--clear-groups"])
        .args(["unshare", "--user", "--map-root-user", "--mount"])
        .args(["mount", "-t", "tmpfs", "none", "/tmp"])
        .status();
    if !can.is_ok_and(|status| status.success()) {
        eprintln!("skipped: users can make no namespaces here");
        return;
    }
    let secret = Secret::new();
    let path = secret.path();
    let path = path.to_str().expect("a plain path");
    let scripts = [
        "mount -t tmpfs none /tmp && touch $map && mount --bind $secret $map",
        "mount -t tmpfs none /tmp && ln -s $secret $map",
        "mount -t tmpfs none /tmp && mkdir /tmp/a && mount --bind $(dirname $secret) /tmp/a && ln -s a/secret $map",
    ];
    for script in scripts {
        // It is root in its own user namespace.
        let script = format!("map=/tmp/perf-$$.map secret={path}\n{script} && exec sleep 600");
        let unshare = [
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            &script,
        ];
        let program = Program::start(&unshare);
        let refused = name_in_map(&program).expect_err("it may not read the secret itself");
        assert!(
            matches!(refused, Error::Refused { .. }),
            "{script}: {refused}"
        );
        secret.assert_unread(&script);
    }
}

#[test]
fn a_mapped_file_on_another_device_must_be_one_that_the_process_could_read() {
    if lacks_users() {
        return;
    }
    let secret = Secret::new();
    let program = Program::start(&["sleep", "600"]);
    let process = ForeignProcess::open(&program.directory()).expect("it runs");
    let path = secret.path();
    let metadata = fs::metadata(&path).expect("our file");
    let device = metadata.dev();
    let device = (rustix::fs::major(device), rustix::fs::minor(device));
    let open = |device: (u32, u32)| {
        process.open_mapped(&MappedFileLine {
            path: &path,
            device,
            inode: metadata.ino(),
        })
    };
    // As a file system that is stacked on others shows it, and as anybody could mount one.
    let stacked = (0, 4_000);
    let refusal = open(stacked).expect_err("its user may not read it");
    assert!(matches!(refusal, Refusal::Private), "{refusal}");
    open(device).expect("it is mapped, so its user could read it");
    give(&path, STRANGER);
    open(stacked).expect("it is its user's");
    give(&path, 0);
    fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("our file");
    open(stacked).expect("everybody may read it");
}

#[test]
fn a_profile_names_no_file_that_not_everybody_may_read() {
    if lacks_users() {
        return;
    }
    let secret = Secret::new();
    let program = std::env::current_exe().expect("our own program");
    secret.write(&fs::read(program).expect("our own program"));
    let link = secret.path().with_file_name("link");
    symlink(secret.path(), &link).expect("our folder");
    for path in [secret.path(), link.clone()] {
        let refused = ObjectFile::open_named_in_profile(&path).expect_err("it is private");
        assert!(matches!(refused, Error::Refused { .. }), "{refused}");
    }
    secret.assert_unread("named in a profile");
    let set_mode = |path: &Path, mode: u32| {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
    };
    set_mode(&secret.path(), 0o644);
    for path in [secret.path(), link.clone()] {
        ObjectFile::open_named_in_profile(&path).expect("everybody may read it");
    }
    set_mode(secret.folder.path(), 0o700);
    for path in [secret.path(), link] {
        let refused = ObjectFile::open_named_in_profile(&path).expect_err("nobody gets there");
        assert!(matches!(refused, Error::Refused { .. }), "{refused}");
    }
}

#[test]
fn what_is_swapped_while_it_is_opened_is_not_read() {
    if lacks_users() {
        return;
    }
    const EACH: u32 = 50;
    let secret = Secret::new();
    let program = Program::start(&["sleep", "600"]);
    let (map, other) = (program.map(), program.map().with_extension("other"));
    fs::write(&map, "1000 10 own\n").expect("/tmp is writable");
    give(&map, STRANGER);
    symlink(secret.path(), &other).expect("a link");
    give(&other, STRANGER);
    let _other = Removed(&other);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // However this ends.
        let _end = SetAtEnd(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                renameat_with(CWD, &map, CWD, &other, RenameFlags::EXCHANGE)
                    .expect("both are there");
            }
        });
        let (mut read, mut refused) = (0, 0);
        let outcome = poll_fast(|| {
            match name_in_map(&program) {
                Ok(name) => {
                    read += 1;
                    if name.as_deref() != Some("own") {
                        return Some(format!("{name:?} was read"));
                    }
                }
                Err(Error::Refused { .. }) => refused += 1,
                Err(error) => return Some(error.to_string()),
            }
            (read >= EACH && refused >= EACH).then(String::new)
        });
        assert_eq!(outcome, "", "{read} read, {refused} refused");
    });
    secret.assert_unread("swapped");
}

struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Removed<'a>(&'a Path);

impl Drop for Removed<'_> {
    fn drop(&mut self) {
        drop(fs::remove_file(self.0));
    }
}

/// As `poll`, without waiting between two looks.
fn poll_fast(mut look: impl FnMut() -> Option<String>) -> String {
    let start = SystemTime::now();
    let is_late = || {
        start
            .elapsed()
            .is_ok_and(|took| took > Duration::from_secs(60))
    };
    loop {
        if let Some(found) = look() {
            return found;
        }
        if is_late() {
            return "not both were seen within 60 s".to_owned();
        }
    }
}

#[test]
fn a_debug_file_is_read_only_for_a_user_who_could_read_it() {
    if lacks_users() || !has_tool("gcc", "--version") || !has_tool("objcopy", "--version") {
        return;
    }
    let shop = Workshop::new();
    let set_mode = |path: &Path, mode: u32| {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
    };
    set_mode(shop.root(), 0o755);
    shop.write("program.c", C_PROGRAM);
    let flags = ["-O2", "-g", "-Wl,--build-id", "program.c", "-o", "full"];
    shop.run("gcc", &flags);
    shop.run("objcopy", &["--only-keep-debug", "full", "program.debug"]);
    shop.run("strip", &["-o", "program", "full"]);
    shop.run("objcopy", &["--add-gnu-debuglink=program.debug", "program"]);
    let debug_file = shop.path("program.debug");
    let bytes = fs::read(&debug_file).expect("objcopy wrote it");
    let (outer, ..) = functions(&shop.path("full"))
        .into_iter()
        .find(|(_, _, name)| name == "outer")
        .expect("it is not inlined");
    let of_stranger = Program::start(&["sleep", "600"]);
    let of_root = PathBuf::from("/proc/self");
    let is_named_for = |process: &Path, user: u32| {
        let path = shop.path("program");
        let file = fs::File::open(&path).expect("strip wrote it");
        let object = ObjectFile::from_file(&file, &path).expect("an ELF file");
        let object = Arc::new(object.with_root(process.join("root"), Reader::User(user)));
        let symbolizer = Symbolizer::new(object, SymbolizerOptions::default());
        symbolizer.resolve(outer).source == SymbolSource::Dwarf
    };
    let is_named = || is_named_for(&of_stranger.directory(), STRANGER);
    let secret = Secret::new();
    secret.write(&bytes);
    let write = |owner: u32, mode: u32| {
        drop(fs::remove_file(&debug_file));
        fs::write(&debug_file, &bytes).expect("our folder");
        set_mode(&debug_file, mode);
        give(&debug_file, owner);
    };
    for (owner, mode, expected) in [
        (0, 0o644, true),
        (0, 0o600, false),
        (0, 0o640, false),
        (STRANGER, 0o600, true),
        // Anybody may give a file any build id.
        (ANOTHER, 0o644, false),
        (ANOTHER, 0o600, false),
    ] {
        write(owner, mode);
        assert_eq!(is_named(), expected, "of user {owner}, mode {mode:o}");
        let is_anothers = owner == ANOTHER;
        assert_eq!(
            is_named_for(&of_root, 0),
            !is_anothers && owner == 0,
            "for root: {owner}"
        );
    }
    // The owner of the program is trusted with its debug file, and its private one is still private.
    give(&shop.path("program"), ANOTHER);
    for (mode, expected) in [(0o644, true), (0o600, false)] {
        write(ANOTHER, mode);
        assert_eq!(
            is_named(),
            expected,
            "of the program's owner, mode {mode:o}"
        );
    }
    give(&shop.path("program"), 0);

    let public = shop.path("public");
    fs::write(&public, &bytes).expect("our folder");
    set_mode(&public, 0o644);
    let folder = shop.path("private");
    fs::create_dir(&folder).expect("our folder");
    set_mode(&folder, 0o700);
    let inside = folder.join("public");
    fs::copy(&public, &inside).expect("our folder");
    for (maker, target, expected) in [
        (0, public.clone(), true),
        (STRANGER, public.clone(), true),
        (ANOTHER, public, false),
        (0, inside.clone(), false),
        (STRANGER, inside, false),
        (STRANGER, secret.path(), false),
        (0, secret.path(), false),
    ] {
        drop(fs::remove_file(&debug_file));
        symlink(&target, &debug_file).expect("our folder");
        give(&debug_file, maker);
        let what = format!("a link of user {maker} to {}", target.display());
        assert_eq!(is_named(), expected, "{what}");
        secret.assert_unread(&what);
    }
    assert!(is_named_for(&of_root, 0), "root may read it");
}
