//! Makes the table of the window's files: each as it is and, where that is smaller, gzipped.
//!
//! `cargo build` needs no Node: without `ui/dist` the table has one page that says how to build it.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::path::PathBuf;

use flate2::Compression;
use flate2::Crc;
use flate2::write::GzEncoder;

const DIST: &str = "../../ui/dist";
/// The page that files with profiles are made from; it is of no use without them, and not served.
const OFFLINE: &str = "offline.html";
const MISSING: &str = "src/window/missing.html";

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo runs this again on every build while the directory does not exist, so that the first
    // build of the window is noticed.
    println!("cargo:rerun-if-changed={DIST}");
    println!("cargo:rerun-if-changed={MISSING}");
    println!("cargo:rerun-if-changed=build.rs");
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let dist = root.join(DIST);

    let has_window = env::var_os("CARGO_FEATURE_UI").is_some() && dist.join("index.html").is_file();
    let mut files = Vec::new();
    if has_window {
        collect(&dist, &mut files)?;
        files.sort();
    }
    let offline = dist.join(OFFLINE);
    let has_offline = has_window && files.contains(&offline);
    files.retain(|file| *file != offline);
    write_offline(has_offline.then_some(&offline), &out)?;
    let mut table = String::from("[\n");
    for (index, file) in files.iter().enumerate() {
        let path = file
            .strip_prefix(&dist)?
            .to_str()
            .ok_or("a file name is not UTF-8")?;
        write_asset(
            &mut table,
            &format!("/{path}"),
            file,
            &out.join(index.to_string()),
        )?;
    }
    if !has_window {
        write_asset(
            &mut table,
            "/index.html",
            &root.join(MISSING),
            &out.join("missing"),
        )?;
    }
    table.push_str("]\n");
    fs::write(out.join("window_assets.rs"), table)?;
    Ok(())
}

/// Writes an `Option<&'static str>` with the page. It refers to a copy, as the table does.
fn write_offline(page: Option<&PathBuf>, out: &Path) -> Result<(), Box<dyn Error>> {
    let source = match page {
        Some(page) => {
            let copy = out.join(OFFLINE);
            fs::copy(page, &copy)?;
            format!("Some(include_str!({copy:?}))")
        }
        None => "None".to_owned(),
    };
    fs::write(out.join("offline_page.rs"), source)?;
    Ok(())
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// Adds a file to the table. The table refers to copies beside it: another build of the window
/// may replace the files while this crate compiles.
fn write_asset(
    table: &mut String,
    path: &str,
    file: &Path,
    copy: &Path,
) -> Result<(), Box<dyn Error>> {
    let plain = fs::read(file)?;
    fs::write(copy, &plain)?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&plain)?;
    let gzip = encoder.finish()?;
    let gzip_source = if gzip.len() < plain.len() {
        let gzip_copy = copy.with_extension("gz");
        fs::write(&gzip_copy, &gzip)?;
        format!("Some(include_bytes!({gzip_copy:?}))")
    } else {
        "None".to_owned()
    };
    let mut crc = Crc::new();
    crc.update(&plain);
    let tag = format!("\"{:08x}-{:x}\"", crc.sum(), plain.len());
    writeln!(
        table,
        "Asset {{ path: {path:?}, content_type: {:?}, etag: {tag:?}, plain: include_bytes!({copy:?}), gzip: {gzip_source} }},",
        content_type(path)
    )?;
    Ok(())
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "json" | "map" => "application/json",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
