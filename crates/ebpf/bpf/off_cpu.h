/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause OR GPL-2.0 */
/*
 * Off-CPU time: how long threads were off a CPU, by the stack that left it.
 *
 * A switch costs a look into task storage. Only a sample pays for stacks: its kernel stack is taken when
 * the thread is switched in, before it runs, and its user stack when it is about to return to user space,
 * because in sched_switch user memory is still that of the thread that leaves. What has not returned when
 * a recording or a window ends is taken by an iterator over all threads. Kernels that do not call when a thread
 * returns tell the end of its system call.
 */
#ifndef CANDELA_OFF_CPU_H
#define CANDELA_OFF_CPU_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "maps.h"
#include "user_stack.h"
#include "threads.h"
#include "locks.h"
#include "run_queue.h"
#include "wait_clock.h"
#include "runs.h"

/* === maps === */

struct off_cpu_time {
	/* When the thread left its CPU, on the clock of waits; 0 while it runs, or when nobody wants to know. */
	__u64 since_ns;
	/* How long it had run by then. */
	__u64 ran_ns;
	/* How long it had been runnable without running by then. */
	__u64 queued_ns;
	/* With least_wait_ns: of the wait that goes on, the time before since_ns. A sample of that part may be there. */
	__u64 earlier_ns;
	__u32 was_preempted;
	/* The last random number of this thread, 0 before the first. */
	__u32 random;
	struct lock_wait lock;
	/* Who ended the wait, where that is asked for; wakers.h. */
	char waker[16];
	/* When, where the stack was told of who did (CLOCK_MONOTONIC); else 0. */
	__u64 woken_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct off_cpu_time);
} off_cpu_times SEC(".maps");

/* A sample that waits for its thread to return to user space. */
struct deferred_sample {
	struct bpf_task_work work;
	/* Tells a thread from an earlier one with its id. */
	__u64 thread_start_ns;
	/* What the sample is worth. Whoever exchanges it for 0 hands the sample over. */
	__u64 owed_ns;
	__u64 owed_run_queue_ns;
	__u64 owed_switches;
	__u64 lock_holder;
	/* Before Linux 6.18: where its program called the kernel, which tells that call from a later one. */
	__u64 user_ip;
	__u64 user_sp;
	struct sample_header header;
	__u64 kernel_frames[MAX_KERNEL_FRAMES];
};

/* By thread id. A thread that blocks again before it returns to user space adds to its sample. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct deferred_sample);
} deferred_samples SEC(".maps");

/* What a new entry holds. No struct: one with a bpf_task_work may be in a map's values only. */
const __u8 empty_deferred_sample[sizeof(struct deferred_sample)] __attribute__((aligned(8))) = {};

/* === kernel functions: all are there where one of the first two is, from Linux 6.18 on === */

/* The same without the last argument, which has another type on newer kernels: there the one below is not found. */
extern int bpf_task_work_schedule_resume(struct task_struct *task, struct bpf_task_work *work, void *map,
					 int (*callback)(struct bpf_map *map, void *key, void *value)) __ksym __weak;
extern int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *work, void *map__map,
					      int (*callback)(struct bpf_map *map, void *key, void *value),
					      void *aux__prog) __ksym __weak;
extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;

static __always_inline bool is_called_when_back(void)
{
	if (bpf_ksym_exists(bpf_task_work_schedule_resume))
		return true;
	/* One after the other: the verifier does not let both addresses be joined to one number. */
	barrier();
	return bpf_ksym_exists(bpf_task_work_schedule_resume_impl);
}

/* === weighing === */

/* A time off CPU, and how much of it the thread could have run. */
struct wait {
	__u64 away_ns;
	__u64 run_queue_ns;
};

struct weight {
	__u64 value_ns;
	__u64 run_queue_ns;
	__u32 switches;
};

/*
 * The number that next_random() gives next. Xorshift: a seventh of the cost of a switch less than the kernel's
 * generator, which only seeds it.
 */
static __always_inline __u32 coming_random(struct off_cpu_time *time)
{
	__u32 random = time->random;

	if (random == 0)
		time->random = random = bpf_get_prandom_u32() | 1;
	random ^= random << 13;
	random ^= random >> 17;
	random ^= random << 5;
	return random;
}

static __always_inline __u32 next_random(struct off_cpu_time *time)
{
	return time->random = coming_random(time);
}

