/*
 * Stops every thread of a process again and again and reports each: all registers and the maps.
 * A thread stays stopped until a byte comes on standard input, so that its memory can be read.
 * Usage: observe PID ROUNDS
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static char maps[4 << 20];

static size_t read_file(const char *path, char *out, size_t room)
{
	size_t length = 0;
	ssize_t count;
	int file = open(path, O_RDONLY);
	while (file >= 0 && length < room && (count = read(file, out + length, room - length)) > 0)
		length += count;
	close(file);
	return length;
}

static void report_thread(int pid, int thread)
{
	struct user_regs_struct r;
	char path[64];
	int status;

	if (ptrace(PTRACE_SEIZE, thread, 0, 0) != 0)
		return;
	ptrace(PTRACE_INTERRUPT, thread, 0, 0);
	if (waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status))
		return;
	if (ptrace(PTRACE_GETREGS, thread, 0, &r) == 0) {
		snprintf(path, sizeof path, "/proc/%d/maps", pid);
		size_t length = read_file(path, maps, sizeof maps - 1);
		maps[length] = 0;
		unsigned long all[18] = { r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
					  r.r9,	 r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip };
		for (int i = 0; i < 18; i += 2)
			printf("ALL %lx %lx\n", all[i], all[i + 1]);
		printf("MAPS 0 %zx\n", length);
		fwrite(maps, 1, length, stdout);
		printf("END 0 0\n");
		fflush(stdout);
		getchar();
	}
	ptrace(PTRACE_DETACH, thread, 0, 0);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	int pid = atoi(argv[1]);
	for (int round = atoi(argv[2]); round > 0; round--) {
		char path[64];
		snprintf(path, sizeof path, "/proc/%d/task", pid);
		DIR *tasks = opendir(path);
		struct dirent *entry;
		while (tasks && (entry = readdir(tasks)))
			if (atoi(entry->d_name) > 0)
				report_thread(pid, atoi(entry->d_name));
		if (tasks)
			closedir(tasks);
	}
	return 0;
}
