//! Names of classes and methods.

use std::borrow::Cow;

/// Appends `Class.method`, the class with dots. Recorders have frames without a class (what could
/// not be walked), and native ones with a library in its place.
pub(crate) fn push_method_name(name: &mut String, class: &str, method: &str) {
    push_class_name(name, class);
    if !name.is_empty() && !method.is_empty() {
        name.push('.');
    }
    name.push_str(method);
}

fn push_class_name(name: &mut String, class: &str) {
    // A library is a path at times, and has no packages.
    if class.starts_with('/') {
        name.push_str(class);
        return;
    }
    let stable = stable_class_name(class);
    name.extend(stable.chars().map(|character| match character {
        '/' => '.',
        other => other,
    }));
}

/// The name without what a virtual machine makes up in each run: the address of a hidden class and
/// the running number of a lambda or an accessor. With them the same code would have another name
/// in each process and would never add up. Pyroscope writes lambdas in this way, too.
fn stable_class_name(class: &str) -> Cow<'_, str> {
    let without_address = without_address(class);
    let stem = match without_address.find(LAMBDA) {
        Some(start) => &without_address[..start + LAMBDA.len()],
        None => without_accessor_number(without_address),
    };
    if stem.len() == class.len() {
        return Cow::Borrowed(class);
    }
    Cow::Owned(format!("{stem}_"))
}

const LAMBDA: &str = "$$Lambda";

/// `LambdaForm$MH+0x0000000800fd1000/488323918`: the address of a hidden class, and in some JDKs its
/// hash. They differ in the sign before the address, too.
fn without_address(class: &str) -> &str {
    let Some((stem, address)) = class.rsplit_once("0x") else {
        return class;
    };
    let (address, hash) = address.split_once(['/', '.']).unwrap_or((address, "0"));
    let is_address = !address.is_empty()
        && address.bytes().all(|byte| byte.is_ascii_hexdigit())
        && hash.bytes().all(|byte| byte.is_ascii_digit());
    match stem.strip_suffix(['+', '/', '.']) {
        Some(stem) if is_address => stem,
        _ => class,
    }
}

/// `jdk.internal.reflect.GeneratedMethodAccessor31` and those of constructors.
fn without_accessor_number(class: &str) -> &str {
    let stem = class.trim_end_matches(|character: char| character.is_ascii_digit());
    if stem.ends_with("Accessor") && stem.contains("Generated") {
        return stem;
    }
    class
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_dots_and_no_addresses() {
        let cases = [
            ("java/lang/Thread", "run", "java.lang.Thread.run"),
            ("App", "main", "App.main"),
            ("", "unknown_Java", "unknown_Java"),
            ("App", "", "App"),
            ("", "", ""),
            ("libjvm.so", "JavaThread::run", "libjvm.so.JavaThread::run"),
            ("/tmp/libx.so", "f", "/tmp/libx.so.f"),
            (
                "App$$Lambda$15+0x0000000800c03000",
                "run",
                "App$$Lambda_.run",
            ),
            (
                "a/B$$Lambda$669.0x0000000800fd7318",
                "run",
                "a.B$$Lambda_.run",
            ),
            ("a/B$$Lambda.0x00007ffa600c4da0", "run", "a.B$$Lambda_.run"),
            ("a/B$$Lambda$14/1234", "run", "a.B$$Lambda_.run"),
            (
                "java/lang/invoke/LambdaForm$MH+0x0000000800fd1000/488323918",
                "invoke",
                "java.lang.invoke.LambdaForm$MH_.invoke",
            ),
            (
                "java.lang.invoke.LambdaForm$MH+0x0000000800fd1000",
                "invoke",
                "java.lang.invoke.LambdaForm$MH_.invoke",
            ),
            (
                "jdk/internal/reflect/GeneratedMethodAccessor31",
                "invoke",
                "jdk.internal.reflect.GeneratedMethodAccessor_.invoke",
            ),
            ("Accessor2", "get", "Accessor2.get"),
            ("Color0xFF", "get", "Color0xFF.get"),
        ];
        for (class, method, expected) in cases {
            let mut name = String::new();
            push_method_name(&mut name, class, method);
            assert_eq!(name, expected);
        }
    }
}
