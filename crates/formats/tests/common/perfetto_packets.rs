//! Packets of Perfetto, written by hand.

/// A message under construction.
#[derive(Clone, Default)]
pub(crate) struct Msg(pub(crate) Vec<u8>);

impl Msg {
    pub(crate) fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(crate) fn n(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    pub(crate) fn b(mut self, field: u64, value: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    pub(crate) fn s(self, field: u64, value: &str) -> Self {
        self.b(field, value.as_bytes())
    }

    pub(crate) fn m(self, field: u64, value: &Self) -> Self {
        self.b(field, &value.0)
    }
}

pub(crate) fn msg() -> Msg {
    Msg::default()
}

pub(crate) fn trace(packets: &[Msg]) -> Vec<u8> {
    packets
        .iter()
        .fold(msg(), |trace, packet| trace.m(1, packet))
        .0
}

pub(crate) fn text(iid: u64, text: &str) -> Msg {
    msg().n(1, iid).s(2, text)
}

/// `main` calls `work`, which calls an unknown place of libc.
pub(crate) fn interned() -> Msg {
    msg()
        .m(5, &text(1, "main"))
        .m(5, &text(2, "work"))
        .m(16, &msg().n(1, 1).b(2, &[0xab, 0xcd]))
        .m(17, &text(1, "usr"))
        .m(17, &text(2, "lib"))
        .m(17, &text(3, "libc.so"))
        .m(17, &text(4, "app"))
        .m(19, &msg().n(1, 1).n(7, 1).n(7, 4))
        .m(19, &msg().n(1, 2).n(2, 1).b(7, &[1, 2, 3]))
        .m(6, &msg().n(1, 1).n(2, 1).n(3, 1).n(4, 0x10))
        .m(6, &msg().n(1, 2).n(2, 2).n(3, 1).n(4, 0x20))
        .m(6, &msg().n(1, 3).n(3, 2).n(4, 0x30))
        .m(7, &msg().n(1, 1).n(2, 1).n(2, 2))
        .m(7, &msg().n(1, 2).b(2, &[1, 2, 3]))
}

pub(crate) fn perf_defaults(timebase: &Msg) -> Msg {
    msg().n(58, 3).m(12, &msg().m(1, timebase))
}

pub(crate) fn perf_sample(time: u64, callstack: u64) -> Msg {
    let sample = msg().n(1, 0).n(2, 7).n(3, 8).n(4, callstack).n(6, 5);
    msg().n(8, time).n(10, 1).n(13, 2).m(66, &sample)
}

/// A clock snapshot: boot time, monotonic and real time.
pub(crate) fn snapshot(boot: u64, monotonic: u64, real: u64) -> Msg {
    let clock = |id, time| msg().n(1, id).n(2, time);
    let snapshot = msg()
        .m(1, &clock(6, boot))
        .m(1, &clock(3, monotonic))
        .m(1, &clock(1, real));
    msg().m(6, &snapshot)
}

pub(crate) fn process_tree() -> Msg {
    let process = msg().n(1, 7).s(3, "/usr/bin/app").s(3, "--flag");
    let thread = msg().n(1, 8).n(3, 7).s(2, "worker");
    msg().m(2, &msg().m(1, &process).m(2, &thread))
}
