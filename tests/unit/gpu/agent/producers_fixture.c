/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"
#include "producers_fixture.h"

#include <stdlib.h>

static void
disconnect(void *owner, uint64_t link)
{
	struct fixture *f = owner;

	f->disconnected = link;
	tokg_producers_left(&f->producers, link, f->now);
}

uint64_t
epoch_word(const struct fixture *f, uint32_t producer)
{
	return fake_word(&f->fake,
		tokg_back_at(&f->producers.geometry, producer) + offsetof(struct tokg_back, epoch));
}

static void
fence(void *owner, uint32_t producer)
{
	struct fixture *f = owner;

	f->n_fences++;
	f->fenced_at_epoch = (uint32_t)epoch_word(f, producer);
}

int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const struct tokg_producers_calls calls = {disconnect, fence, f};
	struct tokg_error err;

	fake_open(&f->fake);
	f->fake.device.incarnation = 1;
	f->now = 10 * S;
	assert_true(tokg_producers_create(&f->producers, &f->fake.device, 77, &calls));
	assert_true(tokg_delivery_create(&f->delivery, &f->producers, 5, &err));
	*state = f;
	return 0;
}

int
teardown(void **state)
{
	struct fixture *f = *state;

	tokg_delivery_free(&f->delivery);
	tokg_producers_free(&f->producers);
	fake_close(&f->fake);
	free(f);
	return 0;
}

struct tokg_hello
hello(uint32_t worker)
{
	return (struct tokg_hello){.transport = TOKG_SHM,
		.worker = worker,
		.instance = 9,
		.resume = TOKG_NO_PRODUCER,
		.n_vocabs = 1,
		.n_ids = {100}};
}

uint32_t
granted(struct fixture *f, uint32_t worker, uint64_t link)
{
	const struct tokg_hello h = hello(worker);
	struct tokg_error err = {""};
	uint32_t producer = 99;

	assert_int_equal(tokg_producers_grant(&f->producers, &h, link, f->now, &producer, &err), 1);
	return producer;
}

void
turn(struct fixture *f)
{
	tokg_delivery_poll(&f->delivery);
	tokg_delivery_passed(&f->delivery, f->delivery.head);
	tokg_producers_poll(&f->producers, f->now, f->delivery.n_read);
}

struct tokg_out_entry
entry(uint32_t slot, uint64_t ticket)
{
	return (struct tokg_out_entry){.slot = slot,
		.ticket = ticket,
		.request = 100 * slot + ticket,
		.tokens = 2,
		.status = TOKG_OK,
		.parts = 1,
		.incarnation = 1,
		.epoch = 1};
}

void
tell(struct fixture *f, uint32_t slot, uint64_t ticket)
{
	const struct tokg_out_entry e = entry(slot, ticket);

	fake_tell(&f->fake, &e);
}

uint64_t
released(const struct fixture *f, uint32_t producer)
{
	return fake_word(&f->fake, tokg_back_at(&f->producers.geometry, producer) +
					   offsetof(struct tokg_back, released));
}
