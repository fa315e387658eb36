/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "perf.h"

static int
open_one(uint64_t what, int leader)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = what,
		.disabled = leader < 0,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

int
perf_open(struct perf *p)
{
	int why;

	p->fd[0] = open_one(PERF_COUNT_HW_INSTRUCTIONS, -1);
	if (p->fd[0] < 0)
		return errno;
	p->fd[1] = open_one(PERF_COUNT_HW_CPU_CYCLES, p->fd[0]);
	if (p->fd[1] >= 0)
		return 0;
	why = errno;
	close(p->fd[0]);
	return why;
}

void
perf_close(struct perf *p)
{
	close(p->fd[1]);
	close(p->fd[0]);
}

void
perf_start(const struct perf *p)
{
	ioctl(p->fd[0], PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP);
	ioctl(p->fd[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
}

bool
perf_stop(const struct perf *p, struct perf_counts *c)
{
	struct {
		uint64_t n, enabled, running, value[2];
	} r = {0};

	ioctl(p->fd[0], PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
	if (read(p->fd[0], &r, sizeof(r)) != sizeof(r) || r.n != 2 || r.running == 0 ||
		r.running < r.enabled)
		return false;
	*c = (struct perf_counts){r.value[0], r.value[1]};
	return true;
}