/* How much of a wait is what samples are asked of. */
static __always_inline __u64 wanted_length(const struct off_cpu_time *time, const struct wait *wait)
{
	if (settings.all_waits || time->lock.address != 0)
		return wait->away_ns;
	return wait->run_queue_ns;
}

/*
 * Whether somebody wants longer waits only. A wait is as long as it was, though a look at all threads came in
 * between: its end is not short because it is seen alone.
 */
static __always_inline bool is_short(const struct off_cpu_time *time, const struct wait *wait)
{
	return settings.least_wait_ns != 0 && time->earlier_ns + wait->away_ns < settings.least_wait_ns;
}

/*
 * Whether a time off CPU is a sample, and what it is worth. The longer, the likelier: one as long as the
 * mean always is one, of its own length; a shorter one is one with the probability length / mean, worth
 * the mean. So both sums are right on average whatever the lengths are, and each sample is worth its cost.
 */
static __always_inline bool weigh(struct off_cpu_time *time, const struct wait *wait, struct weight *weight)
{
	__u64 mean_ns = pace.off_cpu_mean_ns;
	__u64 length_ns = wanted_length(time, wait);

	if (length_ns == 0)
		return false;
	if (is_short(time, wait)) {
		count(COUNTER_SHORT_WAITS);
		count_many(COUNTER_SHORT_WAIT_NS, wait->away_ns);
		return false;
	}
	if (length_ns >= mean_ns) {
		weight->value_ns = length_ns;
		weight->run_queue_ns = wait->run_queue_ns;
		weight->switches = 1;
		return true;
	}
	if (((__u64)next_random(time) * mean_ns) >> 32 >= length_ns)
		return false;
	weight->value_ns = mean_ns;
	/* No overflow: both are below LONGEST_OFF_CPU_MEAN_NS, the square root of what fits. */
	weight->run_queue_ns = wait->run_queue_ns * mean_ns / length_ns;
	/* Not 0: the product above is not below 0. Rounded up as often as the fraction asks for. */
	weight->switches = mean_ns / length_ns;
	if (((__u64)next_random(time) * length_ns) >> 32 < mean_ns % length_ns)
		weight->switches++;
	return true;
}

/* === samples === */

/* Behind those of the perf event, for code that cannot be preempted. */
static __always_inline __u32 off_cpu_area(void)
{
	return settings.possible_cpus + bpf_get_smp_processor_id();
}

static __always_inline void fill_off_cpu_header(struct sample_header *header, struct task_struct *task,
						const struct off_cpu_time *time, __u64 now)
{
	fill_header(header, RECORD_OFF_CPU, task, now);
	if (time->was_preempted)
		header->flags |= SAMPLE_PREEMPTED;
	header->lock_address = time->lock.address;
	if (settings.wakers) {
		__builtin_memcpy(header->waker, time->waker, sizeof(header->waker));
		header->woken_ns = time->woken_ns;
	}
}

/* The kernel stack of a task that does not run; how many frames. */
static __always_inline __u16 blocked_kernel_stack(struct task_struct *task, void *frames)
{
	long bytes = bpf_get_task_stack(task, frames, MAX_KERNEL_FRAMES * 8, 0);

	if (bytes <= 0 || bytes > MAX_KERNEL_FRAMES * 8) {
		count(COUNTER_KERNEL_STACK_ERROR);
		return 0;
	}
	return (__u64)bytes / 8;
}

static __always_inline void finish_off_cpu_sample(struct scratch *scratch, __u32 payload_bytes,
						  const struct weight *weight)
{
	scratch->header.value = weight->value_ns;
	scratch->header.run_queue_ns = weight->run_queue_ns;
	scratch->header.count = weight->switches;
	count(COUNTER_OFF_CPU_SAMPLES);
	finish_sample(scratch, payload_bytes);
}

/* What there is to say of a thread without its user stack. */
static __always_inline void sample_kernel_stack(struct task_struct *task, const struct off_cpu_time *time,
						__u64 now, const struct weight *weight)
{
	struct scratch *scratch = scratch_of(off_cpu_area());

	if (!scratch) {
		count(COUNTER_LOST);
		return;
	}
	fill_off_cpu_header(&scratch->header, task, time, now);
	scratch->header.kernel_frames = blocked_kernel_stack(task, scratch->payload);
	finish_off_cpu_sample(scratch, scratch->header.kernel_frames * 8, weight);
}

