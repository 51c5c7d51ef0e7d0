/*
 * Runs a program instruction by instruction and follows its calls, so that its true callers are known at each:
 * a call leaves the address behind it on the stack, and a slot above which rsp has come has been returned from.
 * Reports one in EVERY of the first STEPS instructions, as observe.c does, with the callers.
 * Usage: step STEPS EVERY PROGRAM [ARGUMENT]...
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_CALLS 4096
#define LONGEST_CALL 8

static struct {
	unsigned long slot, address;
} calls[MOST_CALLS];
static int depth;
static char maps[1 << 20];

static size_t read_maps(int pid)
{
	char path[64];
	size_t length = 0;
	ssize_t count;
	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	int file = open(path, O_RDONLY);
	while (file >= 0 && (count = read(file, maps + length, sizeof maps - length)) > 0)
		length += count;
	close(file);
	return length;
}

static void follow(int pid, const struct user_regs_struct *before, const struct user_regs_struct *now)
{
	while (depth > 0 && calls[depth - 1].slot < now->rsp)
		depth--;
	if (now->rsp != before->rsp - 8)
		return;
	unsigned long word = ptrace(PTRACE_PEEKDATA, pid, now->rsp, 0);
	if (word <= before->rip || word > before->rip + LONGEST_CALL)
		return;
	if (depth == MOST_CALLS)
		exit(4);
	calls[depth].slot = now->rsp;
	calls[depth].address = word;
	depth++;
}

static void report(int pid, const struct user_regs_struct *r)
{
	unsigned long all[18] = { r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
				  r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip };
	size_t length = read_maps(pid);

	printf("PROCESS %x 0\n", pid);
	for (int i = 0; i < 18; i += 2)
		printf("ALL %lx %lx\n", all[i], all[i + 1]);
	for (int i = depth - 1; i >= 0; i--)
		printf("CALLER %lx %lx\n", calls[i].address, calls[i].slot);
	printf("MAPS 0 %zx\n", length);
	fwrite(maps, 1, length, stdout);
	printf("END 0 0\n");
	fflush(stdout);
	getchar();
}

int main(int argc, char **argv)
{
	struct user_regs_struct before = { 0 }, now;
	int status;

	if (argc < 4)
		return 2;
	long steps = atol(argv[1]), every = atol(argv[2]);
	int pid = fork();
	if (pid == 0) {
		dup2(open("/dev/null", O_RDWR), 0);
		dup2(0, 1);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execvp(argv[3], argv + 3);
		_exit(3);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return 3;
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_EXITKILL);
	ptrace(PTRACE_GETREGS, pid, 0, &before);
	for (long step = 1; step <= steps; step++) {
		if (ptrace(PTRACE_SINGLESTEP, pid, 0, 0) != 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
			break;
		if (ptrace(PTRACE_GETREGS, pid, 0, &now) != 0)
			break;
		follow(pid, &before, &now);
		if (step % every == 0)
			report(pid, &now);
		before = now;
	}
	kill(pid, 9);
	return 0;
}
