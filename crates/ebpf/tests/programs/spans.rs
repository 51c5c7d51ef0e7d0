//! As spans.c of candela-agent, in Rust: a writer of thread contexts (OTEP 4947). Stable Rust has no way to export a
//! thread-local variable, so assembly defines it and tells its address.
//! Link it with `-Wl,--export-dynamic-symbol=otel_thread_ctx_v1`.

use std::arch::asm;
use std::arch::global_asm;
use std::hint::black_box;
use std::ptr::null;
use std::sync::atomic::Ordering;
use std::sync::atomic::compiler_fence;
use std::time::Duration;
use std::time::Instant;

global_asm!(
    ".pushsection .tbss, \"awT\", @nobits",
    ".globl otel_thread_ctx_v1",
    ".type otel_thread_ctx_v1, @object",
    ".size otel_thread_ctx_v1, 8",
    ".p2align 3",
    "otel_thread_ctx_v1:",
    ".zero 8",
    ".popsection",
);

/// The record: 28 bytes without padding; attributes would follow.
#[repr(C)]
struct ThreadContext {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    valid: u8,
    trace_flags: u8,
    attributes_bytes: u16,
}

/// The span that the thread works on while this lives.
struct Attached<'a>(#[expect(dead_code, reason = "borrowed: others read it")] &'a ThreadContext);

impl ThreadContext {
    fn new(trace: u8, span: u8) -> Self {
        Self {
            trace_id: [trace; 16],
            span_id: [span; 8],
            valid: 1,
            trace_flags: 1,
            attributes_bytes: 0,
        }
    }

    fn attach(&self) -> Attached<'_> {
        point_to(self);
        Attached(self)
    }
}

impl Drop for Attached<'_> {
    fn drop(&mut self) {
        point_to(null());
    }
}

fn point_to(context: *const ThreadContext) {
    compiler_fence(Ordering::SeqCst);
    // SAFETY: the address of this thread's own variable, which nothing else in the program writes.
    unsafe { pointer().write_volatile(context) };
    compiler_fence(Ordering::SeqCst);
}

fn pointer() -> *mut *const ThreadContext {
    let address;
    // SAFETY: the sequence that the ABI gives for TLS descriptors, which keeps all registers but rax.
    unsafe {
        asm!(
            "leaq otel_thread_ctx_v1@tlsdesc(%rip), %rax",
            "call *otel_thread_ctx_v1@tlscall(%rax)",
            "addq %fs:0, %rax",
            out("rax") address,
            options(att_syntax),
        );
    }
    address
}

const PIECE: Duration = Duration::from_millis(3);

fn work() {
    let start = Instant::now();
    while start.elapsed() < PIECE {
        black_box((0..1000).fold(1_u64, |state, number| black_box(state ^ number)));
    }
    std::thread::sleep(PIECE);
}

// Functions of equal code would be made one.
#[inline(never)]
fn serve_first() {
    work();
    black_box(1);
}

#[inline(never)]
fn serve_second() {
    work();
    black_box(2);
}

#[inline(never)]
fn serve_nobody() {
    work();
    black_box(3);
}

fn main() {
    let threads = [(0x11, 0x1a, serve_first as fn()), (0x22, 0x2b, serve_second as fn())];
    let threads = threads.map(|(trace, span, serve)| {
        std::thread::spawn(move || {
            let context = ThreadContext::new(trace, span);
            loop {
                let attached = context.attach();
                serve();
                drop(attached);
                serve_nobody();
            }
        })
    });
    println!("ready");
    for thread in threads {
        thread.join().unwrap();
    }
}
