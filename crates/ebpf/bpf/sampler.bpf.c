/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/* The on-CPU sampler: one perf event per CPU, kernel and user stack of what runs. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "record.h"

#include "maps.h"

/* === the walk's primitives === */

typedef void *table_handle;

static __always_inline table_handle table_open(__u32 table)
{
	return bpf_map_lookup_elem(&tables, &table);
}

static __always_inline const struct table_element *table_element(table_handle table, __u32 index)
{
	return bpf_map_lookup_elem(table, &index);
}

static __always_inline bool rule_at(__u32 index, struct unwind_rule *out)
{
	struct unwind_rule *rule = bpf_map_lookup_elem(&rules, &index);
	if (!rule)
		return false;
	*out = *rule;
	return true;
}

static __always_inline bool region_at(__u32 index, struct region *out)
{
	struct region *region = bpf_map_lookup_elem(&regions, &index);
	if (!region)
		return false;
	*out = *region;
	return true;
}

/* Frames are mostly small and ascend, and a read costs about the same for one word as for many. */
static __always_inline bool read_word(struct walk *walk, __u64 address, __u64 *out)
{
	__u64 index = (address - walk->window_base) / 8;

	if (address & 7)
		return bpf_probe_read_user(out, sizeof(*out), (void *)address) == 0;
	if (address < walk->window_base || index >= walk->window_words) {
		walk->window_base = address - WINDOW_BELOW * 8;
		walk->window_words = 0;
		if (bpf_probe_read_user(walk->window, sizeof(walk->window), (void *)walk->window_base))
			/* The end of the stack, or no stack at all. */
			return bpf_probe_read_user(out, sizeof(*out), (void *)address) == 0;
		walk->window_words = WINDOW_WORDS;
		index = WINDOW_BELOW;
	}
	barrier_var(index);
	if (index >= WINDOW_WORDS)
		return false;
	*out = walk->window[index];
	return true;
}

static __always_inline struct scratch *scratch_of(__u32 cpu)
{
	return bpf_map_lookup_elem(&scratch_areas, &cpu);
}

#include "walk.h"

/* === user stack === */

struct walk_context {
	__u32 cpu;
	__u64 now;
};

static __always_inline void stamp_table(const struct region *region, __u64 now)
{
	__u32 table = region->table;
	__u64 *stamp;

	if (region->kind != REGION_TABLE)
		return;
	stamp = bpf_map_lookup_elem(&table_last_used, &table);
	/* A coarse stamp spares the other CPUs' caches. */
	if (stamp && now - *stamp > 1000000000)
		*stamp = now;
}

static long walk_one_frame(__u32 index, void *opaque)
{
	struct walk_context *context = opaque;
	struct scratch *scratch = scratch_of(context->cpu);
	struct walk *walk;
	__u32 slot;

	if (!scratch)
		return 1;
	walk = &scratch->walk;
	slot = scratch->header.kernel_frames + walk->frames;
	if (slot >= MAX_FRAMES)
		return stop(walk, WALK_TRUNCATED_DEPTH);
	((__u64 *)scratch->payload)[slot] = lookup_address(walk);
	walk->frames++;

	__u64 region_before = walk->region.start;
	int ended = walk_step(walk);
	if (walk->region.start != region_before)
		stamp_table(&walk->region, context->now);
	return ended;
}

static __always_inline void keep_registers(struct scratch *scratch, const struct pt_regs *from)
{
	__u64 *to = scratch->entry_registers;

	to[0] = from->ax;
	to[1] = from->dx;
	to[2] = from->cx;
	to[3] = from->bx;
	to[4] = from->si;
	to[5] = from->di;
	to[6] = from->bp;
	to[7] = from->sp;
	to[8] = from->r8;
	to[9] = from->r9;
	to[10] = from->r10;
	to[11] = from->r11;
	to[12] = from->r12;
	to[13] = from->r13;
	to[14] = from->r14;
	to[15] = from->r15;
	to[16] = from->ip;
}

static __always_inline void walk_user_stack(struct scratch *scratch, __u32 cpu, __u64 now)
{
	struct walk *walk = &scratch->walk;
	struct walk_context context = { .cpu = cpu, .now = now };
	__u32 pid = scratch->header.pid;
	struct process *process = bpf_map_lookup_elem(&processes, &pid);

	walk->frames = 0;
	if (!process) {
		count(COUNTER_UNKNOWN_PROCESS);
		walk->result = WALK_NO_MAPPING;
		return;
	}
	scratch->header.flags |= SAMPLE_PROCESS_KNOWN;
	walk->first_region = process->first_region;
	walk->region_count = process->region_count;
	walk->window_words = 0;
	walk->region.start = 0;
	walk->region.end = 0;
	__builtin_memcpy(walk->registers, scratch->entry_registers, sizeof(walk->registers));
	walk->rbp = scratch->entry_registers[DWARF_RBP];
	walk->rsp = scratch->entry_registers[DWARF_RSP];
	walk->pc = scratch->entry_registers[16];
	walk->is_leaf = 1;
	walk->exact_pc = 1;
	walk->result = WALK_TRUNCATED_DEPTH;
	bpf_loop(MAX_USER_FRAMES, walk_one_frame, &context, 0);
}

