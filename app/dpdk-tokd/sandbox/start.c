/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include <linux/capability.h>

#include <rte_eal.h>
#include <rte_memory.h>

#include <sandbox.h>
#include <seccomp.h>

#include "folders.h"
#include "log.h"
#include "start.h"

#define BIT(capability) (UINT64_C(1) << (capability))

static const int xdp[] = {SCMP_SYS(bpf), SCMP_SYS(mkdir)};

/* What drivers use after set-up, and to undo it at the end. The others need nothing. */
static const struct {
	const char *driver;
	uint64_t capabilities;
	const int *calls;
	size_t n_calls;
} drivers[] = {
	/* to take its program from the interface */
	{"net_af_xdp", BIT(CAP_NET_ADMIN) | BIT(CAP_BPF) | BIT(CAP_SYS_ADMIN), xdp, RTE_DIM(xdp)},
	/* to set its interface down */
	{"net_tap", BIT(CAP_NET_ADMIN), NULL, 0},
	/* rules of flows when the link changes; memory that grows is locked */
	{"mlx5_pci", BIT(CAP_NET_RAW) | BIT(CAP_IPC_LOCK), NULL, 0},
	{"mlx5_auxiliary", BIT(CAP_NET_RAW) | BIT(CAP_IPC_LOCK), NULL, 0}, /* scalable functions */
};

static struct tokd_sandbox
needed(const struct tokd_options *opt, const struct tokd_port *port)
{
	struct tokd_sandbox s = {.filter = true};

	for (size_t i = 0; i < RTE_DIM(drivers); i++) {
		if (strcmp(drivers[i].driver, port->driver) != 0)
			continue;
		s.capabilities = drivers[i].capabilities;
		s.calls = drivers[i].calls;
		s.n_calls = drivers[i].n_calls;
	}
	/* EAL asks the kernel where the huge pages are that a reload takes. */
	if (rte_eal_has_hugepages() && rte_eal_iova_mode() == RTE_IOVA_PA)
		s.capabilities |= BIT(CAP_SYS_ADMIN);
	if (opt->sink == NULL)
		return s;
	/* A new connection locks memory again. What libcuda calls is its own affair. */
	s.capabilities |= BIT(CAP_IPC_LOCK);
	s.filter = opt->sink_target.kind != TOKG_CUDA;
	return s;
}

/* Memory of packets, streams and rings. */
static int
exclude_from_dumps(
	const struct rte_memseg_list *list, const struct rte_memseg *first, size_t len, void *arg)
{
	madvise(first->addr, len, MADV_DONTDUMP);
	return 0;
}

int
tokd_sandbox_start(const struct tokd_options *opt, const struct tokd_port *port,
	struct tok_vocab *const *vocab, uint32_t n_vocabs, int wake_fd)
{
	struct tokd_sandbox s = needed(opt, port);
	const bool landlock = tokd_sandbox_has_landlock();
	struct tokd_folders folders;
	const char *step;
	int n_silent;

	tokd_folders_find(&folders, opt, port, vocab, n_vocabs);
	s.denied_fd = wake_fd;
	s.folders = folders.folder;
	s.n_folders = folders.n;
	rte_memseg_contig_walk(exclude_from_dumps, NULL);
	n_silent = tokd_sandbox_enter(&s, &step);
	tokd_folders_free(&folders);
	if (n_silent < 0) {
		TOKD_LOG(main, ERR,
			"--sandbox: %s: %s; --sandbox=no keeps all privileges of set-up\n", step,
			strerror(-n_silent));
		return n_silent;
	}
	if (n_silent > 0)
		TOKD_LOG(main, WARNING,
			"--sandbox: %d threads of libraries block all signals and keep their "
			"capabilities\n",
			n_silent);
	TOKD_LOG(main, INFO,
		"sandbox: capabilities kept for %s: 0x%" PRIx64 "; system calls %s; files %s\n",
		port->driver, s.capabilities, s.filter ? "filtered" : "not filtered, for libcuda",
		landlock ? "limited to what is needed" : "not limited: no Landlock in this kernel");
	return 0;
}

void
tokd_sandbox_log_denied(void)
{
	char name[TOKD_CALL_NAME];

	while (tokd_sandbox_next_denied(name))
		TOKD_LOG(main, WARNING,
			"sandbox: system call %s denied: it failed with EPERM; if something does "
			"not work, give --sandbox=no, and report driver and options\n",
			name);
}
