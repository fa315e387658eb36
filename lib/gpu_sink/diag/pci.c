/* SPDX-License-Identifier: BSD-3-Clause */
#include "pci.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG_BYTES 4096
#define EXTENDED 256   /* where the list of extended capabilities begins */
#define ACS_ID 0x0d    /* access control services */
#define ACS_P2P 0x000c /* request redirect, completion redirect */

/* 0000:03:00.0 */
static bool
is_address(const char *text, size_t n)
{
	static const char form[] = "xxxx:xx:xx.x";

	if (n != sizeof(form) - 1)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (form[i] == 'x' ? strchr("0123456789abcdefABCDEF", text[i]) == NULL
				   : text[i] != form[i])
			return false;
	}
	return true;
}

/* The last address in a path: a virtual function's, an auxiliary device's parent's. Ends after it.
 */
static void
cut_to_address(struct pci *pci)
{
	size_t begin = 0, end = 0;

	for (size_t i = 0; pci->path[i] != '\0';) {
		const size_t n = strcspn(pci->path + i, "/");

		if (is_address(pci->path + i, n)) {
			begin = i;
			end = i + n;
		}
		i += n;
		i += pci->path[i] == '/';
	}
	pci->path[end] = '\0';
	snprintf(pci->address, sizeof(pci->address), "%.12s", pci->path + begin);
}

static void
last_of_link(const struct fs *fs, char *out, size_t room, const char *folder, const char *link)
{
	char real[PATH_MAX];
	const char *last;

	out[0] = '\0';
	if (!fs_real(fs, real, "%s/%s", folder, link))
		return;
	last = strrchr(real, '/') + 1;
	snprintf(out, room, "%.*s", (int)room - 1, last);
}

void
pci_find(const struct fs *fs, struct pci *pci, const char *link)
{
	char node[16];

	memset(pci, 0, sizeof(*pci));
	pci->node = -1;
	if (!fs_real(fs, pci->path, "%s", link))
		return;
	cut_to_address(pci);
	if (pci->address[0] == '\0')
		return;
	last_of_link(fs, pci->driver, sizeof(pci->driver), pci->path, "driver");
	last_of_link(fs, pci->iommu_group, sizeof(pci->iommu_group), pci->path, "iommu_group");
	if (pci->iommu_group[0] != '\0')
		fs_line(fs, pci->iommu_type, sizeof(pci->iommu_type), "%s/iommu_group/type",
			pci->path);
	if (fs_line(fs, node, sizeof(node), "%s/numa_node", pci->path))
		pci->node = atoi(node);
}

/* Components that two paths have in common. */
static int
common(const char *a, const char *b)
{
	int n = 0;

	for (size_t i = 0;; i++) {
		const bool a_ends = a[i] == '\0' || a[i] == '/',
			   b_ends = b[i] == '\0' || b[i] == '/';

		if (a_ends && b_ends)
			n++;
		if (a[i] != b[i] || a[i] == '\0')
			return n;
	}
}

enum pci_between
pci_compare(const struct pci *a, const struct pci *b)
{
	int n;

	if (a->address[0] == '\0' || b->address[0] == '\0')
		return PCI_NOT_KNOWN;
	/* "", sys, devices, pci0000:00, 0000:00:01.0 (the root port), 0000:01:00.0 (a switch), ...
	 */
	n = common(a->path, b->path);
	if (n > 5)
		return PCI_SAME_SWITCH;
	if (n > 3)
		return PCI_SAME_ROOT;
	if (a->node < 0 || b->node < 0)
		return PCI_NOT_KNOWN;
	return a->node == b->node ? PCI_SAME_NODE : PCI_OTHER_NODE;
}

const char *
pci_between_text(enum pci_between b)
{
	static const char *const text[] = {[PCI_NOT_KNOWN] = "not known",
		[PCI_SAME_SWITCH] = "the same PCIe switch",
		[PCI_SAME_ROOT] = "the same PCIe root",
		[PCI_SAME_NODE] = "two PCIe roots of one NUMA node",
		[PCI_OTHER_NODE] = "two NUMA nodes"};

	return text[b];
}

static uint32_t
word_at(const uint8_t *config, unsigned int at)
{
	return config[at] | config[at + 1] << 8 | config[at + 2] << 16 |
	       (uint32_t)config[at + 3] << 24;
}

/*
 * ACS's control register is the upper half of its second word.
 * A list of capabilities can lead anywhere, also in a circle: each word is looked at once at most.
 */
static bool
config_redirects(const uint8_t *config, long bytes)
{
	unsigned int at = EXTENDED;

	for (int i = 0; i < CONFIG_BYTES / 4 && at >= EXTENDED && at + 8 <= bytes; i++) {
		const uint32_t header = word_at(config, at);

		if ((header & 0xffff) == ACS_ID)
			return (word_at(config, at + 4) >> 16 & ACS_P2P) != 0;
		at = header >> 20 & ~3u;
	}
	return false;
}

bool
pci_redirects(const struct fs *fs, const struct pci *pci, char bridge[16])
{
	uint8_t config[CONFIG_BYTES + 1];
	char path[PATH_MAX];
	char *slash;

	memcpy(path, pci->path, sizeof(path));
	while ((slash = strrchr(path, '/')) != NULL) {
		*slash = '\0';
		slash = strrchr(path, '/');
		if (slash == NULL || !is_address(slash + 1, strlen(slash + 1)))
			return false;
		if (config_redirects(
			    config, fs_bytes(fs, config, CONFIG_BYTES, "%s/config", path))) {
			snprintf(bridge, 16, "%.12s", slash + 1);
			return true;
		}
	}
	return false;
}
