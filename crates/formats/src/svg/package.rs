//! The part of a name that a reader would call the package, as the window has it
//! (`packageOf` in `ui/src/model/names.ts`): for colors, so it is stable for one function rather than exact.

use std::borrow::Cow;

use candela_model::FrameKind;

/// Go import path, Rust crate or type's crate, C++ namespace, Java package; otherwise the directory of the
/// file or the name of the binary.
pub(super) fn package_of<'a>(
    name: &'a str,
    file: &'a str,
    mapping: &'a str,
    kind: FrameKind,
) -> Cow<'a, str> {
    match kind {
        FrameKind::Kernel => return Cow::Borrowed("kernel"),
        FrameKind::Go => return Cow::Borrowed(go_package(name)),
        _ => {}
    }
    if let Some(of_type) = implementing_crate(name) {
        return Cow::Borrowed(of_type);
    }
    let plain = without_type_parameters(name);
    if let Some(end) = plain.find("::").filter(|end| *end > 0) {
        return Cow::Owned(plain[..end].to_owned());
    }
    if kind == FrameKind::Jvm && plain.contains('.') {
        let package = plain
            .rsplit_once('.')
            .and_then(|(class, _)| class.rsplit_once('.'));
        return Cow::Owned(package.map_or("", |(package, _)| package).to_owned());
    }
    if file.is_empty() {
        return Cow::Borrowed(mapping.rsplit('/').next().unwrap_or(mapping));
    }
    Cow::Borrowed(match file.rfind('/') {
        Some(slash) if slash > 0 => &file[..slash],
        _ => file,
    })
}

/// `encoding/json` of `encoding/json.(*Decoder).Decode`: up to the first full stop behind the last slash.
fn go_package(name: &str) -> &str {
    let path = &name[..name.find('(').unwrap_or(name.len())];
    let behind_slash = path.rfind('/').map_or(0, |slash| slash + 1);
    match name[behind_slash..].find('.') {
        Some(stop) => &name[..behind_slash + stop],
        None => name,
    }
}

/// `alloc` of `<alloc::vec::Vec<T> as Drop>::drop`, which stands inside the brackets.
fn implementing_crate(name: &str) -> Option<&str> {
    let mut inside = name.strip_prefix('<')?;
    while let Some(rest) = ["&", "*", "mut ", "const ", "dyn "]
        .iter()
        .find_map(|mark| inside.strip_prefix(mark))
    {
        inside = rest;
    }
    let (first, _) = inside.split_once("::")?;
    let mut characters = first.chars();
    let begins = characters
        .next()
        .is_some_and(|it| it.is_ascii_alphabetic() || it == '_');
    let goes_on = characters.all(|it| it.is_ascii_alphanumeric() || it == '_');
    (begins && goes_on).then_some(first)
}

/// Drops `<…>` with nesting, but keeps the arrows and comparisons of `operator->`, `operator<` and the like.
fn without_type_parameters(name: &str) -> Cow<'_, str> {
    if !name.contains('<') || name.contains("operator") {
        return Cow::Borrowed(name);
    }
    let mut depth = 0_usize;
    let mut kept = String::new();
    let mut before = '\0';
    for character in name.chars() {
        match character {
            '<' => depth += 1,
            '>' if before != '-' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(character),
            _ => {}
        }
        before = character;
    }
    if kept.is_empty() {
        return Cow::Borrowed(name);
    }
    Cow::Owned(kept)
}