/* === what user space walks because our tables could not === */

/* A process may cause a burst of copies, as when it starts, and then a few per second. */
static __always_inline bool copy_allowed(__u32 pid, __u64 now)
{
	struct copy_budget *budget = bpf_map_lookup_elem(&copy_budgets, &pid);

	if (settings.copy_cost_ns == 0)
		return false;
	if (!budget) {
		struct copy_budget fresh = {
			.updated_ns = now,
			.credit_ns = settings.copy_credit_limit_ns - settings.copy_cost_ns,
		};
		bpf_map_update_elem(&copy_budgets, &pid, &fresh, BPF_ANY);
		return true;
	}
	/* Another CPU may have come with a later time. */
	if (now > budget->updated_ns) {
		budget->credit_ns += now - budget->updated_ns;
		budget->updated_ns = now;
	}
	if (budget->credit_ns > settings.copy_credit_limit_ns)
		budget->credit_ns = settings.copy_credit_limit_ns;
	if (budget->credit_ns < settings.copy_cost_ns)
		return false;
	budget->credit_ns -= settings.copy_cost_ns;
	return true;
}

/* Appends registers and the readable part of the stack at payload[end]; the new end. */
static __always_inline __u32 append_context(struct scratch *scratch, __u32 end)
{
	__u64 address = scratch->entry_registers[DWARF_RSP];
	/* Whole pages after the first piece: a page is readable entirely or not at all. */
	__u32 piece = PAGE_BYTES - (address & (PAGE_BYTES - 1));
	__u32 copied = 0;

	if (end > MAX_FRAMES * 8)
		return end;
	__builtin_memcpy(scratch->payload + end, scratch->entry_registers, sizeof(scratch->entry_registers));
	end += sizeof(scratch->entry_registers);
	scratch->header.flags |= SAMPLE_HAS_REGISTERS;

	for (int page = 0; page < MAX_STACK_PAGES; page++) {
		__u32 position = end + copied;
		barrier_var(position);
		if (page >= settings.stack_pages)
			break;
		if (position > sizeof(scratch->payload) - PAGE_BYTES)
			break;
		barrier_var(piece);
		if (piece > PAGE_BYTES)
			break;
		if (bpf_probe_read_user(scratch->payload + position, piece, (void *)(address + copied)))
			break;
		copied += piece;
		piece = PAGE_BYTES;
	}
	scratch->header.stack_bytes = copied;
	return end + copied;
}

/* === the sample === */

static __always_inline bool wanted(__u32 pid)
{
	if (pid == settings.excluded_pid)
		return false;
	if (settings.filter_pids && !bpf_map_lookup_elem(&target_pids, &pid))
		return false;
	if (settings.filter_cgroup && bpf_current_task_under_cgroup(&target_cgroup, 0) != 1)
		return false;
	return true;
}

static __always_inline __u16 kernel_stack(struct bpf_perf_event_data *event, struct scratch *scratch)
{
	long bytes = bpf_get_stack(event, scratch->payload, MAX_KERNEL_FRAMES * 8, 0);

	if (bytes <= 0 || bytes > MAX_KERNEL_FRAMES * 8) {
		count(COUNTER_KERNEL_STACK_ERROR);
		return 0;
	}
	return (__u64)bytes / 8;
}

/* The reader polls on a timer; it is woken early only when the ring fills or tables are missing. */
static __always_inline __u64 wakeup_flag(bool urgent)
{
	__u64 waiting = bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA);
	__u64 size = bpf_ringbuf_query(&samples, BPF_RB_RING_SIZE);

	return urgent || waiting > size / 4 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

static __always_inline void emit(struct scratch *scratch, __u32 payload_bytes, bool urgent)
{
	__u64 bytes = sizeof(scratch->header) + payload_bytes;

	barrier_var(bytes);
	if (bytes > sizeof(scratch->header) + sizeof(scratch->payload))
		return;
	if (bpf_ringbuf_output(&samples, &scratch->header, bytes, wakeup_flag(urgent)))
		count(COUNTER_RING_FULL);
}

