/* SPDX-License-Identifier: BSD-3-Clause */
/* NVIDIA GPUs as sysfs and the driver's proc files have them. CUDA, where it is there, adds to it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pci.h"

#define PCI "/sys/bus/pci/devices"
#define VENDOR_NVIDIA 0x10de
#define CLASS_DISPLAY 0x03 /* 0x030000 VGA, 0x030200 3D */
#define BARS 6
#define RESOURCE_MEM 0x200 /* IORESOURCE_MEM */

/*
 * BAR1 is where GPU memory appears on the bus. Which of the registers it is differs (a 64-bit one
 * before it takes two); it is the greatest of the six.
 */
static uint64_t
bar1_bytes(const struct fs *fs, const char *address)
{
	char text[2048], *line = text;
	uint64_t most = 0;

	if (fs_bytes(fs, text, sizeof(text) - 1, PCI "/%s/resource", address) <= 0)
		return 0;
	for (int i = 0; i < BARS && line != NULL; i++) {
		uint64_t begin, end, flags;

		if (sscanf(line, "%" SCNx64 " %" SCNx64 " %" SCNx64, &begin, &end, &flags) == 3 &&
			(flags & RESOURCE_MEM) != 0 && end > begin && end - begin >= most)
			most = end - begin + 1;
		line = strchr(line, '\n');
		line += line != NULL;
	}
	return most;
}

/* "Model: \t\t NVIDIA H100 PCIe" in the driver's own words. */
static void
find_name(const struct fs *fs, struct gpu *g)
{
	char text[2049], *model;
	uint64_t device = 0;

	if (fs_bytes(fs, text, sizeof(text) - 1, "/proc/driver/nvidia/gpus/%s/information",
		    g->pci.address) > 0 &&
		(model = strstr(text, "Model:")) != NULL) {
		model += strlen("Model:");
		model += strspn(model, " \t");
		snprintf(g->name, sizeof(g->name), "%.*s", (int)strcspn(model, "\n"), model);
		fs_clean(g->name);
		return;
	}
	fs_u64(fs, &device, PCI "/%s/device", g->pci.address);
	snprintf(g->name, sizeof(g->name), "NVIDIA 10de:%04x", (unsigned int)(device & 0xffff));
}

static bool
is_gpu(const struct fs *fs, const char *address)
{
	uint64_t vendor, class;

	return fs_u64(fs, &vendor, PCI "/%s/vendor", address) && vendor == VENDOR_NVIDIA &&
	       fs_u64(fs, &class, PCI "/%s/class", address) && class >> 16 == CLASS_DISPLAY;
}

void
find_gpus(struct machine *m)
{
	struct fs_names at = fs_list(&m->fs, PCI);
	char link[PATH_MAX];

	for (int i = 0; i < at.n && m->n_gpus < GPU_MAX; i++) {
		struct gpu *g = &m->gpus[m->n_gpus];

		if (!is_gpu(&m->fs, at.name[i]))
			continue;
		snprintf(link, sizeof(link), PCI "/%s", at.name[i]);
		pci_find(&m->fs, &g->pci, link);
		if (g->pci.address[0] == '\0')
			continue;
		g->bar1 = bar1_bytes(&m->fs, at.name[i]);
		g->bar1_from = "sysfs";
		g->order = ORDER_NOT_KNOWN;
		find_name(&m->fs, g);
		m->n_gpus++;
	}
	fs_names_free(&at);
}
