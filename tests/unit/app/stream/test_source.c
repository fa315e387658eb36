/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of sources: who is the same, who is greediest, who is forgotten. */
#include "fixture.h"
#include "control/tables/tables.h"
#include "datapath/source/source_count.h"

static struct tokd_addr
v4(uint32_t i)
{
	return tokd_addr_v4(RTE_BE32((UINT32_C(172) << 24 | 16 << 16) + i));
}

static struct tokd_source *
of(struct tokd_addr a)
{
	return tokd_source_of(&fx->w, &a);
}

static struct tokd_source *
known(struct tokd_addr a)
{
	return tokd_source_find(&fx->w, &a);
}

static void
open_one(struct tokd_source *s)
{
	tokd_source_take(&fx->w, s);
	tokd_source_add(&fx->w, s, TOKD_KIND_OPEN);
}

static void
end_one(struct tokd_source *s)
{
	tokd_source_sub(&fx->w, s, TOKD_KIND_OPEN);
	tokd_source_drop(&fx->w, s);
}

static struct tokd_source *
greediest(void)
{
	return tokd_source_greediest(&fx->w, TOKD_KIND_OPEN);
}

FIXTURE_TEST(source_is_an_ipv4_address_or_half_of_an_ipv6_address)
{
	const uint8_t ip6[] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8};
	struct tokd_addr a = tokd_addr_v6(ip6), b = a;

	assert_ptr_equal(of(v4(1)), of(v4(1)));
	assert_ptr_not_equal(of(v4(1)), of(v4(2)));
	assert_null(known(a));
	b.byte[8] ^= 0x80;
	assert_ptr_equal(of(a), of(b));
	b.byte[7] ^= 1;
	assert_ptr_not_equal(of(a), of(b));
}

FIXTURE_TEST(source_without_streams_is_forgotten_when_its_place_is_needed)
{
	struct tokd_source *busy = of(v4(0)), *proven = of(v4(1)), *idle = of(v4(2));
	const uint32_t n = fx->w.sources->n;

	open_one(busy);
	tokd_source_validate(&fx->w, proven);
	for (uint32_t i = 3; i < n; i++)
		of(v4(i));
	assert_ptr_equal(known(v4(2)), idle);
	of(v4(n)); /* in place of the one longest idle */
	assert_null(known(v4(2)));
	for (uint32_t i = 0; i < 3 * n; i++)
		of(v4(n + i));
	assert_ptr_equal(known(v4(0)), busy);
	assert_ptr_equal(known(v4(1)), proven); /* the last to go */
	/* One that had streams is the youngest of those without. */
	end_one(busy);
	for (uint32_t i = 0; i < n - 2; i++)
		of(v4(9 * n + i));
	assert_ptr_equal(known(v4(0)), busy);
	of(v4(8 * n));
	assert_null(known(v4(0)));
}

FIXTURE_TEST(source_always_exists_if_all_addresses_have_one_hash)
{
	struct tokd_source *s;

	memset(fx->w.sources->secret, 0, sizeof(fx->w.sources->secret));
	for (uint32_t i = 0; i < 10 * STREAMS; i++) {
		s = of(v4(i));
		open_one(s);
		assert_ptr_equal(of(v4(i)), s);
		if (i >= STREAMS)
			end_one(of(v4(i - STREAMS)));
	}
}

FIXTURE_TEST(source_greediest_has_the_most_streams_and_the_least_recent_progress)
{
	struct tokd_source *a = of(v4(0)), *b = of(v4(1)), *c = of(v4(2));

	assert_null(greediest());
	open_one(a);
	open_one(b);
	open_one(c);
	assert_ptr_equal(greediest(), a);
	tokd_source_touch(&fx->w, a);
	assert_ptr_equal(greediest(), b);
	open_one(c);
	assert_ptr_equal(greediest(), c);
	/* One that may be forged goes before any other. */
	tokd_source_validate(&fx->w, c);
	assert_ptr_equal(greediest(), b);
	tokd_source_validate(&fx->w, a);
	tokd_source_validate(&fx->w, b);
	assert_ptr_equal(greediest(), c);
	end_one(c);
	end_one(c);
	assert_ptr_equal(greediest(), a);
	end_one(a);
	end_one(b);
	assert_null(greediest());
}

#define MANY 1000

/* However many sources come before the greediest is asked for, it is found soon. */
FIXTURE_TEST(source_ranks_of_many_do_not_wait_to_be_asked_for)
{
	struct tokd_sources *own = fx->w.sources;
	const struct tokd_source *t;

	fx->w.sources = tokd_sources_create(MANY, 0, SOCKET_ID_ANY);
	assert_non_null(fx->w.sources);
	for (uint32_t i = 0; i < MANY; i++) {
		uint32_t n = 0;

		open_one(of(v4(i)));
		STAILQ_FOREACH(t, &fx->w.sources->touched, link)
		n++;
		assert_in_range(n, 1, TOKD_TOUCHED_MAX);
	}
	open_one(of(v4(MANY / 2)));
	assert_ptr_equal(greediest(), known(v4(MANY / 2)));
	end_one(of(v4(MANY / 2)));
	assert_ptr_equal(greediest(), known(v4(0)));
	tokd_sources_free(fx->w.sources);
	fx->w.sources = own;
}

#define SOURCES 5

/* Against a count of all. */
FIXTURE_TEST(source_ranks_follow_whatever_happens)
{
	struct tokd_source *s[SOURCES], *g;
	uint32_t seed = 1, all = 0;

	for (uint32_t i = 0; i < SOURCES; i++)
		s[i] = of(v4(i));
	for (uint32_t step = 0; step < 100000; step++) {
		uint32_t most[2] = {0, 0}, i;

		seed = seed * 1664525 + 1013904223;
		i = (seed >> 16) % SOURCES;
		if ((seed >> 28) < 8 && all < STREAMS) {
			open_one(s[i]);
			all++;
		} else if ((seed >> 28) < 14 && s[i]->n[TOKD_KIND_OPEN] > 0) {
			end_one(s[i]);
			all--;
		} else if (s[i]->n[TOKD_KIND_OPEN] > 0) {
			tokd_source_touch(&fx->w, s[i]);
		}
		if (step == 50000)
			tokd_source_validate(&fx->w, s[2]);
		if (step == 60000)
			tokd_source_validate(&fx->w, s[4]);
		for (i = 0; i < SOURCES; i++)
			most[s[i]->validated] =
				RTE_MAX(most[s[i]->validated], s[i]->n[TOKD_KIND_OPEN]);
		g = greediest();
		if (all == 0) {
			assert_null(g);
			continue;
		}
		assert_int_equal(g->validated, most[false] == 0);
		assert_int_equal(g->n[TOKD_KIND_OPEN], most[g->validated]);
	}
	for (uint32_t i = 0; i < SOURCES; i++) {
		while (s[i]->n[TOKD_KIND_OPEN] > 0)
			end_one(s[i]);
	}
}
