//! The shell scripts around the program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

fn script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn make_up_takes_the_configuration_of_its_user_along_to_root() {
    let folder = tempfile::tempdir().unwrap();
    let programs = folder.path().join("bin");
    let home = folder.path().join("home");
    let user_file = home.join(".config/candela/candela.yaml");
    fs::create_dir_all(&programs).unwrap();
    fs::create_dir_all(user_file.parent().unwrap()).unwrap();
    fs::write(&user_file, "agent:\n  rate: 49\n").unwrap();
    script(&programs.join("id"), "#!/bin/sh\necho 1000\n");
    script(
        &programs.join("sudo"),
        "#!/bin/sh\necho \"$@\"\necho \"file $CANDELA_CONFIG\"\necho \"data $XDG_DATA_HOME\"\n",
    );
    let up = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/up");
    let output = Command::new("bash")
        .arg(up)
        .args(["candela", "--listen", "127.0.0.1:1"])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
        .env("HOME", &home)
        .env("CANDELA_AGENT__RATE", "97")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let preserved = printed
        .lines()
        .find_map(|line| line.strip_prefix("--preserve-env="))
        .and_then(|rest| rest.split(' ').next())
        .unwrap_or_default();
    let preserved: Vec<&str> = preserved.split(',').collect();
    for variable in [
        "DEBUGINFOD_URLS",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "CANDELA_AGENT__RATE",
        "CANDELA_CONFIG",
    ] {
        assert!(preserved.contains(&variable), "{variable}: {printed}");
    }
    assert!(
        printed.contains(&format!("file {}", user_file.display())),
        "{printed}"
    );
    let data_home = home.join(".local/share");
    assert!(
        printed.contains(&format!("data {}", data_home.display())),
        "{printed}"
    );
    // A flag of ours would win over the user's own, and given twice be refused.
    assert!(
        printed.contains("candela up --listen 127.0.0.1:1"),
        "{printed}"
    );
}
