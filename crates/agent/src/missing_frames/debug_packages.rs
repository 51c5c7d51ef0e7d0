//! Which package, server or file has the symbols of a file, on the distribution that a process runs on.

use std::io::Read;
use std::path::Path;

use candela_symbols::BuildId;
use candela_symbols::foreign::Reader;
use candela_symbols::foreign::open_for;
use candela_symbols::foreign::open_public_folder;
use hashbrown::HashMap;
use rustix::fs::Dir;

/// A server for those that have none of their own.
const FEDERATED: &str = "https://debuginfod.elfutils.org";

/// Distributions by `ID` of os-release, with their debuginfod servers.
const SERVERS: [(&str, &str); 6] = [
    // Before the one that it calls itself alike.
    ("ubuntu", "https://debuginfod.ubuntu.com"),
    ("debian", "https://debuginfod.debian.net"),
    ("fedora", "https://debuginfod.fedoraproject.org"),
    ("centos", "https://debuginfod.centos.org"),
    ("arch", "https://debuginfod.archlinux.org"),
    ("opensuse", "https://debuginfod.opensuse.org"),
];

/// Where dpkg keeps a list of files for each package.
const LISTS: &str = "/var/lib/dpkg/info";

/// Lists of files of packages are kilobytes.
const LARGEST_LIST: u64 = 8 << 20;

/// All lists of a large desktop have some ten million bytes.
const MOST_LIST_BYTES: u64 = 256 << 20;

/// Of packages: a large desktop has some thousands.
const MOST_LISTS: usize = 20_000;

/// Where the symbols of some files are to be had.
#[derive(Debug)]
pub(super) struct DebugPackages {
    os_release: String,
    has_dnf: bool,
    /// Package by file.
    debian: HashMap<String, String>,
}

impl DebugPackages {
    /// For files of the root directory `root`.
    pub(super) fn of(root: &Path, files: &[&str]) -> Self {
        Self {
            os_release: text_of(read(root, Path::new("/etc/os-release"), LARGEST_LIST)),
            has_dnf: is_there(root, Path::new("/usr/bin/dnf")),
            debian: debian_packages(root, files, MOST_LIST_BYTES),
        }
    }

    /// The server of the distribution.
    pub(super) fn server(&self) -> &'static str {
        let is_of = |id: &str| {
            self.os_release.lines().any(|line| {
                let value = line
                    .strip_prefix("ID=")
                    .or_else(|| line.strip_prefix("ID_LIKE="));
                value.is_some_and(|value| value.trim_matches('"').split(' ').any(|word| word == id))
            })
        };
        let found = SERVERS.iter().find(|(id, _)| is_of(id));
        found.map_or(FEDERATED, |(_, server)| server)
    }

    /// The command that installs the symbols of the file at `path`, up to the next alternative; empty where no
    /// package has the file.
    pub(super) fn install(&self, path: &str) -> String {
        if let Some(package) = self.debian.get(path) {
            // Of the C library the package is older than the rule.
            let suffix = if package == "libc6" { "dbg" } else { "dbgsym" };
            return format!("apt-get install {package}-{suffix}, or ");
        }
        if self.has_dnf {
            let path = quoted(path);
            return format!("dnf debuginfo-install \"$(rpm -qf {path})\", or ");
        }
        String::new()
    }
}

/// The packages that have files, from dpkg's lists: one pass over them, which are hundreds, as far as `most_bytes`
/// go.
fn debian_packages(root: &Path, files: &[&str], most_bytes: u64) -> HashMap<String, String> {
    let mut found = HashMap::new();
    let Ok(lists) = open_public_folder(root, Path::new(LISTS)) else {
        return found;
    };
    let Ok(lists) = Dir::new(lists) else {
        return found;
    };
    // Packages name files by where they were before /lib became a link to /usr/lib, or after.
    let mut wanted = HashMap::new();
    for &file in files {
        let other = match file.strip_prefix("/usr") {
            Some(rest) => rest.to_owned(),
            None => format!("/usr{file}"),
        };
        wanted.insert(file.to_owned(), file);
        wanted.insert(other, file);
    }
    let mut bytes_left = most_bytes;
    for list in lists.flatten().take(MOST_LISTS) {
        let Ok(name) = list.file_name().to_str() else {
            continue;
        };
        let Some(package) = name.strip_suffix(".list") else {
            continue;
        };
        let package = package.split(':').next().unwrap_or(package);
        if !is_package_name(package) {
            continue;
        }
        let place = Path::new(LISTS).join(name);
        let bytes = read(root, &place, LARGEST_LIST.min(bytes_left));
        bytes_left -= bytes.len() as u64;
        for file in text_of(bytes).lines() {
            if let Some(&path) = wanted.get(file) {
                found.insert(path.to_owned(), package.to_owned());
            }
        }
    }
    found
}

