/* SPDX-License-Identifier: BSD-3-Clause */
#include "address.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <arpa/inet.h>

#include "kernel_if.h"
#include "log.h"

/* Drivers whose kernel interface is the other end of the port. */
static const char *const other_end[] = {"net_tap", "net_tun"};
/* Drivers that give us a copy of what the kernel receives. */
static const char *const copying[] = {"net_af_packet", "net_pcap"};

static bool
is_one_of(const char *driver, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(driver, list[i]) == 0)
			return true;
	}
	return false;
}

/* The kernel interface of the port; "" if there is none, or with another --mac. */
static void
find_interface(const struct tokd_port *p, char name[IF_NAMESIZE])
{
	if (p->if_index == 0 || is_one_of(p->driver, other_end, RTE_DIM(other_end)) ||
		if_indextoname(p->if_index, name) == NULL || !tokd_kernel_if_has_mac(name, &p->mac))
		name[0] = '\0';
}

static int
use_interface(struct tokd_address *a, const struct tokd_port *p, const struct tokd_options *opt)
{
	char at[TOKD_ADDRESS_TEXT];
	struct tokd_kernel_addrs k;
	int rc = tokd_kernel_if_addrs(a->interface, &k);

	if (rc != 0) {
		TOKD_LOG(port, ERR,
			"port %u (%s): cannot read the addresses of %s (getifaddrs): %s; give --ip "
			"or --ip6\n",
			p->id, p->driver, a->interface, strerror(-rc));
		return rc;
	}
	if (k.ip.s_addr == 0 && IN6_IS_ADDR_UNSPECIFIED(&k.ip6))
		k.ip6 = k.link_local;
	if (k.ip.s_addr == 0 && IN6_IS_ADDR_UNSPECIFIED(&k.ip6))
		return 0;
	if (opt->vlan != 0) {
		TOKD_LOG(port, ERR,
			"port %u (%s): --vlan %u: the addresses of %s are for untagged frames; "
			"give --ip or --ip6\n",
			p->id, p->driver, opt->vlan, a->interface);
		return -EINVAL;
	}
	a->ip = k.ip.s_addr;
	a->ip6 = tokd_addr_v6(k.ip6.s6_addr);
	a->from = "interface";
	a->kernel_answers = is_one_of(p->driver, copying, RTE_DIM(copying));
	TOKD_LOG(port, NOTICE,
		"port %u (%s): no --ip or --ip6: serving %s, from %s; ARP, neighbour discovery and "
		"ping are answered by %s\n",
		p->id, p->driver, tokd_address_text(a, at), a->interface,
		a->kernel_answers ? "the kernel" : "dpdk-tokd");
	if (!a->kernel_answers) {
		TOKD_LOG(port, WARNING,
			"port %u (%s): the kernel no longer receives packets of the %u queue(s) of "
			"%s that dpdk-tokd polls: other connections over %s, such as ssh, stop "
			"until dpdk-tokd ends\n",
			p->id, p->driver, p->n_queues, a->interface, a->interface);
		return 0;
	}
	rc = tokd_kernel_mute_open(
		&a->mute, k.ip, &k.ip6, p->if_index, opt->udp_port, opt->text_port);
	if (rc != 0)
		tokd_kernel_mute_close(&a->mute);
	return rc;
}

/* RFC 4291 2.5.6 and appendix A: the universal bit inverted, ff:fe in the middle. */
static struct tokd_addr
link_local(const struct rte_ether_addr *mac)
{
	const uint8_t *b = mac->addr_bytes;

	return (struct tokd_addr){
		.byte = {0xfe, 0x80, [8] = b[0] ^ 2, b[1], b[2], 0xff, 0xfe, b[3], b[4], b[5]}};
}

static void
use_mac(struct tokd_address *a, const struct tokd_port *p, const struct rte_ether_addr *asked)
{
	char at[TOKD_ADDRESS_TEXT], scope[IF_NAMESIZE];

	/* The kernel's end of a TAP device has the same MAC, and the same link-local address. */
	if (a->interface[0] == '\0' && rte_is_zero_ether_addr(asked) &&
		tokd_kernel_if_has_mac(NULL, &a->mac))
		a->mac.addr_bytes[5] ^= 1;
	a->ip6 = link_local(&a->mac);
	a->from = "mac";
	tokd_address_text(a, at);
	/* The scope for clients: a TAP device's interface here, else an example. */
	if (a->interface[0] != '\0' || if_indextoname(p->if_index, scope) == NULL)
		strcpy(scope, "eth0");
	TOKD_LOG(port, NOTICE,
		"port %u (%s): no --ip or --ip6: serving %s, made from the Ethernet "
		"address " RTE_ETHER_ADDR_PRT_FMT "; clients add their interface, as in %s%%%s\n",
		p->id, p->driver, at, RTE_ETHER_ADDR_BYTES(&a->mac), at, scope);
}

int
tokd_address_choose(
	struct tokd_address *a, const struct tokd_port *p, const struct tokd_options *opt)
{
	int rc = 0;

	memset(a, 0, sizeof(*a));
	a->mac = p->mac;
	a->ip = opt->ip;
	a->ip6 = tokd_addr_v6(opt->ip6.s6_addr);
	a->from = "options";
	find_interface(p, a->interface);
	if (a->ip != 0 || !tokd_addr_is_none(&a->ip6))
		return 0;
	if (a->interface[0] != '\0')
		rc = use_interface(a, p, opt);
	if (rc == 0 && a->ip == 0 && tokd_addr_is_none(&a->ip6))
		use_mac(a, p, &opt->mac);
	return rc;
}

void
tokd_address_free(struct tokd_address *a)
{
	tokd_kernel_mute_close(&a->mute);
}

const char *
tokd_address_text(const struct tokd_address *a, char text[TOKD_ADDRESS_TEXT])
{
	char ip6[INET6_ADDRSTRLEN] = "";

	text[0] = '\0';
	if (a->ip != 0)
		inet_ntop(AF_INET, &a->ip, text, INET_ADDRSTRLEN);
	if (!tokd_addr_is_none(&a->ip6))
		inet_ntop(AF_INET6, a->ip6.byte, ip6, sizeof(ip6));
	if (text[0] != '\0' && ip6[0] != '\0')
		strcat(text, " ");
	return strcat(text, ip6);
}
