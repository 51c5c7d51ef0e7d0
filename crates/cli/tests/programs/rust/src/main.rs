//! A shop that profiles itself with Pyroscope's SDK for Rust: one function burns CPU time under
//! two labels. Its argument is the address of the server.

use std::hint::black_box;
use std::time::Duration;

use pyroscope::backend::pprof_backend;
use pyroscope::backend::BackendConfig;
use pyroscope::backend::PprofConfig;
use pyroscope::pyroscope::PyroscopeAgentBuilder;

#[inline(never)]
fn price_everything(rounds: u64) -> u64 {
    let mut sum = 1_u64;
    for round in 0..rounds {
        sum = black_box(sum.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round));
    }
    sum
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).ok_or("the address of the server")?;
    let backend = pprof_backend(PprofConfig::default(), BackendConfig::default());
    let agent = PyroscopeAgentBuilder::new(address, "shop.rust", 100, "pyroscope-rs", "2.1.5", backend)
        .tags(vec![("region", "eu")])
        .upload_interval(Duration::from_secs(2))
        .build()?
        .start()?;
    let (add_tag, remove_tag) = agent.tag_wrapper();
    loop {
        for (aisle, rounds) in [("bread", 3_000_000), ("milk", 1_000_000)] {
            add_tag("aisle".to_owned(), aisle.to_owned())?;
            black_box(price_everything(rounds));
            remove_tag("aisle".to_owned(), aisle.to_owned())?;
        }
    }
}
