use super::*;
use rustix::fs::{CWD, mkfifoat};
use std::fs::Permissions;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

/// The root directory of a process of our own user, whose pid there is 7, beside a secret.
struct Place {
    outer: tempfile::TempDir,
}

const SECRET: &str = "a secret";
const OWN: &str = "its own";

impl Place {
    fn new() -> Self {
        let outer = tempfile::tempdir().expect("a temporary directory");
        let place = Self { outer };
        let write = |path: &str, text: &str| {
            std::fs::write(place.path(path), text).expect("a new file");
            let everybody_reads = Permissions::from_mode(0o644);
            std::fs::set_permissions(place.path(path), everybody_reads).expect("a file of ours");
        };
        let everybody_enters = Permissions::from_mode(0o755);
        for folder in ["7/root/tmp", "7/root/home"].map(|folder| place.path(folder)) {
            std::fs::create_dir_all(&folder).expect("a new folder");
            std::fs::set_permissions(&folder, everybody_enters.clone()).expect("ours");
        }
        let user = std::fs::metadata(place.outer.path()).expect("a folder");
        let user = user.uid();
        let status = format!("Name:\ta\nNSpid:\t4711\t7\nUid:\t{user}\t{user}\t{user}\t{user}\n");
        write("7/status", &status);
        write("secret", SECRET);
        write("7/root/secret", SECRET);
        write("7/root/home/own", OWN);
        place
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.outer.path().join(name)
    }

    fn open_own(&self, path: &str) -> Result<File, Refusal> {
        let process = ForeignProcess::open(&self.path("7")).expect("it looks like one");
        process.open_own(Path::new(path))
    }

    fn open_public(&self, path: &str) -> Result<File, Refusal> {
        open_for(
            Reader::Everybody,
            &self.path("7/root"),
            Path::new(path),
            None,
        )
    }
}

fn text(opened: Result<File, Refusal>) -> String {
    let mut text = String::new();
    let mut file = opened.expect("it may be opened");
    file.read_to_string(&mut text).expect("it may be read");
    text
}

#[test]
fn files_of_a_process_are_those_that_it_sees_itself() {
    let place = Place::new();
    assert_eq!(text(place.open_own("/home/own")), OWN);
    assert_eq!(text(place.open_own("/home/../../home/own")), OWN);
    let outside = place.open_own("/../../secret");
    assert_eq!(text(outside), SECRET, "that of its own root directory");
    std::fs::remove_file(place.path("7/root/secret")).expect("a file of ours");
    let refused = place.open_own("/../../secret").expect_err("it is outside");
    assert!(refused.is_not_found(), "{refused}");
}

/// What may lie in place of a file: how it is made, and the refusal.
type Hazard = (fn(&Path), fn(&Refusal) -> bool);

#[test]
fn only_a_regular_file_with_one_name_is_opened() {
    let hazards: [(&str, Hazard); 6] = [
        (
            "a pipe that nobody writes to",
            (
                |path| mkfifoat(CWD, path, Mode::RWXU).expect("a pipe"),
                |refusal| matches!(refusal, Refusal::NotRegular),
            ),
        ),
        (
            "a socket",
            (
                |path| drop(UnixListener::bind(path).expect("a socket")),
                |refusal| matches!(refusal, Refusal::NotRegular),
            ),
        ),
        (
            "a folder",
            (
                |path| std::fs::create_dir(path).expect("a folder"),
                |refusal| matches!(refusal, Refusal::NotRegular),
            ),
        ),
        (
            "a link",
            (
                |path| symlink("/home/own", path).expect("a link"),
                |refusal| matches!(refusal, Refusal::Link),
            ),
        ),
        (
            "a link to nothing",
            (
                |path| symlink("/nothing", path).expect("a link"),
                |refusal| matches!(refusal, Refusal::Link),
            ),
        ),
        (
            "a second name",
            (
                |path| {
                    let own = path.with_file_name("../home/own");
                    std::fs::hard_link(own, path).expect("a second name");
                },
                |refusal| matches!(refusal, Refusal::ManyNames),
            ),
        ),
    ];
    for (what, (make, is_expected)) in hazards {
        let place = Place::new();
        make(&place.path("7/root/tmp/perf-7.map"));
        let refusal = place.open_own("/tmp/perf-7.map").expect_err(what);
        assert!(is_expected(&refusal), "{what}: {refusal}");
        let left = place.path("7/root/tmp/perf-7.map");
        let refusal = open_left_behind(&left).expect_err(what);
        assert!(is_expected(&refusal), "{what}, left behind: {refusal}");
    }
}

#[test]
fn a_link_on_the_way_to_an_own_file_is_refused() {
    let place = Place::new();
    std::fs::remove_dir(place.path("7/root/tmp")).expect("an empty folder");
    symlink("home", place.path("7/root/tmp")).expect("a link");
    let refusal = place.open_own("/tmp/own").expect_err("through a link");
    assert!(matches!(refusal, Refusal::Link), "{refusal}");
}

