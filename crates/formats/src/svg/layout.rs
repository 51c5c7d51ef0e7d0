//! Where the boxes of a tree stand.

/// The columns of a tree that decide where boxes stand.
pub(super) struct Columns<'a> {
    pub(super) depth: &'a [u16],
    pub(super) subtree_end: &'a [u32],
    /// What widths are by; negative values, of differences, have no width.
    pub(super) total: &'a [i64],
}

/// Where each node begins and whether it is drawn.
pub(super) struct Layout {
    /// The value of the root.
    pub(super) total: i64,
    /// Value to the left of each node.
    pub(super) starts: Vec<i64>,
    pub(super) is_drawn: Vec<bool>,
    /// Rows that have boxes.
    pub(super) rows: u32,
    /// Pixels of the root's box.
    pub(super) width: f64,
}

impl Layout {
    /// Lays out what is at least `min_width` pixels wide when the root is `width` pixels wide.
    pub(super) fn new(columns: &Columns<'_>, width: f64, min_width: f64) -> Self {
        let nodes = columns.depth.len();
        let mut layout = Self {
            total: columns.total.first().copied().unwrap_or(0),
            starts: vec![0; nodes],
            is_drawn: vec![false; nodes],
            rows: 1,
            width,
        };
        // The root has its place whatever it weighs.
        if let Some(root) = layout.is_drawn.first_mut() {
            *root = true;
        }
        let mut deepest = 0;
        for node in 0..nodes {
            if !layout.is_drawn[node] {
                continue;
            }
            deepest = deepest.max(u32::from(columns.depth[node]));
            let mut start = layout.starts[node];
            let end = columns.subtree_end[node] as usize;
            let mut child = node + 1;
            while child < end {
                let total = columns.total[child].max(0);
                layout.starts[child] = start;
                layout.is_drawn[child] = total > 0 && layout.pixels(total) >= min_width;
                start = start.saturating_add(total);
                child = columns.subtree_end[child] as usize;
            }
        }
        layout.rows = deepest + 1;
        layout
    }

    /// The nodes that are drawn, in pre-order.
    pub(super) fn nodes(&self) -> impl Iterator<Item = usize> {
        (0..self.is_drawn.len()).filter(|&node| self.is_drawn[node])
    }

    /// How wide a value is.
    pub(super) fn pixels(&self, value: i64) -> f64 {
        value as f64 / self.total.max(1) as f64 * self.width
    }
}
