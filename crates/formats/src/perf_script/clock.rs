//! From the clock of a recording to the time of day.

/// From here on, seconds are since the Unix epoch (September 2001): no host is up for 31 years.
const EPOCH_NS: i64 = 1_000_000_000 * 1_000_000_000;

/// What is known of the times of a recording.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    /// When the recording ended, nanoseconds since the Unix epoch.
    pub(crate) end_ns: Option<i64>,
    first_ns: Option<i64>,
    last_ns: i64,
}

/// The time in which the samples were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    /// Nanoseconds since the Unix epoch.
    pub(crate) start_ns: i64,
    pub(crate) duration_ns: i64,
    /// What is added to a time of the recording; `None` when it has no times.
    shift_ns: Option<i64>,
}

impl Clock {
    /// Takes note of the time of a sample. Recordings without times have zeros.
    pub(crate) fn see(&mut self, time_ns: i64) {
        // A zero among times since the epoch is no time.
        let is_time = time_ns != 0 || self.last_ns < EPOCH_NS;
        let first = self
            .first_ns
            .filter(|first| *first != 0 || time_ns < EPOCH_NS);
        if is_time {
            self.first_ns = Some(first.map_or(time_ns, |first| first.min(time_ns)));
        }
        self.last_ns = self.last_ns.max(time_ns);
    }

    /// Most recordings count from the start of the host. They ended when their file was written; if
    /// that is not told, they count as begun at the time of reading, as all do that tell no time.
    pub(crate) fn window(&self, now_ns: i64) -> Window {
        let now_ns = now_ns.max(0);
        let first_ns = self.first_ns.unwrap_or(0);
        let duration_ns = self.last_ns.saturating_sub(first_ns);
        let is_unix = self.last_ns >= EPOCH_NS;
        let has_times = self.last_ns != 0;
        if !has_times {
            return Window {
                start_ns: self.end_ns.unwrap_or(now_ns),
                ..Window::default()
            };
        }
        let start_ns = match self.end_ns {
            _ if is_unix => first_ns,
            Some(end_ns) => end_ns.saturating_sub(duration_ns).max(0),
            None if now_ns == 0 => first_ns,
            None => now_ns,
        };
        Window {
            start_ns,
            duration_ns: duration_ns.min(i64::MAX - start_ns),
            shift_ns: Some(start_ns - first_ns),
        }
    }
}

impl Window {
    /// The time of a sample, nanoseconds since the Unix epoch.
    pub(crate) fn unix_ns(&self, time_ns: i64) -> i64 {
        match self.shift_ns {
            None => 0,
            // Times since the epoch stay, and so does a missing one among them.
            Some(0) => time_ns,
            Some(shift_ns) => time_ns.saturating_add(shift_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(times: &[i64], end_ns: Option<i64>, now_ns: i64) -> Window {
        let mut clock = Clock {
            end_ns,
            ..Clock::default()
        };
        for &time_ns in times {
            clock.see(time_ns);
        }
        clock.window(now_ns)
    }

    #[test]
    fn a_recording_ends_when_its_file_was_written_or_begins_now() {
        let found = window(&[700, 500, 900], None, 10_000);
        assert_eq!((found.start_ns, found.duration_ns), (10_000, 400));
        assert_eq!(found.unix_ns(700), 10_200);
        let found = window(&[700, 500, 900], Some(5_000), 10_000);
        assert_eq!((found.start_ns, found.unix_ns(900)), (4_600, 5_000));
        let found = window(&[700, 900], None, 0);
        assert_eq!((found.start_ns, found.unix_ns(700)), (700, 700));
        let found = window(&[700, 900], Some(100), 0);
        assert_eq!((found.start_ns, found.unix_ns(700)), (0, 0));
    }

    #[test]
    fn times_since_the_epoch_stay() {
        let start = 1_732_190_400_000_000_000;
        for times in [[start, 0, start + 5], [0, start + 5, start]] {
            let found = window(&times, Some(start + 100), 10_000);
            assert_eq!((found.start_ns, found.duration_ns), (start, 5));
            assert_eq!(found.unix_ns(start + 3), start + 3);
            assert_eq!(found.unix_ns(0), 0);
        }
        let found = window(&[i64::MAX], None, 1);
        assert_eq!((found.start_ns, found.duration_ns), (i64::MAX, 0));
    }

    #[test]
    fn without_times_all_happened_at_the_end() {
        let found = window(&[0, 0], None, 7);
        assert_eq!((found.start_ns, found.duration_ns), (7, 0));
        assert_eq!(found.unix_ns(0), 0);
        assert_eq!(window(&[], None, -1), Window::default());
    }
}