/* Moves a deferred sample to a work area; false when somebody else has handed it over. */
static __always_inline bool take_deferred(struct deferred_sample *deferred, struct scratch *scratch,
					  struct weight *weight)
{
	__u32 bytes;

	weight->value_ns = __sync_lock_test_and_set(&deferred->owed_ns, 0);
	weight->run_queue_ns = __sync_lock_test_and_set(&deferred->owed_run_queue_ns, 0);
	weight->switches = __sync_lock_test_and_set(&deferred->owed_switches, 0);
	if (weight->value_ns == 0)
		return false;
	scratch->header = deferred->header;
	bytes = deferred->header.kernel_frames * 8;
	barrier_var(bytes);
	if (bytes > sizeof(deferred->kernel_frames))
		return false;
	bpf_probe_read_kernel(scratch->payload, bytes, deferred->kernel_frames);
	return true;
}

/* Hands a deferred sample over without a user stack. */
static __always_inline void give_up_deferred(struct deferred_sample *deferred, struct scratch *scratch)
{
	struct weight weight;

	if (!scratch || !take_deferred(deferred, scratch, &weight))
		return;
	count(COUNTER_NOT_DEFERRED);
	finish_off_cpu_sample(scratch, scratch->header.kernel_frames * 8, &weight);
}

/* The current thread's deferred sample, with the user stack that it has now. Not to be preempted. */
static __always_inline void hand_over(struct deferred_sample *deferred, struct task_struct *task)
{
	__u32 area = off_cpu_area(), payload_bytes;
	struct scratch *scratch = scratch_of(area);
	struct weight weight;

	if (!scratch || !take_deferred(deferred, scratch, &weight))
		return;
	payload_bytes = scratch->header.kernel_frames * 8;
	name_holder(&scratch->header, deferred->lock_holder, true);
	/* A thread that ends has let go of its memory. */
	if (!(task->flags & PF_EXITING) && read_task_registers(scratch, task) == 0)
		payload_bytes = append_user_stack(scratch, area, payload_bytes);
	finish_off_cpu_sample(scratch, payload_bytes, &weight);
}

/* The current thread is about to return to user space, or ends: its user memory is there to be read. */
static int returns_to_user(struct bpf_map *map, void *key, void *value)
{
	/* The area is the CPU's, and nobody adds to the sample between the last look and its end. */
	bpf_preempt_disable();
	hand_over(value, bpf_get_current_task_btf());
	bpf_map_delete_elem(&deferred_samples, key);
	bpf_preempt_enable();
	return 0;
}

/* A thread that is stopped on its way back from one call comes to the end of another one. */
static __always_inline bool is_same_call(const struct deferred_sample *deferred, struct task_struct *task)
{
	struct pt_regs *registers = (struct pt_regs *)bpf_task_pt_regs(task);
	__u64 ip = 0, sp = 0;

	bpf_probe_read_kernel(&ip, sizeof(ip), &registers->ip);
	bpf_probe_read_kernel(&sp, sizeof(sp), &registers->sp);
	return ip == deferred->user_ip && sp == deferred->user_sp;
}

/* The same at the end of a system call, for kernels before 6.18. They run such programs with preemption off. */
SEC("tp_btf/sys_exit")
int off_cpu_call_ends(__u64 *arguments)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 tid = task->pid;
	struct deferred_sample *deferred = bpf_map_lookup_elem(&deferred_samples, &tid);

	count_run(RUNS_OFF_CPU_CALL_ENDS);
	if (!deferred)
		return 0;
	if (deferred->thread_start_ns == task->start_boottime && is_same_call(deferred, task))
		hand_over(deferred, task);
	else
		give_up_deferred(deferred, scratch_of(off_cpu_area()));
	bpf_map_delete_elem(&deferred_samples, &tid);
	return 0;
}

/* Asks for the thread's sample to be handed over before it runs its program again; not 0 where nobody will. */
static __always_inline long call_when_back(struct task_struct *task, const struct off_cpu_time *time,
					   struct deferred_sample *deferred)
{
	struct pt_regs *registers = (struct pt_regs *)bpf_task_pt_regs(task);
	long call;

