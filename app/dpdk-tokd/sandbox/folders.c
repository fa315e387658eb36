/* SPDX-License-Identifier: BSD-3-Clause */
#include "folders.h"

#include <limits.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_eal.h>

/* Too many: one that is left out is refused when it is opened. */
static void
add(struct tokd_folders *f, const char *path, size_t len, enum tokd_access access)
{
	char *copy = f->n < TOKD_FOLDERS_MAX ? strndup(path, len) : NULL;

	if (copy != NULL)
		f->folder[f->n++] = (struct tokd_folder){.path = copy, .access = access};
}

static void
add_parent(struct tokd_folders *f, const char *path, size_t len, enum tokd_access access)
{
	while (len > 0 && path[len - 1] != '/')
		len--;
	if (len > 0)
		add(f, path, len, access);
	else
		add(f, ".", 1, access);
}

/* The folder that a file is in, and, if the file is a link, that of what it names. */
static void
add_folder_of(struct tokd_folders *f, const char *path, size_t len, enum tokd_access access)
{
	char name[PATH_MAX], real[PATH_MAX];

	add_parent(f, path, len, access);
	snprintf(name, sizeof(name), "%.*s", (int)len, path);
	if (realpath(name, real) != NULL && strcmp(name, real) != 0)
		add_parent(f, real, strlen(real), access);
}

/* Where a reload may find other vocabularies. */
static void
add_search_path(struct tokd_folders *f)
{
	char paths[PATH_MAX], *save = NULL;

	if (!tok_vocab_search_path(paths, sizeof(paths)))
		return;
	for (char *p = strtok_r(paths, ":", &save); p != NULL; p = strtok_r(NULL, ":", &save))
		add(f, p, strlen(p), TOKD_READ);
}

/* For a reload, which reads them again: see tokd_allow_read(). */
static void
add_allow_files(struct tokd_folders *f, const char *allow)
{
	for (size_t len; allow != NULL && *allow != '\0'; allow += len + (allow[len] == ',')) {
		len = strcspn(allow, ",");
		if (allow[0] == '/' || allow[0] == '.')
			add_folder_of(f, allow, len, TOKD_READ);
	}
}

/* Sockets and captures, as in socket=/run/memif.sock,role=server. */
static void
add_devargs(struct tokd_folders *f, const struct rte_device *device)
{
	const struct rte_devargs *args = device != NULL ? rte_dev_devargs(device) : NULL;
	const char *at = args != NULL && args->args != NULL ? args->args : "";

	for (at = strstr(at, "=/"); at != NULL; at = strstr(at, "=/")) {
		at++;
		add_folder_of(f, at, strcspn(at, ","), TOKD_WRITE);
	}
}

static void
add_huge_pages(struct tokd_folders *f)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");

	if (mounts == NULL)
		return;
	for (const struct mntent *m = getmntent(mounts); m != NULL; m = getmntent(mounts)) {
		if (strcmp(m->mnt_type, "hugetlbfs") == 0)
			add(f, m->mnt_dir, strlen(m->mnt_dir), TOKD_WRITE);
	}
	endmntent(mounts);
}

void
tokd_folders_find(struct tokd_folders *f, const struct tokd_options *opt,
	const struct tokd_port *port, struct tok_vocab *const *vocab, uint32_t n_vocabs)
{
	static const char *const system[] = {"/proc", "/sys", "/etc", "/usr", "/lib", "/lib64"};
	/* Devices of ports and RDMA, no disks; where libxdp has its locks. */
	static const char *const written[] = {
		"/dev/null", "/dev/vfio", "/dev/infiniband", "/dev/net", "/run/xdp", "/sys/fs/bpf"};
	const char *run_time = rte_eal_get_runtime_dir();

	f->n = 0;
	for (size_t i = 0; i < RTE_DIM(system); i++)
		add(f, system[i], strlen(system[i]), TOKD_READ);
	for (size_t i = 0; i < RTE_DIM(written); i++)
		add(f, written[i], strlen(written[i]), TOKD_WRITE);
	/* What libcuda opens is its own affair. */
	if (opt->sink != NULL && opt->sink_target.kind == TOKG_CUDA)
		add(f, "/dev", strlen("/dev"), TOKD_WRITE);
	add(f, run_time, strlen(run_time), TOKD_WRITE);
	add_parent(f, run_time, strlen(run_time), TOKD_REMOVE_DIRS); /* control/eal_files.h */
	add_huge_pages(f);
	add_folder_of(f, opt->socket, strlen(opt->socket), TOKD_WRITE);
	add_devargs(f, port->device);
	for (uint32_t i = 0; i < n_vocabs; i++) {
		const char *path = tok_vocab_info(vocab[i]).path;

		add_folder_of(f, path, strlen(path), TOKD_READ);
	}
	add_search_path(f);
	add_allow_files(f, opt->allow);
	if (opt->config != NULL)
		add_folder_of(f, opt->config, strlen(opt->config), TOKD_READ);
}

void
tokd_folders_free(struct tokd_folders *f)
{
	while (f->n > 0)
		free((char *)f->folder[--f->n].path);
}
