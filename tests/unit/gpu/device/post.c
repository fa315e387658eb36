/* SPDX-License-Identifier: BSD-3-Clause */
#include "post.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <monotonic.h>

void
post_fail(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	fflush(stdout);
	_exit(1); /* exit would wait for a kernel that runs on */
}

/* A number from the environment, at least 1; `otherwise` where there is none. */
static uint32_t
number(const char *name, uint32_t otherwise)
{
	const char *const text = getenv(name);
	const long n = text ? atol(text) : 0;

	if (text && (n < 1 || n > INT32_MAX))
		post_fail("%s is %s, must be a number of 1 or more", name, text);
	return text ? (uint32_t)n : otherwise;
}

bool
post_host_ring(void)
{
	const char *const text = getenv("TOKD_GPU_RING");

	if (text && strcmp(text, "gpu") != 0 && strcmp(text, "host") != 0)
		post_fail("TOKD_GPU_RING is %s, must be gpu or host", text);
	return text && strcmp(text, "host") == 0;
}

bool
post_graphs(void)
{
	const char *const text = getenv("TOKD_GPU_LAUNCH");

	if (text && strcmp(text, "persistent") != 0 && strcmp(text, "graph") != 0)
		post_fail("TOKD_GPU_LAUNCH is %s, must be persistent or graph", text);
	return text && strcmp(text, "graph") == 0;
}

struct tokg_device *
post_device(const char *name, struct tokg_device_config *c, struct tokg_error *err)
{
	alarm(number("TOKD_GPU_LIMIT_S", 300));
	if (c->workers == TOKG_WORKERS_DEFAULT)
		c->workers = number("TOKD_GPU_WORKERS", TOKG_WORKERS_DEFAULT);
	c->host_ring = post_host_ring();
	c->graphs = c->graphs || post_graphs();
	if (strcmp(name, "cpu") == 0)
		return tokg_device_cpu(c, err);
	if (strncmp(name, "cuda:", 5) != 0)
		post_fail("device %s: must be cpu or cuda:N", name);
	c->index = atoi(name + 5);
	if (!tokg_device_cuda_there(c->index, err)) {
		fprintf(stderr, "no GPU: %s\n", err->text);
		exit(77);
	}
	return tokg_device_cuda(c, err);
}

struct tokg_device *
post_open(const char *name, struct tokg_device_config *c)
{
	struct tokg_error err = {{0}};
	struct tokg_device *d;

	if (!tokg_geometry_fill(&c->geometry, &err))
		post_fail("%s", err.text);
	c->ring_epoch = 1;
	c->first_cpu = -1;
	c->workers = TOKG_WORKERS_DEFAULT;
	d = post_device(name, c, &err);
	if (d == NULL)
		post_fail("%s", err.text);
	if (d->ops->start(d, 1, &err) < 0)
		post_fail("%s", err.text);
	post_grant(d);
	return d;
}

void
post_grant(struct tokg_device *d)
{
	for (uint32_t p = 0; p < d->geometry.producers; p++)
		if (d->ops->write_u64(d,
			    tokg_back_at(&d->geometry, p) + offsetof(struct tokg_back, epoch),
			    POST_EPOCH | (uint64_t)d->incarnation << 32) < 0)
			post_fail("the region cannot be written");
}

void
post_bytes(struct tokg_device *d, uint64_t at, const void *from, uint64_t bytes)
{
	uint64_t v;

	if (d->region) {
		memcpy((uint8_t *)d->region + at, from, bytes);
		return;
	}
	for (uint64_t i = 0; i < bytes; i += sizeof(v)) {
		memcpy(&v, (const uint8_t *)from + i, sizeof(v));
		if (d->ops->write_u64(d, at + i, v) < 0)
			post_fail("the region cannot be written");
	}
}

void
post_slot(struct tokg_device *d, uint32_t producer, uint32_t slot, struct tokg_hdr *h,
	uint64_t ticket, void *payload)
{
	const uint64_t padded = tokg_align(h->bytes, TOKG_LINE);
	const uint64_t hdr = tokg_hdr_at(&d->geometry, producer, slot);

	if (padded > h->bytes)
		memset((uint8_t *)payload + h->bytes, 0, padded - h->bytes);
	h->ticket = ticket;
	h->check = tokg_check_of(h, payload);
	post_bytes(d, tokg_payload_at(&d->geometry, producer, slot), payload, padded);
	post_bytes(d, hdr, h, offsetof(struct tokg_hdr, ticket));
	if (d->ops->write_u64(d, hdr + offsetof(struct tokg_hdr, ticket), ticket) < 0)
		post_fail("the region cannot be written");
}

const char *
post_why(struct tokg_device *d)
{
	static const struct timespec nap = {0, 50000000}; /* it beats each millisecond at least */
	static struct tokg_error err;
	const uint64_t at = offsetof(struct tokg_ctl, heartbeat);
	uint64_t beat[2] = {0, 0};

	d->ops->read(d, at, &beat[0], sizeof(beat[0]));
	nanosleep(&nap, NULL);
	d->ops->read(d, at, &beat[1], sizeof(beat[1]));
	if (d->ops->stop(d, TOKG_STOP_NOW, 2000, &err) < 0)
		return err.text;
	return beat[0] == beat[1] ? "its consumer had stopped by itself"
				  : "its consumer has run, and was stopped";
}

uint32_t
post_wait(struct tokg_device *d, uint32_t producer, uint32_t slot, uint64_t ticket)
{
	const uint64_t until = monotonic_ns() + 10000000000ull;
	uint64_t done;

	for (;;) {
		if (d->ops->read(d, tokg_done_at(&d->geometry, producer, slot), &done, 8) < 0)
			post_fail("the region cannot be read");
		if (done >> 8 == ticket)
			return done & 255;
		if (monotonic_ns() > until)
			post_fail("slot %u is not done after 10 s: %s", slot, post_why(d));
	}
}

const struct tokg_out_entry *
post_entry(struct tokg_device *d, uint64_t index)
{
	const struct tokg_out_entry *const e = tokg_outbox_entry(d->outbox, index);
	const uint64_t until = monotonic_ns() + 10000000000ull;

	while (__atomic_load_n(&e->seq, __ATOMIC_ACQUIRE) != index + 1) {
		if (monotonic_ns() > until)
			post_fail("entry %llu is not there after 10 s: %s",
				(unsigned long long)index, post_why(d));
	}
	return e;
}
