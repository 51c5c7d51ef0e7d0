/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/*
 * What crosses the ring buffers. The Rust side decodes these bytes in
 * src/record.rs; each change here is a change there.
 */
#ifndef CANDELA_RECORD_H
#define CANDELA_RECORD_H

enum {
	MAX_KERNEL_FRAMES = 127,
	MAX_USER_FRAMES = 256,
	MAX_FRAMES = MAX_KERNEL_FRAMES + MAX_USER_FRAMES + 1,
	PAGE_BYTES = 4096,
	MAX_STACK_PAGES = 16,
	MAX_LABELS = 10,
	/* rax rdx rcx rbx rsi rdi rbp rsp r8..r15 (DWARF order), rip */
	REGISTER_COUNT = 17,
};

enum record_kind {
	RECORD_SAMPLE = 1,
	RECORD_FORK = 2,
	RECORD_EXIT = 3,
	RECORD_OFF_CPU = 4,
	RECORD_FAULTS = 5,
	RECORD_GROWTH = 6,
	RECORD_KERNEL_LOCK = 7,
	RECORD_BLOCK_IO = 8,
	RECORD_BLOCK_IO_DONE = 9,
	RECORD_EXPLICIT = 10,
	RECORD_ALLOC = 12,
	RECORD_FREE = 13,
	RECORD_WAKER = 14,
};

/* sample_header.flags */
enum {
	SAMPLE_HAS_REGISTERS = 1 << 0,
	SAMPLE_IN_KERNEL = 1 << 1,
	SAMPLE_COPY_LIMITED = 1 << 2,
	SAMPLE_PROCESS_KNOWN = 1 << 3,
	SAMPLE_PREEMPTED = 1 << 4, /* off CPU, though it could have run */
	SAMPLE_NOT_WALKED = 1 << 5, /* the kernel left the user stack to user space */
};

/*
 * What a thread's program labels its work with; cut to what fits. No key: it could not be read. With
 * LABEL_KEY_IS_NUMBER the first byte of the key is its number among the keys that the process publishes.
 */
struct sample_label {
	__u8 key_bytes;
	__u8 value_bytes;
	char key[30];
	char value[64];
};

enum {
	LABEL_KEY_IS_NUMBER = 0xff,
};

/*
 * Followed by kernel frames and user frames (leaf first, 8 bytes each), then,
 * with SAMPLE_HAS_REGISTERS, REGISTER_COUNT words and stack_bytes of stack
 * from rsp upwards, then by label_count labels.
 */
struct sample_header {
	__u32 kind;
	__u8 result;
	__u8 flags;
	__u8 event; /* which of those that somebody named */
	__u8 label_count;
	__u32 pid;
	__u32 tid;
	__u32 cpu;
	__u16 kernel_frames;
	__u16 user_frames;
	__u32 stack_bytes;
	__u32 count; /* how many times of being off a CPU, page faults or requests it stands for */
	/* Nanoseconds; of growth bytes; of named events how many; of block I/O what names the request until it is done. */
	__u64 value;
	/* Of value, the time that the thread could have run; where only that is asked for, both are the same. */
	__u64 run_queue_ns;
	__u64 time_ns;
	__u64 cgroup_id;
	__u64 process_start_ns;
	/* Of a wait for a lock: the futex, and the name of the thread that held it where that is known. */
	__u64 lock_address;
	char lock_holder[16];
	char comm[16];
	/* What the thread worked on, where its program tells; zeros where it does not. */
	__u8 trace_id[16];
	__u8 span_id[8];
	/* Of a wait: the name of the thread that ended it, where that is asked for and it was one. */
	char waker[16];
	/*
	 * Of a wait: when it was ended, where the stack of who did that was told; else 0. Of a RECORD_WAKER, which is that
	 * stack: the same, and `count` is the id of the thread that waited.
	 */
	__u64 woken_ns;
};

/* The end of a request whose sample was RECORD_BLOCK_IO. */
struct block_io_done {
	__u32 kind;
	__u32 reserved;
	__u64 request;
	__u64 time_ns;
};

/* In front of the user frames of a RECORD_ALLOC, which has no kernel frames; what candela-preload tells. */
struct allocation {
	__u64 address;
	__u64 size;
	/* Tells it from others that had the address before; bit 32: its end will be told. */
	__u64 sequence;
	/* The mean distance between sampled bytes. */
	__u64 interval;
	/* So many sampled ones this one stands for. */
	__u64 stands_for;
};

enum {
	ALLOCATION_WORDS = sizeof(struct allocation) / 8,
};

/* The end of a sampled allocation, among the samples. */
struct free_record {
	__u32 kind;
	__u32 pid;
	__u64 time_ns;
	__u64 address;
	__u64 sequence;
};

struct life_record {
	__u32 kind;
	__u32 pid;
	__u32 parent;
	__u32 reserved;
	__u64 time_ns;
};

/* Indices of the counters map; the names are in src/counters.rs. */
enum counter {
	COUNTER_SAMPLES = 0,
	COUNTER_RESULT_FIRST = 1, /* one per result code, nine of them */
	COUNTER_RESULT_LAST = 9,
	COUNTER_RING_FULL = 10,
	COUNTER_LIFE_RING_FULL = 11,
	COUNTER_STACK_COPIES = 12,
	COUNTER_COPIES_LIMITED = 13,
	COUNTER_UNKNOWN_PROCESS = 14,
	COUNTER_COMPAT_TASK = 15,
	COUNTER_KERNEL_STACK_ERROR = 16,
	COUNTER_USER_FRAMES = 17,
	COUNTER_LOST = 18, /* samples that were given up before they were taken */
	COUNTER_TARGETS_FULL = 19, /* forks that found no room in target_pids */
	COUNTER_OFF_CPU_SAMPLES = 20, /* also counted as samples */
	COUNTER_NOT_DEFERRED = 21, /* off-CPU samples that got no user stack for want of room */
	COUNTER_ARRIVAL_MISSED = 22, /* off-CPU samples without a stack: the switch to their thread was not seen */
	COUNTER_TRACE_CONTEXT_UNREAD = 23, /* samples without the span that their thread tells of: it cannot be read */
	COUNTER_LABELS_CUT = 24, /* samples with more or longer labels than they tell */
	COUNTER_FREES_LOST = 25, /* ends of allocations that found no room */
	COUNTER_TICKS = 26, /* of the clock while something ran that is sampled: samples, and those left out */
	COUNTER_WAKER_STACKS_LOST = 27, /* waits whose waker's stack found no room */
	COUNTER_SHORT_WAITS = 28, /* waits that are no samples because somebody wants longer ones only */
	COUNTER_SHORT_WAIT_NS = 29, /* how long these were together */
	COUNTER_COUNT = 30,
};

#endif
