/* Publishes a page of a file system as its OpenTelemetry process context, then burns.
 * The file system is a child (FUSE), which writes "asked" when somebody wants the page. It answers, with a context that has
 * service.name=held-page, only when told to, and then the program has read the page before it says "ready". Needs root.
 * Usage: held_page SECONDS FOLDER answer|hold (of CPU time; a folder to mount on, in a namespace of its own) */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "process_context.h"

#define PAGE 4096
#define FILE_NODE 2

/* ProcessContext{resource{attributes[{"service.name": "held-page"}]}} */
static const char payload[PAGE] =
	"\x0a\x1d\x0a\x1b"
	"\x0a\x0cservice.name"
	"\x12\x0b\x0a\x09"
	"held-page";
#define PAYLOAD_SIZE 31

static volatile unsigned long sink;

static void reply(int device, uint64_t unique, int error, const void *body, size_t size)
{
	struct fuse_out_header header = {
		.len = sizeof(header) + size, .error = error, .unique = unique};
	struct iovec parts[] = {{&header, sizeof(header)}, {(void *)body, size}};
	if (writev(device, parts, 2) < 0)
		exit(1);
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node, .size = PAGE, .nlink = 1, .blksize = PAGE,
		.mode = node == FILE_NODE ? S_IFREG | 0644 : S_IFDIR | 0755};
}

static void serve(int device, pid_t parent, int answers)
{
	static char request[FUSE_MIN_READ_BUFFER + (1 << 17)];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		exit(1);
	while (read(device, request, sizeof(request)) > 0) {
		struct fuse_in_header *header = (void *)request;
		struct fuse_init_out init = {
			.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = PAGE};
		struct fuse_entry_out entry = {
			.nodeid = FILE_NODE, .entry_valid = 600, .attr_valid = 600, .attr = attributes(FILE_NODE)};
		struct fuse_attr_out attr = {.attr_valid = 600, .attr = attributes(header->nodeid)};
		struct fuse_open_out opened = {0};
		switch (header->opcode) {
		case FUSE_INIT:
			reply(device, header->unique, 0, &init, sizeof(init));
			break;
		case FUSE_LOOKUP:
			reply(device, header->unique, 0, &entry, sizeof(entry));
			break;
		case FUSE_GETATTR:
			reply(device, header->unique, 0, &attr, sizeof(attr));
			break;
		case FUSE_OPEN:
			reply(device, header->unique, 0, &opened, sizeof(opened));
			break;
		case FUSE_READ:
			puts("asked");
			fflush(stdout);
			if (answers)
				reply(device, header->unique, 0, payload, PAGE);
			break;
		case FUSE_FORGET:
		case FUSE_INTERRUPT:
			break;
		default:
			reply(device, header->unique, -38 /* ENOSYS */, 0, 0);
		}
	}
	exit(0);
}

static char *held_page(const char *folder, int answers)
{
	char text[PAGE];
	int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(text, sizeof(text), "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
	if (device < 0 || unshare(CLONE_NEWNS) || mount("none", "/", 0, MS_REC | MS_PRIVATE, 0) ||
	    mount("held", folder, "fuse.held", MS_NOSUID | MS_NODEV, text))
		exit(1);
	pid_t parent = getpid();
	if (fork() == 0)
		serve(device, parent, answers);
	close(device);
	snprintf(text, sizeof(text), "%s/page", folder);
	int file = open(text, O_RDONLY | O_CLOEXEC);
	void *page = mmap(0, PAGE, PROT_READ, MAP_PRIVATE, file, 0);
	if (file < 0 || page == MAP_FAILED)
		exit(1);
	return page;
}

int main(int count, char **arguments)
{
	if (count < 4)
		return 1;
	double seconds = atof(arguments[1]);
	int answers = strcmp(arguments[3], "answer") == 0;
	volatile char *page = held_page(arguments[2], answers);
	if (answers && page[0] != payload[0])
		return 1;
	if (publish_process_context(page, PAYLOAD_SIZE))
		return 1;
	puts("ready");
	fflush(stdout);
	struct timespec time;
	do {
		for (int round = 0; round < 100000; round++)
			sink = sink * 31 + round;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	} while (time.tv_sec + time.tv_nsec * 1e-9 < seconds);
	return 0;
}
