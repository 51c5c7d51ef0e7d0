//! Which agent this is, where another one has the name of its node.

use std::fs;
use std::io;
use std::path::Path;

const FILE: &str = "instance";
const NEW_ID: &str = "/proc/sys/kernel/random/uuid";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The same after a restart of the agent, so that it has its name again at once, and another one on another host, also
/// where a disk was copied with the data directory on it: the number of this boot is behind that of the directory.
pub(super) fn instance(folder: &Path) -> String {
    let own = kept(folder).unwrap_or_else(|error| {
        let path = folder.join(FILE);
        let path = path.display();
        tracing::warn!(%path, %error, "after a restart this agent may wait a minute for the name of its node");
        new_id().unwrap_or_else(|_| std::process::id().to_string())
    });
    match fs::read_to_string(BOOT_ID) {
        Ok(boot) => format!("{own}.{}", boot.trim()),
        Err(_) => own,
    }
}

/// What the data directory has, or is given now.
fn kept(folder: &Path) -> io::Result<String> {
    let path = folder.join(FILE);
    match fs::read_to_string(&path) {
        Ok(text) if is_id(text.trim()) => return Ok(text.trim().to_owned()),
        // What is there and is none is written anew.
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let id = new_id()?;
    fs::create_dir_all(folder)?;
    fs::write(&path, format!("{id}\n"))?;
    Ok(id)
}

fn new_id() -> io::Result<String> {
    Ok(fs::read_to_string(NEW_ID)?.trim().to_owned())
}

fn is_id(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    text.len() == 36 && text.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_outlives_the_agent_and_is_nobody_elses() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        let first = instance(&one);
        assert_eq!(instance(&one), first);
        assert_ne!(instance(&other), first);
        assert!(first.len() <= 128, "{first}");
        fs::write(one.join(FILE), "torn").expect("written");
        let again = instance(&one);
        assert!(again != first && instance(&one) == again, "{again}");
    }
}
