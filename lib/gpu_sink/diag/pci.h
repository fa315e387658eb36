/* SPDX-License-Identifier: BSD-3-Clause */
/* PCI functions as sysfs has them, and what lies between two of them. */
#ifndef TOKD_DIAG_PCI_H
#define TOKD_DIAG_PCI_H

#include "machine.h"

enum pci_between {
	PCI_NOT_KNOWN = 0,
	PCI_SAME_SWITCH, /* a bridge below the root port has both under it */
	PCI_SAME_ROOT,	 /* one host bridge, by its root ports */
	PCI_SAME_NODE,	 /* two host bridges of one NUMA node */
	PCI_OTHER_NODE,
};

/* From a link to a PCI device's folder, as /sys/class/infiniband/mlx5_0/device. */
void pci_find(const struct fs *fs, struct pci *pci, const char *link);
enum pci_between pci_compare(const struct pci *a, const struct pci *b);
const char *pci_between_text(enum pci_between b);
/*
 * The first bridge above `pci` whose access control services send what one device writes to another
 * up to the root (P2P Request or Completion Redirect: PCIe 4.0, 7.7.8). False: none does, or
 * configuration space cannot be read (root alone may read all of it).
 */
bool pci_redirects(const struct fs *fs, const struct pci *pci, char bridge[16]);

#endif