SEC("perf_event")
int sample_cpu(struct bpf_perf_event_data *event)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 pid = pid_tgid >> 32;
	__u32 cpu = bpf_get_smp_processor_id();
	struct task_struct *task;
	struct scratch *scratch;
	struct sample_header *header;
	bool in_kernel = (event->regs.cs & 3) == 0;
	bool urgent = false;
	__u32 payload_bytes;

	if (pid == 0 || !wanted(pid))
		return 0;
	scratch = scratch_of(cpu);
	if (!scratch) {
		count(COUNTER_LOST);
		return 0;
	}
	task = bpf_get_current_task_btf();
	header = &scratch->header;

	header->kind = RECORD_SAMPLE;
	header->flags = in_kernel ? SAMPLE_IN_KERNEL : 0;
	header->reserved = 0;
	header->pid = pid;
	header->tid = (__u32)pid_tgid;
	header->cpu = cpu;
	header->user_frames = 0;
	header->stack_bytes = 0;
	header->reserved2 = 0;
	header->time_ns = bpf_ktime_get_ns();
	header->cgroup_id = bpf_get_current_cgroup_id();
	header->process_start_ns = task->group_leader->start_boottime;
	bpf_get_current_comm(header->comm, sizeof(header->comm));
	header->kernel_frames = in_kernel ? kernel_stack(event, scratch) : 0;
	payload_bytes = header->kernel_frames * 8;

	if (task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER)) {
		header->result = WALK_KERNEL_ONLY;
	} else {
		struct pt_regs *registers = &scratch->task_registers;

		if (in_kernel) {
			if (bpf_probe_read_kernel(registers, sizeof(*registers), (void *)bpf_task_pt_regs(task))) {
				count(COUNTER_LOST);
				return 0;
			}
		} else {
			registers->r15 = event->regs.r15;
			registers->r14 = event->regs.r14;
			registers->r13 = event->regs.r13;
			registers->r12 = event->regs.r12;
			registers->bp = event->regs.bp;
			registers->bx = event->regs.bx;
			registers->r11 = event->regs.r11;
			registers->r10 = event->regs.r10;
			registers->r9 = event->regs.r9;
			registers->r8 = event->regs.r8;
			registers->ax = event->regs.ax;
			registers->cx = event->regs.cx;
			registers->dx = event->regs.dx;
			registers->si = event->regs.si;
			registers->di = event->regs.di;
			registers->ip = event->regs.ip;
			registers->cs = event->regs.cs;
			registers->sp = event->regs.sp;
		}
		keep_registers(scratch, registers);

		if ((registers->cs & 0xffff) == 0x23) {
			/* A 32-bit task: its frames are not laid out as the tables say. */
			count(COUNTER_COMPAT_TASK);
			scratch->walk.frames = 0;
			scratch->walk.result = WALK_NO_RULE;
		} else {
			walk_user_stack(scratch, cpu, header->time_ns);
		}
		header->result = scratch->walk.result;
		header->user_frames = scratch->walk.frames;
		payload_bytes += header->user_frames * 8;

		if (header->result == WALK_NO_MAPPING || header->result == WALK_NO_TABLE) {
			if (copy_allowed(pid, header->time_ns)) {
				count(COUNTER_STACK_COPIES);
				urgent = true;
				payload_bytes = append_context(scratch, payload_bytes);
			} else {
				count(COUNTER_COPIES_LIMITED);
				header->flags |= SAMPLE_COPY_LIMITED;
			}
		}
	}

	count(COUNTER_SAMPLES);
	count_many(COUNTER_USER_FRAMES, header->user_frames);
	if (header->result <= COUNTER_RESULT_LAST - COUNTER_RESULT_FIRST)
		count(COUNTER_RESULT_FIRST + header->result);
	emit(scratch, payload_bytes, urgent);
	return 0;
}

/* === process life === */

static __always_inline void emit_life(__u32 kind, __u32 pid, __u32 parent)
{
	struct life_record record = {
		.kind = kind,
		.pid = pid,
		.parent = parent,
		.time_ns = bpf_ktime_get_ns(),
	};

	if (bpf_ringbuf_output(&life, &record, sizeof(record), BPF_RB_FORCE_WAKEUP))
		count(COUNTER_LIFE_RING_FULL);
}

SEC("tp_btf/sched_process_fork")
int process_fork(__u64 *arguments)
{
	struct task_struct *parent = (struct task_struct *)arguments[0];
	struct task_struct *child = (struct task_struct *)arguments[1];
	__u32 parent_pid = parent->tgid;
	__u32 child_pid = child->tgid;

	/* A new thread, not a new process. */
	if (child->pid != child->tgid)
		return 0;
	/* A process id used again: what lies under it is of a process whose end is still on its way. */
	bpf_map_delete_elem(&processes, &child_pid);
	if (settings.filter_pids) {
		__u8 present = 1;

		if (!settings.follow_forks || !bpf_map_lookup_elem(&target_pids, &parent_pid))
			return 0;
		if (bpf_map_update_elem(&target_pids, &child_pid, &present, BPF_ANY))
			count(COUNTER_TARGETS_FULL);
	}
	emit_life(RECORD_FORK, child_pid, parent_pid);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int process_exit(__u64 *arguments)
{
	struct task_struct *task = (struct task_struct *)arguments[0];
	__u32 pid = task->tgid;

	/* Decremented before the tracepoint: the last thread sees zero. */
	if (task->signal->live.counter != 0)
		return 0;
	if (settings.filter_pids && !bpf_map_lookup_elem(&target_pids, &pid))
		return 0;
	/* Its entries stay until user space has seen this: since 6.16 the memory of a process is torn
	 * down after the tracepoint, and that time is its own. */
	emit_life(RECORD_EXIT, pid, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
