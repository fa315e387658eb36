/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device: the memory of the GPU ring, tables, outputs, and the consumer. Two kinds: `cpu` (huge
 * pages, the kernel's source as threads) and `cuda` (GPU memory, the persistent kernel). The agent
 * (tokd-gpu) owns one and uses only this interface, in C, so that it needs no nvcc.
 */
#ifndef TOKG_DEVICE_H
#define TOKG_DEVICE_H

#include <stdbool.h>

#include "ring/gpu_ring.h"
#include "ring/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tables as read from a file or made, in host memory; elements of `dtype`, rows one after the
 * other. */
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
	uint16_t flags;	  /* enum tokg_flags of the request: FIRST, LAST, ABORT, BATCH */
	uint8_t status;	  /* enum tokg_status */
	uint8_t redo;	  /* 1: an older incarnation had claimed it: it may be there twice */
	uint32_t epoch;
	uint32_t incarnation;
	uint16_t part;	/* which record of a BATCH, from 0 on */
	uint16_t parts; /* how many entries this slot has */
	uint64_t t_post;
	uint64_t visible, embedded; /* consumer's clock, ns */
	uint64_t reserved[5];
};
static_assert(sizeof(struct tokg_out_entry) == 128, "outbox entry is ABI");

/*
 * The outbox cannot overflow: an entry has at least TOKG_OUT_ALIGN bytes of outputs, which are
 * released only after the agent has read it; failed slots have one entry each, bounded by the
 * slots. n is a power of two, at least the sum.
 */
struct tokg_outbox {
	uint64_t reserved; /* the device cpu counts here, others elsewhere: readers ask `taken` */
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
	uint64_t n; /* in this incarnation's life */
	uint64_t tick[2], ns[2];
	uint64_t scan[TOKG_SCAN_TIMES];
};

/* cpu: one thread; cuda: a block for each multiprocessor but the scanner's, as far as it holds so
 * many. */
#define TOKG_WORKERS_DEFAULT UINT32_MAX
#define TOKG_OWNER_LIMIT_MS 60000

struct tokg_device_config {
	struct tokg_geometry geometry; /* filled */
	struct tokg_tables tables;     /* copied to where the device needs them */
	uint32_t ring_epoch;
	uint32_t workers; /* cpu: threads beside the scanning one; cuda: blocks, 0: what the GPU
			     holds; TOKG_WORKERS_DEFAULT */
	/* The consumer leaves by itself when its owner has called no operation for so long: a
	 * kernel would stay on the GPU as long as the process does, however it fares. 0: 60 s */
	uint32_t owner_limit_ms;
	uint32_t rows_of_job; /* that one worker embeds at a time; 0: as this device does best */
	bool heads;	      /* look at one slot per producer instead of all */
	bool host_ring;	      /* cuda: the ring in this host's memory, which the GPU reads */
	bool time_scans;      /* with scan_times */
	int index;	      /* cuda:N */
	int first_cpu;	      /* cpu: pin the threads from this CPU on, -1: not at all */
};

struct tokg_device;

struct tokg_device_ops {
	const char *name;
	/* Begin with this incarnation, a number above all before. Below 0 and `err`. */
	int (*start)(struct tokg_device *d, uint32_t incarnation, struct tokg_error *err);
	/* 0: it has ended; below 0 and `err`: it has not within timeout_ms (cuda: the context is
	 * lost). */
	int (*stop)(struct tokg_device *d, enum tokg_stop how, uint32_t timeout_ms,
		struct tokg_error *err);
	/* Aligned words of the region, while the consumer runs. Release and acquire towards it. 0
	 * or below. */
	int (*write_u64)(struct tokg_device *d, uint64_t offset, uint64_t value);
	int (*read)(struct tokg_device *d, uint64_t offset, void *to, size_t bytes);
	/* Bytes of the outputs, [producers][out_bytes], whose entry the caller has read. 0 or
	 * below. */
	int (*read_outputs)(struct tokg_device *d, uint64_t offset, void *to, size_t bytes);
	/* Entries of the outbox that consumers have taken so far, those not written yet included.
	 * 0, or below: the device does not answer. */
	int (*taken)(struct tokg_device *d, uint64_t *n);
	void (*close)(struct tokg_device *d);
};

struct tokg_device {
	const struct tokg_device_ops *ops;
	struct tokg_geometry geometry;
	uint32_t incarnation;
	/* the region */
	void *region;		 /* as the host may use it; NULL: in GPU memory alone */
	int region_fd;		 /* memfd of it: what transports shm and cuda map; -1: none */
	uint64_t region_address; /* as the NIC is told it */
	int region_dmabuf;	 /* cuda: dma-buf of the region; -1: none */
	enum tokg_order order;	 /* what its memory promises */
	char order_reason[128];
	/* outputs: [producers][out_bytes] */
	void *outputs;	  /* host pointer, or device pointer (cuda) */
	int outputs_fd;	  /* cpu: memfd; -1 */
	uint8_t ipc[64];  /* cuda: cudaIpcMemHandle_t of the outputs */
	uint8_t uuid[16]; /* cuda: of the GPU, whatever its number is for others */
	struct tokg_outbox *outbox;
	struct tokg_scan_times *scan_times; /* NULL: not measured */
};

/* NULL and `err`. The consumer does not run yet. */
struct tokg_device *tokg_device_cpu(const struct tokg_device_config *c, struct tokg_error *err);
struct tokg_device *tokg_device_cuda(const struct tokg_device_config *c, struct tokg_error *err);
/* False and `err`: there is no GPU at all, no driver, or no kernel in this build. Anything else
 * that may be wrong with one is for tokg_device_cuda to say; `index` is for the words alone. */
bool tokg_device_cuda_there(int index, struct tokg_error *err);

static inline struct tokg_out_entry *
tokg_outbox_entry(struct tokg_outbox *o, uint64_t index)
{
	return (struct tokg_out_entry *)(o + 1) + (index & (o->n - 1));
}

#ifdef __cplusplus
}
#endif

#endif
