/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Producers on the device itself: one block of a second small kernel for each producer slot of the
 * ring, or one thread of the CPU, from one source (produce.cuh). Each posts slot after slot into
 * the ring where it is, waits for `done`, and compares the rows with the table's. What they post
 * follows from a seed. For the kind `word`, of which a row is the table's to the bit; rows of
 * others are not compared.
 *
 * Or they post texts, each slot always the same one. Their rows are for the caller to compare.
 */
#pragma once

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Text p * slots + s is that of slot s of producer p. */
struct produce_texts {
	const uint8_t *bytes; /* each at a multiple of `stride`, zero-padded to TOKG_LINE */
	const uint32_t *n;    /* bytes of each */
	uint32_t stride;      /* bytes; 0: ids are posted instead */
	uint64_t out_stride;  /* bytes of outputs between the first rows of two slots */
};

struct produce_config {
	uint64_t seed;
	uint64_t posts;		    /* of each producer */
	uint64_t limit_ns;	    /* after which each ends, whatever is done */
	uint32_t tokens;	    /* ids of a record */
	uint32_t batch;		    /* records of a slot; 0: the ids alone, without a record */
	uint32_t in_flight;	    /* slots posted and not read as done, of each producer */
	uint32_t check_every;	    /* rows of one in so many posts are compared; 0: none */
	uint32_t epoch;		    /* granted to every producer */
	uint32_t kept;		    /* samples kept of each producer: its first ones */
	struct produce_texts texts; /* in host memory */
};

enum produce_state { PRODUCE_WAITS = 0, PRODUCE_RUNS = 1, PRODUCE_ENDED = 2, PRODUCE_LATE = 3 };

/* What one producer says, in host memory. `state` is written last. */
struct produce_said {
	uint64_t done;	     /* posts read as done */
	uint64_t not_ok;     /* of them, with another status than TOKG_OK */
	uint64_t compared;   /* posts whose rows were compared */
	uint64_t wrong;	     /* 16-byte words of rows that were not the table's */
	uint64_t tick[2];    /* of its multiprocessor (CPU: ns) at its beginning and end; */
	uint64_t ns[2];	     /* and the device's clock at the same moments */
	uint64_t last_wrong; /* the post that had the last of them */
	uint64_t state;	     /* enum produce_state */
};

struct produce;

/* One that waits for produce_start. Before the consumer is started: it takes memory, and has its
 * kernel loaded, which cannot be done beside one that stays. `word`: the table in host memory. */
struct produce *produce_cpu_open(struct tokg_device *d, const struct produce_config *c,
	const void *word, struct tokg_error *err);
struct produce *produce_cuda_open(struct tokg_device *d, const struct produce_config *c,
	const void *word, struct tokg_error *err);

/*
 * Workers of a consumer on GPU `index` that leaves room for `others`, blocks of other kernels. As
 * many of its blocks as each multiprocessor holds (`of_one`: two, with a vocabulary one) may take
 * all registers, and no other would ever begin: the place of one block is left for each.
 * TOKG_WORKERS_DEFAULT where it leaves room by itself.
 */
uint32_t produce_cuda_workers(int index, uint32_t of_one, uint32_t others);

struct produce_ops {
	bool (*start)(struct produce *p, struct tokg_error *err);
	/* When all have ended and the consumer has been stopped. `samples` is valid then. */
	bool (*collect)(struct produce *p, struct tokg_error *err);
	void (*close)(struct produce *p);
};

struct produce {
	const struct produce_ops *ops;
	struct produce_said *said; /* [producers] */
	uint32_t *stop;		   /* not 0: end */
	uint32_t producers, kept;
	/* [producers][2][kept], ticks until `done` was read: from before the first store of the
	 * slot; and from before the ticket's. */
	uint64_t *samples;
};

#ifdef __cplusplus
}
#endif
