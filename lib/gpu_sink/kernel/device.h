/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device: the memory of the GPU ring, tables, outputs, and the consumer. Two kinds: `cpu` (huge
 * pages, the kernel's source as threads) and `cuda` (GPU memory, the persistent kernel or graphs).
 * The agent (tokd-gpu) owns one and uses only this interface, in C, so that it needs no nvcc.
 */
#pragma once

#include <stdbool.h>

#include "ring/gpu_ring.h"
#include "ring/error.h"

struct tok_vocab;

#ifdef __cplusplus
extern "C" {
#endif

/* Tables in host memory, as read or computed; elements of `dtype`, rows contiguous. */
struct tokg_tables {
	uint32_t kind, dtype, dim; /* enum tokg_kind, enum tokg_dtype */
	uint32_t n_ids, n_positions;
	const void *word;	  /* [n_ids][dim] */
	const void *position;	  /* [n_positions][dim], NULL for TOKG_KIND_WORD */
	const void *type;	  /* [dim], TOKG_KIND_BERT: the row of type 0 */
	const void *gamma, *beta; /* [dim], TOKG_KIND_BERT: LayerNorm */
	float epsilon;
};

/*
 * The consumer's report of an embedded request, in host memory, in any order. `seq` is written last
 * (release): number of the entry, plus one. Status 0: skip it: its writer ended between reserving
 * and writing it.
 */
struct tokg_out_entry {
	uint64_t seq;
	uint32_t producer, slot;
	uint64_t ticket;
	uint64_t request; /* serial of the record in the producer's token ring */
	uint64_t out_off; /* position in the producer's outputs of its first row */
	uint32_t first;	  /* index within the text of its first id */
	uint32_t tokens;  /* rows */
	uint16_t flags;	  /* enum tokg_flags of the request, without STRICT */
	uint8_t status;	  /* enum tokg_status */
	uint8_t redo; /* 1: claimed before by an older incarnation, so there may be two entries */
	uint32_t epoch;
	uint32_t incarnation;
	uint16_t part;	/* which record of a BATCH, from 0 on */
	uint16_t parts; /* number of entries of this slot */
	uint64_t t_post;
	uint64_t visible, embedded; /* consumer's clock, ns */
	uint32_t lane, use;	    /* of a text that generates, for an external engine */
	uint64_t reserved[4];
};
static_assert(sizeof(struct tokg_out_entry) == 128, "outbox entry is ABI");

/*
 * The outbox cannot overflow: an entry has at least TOKG_OUT_ALIGN bytes of outputs, which are
 * released only after the agent has read it; failed slots have one entry each, bounded by the
 * slots. n is a power of two, at least the sum.
 */
struct tokg_outbox {
	uint64_t reserved; /* counted here by the device cpu only: readers call `taken` */
	uint64_t n;
	uint64_t owner; /* increases with every operation: the owner runs */
	uint8_t pad[40];
	/* struct tokg_out_entry entry[n] follows */
};
static_assert(sizeof(struct tokg_outbox) == 64, "outbox is ABI");

#define TOKG_SCAN_TIMES 4096 /* a power of two */

/*
 * For measurements: times of scans that found nothing, the last TOKG_SCAN_TIMES, in ticks of the
 * scanner (a GPU: cycles of its multiprocessor). Read it after the consumer has stopped. A tick is
 * (ns[1] - ns[0]) / (tick[1] - tick[0]) ns, taken at the start and near the end of the incarnation.
 */
struct tokg_scan_times {
	uint64_t n; /* during this incarnation */
	uint64_t tick[2], ns[2];
	uint64_t scan[TOKG_SCAN_TIMES];
};

/*
 * cpu: one thread; cuda: two blocks per multiprocessor, except the scanner's; under MPS a quarter
 * as many as multiprocessors. As far as they are resident.
 */
#define TOKG_WORKERS_DEFAULT UINT32_MAX
#define TOKG_OWNER_LIMIT_MS 60000

struct tokg_device_config {
	struct tokg_geometry geometry; /* complete */
	struct tokg_tables tables;     /* copied to where the device needs them */
	/*
	 * TEXT slots are encoded with it as tok_encode does with these flags (enum tok_flags).
	 * NULL: they are refused. It outlives the device. More ids than rows of the word table are
	 * refused.
	 */
	const struct tok_vocab *text_vocab;
	uint32_t text_flags;
	/* With lanes in the geometry: an engine of another process makes the ids (engine_area.h).
	 */
	bool external_engine;
	/* Else: the id that ends a text; UINT32_MAX: none. */
	uint32_t stop_id;
	uint32_t ring_epoch;
	uint32_t workers; /* cpu: threads besides the scanner; cuda: blocks, 0: as many as are
			     resident; TOKG_WORKERS_DEFAULT */
	/*
	 * The consumer ends by itself if its owner has not called any operation for this time.
	 * Otherwise a kernel would stay on the GPU even if its process hangs. 0: 60 s
	 */
	uint32_t owner_limit_ms;
	uint32_t rows_of_job; /* rows per job; 0: the device's default */
	bool heads;	      /* poll one slot per producer instead of all */
	bool host_ring;	      /* cuda: ring in host memory, read by the GPU */
	bool time_scans;      /* fill in scan_times */
	bool graphs;	      /* cuda: graphs that the GPU launches, not workers that stay */
	int index;	      /* cuda:N */
	int first_cpu;	      /* cpu: pin the threads from this CPU on, -1: not at all */
};

struct tokg_device;

struct tokg_device_ops {
	const char *name;
	/*
	 * Starts the consumer with this incarnation, which must be above all earlier ones. Negative
	 * with `err` on failure.
	 */
	int (*start)(struct tokg_device *d, uint32_t incarnation, struct tokg_error *err);
	/*
	 * Returns 0 when it has ended; negative with `err` if it has not within timeout_ms (cuda:
	 * the context is lost).
	 */
	int (*stop)(struct tokg_device *d, enum tokg_stop how, uint32_t timeout_ms,
		struct tokg_error *err);
	/*
	 * Aligned words of the region; may be called while the consumer runs. Write: release; read:
	 * acquire. Returns 0 or negative.
	 */
	int (*write_u64)(struct tokg_device *d, uint64_t offset, uint64_t value);
	/* The same, but it may return before that. Writes of both kinds stay in order. */
	int (*write_u64_later)(struct tokg_device *d, uint64_t offset, uint64_t value);
	int (*read)(struct tokg_device *d, uint64_t offset, void *to, size_t bytes);
	/*
	 * Reads outputs ([producers][out_bytes]) of entries that the caller has read. Returns 0 or
	 * negative.
	 */
	int (*read_outputs)(struct tokg_device *d, uint64_t offset, void *to, size_t bytes);
	/*
	 * The number of outbox entries reserved so far, including unwritten ones. Returns 0, or
	 * negative: the device does not answer.
	 */
	int (*taken)(struct tokg_device *d, uint64_t *n);
	/*
	 * Before an engine attaches; may be called while the consumer runs. cpu: `made_fd` is new
	 * memory, which no engine before has. cuda: one memory has all engines. Returns 0, or
	 * negative with `err`.
	 */
	int (*renew_made)(struct tokg_device *d, struct tokg_error *err);
	/*
	 * False: the consumer does not end, and nothing was freed. Then leave by _exit: exit()
	 * would have the driver destroy the context (cuda), which waits for the kernel.
	 */
	bool (*close)(struct tokg_device *d);
};

struct tokg_device {
	const struct tokg_device_ops *ops;
	struct tokg_geometry geometry;
	uint32_t incarnation;
	/* the region */
	void *region;		 /* as mapped by the host; NULL: in GPU memory only */
	int region_fd;		 /* its memfd, which transports shm and cuda map; -1: none */
	uint64_t region_address; /* address for the NIC */
	int region_dmabuf;	 /* cuda: dma-buf of the region; -1: none */
	enum tokg_order order;	 /* ordering guarantee of its memory */
	char order_reason[128];
	char sharing[320]; /* cuda: how kernels of other processes run beside the consumer; "" */
	/* outputs: [producers][out_bytes]; with an external engine more after them */
	void *outputs; /* host pointer, or device pointer (cuda) */
	bool external_engine;
	int made_fd;	  /* cpu: memfd that the external engine writes; -1 */
	int outputs_fd;	  /* cpu: memfd; -1 */
	uint8_t ipc[64];  /* cuda: cudaIpcMemHandle_t of the outputs */
	uint8_t uuid[16]; /* cuda: of the GPU; does not depend on its number */
	struct tokg_outbox *outbox;
	struct tokg_scan_times *scan_times; /* NULL: not measured */
	/* With graphs, valid when the consumer has ended: launches in its incarnation. */
	uint64_t launches, executions;
};

/*
 * False with `err`: it asks for what no device, or not the one of its kind, can do; trying again
 * cannot help. Both functions below check it, too.
 */
bool tokg_device_config_right(
	const struct tokg_device_config *c, bool cuda, struct tokg_error *err);
/* Returns NULL with `err` on failure. The consumer is not started yet. */
struct tokg_device *tokg_device_cpu(const struct tokg_device_config *c, struct tokg_error *err);
struct tokg_device *tokg_device_cuda(const struct tokg_device_config *c, struct tokg_error *err);
/*
 * False with `err`: no GPU, no driver, or a build without the kernel. All other errors come from
 * tokg_device_cuda. `index` is only for the message.
 */
bool tokg_device_cuda_there(int index, struct tokg_error *err);
bool tokg_device_cuda_built(int index, struct tokg_error *err); /* the last of these alone */

static inline struct tokg_out_entry *
tokg_outbox_entry(struct tokg_outbox *o, uint64_t index)
{
	return (struct tokg_out_entry *)(o + 1) + (index & (o->n - 1));
}

#ifdef __cplusplus
}
#endif
