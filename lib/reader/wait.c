/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <monotonic.h>
#include "reader.h"

#define SPIN_LOOKS 200 /* before sleeping */
#define SLEEP_FIRST_NS 50000
#define SLEEP_LAST_NS 1000000
#define GIVEN_MAX 1024 /* records between checks of the socket */

int
reader_check_socket(struct tokr *r)
{
	struct tokd_attach_rep rep;
	char reason[sizeof(rep.message)];
	ssize_t n;

	r->given = 0;
	if (r->gone)
		return 0;
	n = recv(r->fd, &rep, sizeof(rep), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) { /* end of file, or reset */
		r->gone = true;
		close(r->fd);
		r->fd = -1;
		return 0;
	}
	if (n != sizeof(rep))
		return reader_fail(&r->error, TOKR_DROPPED,
			"%s: dropped, with an invalid message of %zd bytes", r->path, n);
	reader_message(&rep, reason, sizeof(reason));
	return reader_fail(&r->error, TOKR_DROPPED, "%s: dropped: %s", r->path, reason);
}

/*
 * Between two looks: leaves the core to its other hyper-thread, and the line to its writer. On ARM
 * isb waits for some ten ns, as pause does; yield takes no time without hyper-threads.
 */
static void
relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}

/* Sleeps, until the appliance ends at the latest. */
static void
pause_ns(const struct tokr *r, uint64_t ns)
{
	struct pollfd p = {.fd = r->fd, .events = POLLIN};
	const struct timespec t = {.tv_nsec = (long)ns};

	(void)ppoll(&p, 1, &t, NULL); /* the result does not matter */
}

/* No records: 0 to try again, or enum tokr_result. */
static int
look_around(struct tokr *r, struct tokr_record *rec)
{
	int rc;

	if (!r->gone) {
		rc = reader_check_socket(r);
		if (rc != 0 || !r->gone)
			return rc;
	}
	rc = reader_look(r, rec); /* published before it ended */
	if (rc != 0)
		return rc;
	return reader_fail(&r->error, TOKR_GONE, "%s: dpdk-tokd has ended", r->path);
}

int
tokr_next(struct tokr *r, struct tokr_record *rec, int timeout_ms)
{
	uint64_t deadline = 0, sleep = SLEEP_FIRST_NS;
	int rc;

	if (r->error.code != 0 && r->error.code != TOKR_SYSTEM)
		return r->error.code;
	if (r->given >= GIVEN_MAX) {
		rc = reader_check_socket(r);
		if (rc != 0)
			return rc;
	}
	for (uint32_t looks = 1;; looks++) {
		rc = reader_look(r, rec);
		if (rc != 0)
			return rc;
		if (timeout_ms != 0 && looks < SPIN_LOOKS) {
			relax();
			continue;
		}
		rc = look_around(r, rec);
		if (rc != 0 || timeout_ms == 0)
			return rc;
		if (timeout_ms > 0) {
			uint64_t now = monotonic_ns();

			if (deadline == 0)
				deadline = now + (uint64_t)timeout_ms * 1000000u;
			if (now >= deadline)
				return 0;
			if (sleep > deadline - now)
				sleep = deadline - now;
		}
		pause_ns(r, sleep);
		sleep = sleep < SLEEP_LAST_NS / 2 ? 2 * sleep : SLEEP_LAST_NS;
	}
}

const struct tokr_error *
tokr_last_error(const struct tokr *r)
{
	return &r->error;
}

const char *
tokr_strerror(int code)
{
	switch (code) {
	case TOKR_SYSTEM:
		return "a system call failed";
	case TOKR_TIMEOUT:
		return "no answer in time";
	case TOKR_REFUSED:
		return "refused";
	case TOKR_INVALID:
		return "invalid data";
	case TOKR_GONE:
		return "dpdk-tokd has ended";
	case TOKR_DROPPED:
		return "dropped by dpdk-tokd";
	case TOKR_OVERRUN:
		return "overwritten while it was used";
	default:
		return code >= 0 ? "no error" : "unknown error";
	}
}
