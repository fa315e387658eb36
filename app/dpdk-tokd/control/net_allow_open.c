/* SPDX-License-Identifier: BSD-3-Clause */
#include "net_allow_open.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>

#include <rte_acl.h>
#include <rte_errno.h>
#include <rte_ip.h>

#include "log.h"
#include "options/allow.h"

/* The protocol, as rte_acl wants one byte first, and the words of the source address. */
#define FIELDS_V4 2
#define FIELDS_V6 5
RTE_ACL_RULE_DEF(rule, FIELDS_V6);

#define PROTO(offset)                                                                              \
	{                                                                                          \
		RTE_ACL_FIELD_TYPE_BITMASK, sizeof(uint8_t), 0, 0, (offset)                        \
	}
#define WORD(i, offset)                                                                            \
	{                                                                                          \
		RTE_ACL_FIELD_TYPE_MASK, sizeof(uint32_t), 1 + (i), 1 + (i), (offset) + 4 * (i)    \
	}

static const struct rte_acl_config config_v4 = {
	.num_categories = 1,
	.num_fields = FIELDS_V4,
	.defs = {PROTO(offsetof(struct rte_ipv4_hdr, next_proto_id)),
		WORD(0, offsetof(struct rte_ipv4_hdr, src_addr))},
};
static const struct rte_acl_config config_v6 = {
	.num_categories = 1,
	.num_fields = FIELDS_V6,
	.defs = {PROTO(offsetof(struct rte_ipv6_hdr, proto)),
		WORD(0, offsetof(struct rte_ipv6_hdr, src_addr)),
		WORD(1, offsetof(struct rte_ipv6_hdr, src_addr)),
		WORD(2, offsetof(struct rte_ipv6_hdr, src_addr)),
		WORD(3, offsetof(struct rte_ipv6_hdr, src_addr))},
};

static int
add_rule(struct rte_acl_ctx *c, const struct tokd_prefix *p, uint8_t proto)
{
	struct rule r = {.data = {.category_mask = 1, .priority = 1, .userdata = 1}};
	const int n_words = p->v6 ? 4 : 1;

	r.field[0].value.u8 = proto;
	r.field[0].mask_range.u8 = proto != 0 ? UINT8_MAX : 0;
	for (int i = 0; i < n_words; i++) {
		const int bits = p->bits - 32 * i;

		r.field[1 + i].value.u32 = p->word[i];
		r.field[1 + i].mask_range.u32 = (uint32_t)(bits < 0 ? 0 : bits > 32 ? 32 : bits);
	}
	return rte_acl_add_rules(c, (const struct rte_acl_rule *)&r, 1);
}

/* The rules of one family; *to stays NULL if it has none. */
static int
build(struct rte_acl_ctx **to, const struct tokd_prefix *all, uint32_t n, bool v6, int node)
{
	/* RFC 4861 4.3: who asks for our address, as a router, and who wants to take it. */
	static const struct tokd_prefix neighbours[] = {
		{.v6 = true, .bits = 10, .word = {0xfe800000}}, {.v6 = true, .bits = 128}};
	const struct rte_acl_param param = {
		.name = v6 ? "tokd_allow_v6" : "tokd_allow_v4",
		.socket_id = node,
		.rule_size = RTE_ACL_RULE_SZ(v6 ? FIELDS_V6 : FIELDS_V4),
		.max_rule_num = n + RTE_DIM(neighbours),
	};
	int rc = 0;

	for (uint32_t i = 0; i < n && rc == 0; i++) {
		if (all[i].v6 != v6)
			continue;
		if (*to == NULL)
			*to = rte_acl_create(&param);
		rc = *to != NULL ? add_rule(*to, &all[i], 0) : -rte_errno;
	}
	if (rc != 0 || *to == NULL)
		return rc;
	for (uint32_t i = 0; i < RTE_DIM(neighbours) && v6 && rc == 0; i++)
		rc = add_rule(*to, &neighbours[i], IPPROTO_ICMPV6);
	return rc != 0 ? rc : rte_acl_build(*to, v6 ? &config_v6 : &config_v4);
}

int
tokd_allow_open(struct tokd_allow *a, const char *text, int node)
{
	struct tokd_prefix *all;
	struct opt_error error = {""};
	uint32_t n;
	int rc;

	if (!tokd_allow_read(text, &all, &n, &error)) {
		TOKD_LOG(main, ERR, "--allow %.64s: %s\n", text, error.text);
		return -EINVAL;
	}
	rc = build(&a->v4, all, n, false, node);
	if (rc == 0)
		rc = build(&a->v6, all, n, true, node);
	free(all);
	if (rc != 0)
		TOKD_LOG(main, ERR,
			"--allow: cannot make rules of %u prefixes (rte_acl): %s; give fewer\n", n,
			strerror(-rc));
	return rc;
}

void
tokd_allow_close(struct tokd_allow *a)
{
	rte_acl_free(a->v4);
	rte_acl_free(a->v6);
	a->v4 = a->v6 = NULL;
}
