/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>

#include "client.h"

#define IDS_SPARE 1024

int
client_open(struct client *c, const struct options *o, const struct slices *slices)
{
	static const struct client_mode *const modes[] = {[MODE_TOKD] = &client_tokd,
		[MODE_PLAIN] = &client_plain,
		[MODE_TCP] = &client_tcp,
		[MODE_ECHO] = &client_echo};
	const struct client_mode *mode = modes[o->mode];

	c->n_jobs = (uint32_t)o->in_flight;
	c->max_ids = slices->max_ids + IDS_SPARE;
	c->job = calloc(c->n_jobs, sizeof(*c->job));
	for (uint32_t i = 0; i < c->n_jobs; i++) {
		if (c->job != NULL)
			c->job[i].ids = malloc(sizeof(uint32_t) * c->max_ids);
		if (c->job == NULL || c->job[i].ids == NULL) {
			fprintf(stderr,
				"tokd-load: no memory for %u requests in flight; lower "
				"--in-flight\n",
				c->n_jobs);
			return -1;
		}
		c->job[i].fd = -1;
	}
	c->mode = mode;
	return mode->open(c, o);
}

void
client_close(struct client *c)
{
	if (c->mode != NULL)
		c->mode->close(c);
	for (uint32_t i = 0; c->job != NULL && i < c->n_jobs; i++)
		free(c->job[i].ids);
	free(c->job);
}

int
client_socket(const struct options *o, int type, uint16_t port)
{
	const struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0), saved;

	if (fd < 0)
		return -1;
	if ((port == 0 || bind(fd, (const void *)&own, sizeof(own)) == 0) &&
		connect(fd, (const void *)&o->server, sizeof(o->server)) == 0)
		return fd;
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

void
client_take_ids(const struct client *c, struct job *job, const uint8_t *bytes, size_t n)
{
	job->n_ids = (uint32_t)(n / 4);
	job->failure = n % 4 != 0 || job->n_ids > c->max_ids ? "odd answer" : NULL;
	if (job->failure == NULL)
		memcpy(job->ids, bytes, n);
}
