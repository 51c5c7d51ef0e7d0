//! S3: nanoseconds to merge a sample to the flame tree.

use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use candela_query::Engine;
use candela_query::Query;
use candela_store::SampleColumns;
use candela_store::Store;
use candela_store::TimeRange;

use crate::Row;
use crate::fill::options;
use crate::timing::best;

const TARGET_NS: f64 = 10.0;

/// Figures of a child, nanoseconds a sample.
struct Figures {
    /// Of cores, for the sums by stack.
    sums: f64,
    /// Of cores, for the whole tree.
    core: f64,
    /// By the clock, for the whole tree.
    time: f64,
    nodes: f64,
    /// Of one tree.
    allocations: f64,
}

pub(crate) fn measure(directory: &Path) -> Result<Row, Box<dyn Error>> {
    let one = run(
        Command::new("taskset")
            .args(["-c", "0"])
            .arg(std::env::current_exe()?),
        directory,
    )?;
    let all = run(&mut Command::new(std::env::current_exe()?), directory)?;
    Ok(Row {
        name: "S3",
        figure: format!(
            "{:.1} ns of a core for a sample to a flame tree ({:.1} of it sums by stack); by the clock {:.1} on one core, {:.1} on all",
            one.core, one.sums, one.time, all.time
        ),
        is_met: one.core <= TARGET_NS,
        details: vec![
            format!(
                "one core:  sums {:.2} ns, tree {:.2} ns of a core a sample",
                one.sums, one.core
            ),
            format!(
                "all cores: sums {:.2} ns, tree {:.2} ns of a core a sample",
                all.sums, all.core
            ),
            format!(
                "{} nodes in the tree, {} allocations",
                one.nodes, one.allocations
            ),
        ],
    })
}

fn run(command: &mut Command, directory: &Path) -> Result<Figures, Box<dyn Error>> {
    let output = command.arg("merge").arg(directory).output()?;
    let text = String::from_utf8(output.stdout)?;
    let numbers: Vec<f64> = text.split_whitespace().flat_map(str::parse).collect();
    let [sums, core, time, nodes, allocations] = numbers[..] else {
        return Err(format!(
            "the child failed: {}",
            String::from_utf8_lossy(&output.stderr)
        )
        .into());
    };
    Ok(Figures {
        sums,
        core,
        time,
        nodes,
        allocations,
    })
}

/// Prints the best of several runs: other work on the machine only ever adds.
pub(crate) fn child(directory: &Path) -> Result<(), Box<dyn Error>> {
    let store = Store::open(options(directory))?;
    let snapshot = store.snapshot("bench", TimeRange::ALL)?;
    let block = snapshot.blocks.first().ok_or("no block")?;
    let rows = block.meta().rows;
    let whole = 0..rows;
    let mut sums = vec![0_i64; block.stacks()?.node_of_stack.len()];
    let scan = best(|| {
        sums.fill(0);
        block.scan_samples(
            std::slice::from_ref(&whole),
            SampleColumns::default(),
            &mut |chunk| {
                for (&stack, &value) in chunk.stack_ids.iter().zip(chunk.values) {
                    sums[stack as usize] += value;
                }
                ControlFlow::Continue(())
            },
        )
    })?;
    let engine = Engine::new(store.clone());
    let query = Query::new("bench");
    let mut nodes = 0;
    let tree = best(|| {
        let answer = engine.flame_tree(&query)?;
        nodes = answer.value.len();
        if answer.value.root_total() == sums.iter().sum::<i64>() {
            Ok(())
        } else {
            Err::<(), Box<dyn Error>>("the tree's total is not that of the samples".into())
        }
    })?;
    let per_sample = |time: Duration| time.as_nanos() as f64 / rows as f64;
    let times = [scan.core_time, tree.core_time, tree.time].map(per_sample);
    let [sums, core, time] = times;
    println!("{sums} {core} {time} {nodes} {}", tree.allocations);
    Ok(())
}