#[test]
fn public_files_are_found_through_links_of_ours_inside_of_the_root() {
    let place = Place::new();
    let link = |target: &str, name: &str| {
        symlink(target, place.path("7/root").join(name)).expect("a link");
    };
    link("../home/own", "tmp/relative");
    link("/home/own", "tmp/absolute");
    link("/home", "folder");
    link("tmp/absolute", "twice");
    link("../../../../secret", "tmp/outside");
    link("loop", "loop");
    link("nowhere", "broken");
    for path in ["/tmp/relative", "tmp/absolute", "/folder/own", "/twice"] {
        assert_eq!(text(place.open_public(path)), OWN, "{path}");
    }
    assert_eq!(text(place.open_public("/tmp/outside")), SECRET);
    std::fs::write(place.path("7/root/secret"), "inside").expect("a file of ours");
    assert_eq!(text(place.open_public("/tmp/outside")), "inside");
    let refusal = place.open_public("/loop").expect_err("it never ends");
    assert!(matches!(refusal, Refusal::Link), "{refusal}");
    let refusal = place.open_public("/broken").expect_err("nothing is there");
    assert!(refusal.is_not_found(), "{refusal}");
    let folder = open_public_folder(&place.path("7/root"), Path::new("/folder"));
    folder.expect("everybody may list it");
    let refusal = open_public_folder(&place.path("7/root"), Path::new("/twice"));
    let refusal = refusal.expect_err("it is a file");
    assert!(matches!(refusal, Refusal::NotFolder), "{refusal}");
}

#[test]
fn folders_on_the_way_keep_a_public_file_private() {
    let place = Place::new();
    let private = Permissions::from_mode(0o700);
    std::fs::set_permissions(place.path("7/root/home"), private).expect("our folder");
    let public =
        |reader: Reader, path: &str| open_for(reader, &place.path("7/root"), Path::new(path), None);
    text(public(Reader::User(our_user()), "/home/own"));
    if our_user() != ROOT_USER {
        // The kernel checks what such a user may read.
        return;
    }
    symlink("/home/own", place.path("7/root/tmp/link")).expect("our folder");
    for path in ["/home/own", "/tmp/link", "/tmp/../home/own"] {
        for reader in [Reader::Everybody, Reader::User(12_345)] {
            let refusal = public(reader, path).expect_err("it is in a private folder");
            assert!(matches!(refusal, Refusal::Private), "{path}: {refusal}");
        }
    }
    let folder = open_public_folder(&place.path("7/root"), Path::new("/home"));
    let refusal = folder.expect_err("it is private");
    assert!(matches!(refusal, Refusal::Private), "{refusal}");
}

#[test]
fn endless_paths_are_given_up() {
    let place = Place::new();
    let short = format!("{}home/own", "home/../".repeat(100));
    assert_eq!(text(place.open_public(&short)), OWN);
    let endless = format!("{}home/own", "home/../".repeat(100_000));
    let refusal = place
        .open_public(&endless)
        .expect_err("nobody has such paths");
    assert!(refusal.to_string().contains("too long"), "{refusal}");
}

#[test]
fn a_file_is_no_folder_and_the_root_is_one() {
    let place = Place::new();
    let refusal = place.open_public("/home/own/more").expect_err("a file");
    assert!(refusal.to_string().contains("directory"), "{refusal}");
    for path in ["/", "/home/..", "/.."] {
        let refusal = place.open_public(path).expect_err("a folder");
        assert!(matches!(refusal, Refusal::NotRegular), "{path}: {refusal}");
    }
}

#[test]
fn our_own_program_is_opened_by_the_links_of_the_kernel() {
    let own = std::fs::metadata("/proc/self/exe").expect("we run");
    let opened = open_regular(Path::new("/proc/self/exe")).expect("it is a file");
    let opened = opened.metadata().expect("it is open");
    assert_eq!((opened.dev(), opened.ino()), (own.dev(), own.ino()));
    let refusal = open_regular(Path::new("/proc/self/cwd")).expect_err("a folder");
    assert!(matches!(refusal, Refusal::NotRegular), "{refusal}");
}

#[test]
fn a_mapped_file_is_opened_by_its_path_if_it_is_the_same() {
    let process = ForeignProcess::open(Path::new("/proc/self")).expect("we run");
    let program = std::env::current_exe().expect("our own path");
    let own = std::fs::metadata(&program).expect("we run");
    let device = (rustix::fs::major(own.dev()), rustix::fs::minor(own.dev()));
    let line = |inode: u64| MappedFileLine {
        path: &program,
        device,
        inode,
    };
    process.open_mapped(&line(own.ino())).expect("the same");
    let refusal = process.open_mapped(&line(own.ino() + 1));
    let refusal = refusal.expect_err("another file");
    assert!(matches!(refusal, Refusal::OtherFile), "{refusal}");
}
