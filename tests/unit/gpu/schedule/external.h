/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An external engine on the thread of the simulation: it takes prompts by their entries, makes ids
 * that the reader of the log can compute, and ends some texts. C++; after device_cpu.cpp.
 */
#pragma once

#include <sys/mman.h>

#include <tokd/engine.h>

namespace
{

#define ANY UINT32_MAX

struct external {
	cpu_device *c;
	struct tokg_engine_area area;
	struct tokd_engine memory;
	struct tokd_lane_made own[TOKG_LANES_MAX];
	uint64_t prompt[TOKG_LANES_MAX]; /* lane and use; 0: none */
	uint32_t turn[TOKG_LANES_MAX];
	uint64_t engines; /* that there were */
	bool here;

	/* The id at this index of a text. */
	static uint32_t
	id(uint32_t lane, uint32_t turn, uint32_t index, uint32_t n_ids)
	{
		return (uint32_t)((turn * 7919ull + lane * 104729ull + index * 15485863ull) %
				  n_ids);
	}

	void
	open(cpu_device *of)
	{
		c = of;
		area = tokg_engine_area_plan(&c->d.geometry);
	}

	void
	say(uint64_t engine)
	{
		c->d.ops->write_u64(&c->d, offsetof(struct tokg_ctl, engine), engine);
	}

	bool
	come()
	{
		struct tokg_error err;
		void *made;

		if (c->d.ops->renew_made(&c->d, &err) < 0)
			return false;
		made = mmap(
			NULL, area.made_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, c->d.made_fd, 0);
		if (made == MAP_FAILED)
			return false;
		memory.shown =
			(const struct tokd_lane_shown *)((uint8_t *)c->d.outputs + area.shown_off);
		memory.made = (struct tokd_lane_made *)made;
		memory.own = own;
		memory.ids = (uint32_t *)((uint8_t *)made + area.ids_in_made);
		memory.lanes = area.lanes;
		memory.room = area.room;
		memset(own, 0, sizeof(own));
		memset(prompt, 0, sizeof(prompt));
		say(++engines);
		here = true;
		return true;
	}

	void
	go()
	{
		say(0);
		munmap(memory.made, area.made_bytes);
		here = false;
	}

	/* Where the ids of an entry are. */
	const uint32_t *
	ids_of(const struct tokg_out_entry *e) const
	{
		const uint64_t at = e->producer * c->d.geometry.out_bytes + e->out_off;

		return (const uint32_t *)((const uint8_t *)c->d.outputs +
					  tokg_engine_ids_at(&area, at));
	}

	void
	offer(const struct tokg_out_entry *e, uint32_t turn_of_lane)
	{
		prompt[e->lane] = TOKD_LANE(e->lane, e->use);
		turn[e->lane] = turn_of_lane;
	}

	/* Stores an id, or an end after enough of them. False: it stored nothing. */
	bool
	work(uint32_t lane, bool ends, uint32_t behind)
	{
		const uint64_t name = prompt[lane];
		const struct tokd_lane_look l = tokd_engine_look(&memory, name);

		if (name == 0 || l.end != TOKD_LANE_OPEN)
			return false;
		if (ends && (behind == ANY || l.made == behind))
			return tokd_engine_end(&memory, name, TOKD_LANE_STOP);
		return tokd_engine_put(
			&memory, name, id(lane, turn[lane], l.made, c->d.geometry.n_ids));
	}
};

} // namespace
