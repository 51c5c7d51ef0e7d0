//! Nodes of a tree, tested from the root down: siblings are a family, and the children of a node are
//! tested only where the node itself is significant (Yekutieli 2008).
//!
//! A tree has far more nodes than functions, and most of them in places where nothing happened. To look
//! only below what changed spends no tests there, so of several callers of one function the one that
//! changed is told from the others. Of all nodes that are called significant the part that is chance may
//! be up to three times the rate that was asked for, and next to it in practice; within each family it is
//! that rate.
//!
//! What this cannot do is find what changed deep below something that did not: twice a function of 1 %
//! moves what is around it by less than chance does. Such a node is not reached. It is told apart from one
//! that was tested and did not change, so that whoever draws it can fall back to what is known of its
//! function: that is the one test with all samples of the function in it, wherever it is called.

use crate::change::Change;
use crate::compare::Comparison;
use crate::compare::Judge;
use crate::counts::Pair;

/// What holds more of both sides is the trunk.
const PART_OF_THE_TRUNK: f64 = 0.5;

/// What became of the nodes of a tree, `None` for those that were not reached or have too few samples.
/// Nodes stand in pre-order, the root first: by `depths` and `totals`, what is in each and below it.
/// `own` are the functions by their own values, as for [`crate::compare()`].
#[must_use]
pub fn compare_nodes(
    comparison: &Comparison,
    own: &[Pair],
    depths: &[u16],
    totals: &[Pair],
) -> Vec<Option<Change>> {
    let mut changes = vec![None; totals.len()];
    let children = children_of(depths);
    if totals.is_empty() {
        return changes;
    }
    let mut judge = Judge::of(comparison, own);
    let dispersions = judge.dispersions(totals);
    let mut families = vec![first_family(comparison, &children, totals)];
    while let Some(family) = families.pop() {
        let members = family.members.iter();
        let members = members.map(|&node| (&totals[node], dispersions[node]));
        for (&node, change) in family.members.iter().zip(judge.judged(members)) {
            if change.p.is_none() {
                continue;
            }
            changes[node] = Some(change);
            let has_family = !children[node].is_empty() && !family.is_open(node);
            if change.is_significant && has_family {
                families.push(Family {
                    members: children[node].clone(),
                    trunk: 0,
                });
            }
        }
    }
    changes
}

/// Nodes that are tested together.
struct Family {
    members: Vec<usize>,
    /// So many of them are the trunk; their children are members as well.
    trunk: usize,
}

impl Family {
    fn is_open(&self, node: usize) -> bool {
        self.members[..self.trunk].contains(&node)
    }
}

/// The root is always open, and so is what holds most of everything, one node below the other: a
/// `main` that is 99 % of both sides has no share to change, and what did not change there says nothing
/// of its children. What is the trunk is decided by size and not by outcomes, so the trunk and all that
/// grows out of it are one family like any other.
fn first_family(comparison: &Comparison, children: &[Vec<usize>], totals: &[Pair]) -> Family {
    let least = |whole: f64| PART_OF_THE_TRUNK * whole;
    let least_before = least(comparison.before.all.sum());
    let least_after = least(comparison.after.all.sum());
    let is_trunk = |node: &usize| {
        let total = &totals[*node];
        total.before.sum() > least_before && total.after.sum() > least_after
    };
    let mut trunk = Vec::new();
    let mut branches: Vec<usize> = Vec::new();
    let mut top = Some(0);
    // There is one at most below each: two halves and more would be more than all.
    while let Some(node) = top {
        top = children[node].iter().copied().find(is_trunk);
        trunk.extend(top);
        branches.extend(children[node].iter().filter(|&&child| Some(child) != top));
    }
    let count = trunk.len();
    trunk.extend(branches);
    Family {
        members: trunk,
        trunk: count,
    }
}