	if (bpf_ksym_exists(bpf_task_work_schedule_resume))
		return bpf_task_work_schedule_resume(task, &deferred->work, &deferred_samples, returns_to_user);
	if (bpf_ksym_exists(bpf_task_work_schedule_resume_impl))
		return bpf_task_work_schedule_resume_impl(task, &deferred->work, &deferred_samples, returns_to_user,
							  0);
	/* In no system call, or past its end: elsewhere when the next one ends. */
	if (time->was_preempted || bpf_probe_read_kernel(&call, sizeof(call), &registers->orig_ax))
		return -1;
	bpf_probe_read_kernel(&deferred->user_ip, sizeof(deferred->user_ip), &registers->ip);
	bpf_probe_read_kernel(&deferred->user_sp, sizeof(deferred->user_sp), &registers->sp);
	return call < 0 ? -1 : 0;
}

/* A thread that ends does not come to the end of its system call. */
static __always_inline void end_deferred(struct task_struct *task)
{
	__u32 tid = task->pid;
	struct deferred_sample *deferred = 0;

	if (!is_called_when_back())
		deferred = bpf_map_lookup_elem(&deferred_samples, &tid);
	if (!deferred)
		return;
	give_up_deferred(deferred, scratch_of(off_cpu_area()));
	bpf_map_delete_elem(&deferred_samples, &tid);
}

/* A thread that execs takes the id of the first thread, and comes to the end of its system call under that. */
SEC("tp_btf/sched_process_exec")
int off_cpu_exec(__u64 *arguments)
{
	struct task_struct *task = (struct task_struct *)arguments[0];
	__u32 former_id = arguments[1];
	struct deferred_sample *deferred;

	if (former_id == task->pid)
		return 0;
	deferred = bpf_map_lookup_elem(&deferred_samples, &former_id);
	if (!deferred)
		return 0;
	give_up_deferred(deferred, scratch_of(off_cpu_area()));
	bpf_map_delete_elem(&deferred_samples, &former_id);
	return 0;
}

static __always_inline void tell_lock(struct deferred_sample *deferred, const struct off_cpu_time *time)
{
	deferred->header.lock_address = time->lock.address;
	deferred->lock_holder = time->lock.holder;
}

static __always_inline void sample_later(struct task_struct *task, const struct off_cpu_time *time, __u64 now,
					 const struct weight *weight)
{
	__u32 tid = task->pid;
	struct deferred_sample *deferred = bpf_map_lookup_elem(&deferred_samples, &tid);

	if (deferred && deferred->thread_start_ns != task->start_boottime) {
		/* The thread that had this id ended before it could be asked. */
		give_up_deferred(deferred, scratch_of(off_cpu_area()));
		bpf_map_delete_elem(&deferred_samples, &tid);
		deferred = 0;
	}
	if (deferred && deferred->header.lock_address != time->lock.address) {
		/* What waits for a lock is no part of another wait. */
		count(COUNTER_NOT_DEFERRED);
		sample_kernel_stack(task, time, now, weight);
		return;
	}
	if (deferred) {
		deferred->header.time_ns = now;
		/* Of two wakers none is named; 8 bytes tell names apart well enough. Losing a CPU has no waker. */
		if (settings.wakers && time->waker[0] && *(__u64 *)deferred->header.waker != *(__u64 *)time->waker)
			deferred->header.waker[0] = 0;
		if (settings.wakers && time->waker[0])
			deferred->header.woken_ns = 0;
		__sync_fetch_and_add(&deferred->owed_ns, weight->value_ns);
		__sync_fetch_and_add(&deferred->owed_run_queue_ns, weight->run_queue_ns);
		__sync_fetch_and_add(&deferred->owed_switches, weight->switches);
		return;
	}
	if (bpf_map_update_elem(&deferred_samples, &tid, empty_deferred_sample, BPF_NOEXIST) ||
	    !(deferred = bpf_map_lookup_elem(&deferred_samples, &tid))) {
		count(COUNTER_NOT_DEFERRED);
		sample_kernel_stack(task, time, now, weight);
		return;
	}
	deferred->thread_start_ns = task->start_boottime;
	fill_off_cpu_header(&deferred->header, task, time, now);
	tell_lock(deferred, time);
	deferred->header.kernel_frames = blocked_kernel_stack(task, deferred->kernel_frames);
	deferred->owed_ns = weight->value_ns;
	deferred->owed_run_queue_ns = weight->run_queue_ns;
	deferred->owed_switches = weight->switches;
	if (call_when_back(task, time, deferred)) {
		give_up_deferred(deferred, scratch_of(off_cpu_area()));
		bpf_map_delete_elem(&deferred_samples, &tid);
	}
}

/* === the switch === */

/*
 * How long a thread has been off CPU since it left, whatever it ran for in between: some switches fire no
 * tracepoint (those of threads that the kernel does not trace, or when another program was at work).
 */
