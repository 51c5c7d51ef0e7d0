//! Which package, server or file has the symbols of a file, on the distribution that a process runs on.

use std::fs;
use std::io::Read;
use std::path::Path;

use candela_symbols::BuildId;
use candela_symbols::open_in_root;
use hashbrown::HashMap;

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

/// Lists of files of packages are kilobytes.
const LARGEST_LIST: u64 = 8 << 20;

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
            os_release: read(root, Path::new("/etc/os-release")).unwrap_or_default(),
            has_dnf: open_in_root(root, Path::new("/usr/bin/dnf")).is_ok(),
            debian: debian_packages(root, files),
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

/// The packages that have files, from dpkg's lists: one pass over them, which are hundreds.
fn debian_packages(root: &Path, files: &[&str]) -> HashMap<String, String> {
    let mut found = HashMap::new();
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
    let lists = fs::read_dir(root.join("var/lib/dpkg/info"));
    for list in lists.into_iter().flatten().flatten().take(MOST_LISTS) {
        let name = list.file_name();
        let Some(package) = name.to_str().and_then(|name| name.strip_suffix(".list")) else {
            continue;
        };
        let package = package.split(':').next().unwrap_or(package);
        // Of the process's root, and part of a command that root may run.
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte);
        if !package.bytes().all(is_name) {
            continue;
        }
        let place = Path::new("/var/lib/dpkg/info").join(&name);
        for file in read(root, &place).unwrap_or_default().lines() {
            if let Some(&path) = wanted.get(file) {
                found.insert(path.to_owned(), package.to_owned());
            }
        }
    }
    found
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

fn read(root: &Path, path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = open_in_root(root, path).ok()?;
    file.take(LARGEST_LIST).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_and_the_server_are_those_of_the_root_directory() {
        let root = tempfile::tempdir().expect("a directory");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            fs::write(path, text).expect("a file");
        };
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
