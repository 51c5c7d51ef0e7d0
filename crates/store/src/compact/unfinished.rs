//! What a crash, or a lost catalog, leaves of merging: blocks that say that they were made from
//! others which are still there. Exactly one of the two must count.

use hashbrown::HashSet;

use crate::block::BlockMeta;

/// The blocks that the catalog does not know, by what becomes of them.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) kept: Vec<BlockMeta>,
    /// To be removed; what they have is in others.
    pub(crate) doubled: Vec<BlockMeta>,
    /// Blocks of the catalog in whose place the kept ones are.
    pub(crate) replaced: Vec<String>,
}

/// The blocks that the catalog has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownBlocks<'a> {
    pub(crate) all: &'a HashSet<String>,
    /// Those of them that are to answer and whose manifests are gone.
    pub(crate) gone: &'a HashSet<String>,
}

/// Sources without their manifests: only a merge that the catalog has committed removes those.
/// So the catalog that does not know it is an older one, put back from a copy, and the merge is
/// all that is left of them. Otherwise a merge counts when it is complete and the catalog does not
/// have its sources: then the catalog was lost after the merge, which deletes them. Else the
/// sources count, and the merge is done again.
pub(crate) fn settle_merges(unknown: Vec<BlockMeta>, known: KnownBlocks<'_>) -> Verdict {
    let found: HashSet<String> = unknown.iter().map(|meta| meta.block_id.clone()).collect();
    let is_complete = |meta: &BlockMeta| {
        let mut outputs = meta.outputs.iter();
        outputs.all(|output| found.contains(output) || known.all.contains(output))
    };
    let is_begun_only = |meta: &BlockMeta| {
        let mut sources = meta.sources.iter();
        if sources.clone().any(|source| known.gone.contains(source)) {
            return false;
        }
        let is_left = sources.clone().any(|source| found.contains(source));
        sources.any(|source| known.all.contains(source)) || (is_left && !is_complete(meta))
    };
    let undone: HashSet<String> = unknown
        .iter()
        .filter(|meta| is_begun_only(meta))
        .map(|meta| meta.block_id.clone())
        .collect();
    let finished = unknown
        .iter()
        .filter(|meta| !undone.contains(&meta.block_id));
    let replaced: HashSet<String> = finished.flat_map(|meta| meta.sources.clone()).collect();
    let (doubled, kept) = unknown
        .into_iter()
        .partition(|meta| undone.contains(&meta.block_id) || replaced.contains(&meta.block_id));
    let mut replaced: Vec<String> = replaced.intersection(known.all).cloned().collect();
    replaced.sort_unstable();
    Verdict {
        kept,
        doubled,
        replaced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(block_id: &str, sources: &[&str], outputs: &[&str]) -> BlockMeta {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        BlockMeta {
            block_id: block_id.to_owned(),
            sources: owned(sources),
            outputs: owned(outputs),
            ..serde_json::from_str(
                r#"{"block_id": "", "schema_version": 2, "tenant": "t", "date": "", "level": 0,
                "min_time_ns": 0, "max_time_ns": 0, "rows": 0, "profiles": 0, "bytes": 0,
                "created_at_ns": 0, "writer_id": "", "first_sequence": 0, "last_sequence": 0,
                "sample_labels": [], "files": [], "services": []}"#,
            )
            .expect("a manifest")
        }
    }

    fn verdict(unknown: Vec<BlockMeta>, known: &[&str], gone: &[&str]) -> Verdict {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let known = KnownBlocks {
            all: &owned(known),
            gone: &owned(gone),
        };
        settle_merges(unknown, known)
    }

    fn names(blocks: &[BlockMeta]) -> Vec<&str> {
        blocks.iter().map(|meta| meta.block_id.as_str()).collect()
    }

    fn kept(unknown: Vec<BlockMeta>, known: &[&str]) -> Vec<String> {
        let kept = verdict(unknown, known, &[]).kept;
        kept.into_iter().map(|meta| meta.block_id).collect()
    }

    #[test]
    fn the_catalog_decides_when_it_is_there() {
        let merge = || vec![block("m", &["a", "b"], &["m"])];
        assert_eq!(kept(merge(), &["a", "b"]), [""; 0]);
        assert_eq!(kept(merge(), &[]), ["m"]);
    }

    #[test]
    fn an_older_catalog_does_not_undo_a_merge() {
        // Of two sources one has its manifest still: the crash came while they were removed.
        let merge = vec![block("m", &["a", "b"], &["m"])];
        let verdict = verdict(merge, &["a", "b", "c"], &["a"]);
        assert_eq!(names(&verdict.kept), ["m"]);
        assert_eq!(verdict.replaced, ["a", "b"]);
        assert!(verdict.doubled.is_empty());
    }

    #[test]
    fn without_a_catalog_a_complete_merge_counts_and_another_one_does_not() {
        let all = |has_rollup: bool| {
            let mut blocks = vec![
                block("a", &[], &[]),
                block("b", &[], &[]),
                block("m", &["a", "b"], &["m", "r"]),
            ];
            if has_rollup {
                blocks.push(block("r", &["a", "b"], &["m", "r"]));
            }
            blocks
        };
        assert_eq!(kept(all(true), &[]), ["m", "r"]);
        assert_eq!(kept(all(false), &[]), ["a", "b"]);
    }

    #[test]
    fn a_merge_whose_sources_are_gone_counts() {
        // The other block of its job was itself merged since.
        assert_eq!(kept(vec![block("r", &["a"], &["m", "r"])], &[]), ["r"]);
    }

    #[test]
    fn merges_of_merges() {
        let blocks = vec![
            block("a", &[], &[]),
            block("h", &["a"], &["h"]),
            block("d", &["h", "i"], &["d"]),
        ];
        assert_eq!(kept(blocks, &[]), ["d"]);
    }
}