static __always_inline __u64 time_away(const struct task_struct *task, const struct off_cpu_time *time, __u64 since,
				       __u64 now)
{
	__u64 elapsed = now - since;
	__u64 ran = task->se.sum_exec_runtime - time->ran_ns;

	return ran < elapsed ? elapsed - ran : 0;
}

static __always_inline __u64 time_queued(const struct task_struct *task, const struct off_cpu_time *time, __u64 away)
{
	__u64 queued;

	if (!settings.run_queues)
		return 0;
	queued = run_queue_time(task) - time->queued_ns;
	/* Two clocks. */
	return queued < away ? queued : away;
}

/* The thread leaves its CPU now. */
static __always_inline void note_departure(struct task_struct *task, struct off_cpu_time *time, bool was_preempted)
{
	time->was_preempted = was_preempted;
	time->ran_ns = task->se.sum_exec_runtime;
	time->earlier_ns = 0;
	time->waker[0] = 0;
	time->woken_ns = 0;
	if (settings.run_queues)
		time->queued_ns = task->sched_info.run_delay;
}

/* The thread leaves, but was not seen to come. What it waited in is not known any more, how long it is. */
static __always_inline void sample_missed_arrival(struct task_struct *task, struct off_cpu_time *time, __u64 since,
						  __u64 now)
{
	struct scratch *scratch = scratch_of(off_cpu_area());
	struct wait wait = { .away_ns = time_away(task, time, since, now) };
	struct weight weight;

	wait.run_queue_ns = time_queued(task, time, wait.away_ns);
	if (!weigh(time, &wait, &weight))
		return;
	count(COUNTER_ARRIVAL_MISSED);
	if (!scratch) {
		count(COUNTER_LOST);
		return;
	}
	fill_off_cpu_header(&scratch->header, task, time, compare_clocks(now));
	finish_off_cpu_sample(scratch, 0, &weight);
}

SEC("tp_btf/sched_switch")
int off_cpu_switch(__u64 *arguments)
{
	bool is_preempted = arguments[0] & 1;
	struct task_struct *previous = (struct task_struct *)arguments[1];
	struct task_struct *next = (struct task_struct *)arguments[2];
	__u32 previous_state = arguments[3];
	__u64 now = wait_clock(previous);
	struct off_cpu_time *time;
	struct weight weight;
	struct wait wait;
	__u64 since;

	count_run(RUNS_OFF_CPU_SWITCH);
	if (*(volatile __u64 *)&wait_clock_offset == 0)
		compare_clocks(now);

	/* A thread that ends does not wait for anything. */
	if (previous->pid != 0 && !(previous_state & TASK_DEAD) && wanted(previous->tgid)) {
		time = bpf_task_storage_get(&off_cpu_times, previous, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (time) {
			since = time->since_ns;
			if (since != 0 && since < now)
				sample_missed_arrival(previous, time, since, now);
			note_departure(previous, time, is_preempted || previous_state == TASK_RUNNING);
			time->lock.address = 0;
			if (settings.locks && !time->was_preempted && !is_kernel_thread(previous))
				note_lock(previous, &time->lock, 0);
			time->since_ns = now;
		} else {
			count(COUNTER_LOST);
		}
	}

	/* One that ends and was not seen to come has waited all the same. */
	if (previous_state & TASK_DEAD) {
		time = bpf_task_storage_get(&off_cpu_times, previous, 0, 0);
		since = time ? time->since_ns : 0;
		if (since != 0 && since < now) {
			sample_missed_arrival(previous, time, since, now);
			time->since_ns = 0;
		}
		end_deferred(previous);
	}

	if (next->pid == 0)
		return 0;
	time = bpf_task_storage_get(&off_cpu_times, next, 0, 0);
	if (!time || time->since_ns == 0)
		return 0;
	since = __sync_lock_test_and_set(&time->since_ns, 0);
	/* The iterator's time may be later than the one that was read here before. */
	if (since == 0 || since >= now)
		return 0;
	wait.away_ns = now - since;
	wait.run_queue_ns = time_queued(next, time, wait.away_ns);
	if (!weigh(time, &wait, &weight))
		return 0;
	now = compare_clocks(now);
	if (is_kernel_thread(next) || next->flags & PF_EXITING)
		sample_kernel_stack(next, time, now, &weight);
	else
		sample_later(next, time, now, &weight);
	return 0;
}

#endif
