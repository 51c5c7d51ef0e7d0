//! S3: nanoseconds to merge a sample to the flame tree.

use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

use candela_query::Engine;
use candela_query::Query;
use candela_store::SampleColumns;
use candela_store::Store;
use candela_store::TimeRange;

use crate::Row;
use crate::fill::options;
use crate::timing::Cost;
use crate::timing::best;

const TARGET_NS: f64 = 10.0;

/// Figures of a child, nanoseconds a sample.
struct Figures {
    sums: f64,
    tree: f64,
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
            "{:.1} ns a sample to a flame tree on one core ({:.1} of it sums by stack); {:.1} on all",
            one.tree, one.sums, all.tree
        ),
        is_met: one.tree <= TARGET_NS,
        details: vec![
            format!(
                "one core:  sums {:.2} ns, tree {:.2} ns a sample",
                one.sums, one.tree
            ),
            format!(
                "all cores: sums {:.2} ns, tree {:.2} ns a sample",
                all.sums, all.tree
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
    let [sums, tree, nodes, allocations] = numbers[..] else {
        return Err(format!(
            "the child failed: {}",
            String::from_utf8_lossy(&output.stderr)
        )
        .into());
    };
    Ok(Figures {
        sums,
        tree,
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
    let per_sample = |cost: Cost| cost.time.as_nanos() as f64 / rows as f64;
    let (scan_ns, tree_ns) = (per_sample(scan), per_sample(tree));
    println!("{scan_ns} {tree_ns} {nodes} {}", tree.allocations);
    Ok(())
}
