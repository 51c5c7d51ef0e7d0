//! The lanes of a chart, and the boxes in each.

use candela_model::Labels;
use hashbrown::HashMap;

use crate::chart::ChartBox;
use crate::chart::ChartLane;
use crate::matching::SampleLabels;

/// What tells threads apart, where it is known.
const THREAD_LABELS: [&str; 3] = ["pid", "thread_id", "thread_name"];

/// A sample in its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) lane: u32,
    /// A node of the chart.
    pub(crate) node: u32,
    /// When it was taken.
    pub(crate) time_ns: i64,
    /// When what it tells of begins, and how long that is.
    pub(crate) start_ns: i64,
    pub(crate) length_ns: i64,
    /// One of samples at regular distances, which come a bit early or late.
    pub(crate) is_ticking: bool,
    pub(crate) value: i64,
}

/// Lanes by what tells them apart.
#[derive(Debug)]
pub(crate) struct Lanes {
    names: Vec<String>,
    /// Series are told apart, too, whatever their labels.
    is_by_thread: bool,
    numbers: HashMap<(Option<u32>, Vec<Option<String>>), u32>,
    lanes: Vec<ChartLane>,
    /// The labels of the series of each lane.
    series: Vec<Labels>,
}

/// What a lane's samples come to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LaneSum {
    total: i64,
    samples: u64,
}

impl LaneSum {
    pub(crate) fn add(&mut self, value: i64) {
        self.total = self.total.saturating_add(value);
        self.samples += 1;
    }
}

impl Lanes {
    pub(crate) fn new(names: &[String]) -> Self {
        let is_by_thread = names.is_empty();
        let names = if is_by_thread {
            THREAD_LABELS.map(str::to_owned).to_vec()
        } else {
            names.to_vec()
        };
        Self {
            names,
            is_by_thread,
            numbers: HashMap::new(),
            lanes: Vec::new(),
            series: Vec::new(),
        }
    }

    /// The lane of the samples with a label set in a series.
    pub(crate) fn lane(
        &mut self,
        series: u32,
        labels: &Labels,
        set: u32,
        sample_labels: &SampleLabels<'_>,
    ) -> u32 {
        let value = |name: &String| match labels.get(name) {
            Some(value) => Some(value.to_owned()),
            None => sample_labels.value(set, name),
        };
        let values: Vec<Option<String>> = self.names.iter().map(value).collect();
        let key = (self.is_by_thread.then_some(series), values);
        let next = self.lanes.len() as u32;
        if let Some(&known) = self.numbers.get(&key) {
            return known;
        }
        let named = self.names.iter().zip(&key.1);
        let named = named.filter_map(|(name, value)| Some((name, value.as_ref()?)));
        self.lanes.push(ChartLane {
            labels: Labels::from_pairs(named),
            ..ChartLane::default()
        });
        self.series.push(labels.clone());
        self.numbers.insert(key, next);
        next
    }

    pub(crate) fn add(&mut self, lane: u32, sum: LaneSum) {
        let lane = &mut self.lanes[lane as usize];
        lane.total = lane.total.saturating_add(sum.total);
        lane.samples += sum.samples;
    }

    /// The lanes, the most expensive first, and the place of each by its number.
    pub(crate) fn by_cost(mut self) -> (Vec<ChartLane>, Vec<u32>) {
        if self.is_by_thread {
            self.name_series();
        }
        let mut order: Vec<usize> = (0..self.lanes.len()).collect();
        order.sort_by(|&one, &other| {
            let (one, other) = (&self.lanes[one], &self.lanes[other]);
            let by_total = other.total.cmp(&one.total);
            by_total.then_with(|| one.labels.cmp(&other.labels))
        });
        let mut places = vec![0; order.len()];
        for (place, &number) in order.iter().enumerate() {
            places[number] = place as u32;
        }
        let lanes = order.iter().map(|&number| self.lanes[number].clone());
        (lanes.collect(), places)
    }

    /// Adds to each lane the labels of its series that are not the same in all.
    fn name_series(&mut self) {
        let Some(first) = self.series.first() else {
            return;
        };
        let names = self.series.iter().flat_map(Labels::iter);
        let mut differing: Vec<&str> = names
            .filter(|&(name, value)| {
                let is_same = first.get(name) == Some(value);
                !is_same || self.series.iter().any(|it| it.get(name) != Some(value))
            })
            .map(|(name, _)| name)
            .collect();
        differing.sort_unstable();
        differing.dedup();
        for (lane, series) in self.lanes.iter_mut().zip(&self.series) {
            let of_series = differing.iter();
            let of_series = of_series.filter_map(|&name| Some((name, series.get(name)?)));
            lane.labels = Labels::from_pairs(of_series.chain(lane.labels.iter()));
        }
    }
}

