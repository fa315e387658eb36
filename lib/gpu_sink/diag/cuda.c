/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the NVIDIA driver's libraries say, where they are: they are opened by name, so that neither
 * building nor running needs them. Names and numbers: "CUDA Driver API", section Device Management,
 * and "NVML API Reference".
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "machine.h"

enum {
	COMPUTE_MAJOR = 75,
	COMPUTE_MINOR = 76,
	RDMA_SUPPORTED = 116,
	RDMA_WRITES_ORDERING = 118,
	DMA_BUF_SUPPORTED = 124,
};

struct cuda {
	void *library;
	int (*init)(unsigned int flags);
	int (*version)(int *version);
	int (*count)(int *n);
	int (*get)(int *device, int ordinal);
	int (*name)(char *name, int room, int device);
	int (*address)(char *address, int room, int device);
	int (*attribute)(int *value, int attribute, int device);
};

struct nvml_bar1 {
	unsigned long long total, free, used;
};

struct nvml {
	void *library;
	int (*init)(void);
	int (*shutdown)(void);
	int (*get)(const char *address, void **device);
	int (*bar1)(void *device, struct nvml_bar1 *memory);
};

/* A function by its name; POSIX says that this cast works. */
static bool
symbol(void *library, const char *name, void *function)
{
	void *found = dlsym(library, name);

	memcpy(function, &found, sizeof(found));
	return found != NULL;
}

static bool
cuda_open(struct cuda *c)
{
	c->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	return c->library != NULL && symbol(c->library, "cuInit", &c->init) &&
	       symbol(c->library, "cuDriverGetVersion", &c->version) &&
	       symbol(c->library, "cuDeviceGetCount", &c->count) &&
	       symbol(c->library, "cuDeviceGet", &c->get) &&
	       symbol(c->library, "cuDeviceGetName", &c->name) &&
	       symbol(c->library, "cuDeviceGetPCIBusId", &c->address) &&
	       symbol(c->library, "cuDeviceGetAttribute", &c->attribute);
}

static struct gpu *
gpu_at(struct machine *m, const char *address)
{
	for (int i = 0; i < m->n_gpus; i++) {
		if (strcasecmp(m->gpus[i].pci.address, address) == 0)
			return &m->gpus[i];
	}
	return NULL;
}

static enum known
yes_or_no(const struct cuda *c, int attribute, int device)
{
	int value;

	if (c->attribute(&value, attribute, device) != 0)
		return NOT_KNOWN;
	return value != 0 ? YES : NO;
}

static void
ask_device(const struct cuda *c, struct gpu *g, int device)
{
	g->asked = true;
	if (c->name(g->name, sizeof(g->name), device) != 0)
		g->name[0] = '\0';
	g->name[sizeof(g->name) - 1] = '\0';
	fs_clean(g->name);
	if (c->attribute(&g->major, COMPUTE_MAJOR, device) != 0 ||
		c->attribute(&g->minor, COMPUTE_MINOR, device) != 0)
		g->major = g->minor = 0;
	if (c->attribute(&g->order, RDMA_WRITES_ORDERING, device) != 0)
		g->order = ORDER_NOT_KNOWN;
	g->rdma_supported = yes_or_no(c, RDMA_SUPPORTED, device);
	g->dmabuf_supported = yes_or_no(c, DMA_BUF_SUPPORTED, device);
}

static void
ask_devices(struct machine *m, const struct cuda *c)
{
	char address[32] = "";
	int n = 0, device;
	struct gpu *g;

	if (c->version(&m->cuda_version) != 0)
		m->cuda_version = 0;
	if (c->count(&n) != 0)
		n = 0;
	for (int i = 0; i < n && i < GPU_MAX; i++) {
		if (c->get(&device, i) != 0 ||
			c->address(address, sizeof(address) - 1, device) != 0)
			continue;
		g = gpu_at(m, address);
		if (g != NULL)
			ask_device(c, g, device);
	}
}

/* BAR1 as the driver uses it: how much of it is free is known by it alone. */
static void
ask_nvml(struct machine *m)
{
	struct nvml n = {.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
	struct nvml_bar1 memory;
	void *device;

	if (n.library == NULL)
		return;
	if (symbol(n.library, "nvmlInit_v2", &n.init) &&
		symbol(n.library, "nvmlShutdown", &n.shutdown) &&
		symbol(n.library, "nvmlDeviceGetHandleByPciBusId_v2", &n.get) &&
		symbol(n.library, "nvmlDeviceGetBAR1MemoryInfo", &n.bar1) && n.init() == 0) {
		for (int i = 0; i < m->n_gpus; i++) {
			struct gpu *g = &m->gpus[i];

			if (n.get(g->pci.address, &device) != 0 || n.bar1(device, &memory) != 0)
				continue;
			g->bar1 = memory.total;
			g->bar1_free = memory.free;
			g->has_bar1_free = true;
			g->bar1_from = "nvml";
		}
		n.shutdown();
	}
	dlclose(n.library);
}

void
ask_cuda(struct machine *m)
{
	struct cuda c = {0};
	int failed = 0;

	if (!m->fs.live || m->n_gpus == 0)
		return;
	if (!cuda_open(&c))
		snprintf(m->cuda_note, sizeof(m->cuda_note),
			"libcuda.so.1 does not load: install the NVIDIA driver's libraries");
	else if ((failed = c.init(0)) != 0)
		snprintf(m->cuda_note, sizeof(m->cuda_note),
			"cuInit fails with error %d: is the nvidia module loaded, and may this user "
			"open /dev/nvidia*?",
			failed);
	else
		ask_devices(m, &c);
	ask_nvml(m);
	if (c.library != NULL)
		dlclose(c.library);
}
