/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of dpdk-tokd's own value types: `check` of struct opt_def. */
#pragma once

#include <opt.h>
#include <sys/types.h>

/* Parse a uint32_t in network byte order, a struct in6_addr, a struct rte_ether_addr. */
bool tokd_check_ip(const struct opt_def *, const char *text, void *field, struct opt_error *err);
bool tokd_check_ip6(const struct opt_def *, const char *text, void *field, struct opt_error *err);
bool tokd_check_mac(const struct opt_def *, const char *text, void *field, struct opt_error *err);
/* Check a parsed value. */
bool tokd_check_mtu(const struct opt_def *, const char *text, void *field, struct opt_error *err);
bool tokd_check_group(const struct opt_def *, const char *text, void *field, struct opt_error *err);
bool tokd_check_allow(const struct opt_def *, const char *text, void *field, struct opt_error *err);
bool tokd_check_byte(const struct opt_def *, const char *text, void *field, struct opt_error *err);

/* The group of a name or number; (gid_t)-1: no such group. */
gid_t tokd_find_group(const char *name);