/// The boxes of a lane, from its moments by their beginnings: neighbours with the same stack are one. Where
/// moments overlap, each ends where the next one begins.
pub(crate) fn boxes_of_lane(moments: &[Moment], boxes: &mut Vec<ChartBox>) {
    let first = boxes.len();
    for (position, moment) in moments.iter().enumerate() {
        let next_ns = moments.get(position + 1).map(|next| next.start_ns);
        let end_ns = end_of(moment, next_ns);
        let last = boxes[first..].last_mut();
        if let Some(last) = last.filter(|it| it.node == moment.node && it.end_ns >= moment.start_ns)
        {
            last.end_ns = last.end_ns.max(end_ns);
            last.samples += 1;
            last.value = last.value.saturating_add(moment.value);
            continue;
        }
        if end_ns > moment.start_ns {
            boxes.push(ChartBox {
                start_ns: moment.start_ns,
                end_ns,
                node: moment.node,
                samples: 1,
                value: moment.value,
            });
        }
    }
}

/// A tick that is followed by another in about its distance lasts until then.
fn end_of(moment: &Moment, next_ns: Option<i64>) -> i64 {
    let end_ns = moment.start_ns.saturating_add(moment.length_ns);
    let Some(next_ns) = next_ns else {
        return end_ns;
    };
    let is_late = moment.is_ticking
        && next_ns.saturating_sub(moment.start_ns)
            <= moment.length_ns.saturating_add(moment.length_ns / 2);
    if is_late {
        return next_ns;
    }
    end_ns.min(next_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(start_ns: i64, node: u32) -> Moment {
        Moment {
            lane: 0,
            node,
            time_ns: start_ns,
            start_ns,
            length_ns: 10,
            is_ticking: true,
            value: 10,
        }
    }

    fn drawn(moments: &[Moment]) -> Vec<(i64, i64, u32, u32)> {
        let mut boxes = Vec::new();
        boxes_of_lane(moments, &mut boxes);
        let boxes = boxes.iter();
        boxes
            .map(|it| (it.start_ns, it.end_ns, it.node, it.samples))
            .collect()
    }

    #[test]
    fn neighbours_with_the_same_stack_are_one_box() {
        // The second tick comes late, the third early; after the fifth nothing runs.
        let moments = [
            tick(0, 1),
            tick(12, 1),
            tick(20, 1),
            tick(30, 2),
            tick(90, 2),
        ];
        assert_eq!(
            drawn(&moments),
            [(0, 30, 1, 3), (30, 40, 2, 1), (90, 100, 2, 1)]
        );
    }

    #[test]
    fn what_overlaps_ends_where_the_next_begins() {
        let waits = |start_ns, length_ns, node| Moment {
            length_ns,
            is_ticking: false,
            ..tick(start_ns, node)
        };
        let moments = [
            waits(0, 100, 1),
            waits(40, 10, 2),
            waits(40, 5, 3),
            waits(300, 5, 1),
        ];
        assert_eq!(
            drawn(&moments),
            [(0, 40, 1, 1), (40, 45, 3, 1), (300, 305, 1, 1)]
        );
    }

    #[test]
    fn labels_that_all_series_share_are_not_told() {
        let series = |host: &str| Labels::from_pairs([("service_name", "api"), ("host", host)]);
        let mut lanes = Lanes::new(&[]);
        let sets = candela_model::LabelSetTable::default();
        let strings = candela_model::StringTable::default();
        let none = SampleLabels {
            strings: &strings,
            sets: &sets,
        };
        for (number, host, value) in [(0, "a", 1), (1, "b", 5), (0, "a", 2)] {
            let lane = lanes.lane(number, &series(host), 0, &none);
            let mut sum = LaneSum::default();
            sum.add(value);
            lanes.add(lane, sum);
        }
        let (lanes, places) = lanes.by_cost();
        let hosts: Vec<_> = lanes.iter().map(|lane| lane.labels.to_string()).collect();
        assert_eq!(hosts, [r#"{host="b"}"#, r#"{host="a"}"#]);
        assert_eq!((lanes[1].total, lanes[1].samples), (3, 2));
        assert_eq!(places, [1, 0]);
    }
}