/// Whether a name of the process's root may be part of a command that root runs, and is no option of it.
fn is_package_name(name: &str) -> bool {
    let is_in_name = |byte: u8| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte);
    name.starts_with(|first: char| first.is_ascii_alphanumeric()) && name.bytes().all(is_in_name)
}

/// A path as a shell takes it, whatever is in it: who made the file may have made its name for us.
pub(super) fn quoted(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+@-".contains(&byte);
    if path.bytes().all(is_plain) {
        return path.to_owned();
    }
    format!("'{}'", path.replace('\'', r"'\''"))
}

/// Where the debug file with this build id belongs.
pub(super) fn debug_file_of(build_id: &BuildId) -> String {
    match build_id.gnu_hex() {
        Some(hex) if hex.len() > 2 => {
            format!("/usr/lib/debug/.build-id/{}/{}.debug", &hex[..2], &hex[2..])
        }
        _ => "a file beside it that objcopy --add-gnu-debuglink names (it has no build id: link it with -Wl,--build-id)"
            .to_owned(),
    }
}

/// What a file begins with, so many bytes at most; nothing of one that cannot be read.
fn read(root: &Path, path: &Path, most_bytes: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Ok(file) = open_for(Reader::Everybody, root, path, None) else {
        return bytes;
    };
    // What was read until an error has cost as much.
    let _ = file.take(most_bytes).read_to_end(&mut bytes);
    bytes
}

fn is_there(root: &Path, path: &Path) -> bool {
    open_for(Reader::Everybody, root, path, None).is_ok()
}

fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write_in(root: &Path, path: &str, text: &str) {
        let path = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    #[test]
    fn lists_are_those_inside_of_the_root_directory() {
        let root = tempfile::tempdir().expect("a directory");
        let outside = tempfile::tempdir().expect("another one");
        let lists = outside.path().to_str().expect("text");
        let text = "/opt/file\n";
        write_in(outside.path(), "ours.list", text);
        // The same path inside.
        write_in(root.path(), &format!("{lists}/theirs.list"), text);
        let dpkg = root.path().join("var/lib/dpkg");
        fs::create_dir_all(&dpkg).expect("a directory");
        std::os::unix::fs::symlink(lists, dpkg.join("info")).expect("a link");
        let packages = debian_packages(root.path(), &["/opt/file"], MOST_LIST_BYTES);
        assert_eq!(packages.get("/opt/file").expect("listed"), "theirs");
    }

    #[test]
    fn what_is_no_name_of_a_package_is_left_out_and_so_is_too_much() {
        let root = tempfile::tempdir().expect("a directory");
        let found = |most_bytes| debian_packages(root.path(), &["/opt/file"], most_bytes);
        write_in(root.path(), "var/lib/dpkg/info/-o.list", "/opt/file\n");
        assert!(found(MOST_LIST_BYTES).is_empty());
        write_in(root.path(), "var/lib/dpkg/info/foo.list", "/opt/file\n");
        assert_eq!(found(MOST_LIST_BYTES).len(), 1);
        assert!(found(4).is_empty());
    }

    #[test]
    fn the_package_and_the_server_are_those_of_the_root_directory() {
        let root = tempfile::tempdir().expect("a directory");
        let write = |path: &str, text: &str| write_in(root.path(), path, text);
        write(
            "etc/os-release",
            "NAME=\"Mint\"\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\n",
        );
        write(
            "var/lib/dpkg/info/libfoo1:amd64.list",
            "/.\n/lib\n/lib/libfoo.so.1\n",
        );
        let files = ["/usr/lib/libfoo.so.1", "/opt/own"];
        let packages = DebugPackages::of(root.path(), &files);
        assert_eq!(packages.server(), "https://debuginfod.ubuntu.com");
        let install = packages.install("/usr/lib/libfoo.so.1");
        assert_eq!(install, "apt-get install libfoo1-dbgsym, or ");
        assert_eq!(packages.install("/opt/own"), "");
    }

    #[test]
    fn a_debug_file_has_its_place_by_build_id() {
        let id = BuildId::from_gnu_hex("abcdef01").expect("hexadecimal");
        assert_eq!(
            debug_file_of(&id),
            "/usr/lib/debug/.build-id/ab/cdef01.debug"
        );
        assert!(debug_file_of(&BuildId::hash_of(b"x")).contains("--build-id"));
    }
}
