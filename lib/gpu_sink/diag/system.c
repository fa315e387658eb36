/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernel, modules, limits, memory. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

#define CAP_IPC_LOCK 14
#define MODULES_BYTES (256u << 10)
#define MOUNTS_BYTES (256u << 10)
#define NODES "/sys/devices/system/node"

/* The whole of a file that has lines; NULL where there is none. Free it. */
static char *
whole(const struct fs *fs, const char *path, size_t room)
{
	char *text = malloc(room + 1);

	if (text != NULL && fs_bytes(fs, text, room, "%s", path) > 0)
		return text;
	free(text);
	return NULL;
}

/* What follows `key` where a line begins with it. */
static const char *
line_of(const char *text, const char *key)
{
	const size_t n = strlen(key);

	while (text != NULL && strncmp(text, key, n) != 0) {
		text = strchr(text, '\n');
		text += text != NULL;
	}
	return text == NULL ? NULL : text + n;
}

static void
find_kernel(const struct fs *fs, struct system *s)
{
	fs_line(fs, s->kernel, sizeof(s->kernel), "/proc/sys/kernel/osrelease");
	if (sscanf(s->kernel, "%5d.%5d", &s->kernel_major, &s->kernel_minor) != 2)
		s->kernel_major = s->kernel_minor = 0;
}

static void
find_modules(const struct fs *fs, struct system *s)
{
	char *text = whole(fs, "/proc/modules", MODULES_BYTES);

	s->nvidia = line_of(text, "nvidia ") != NULL;
	s->peermem =
		line_of(text, "nvidia_peermem ") != NULL || line_of(text, "nv_peer_mem ") != NULL;
	s->gdrdrv = line_of(text, "gdrdrv ") != NULL;
	s->mlx5_ib = line_of(text, "mlx5_ib ") != NULL ||
		     fs_exists(fs, "/sys/bus/auxiliary/drivers/mlx5_ib.rdma");
	free(text);
	s->gdrdrv_node = fs_exists(fs, "/dev/gdrdrv");
	/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15 ..." */
	s->nvidia |= fs_line(
		fs, s->nvidia_version, sizeof(s->nvidia_version), "/proc/driver/nvidia/version");
	s->nvidia_open = strstr(s->nvidia_version, "Open Kernel Module") != NULL;
}

static void
find_gdrapi(const struct fs *fs, struct system *s)
{
	void *library;

	if (!fs->live)
		return;
	library = dlopen("libgdrapi.so.2", RTLD_NOW | RTLD_LOCAL);
	s->gdrapi = library != NULL ? YES : NO;
	if (library != NULL)
		dlclose(library);
}

/* The limit is that of this process: run it as the user, and from where, dpdk-tokd is run. */
static void
find_memlock(const struct fs *fs, struct system *s)
{
	char *text = whole(fs, "/proc/self/limits", 4096);
	const char *value = line_of(text, "Max locked memory");

	if (value != NULL) {
		value += strspn(value, " ");
		s->has_memlock = sscanf(value, "%" SCNu64, &s->memlock) == 1;
		if (strncmp(value, "unlimited", 9) == 0) {
			s->memlock = UINT64_MAX;
			s->has_memlock = true;
		}
	}
	free(text);
	text = whole(fs, "/proc/self/status", 16384);
	value = line_of(text, "CapEff:");
	if (value != NULL)
		s->memlock_free = strtoull(value, NULL, 16) >> CAP_IPC_LOCK & 1 ? YES : NO;
	free(text);
}

static void
find_node(const struct fs *fs, struct system *s, const char *node)
{
	struct fs_names sizes = fs_list(fs, NODES "/%s/hugepages", node);

	for (int i = 0; i < sizes.n && s->n_huge < (int)(sizeof(s->huge) / sizeof(s->huge[0]));
		i++) {
		struct huge_pages *h = &s->huge[s->n_huge];

		if (sscanf(sizes.name[i], "hugepages-%" SCNu64 "kB", &h->kb) != 1)
			continue;
		h->node = (int)strtol(node + strlen("node"), NULL, 10);
		fs_u64(fs, &h->total, NODES "/%s/hugepages/%s/nr_hugepages", node, sizes.name[i]);
		fs_u64(fs, &h->free, NODES "/%s/hugepages/%s/free_hugepages", node, sizes.name[i]);
		s->n_huge++;
	}
	fs_names_free(&sizes);
}

static void
find_huge_pages(const struct fs *fs, struct system *s)
{
	struct fs_names nodes = fs_list(fs, NODES);

	for (int i = 0; i < nodes.n; i++) {
		if (strncmp(nodes.name[i], "node", 4) == 0)
			find_node(fs, s, nodes.name[i]);
	}
	fs_names_free(&nodes);
}

static void
find_hugetlbfs(const struct fs *fs, struct system *s)
{
	const int room = (int)(sizeof(s->hugetlbfs) / sizeof(s->hugetlbfs[0]));
	char *text = whole(fs, "/proc/mounts", MOUNTS_BYTES), *save = NULL;
	char point[128], type[32];

	for (char *line = text == NULL ? NULL : strtok_r(text, "\n", &save);
		line != NULL && s->n_hugetlbfs < room; line = strtok_r(NULL, "\n", &save)) {
		if (sscanf(line, "%*s %127s %31s", point, type) == 2 &&
			strcmp(type, "hugetlbfs") == 0) {
			fs_clean(point);
			memcpy(s->hugetlbfs[s->n_hugetlbfs++], point, sizeof(point));
		}
	}
	free(text);
}

static void
find_iommu(const struct fs *fs, struct system *s)
{
	struct fs_names units = fs_list(fs, "/sys/class/iommu");
	char *text = whole(fs, "/proc/cmdline", 16384), *save = NULL;
	size_t at = 0;

	s->iommu = units.n > 0;
	fs_names_free(&units);
	for (char *word = text == NULL ? NULL : strtok_r(text, " \n", &save); word != NULL;
		word = strtok_r(NULL, " \n", &save)) {
		if (strstr(word, "iommu") == NULL ||
			at + strlen(word) + 2 > sizeof(s->cmdline_iommu))
			continue;
		at += (size_t)snprintf(s->cmdline_iommu + at, sizeof(s->cmdline_iommu) - at, "%s%s",
			at > 0 ? " " : "", word);
	}
	fs_clean(s->cmdline_iommu);
	free(text);
}

void
find_system(struct machine *m)
{
	struct system *s = &m->system;

	find_kernel(&m->fs, s);
	find_modules(&m->fs, s);
	find_gdrapi(&m->fs, s);
	find_memlock(&m->fs, s);
	find_huge_pages(&m->fs, s);
	find_hugetlbfs(&m->fs, s);
	find_iommu(&m->fs, s);
}