fn children_of(depths: &[u16]) -> Vec<Vec<usize>> {
    let mut children = vec![Vec::new(); depths.len()];
    let mut path: Vec<usize> = Vec::new();
    for (node, &depth) in depths.iter().enumerate() {
        path.truncate(usize::from(depth));
        if let Some(&parent) = path.last() {
            children[parent].push(node);
        }
        path.push(node);
    }
    children
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::ChangeClass;
    use crate::counts::Counts;
    use crate::counts::Side;
    use crate::normalization::Normalization;

    const CLUSTERS: usize = 5;

    /// Nodes in pre-order: depth, samples before and after of each cluster, give or take a few that add up to
    /// nothing.
    fn changes(nodes: &[(u16, f64, f64)]) -> Vec<Option<Change>> {
        let counts = |node: usize, samples: f64| {
            let clusters = 0..CLUSTERS;
            let wobble = |cluster: usize| ((7 * node + 3 * cluster) % 5) as f64 - 2.0;
            let of_cluster =
                clusters.map(|it| (samples + samples.sqrt() * 0.3 * wobble(it)).round());
            Counts::of_samples(of_cluster.collect())
        };
        let totals: Vec<Pair> = (0..)
            .zip(nodes)
            .map(|(node, &(_, before, after))| Pair {
                before: counts(node, before),
                after: counts(node + 3, after),
            })
            .collect();
        let side = |all: f64| Side {
            all: Counts::of_samples(vec![all; CLUSTERS]),
            exposure: Vec::new(),
        };
        let comparison = Comparison {
            normalization: Normalization::Share,
            fdr: 0.05,
            before: side(nodes[0].1),
            after: side(nodes[0].2),
            is_paired: false,
            is_sampled: true,
            seed: 1,
        };
        let depths: Vec<u16> = nodes.iter().map(|&(depth, ..)| depth).collect();
        compare_nodes(&comparison, &totals, &depths, &totals)
    }

    fn verdicts(nodes: &[(u16, f64, f64)]) -> Vec<Option<bool>> {
        let changes = changes(nodes).into_iter();
        let verdicts = changes.map(|change| change.map(|change| change.is_significant));
        verdicts.collect()
    }

    #[test]
    fn of_two_callers_the_one_that_changed_is_told() {
        let nodes = [
            (0, 10_000.0, 10_000.0),
            (1, 4000.0, 4400.0),
            // Compresses more.
            (2, 1000.0, 1400.0),
            (2, 3000.0, 3000.0),
            (1, 4000.0, 3990.0),
            // Compresses as before: below what did not change nothing is asked.
            (2, 1000.0, 1005.0),
        ];
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(verdicts(&nodes), [None, yes, yes, no, no, None]);
    }

    #[test]
    fn below_the_trunk_there_are_tests_whatever_it_did() {
        let nodes = [
            (0, 10_000.0, 10_000.0),
            (1, 9990.0, 9990.0),
            (2, 9000.0, 9000.0),
            (3, 2000.0, 2600.0),
            (4, 1000.0, 1600.0),
            (4, 1000.0, 1000.0),
            (3, 4000.0, 4005.0),
            (4, 50.0, 100.0),
        ];
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(
            verdicts(&nodes),
            [None, no, no, yes, yes, no, no, None],
            "twice as much deep below what did not change is not reached"
        );
    }

    #[test]
    fn too_few_samples_are_no_test() {
        let nodes = [(0, 10_000.0, 10_000.0), (1, 0.0, 0.0), (1, 900.0, 0.0)];
        let changes = changes(&nodes);
        assert_eq!((changes[0], changes[1]), (None, None));
        let gone = changes[2].expect("it is tested");
        assert!(gone.is_significant && gone.class == ChangeClass::Gone);
        assert!(
            compare_nodes(
                &Comparison {
                    normalization: Normalization::Share,
                    fdr: 0.05,
                    before: Side::default(),
                    after: Side::default(),
                    is_paired: false,
                    is_sampled: true,
                    seed: 1,
                },
                &[],
                &[],
                &[]
            )
            .is_empty()
        );
    }
}
