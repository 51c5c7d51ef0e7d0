//! An image of two static programs: one that is busy, and one that holds a pod's namespaces.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::support;

/// Its name, at no registry.
pub(crate) const IMAGE: &str = "registry.example/shop/web:v7";

/// The archive of an image, in the form of `docker save`. Without a command it holds namespaces.
pub(crate) fn make(folder: &Path) -> PathBuf {
    let (root, parts) = (folder.join("root"), folder.join("parts"));
    for made in [&root, &parts] {
        fs::create_dir(made).expect("a folder of the test");
    }
    for (program, source) in [("busy", "shares.c"), ("pause", "pause.c")] {
        let flags = ["-O2", "-static", "-o"].map(Into::into);
        let paths = [root.join(program), support::source(source)];
        support::run("gcc", flags.into_iter().chain(paths));
    }
    pack(&root, &parts.join("layer.tar"));
    let layer = sha256(&parts.join("layer.tar"));
    let config = format!(
        r#"{{"architecture":"amd64","os":"linux","config":{{"Cmd":["/pause"]}},"rootfs":{{"type":"layers","diff_ids":["sha256:{layer}"]}}}}"#
    );
    fs::write(parts.join("config.json"), config).expect("a file of the test");
    let manifest =
        format!(r#"[{{"Config":"config.json","RepoTags":["{IMAGE}"],"Layers":["layer.tar"]}}]"#);
    fs::write(parts.join("manifest.json"), manifest).expect("a file of the test");
    let archive = folder.join("image.tar");
    pack(&parts, &archive);
    archive
}

fn pack(folder: &Path, archive: &Path) {
    let path = |path: &Path| path.to_str().expect("an UTF-8 path").to_owned();
    let arguments = ["-cf", &path(archive), "-C", &path(folder), "."].map(str::to_owned);
    support::run("tar", arguments);
}

fn sha256(path: &Path) -> String {
    let output = Command::new("sha256sum").arg(path).output();
    let output = output.expect("it is one of the core utilities").stdout;
    let text = String::from_utf8(output).expect("digits");
    text.split(' ').next().unwrap_or_default().to_owned()
}
