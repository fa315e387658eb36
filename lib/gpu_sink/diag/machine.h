/* SPDX-License-Identifier: BSD-3-Clause */
/* What tokd-diag has found out about a machine. Filled by the collectors, judged, then shown. */
#ifndef TOKD_DIAG_MACHINE_H
#define TOKD_DIAG_MACHINE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/verbs_rank.h"
#include "fs.h"

#define RDMA_MAX 32
#define RDMA_PORTS_MAX 16
#define RDMA_GIDS_MAX 256
#define GPU_MAX 32
#define NODES_MAX 64

enum known { NOT_KNOWN = 0, NO, YES };

struct gid {
	uint32_t index;
	uint8_t raw[16];
	enum tokg_gid_type type;
	char netdev[16];
};

struct rdma_port {
	uint32_t number;
	char state[24];	     /* as sysfs has it: ACTIVE, DOWN, ... */
	char phys_state[24]; /* LinkUp, Disabled, ... */
	char link[16];	     /* InfiniBand, Ethernet */
	char rate[40];
	uint32_t lid;
	uint32_t mtu, mtu_max; /* RDMA's, bytes; 0: not known */
	const char *mtu_from;  /* "verbs", "netdev" */
	struct gid *gids;      /* those in use */
	int n_gids;
};

/* Where a PCI function stands. */
struct pci {
	char address[16];     /* 0000:03:00.0; "" for a device that is not on PCI */
	char path[PATH_MAX];  /* in /sys/devices */
	char driver[32];      /* the kernel's */
	char iommu_group[16]; /* "": none */
	char iommu_type[16];  /* identity, DMA, DMA-FQ, ... */
	int node;
};

struct rdma {
	char name[64];
	char firmware[64], board[64], model[64];
	bool iwarp; /* no queue pairs of the kind that is needed */
	struct pci pci;
	struct rdma_port ports[RDMA_PORTS_MAX];
	int n_ports;
	int ports_left_out;
	/* by verbs, where the device could be opened */
	bool opened;
	char open_error[160];
	uint32_t max_qp_wr, max_inline;
	enum known dmabuf;
	char dmabuf_why[160];
};

enum gpu_order { ORDER_NOT_KNOWN = -1, ORDER_NONE = 0, ORDER_OWNER = 100, ORDER_ALL = 200 };

struct gpu {
	struct pci pci;
	char name[96];
	uint64_t bar1, bar1_free; /* bytes; bar1_free only where has_bar1_free */
	bool has_bar1_free;
	const char *bar1_from; /* "nvml", "sysfs" */
	/* by CUDA */
	bool asked;
	int major, minor; /* compute capability */
	int order;	  /* enum gpu_order, or what a later CUDA says */
	enum known rdma_supported, dmabuf_supported;
};

struct huge_pages {
	int node;
	uint64_t kb, total, free;
};

struct system {
	char kernel[96];
	int kernel_major, kernel_minor;
	bool nvidia, nvidia_open, peermem, gdrdrv, mlx5_ib;
	bool gdrdrv_node;  /* /dev/gdrdrv */
	enum known gdrapi; /* libgdrapi.so.2 loads */
	char nvidia_version[96];
	enum known memlock_free; /* CAP_IPC_LOCK: the limit does not bind */
	bool has_memlock;
	uint64_t memlock; /* bytes; UINT64_MAX: unlimited */
	struct huge_pages huge[2 * NODES_MAX];
	int n_huge;
	char hugetlbfs[4][128]; /* mount points */
	int n_hugetlbfs;
	bool iommu;
	char cmdline_iommu[96]; /* what the command line says of it */
};

struct chosen {
	bool found;
	int device, port, gid; /* indices into the arrays */
	enum tokg_gid_rank rank;
	char why[256]; /* why this one, or why none */
};

struct machine {
	struct fs fs;
	struct rdma *rdma;
	int n_rdma, rdma_left_out;
	struct gpu *gpus;
	int n_gpus;
	char verbs_note[160]; /* why verbs could not be asked */
	int cuda_version;     /* of the driver, 13030 for 13.3; 0: not known */
	char cuda_note[160];  /* why CUDA could not be asked */
	struct system system;
	struct chosen chosen;
};

/* False without memory. */
bool machine_new(struct machine *m);
void machine_free(struct machine *m);

void find_system(struct machine *m); /* system.c */
void find_rdma(struct machine *m);   /* rdma.c: sysfs */
void ask_verbs(struct machine *m);   /* verbs.c: this machine only */
void choose_rdma(struct machine *m); /* choose.c: after the two above */
void find_gpus(struct machine *m);   /* gpu.c: sysfs and proc */
void ask_cuda(struct machine *m);    /* cuda.c: this machine only */

#endif
