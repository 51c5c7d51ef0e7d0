/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/*
 * What crosses the ring buffers. src/record.rs decodes it by the positions that
 * are asserted at the end; build.rs takes the numbers of kinds, flags and counters
 * from here, so each has its enumerator on a line of its own, with a value.
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
	SAMPLE_HEADER_BYTES = 160,
	LABEL_KEY_BYTES = 30,
	LABEL_VALUE_BYTES = 64,
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
	char key[LABEL_KEY_BYTES];
	char value[LABEL_VALUE_BYTES];
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

/* Indices of the counters map. */
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

/* What the Rust side relies on. */
#define AT(type, field, offset) \
	_Static_assert(__builtin_offsetof(struct type, field) == offset, #type "." #field)
#define BYTES(type, bytes) _Static_assert(sizeof(struct type) == bytes, #type)

BYTES(sample_header, SAMPLE_HEADER_BYTES);
AT(sample_header, kind, 0);
AT(sample_header, result, 4);
AT(sample_header, flags, 5);
AT(sample_header, event, 6);
AT(sample_header, label_count, 7);
AT(sample_header, pid, 8);
AT(sample_header, tid, 12);
AT(sample_header, cpu, 16);
AT(sample_header, kernel_frames, 20);
AT(sample_header, user_frames, 22);
AT(sample_header, stack_bytes, 24);
AT(sample_header, count, 28);
AT(sample_header, value, 32);
AT(sample_header, run_queue_ns, 40);
AT(sample_header, time_ns, 48);
AT(sample_header, cgroup_id, 56);
AT(sample_header, process_start_ns, 64);
AT(sample_header, lock_address, 72);
AT(sample_header, lock_holder, 80);
AT(sample_header, comm, 96);
AT(sample_header, trace_id, 112);
AT(sample_header, span_id, 128);
AT(sample_header, waker, 136);
AT(sample_header, woken_ns, 152);

BYTES(sample_label, 2 + LABEL_KEY_BYTES + LABEL_VALUE_BYTES);
AT(sample_label, key_bytes, 0);
AT(sample_label, value_bytes, 1);
AT(sample_label, key, 2);
AT(sample_label, value, 32);

BYTES(block_io_done, 24);
AT(block_io_done, kind, 0);
AT(block_io_done, reserved, 4);
AT(block_io_done, request, 8);
AT(block_io_done, time_ns, 16);

BYTES(allocation, 40);
AT(allocation, address, 0);
AT(allocation, size, 8);
AT(allocation, sequence, 16);
AT(allocation, interval, 24);
AT(allocation, stands_for, 32);

BYTES(free_record, 32);
AT(free_record, kind, 0);
AT(free_record, pid, 4);
AT(free_record, time_ns, 8);
AT(free_record, address, 16);
AT(free_record, sequence, 24);

BYTES(life_record, 24);
AT(life_record, kind, 0);
AT(life_record, pid, 4);
AT(life_record, parent, 8);
AT(life_record, reserved, 12);
AT(life_record, time_ns, 16);

#undef AT
#undef BYTES

#endif
