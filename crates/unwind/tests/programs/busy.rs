//! Burns CPU in collections, formatting and panics that unwind.
use std::collections::HashMap;

#[inline(never)]
fn recurse(depth: u32, words: &mut Vec<String>) -> usize {
    if depth == 0 {
        words.sort();
        if words.len() % 2 == 0 {
            std::panic::panic_any(words.len());
        }
        return words.len();
    }
    std::hint::black_box(recurse(depth - 1, words)) + depth as usize
}

fn work() {
    loop {
        let mut words: Vec<String> = (0..200u32).map(|i| (i * 7919 % 1009).to_string()).collect();
        let mut counts: HashMap<&str, u32> = HashMap::new();
        for word in &words {
            *counts.entry(word).or_default() += 1;
        }
        std::hint::black_box(&counts);
        let _ = std::panic::catch_unwind(move || recurse(30, &mut words));
    }
}

fn main() {
    std::panic::set_hook(Box::new(|_| ()));
    println!("ready");
    let other = std::thread::spawn(work);
    work();
    let _ = other.join();
}
