/* SPDX-License-Identifier: BSD-3-Clause */
/* Values that only dpdk-tokd has. The functions are `check` of struct opt_def. */
#ifndef TOKD_OPTIONS_CHECKS_H
#define TOKD_OPTIONS_CHECKS_H

#include <opt.h>
#include <sys/types.h>

/* They parse: a uint32_t in network byte order, a struct in6_addr, a struct rte_ether_addr. */
bool tokd_check_ip(const struct opt_def *, const char *text, void *field, struct opt_error *err);
bool tokd_check_ip6(const struct opt_def *, const char *text, void *field, struct opt_error *err);
bool tokd_check_mac(const struct opt_def *, const char *text, void *field, struct opt_error *err);
/* They look at what was parsed. */
bool tokd_check_power_of_2(
	const struct opt_def *, const char *text, void *field, struct opt_error *err);
bool tokd_check_mtu(const struct opt_def *, const char *text, void *field, struct opt_error *err);
bool tokd_check_group(const struct opt_def *, const char *text, void *field, struct opt_error *err);
bool tokd_check_byte(const struct opt_def *, const char *text, void *field, struct opt_error *err);

/* The group of a name or a number. (gid_t)-1: there is none. */
gid_t tokd_find_group(const char *name);

#endif
