/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks beyond the table: options before --, and values that depend on each other. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ip_frag.h>

#include <tokd/ring.h>
#include <tokd/wire.h>

#include "checks.h"
#include "options.h"

/* EAL would only call an application option before -- unknown. */
static void
check_eal_args(int argc, char **argv, struct tokd_options *opt, struct opt_error *e)
{
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i] + 2;
		const size_t len = strncmp(argv[i], "--", 2) == 0 ? strcspn(name, "=") : 0;
		const struct opt_def *d = opt_find(&tokd_program, name, len);

		if (len == 0)
			continue;
		if (strncmp(name, "help", len) == 0 || strncmp(name, "version", len) == 0 ||
			(d != NULL && (d->flags & OPT_ACTION) != 0))
			opt_take(&tokd_program, &argv[i], 1, opt, &opt->given, e);
		else if (d != NULL)
			opt_wrong(e,
				"%.64s: an application option; put it after --, as in -- %.64s",
				argv[i], argv[i]);
	}
}

static bool
check_side_store(const struct tokd_options *opt, struct opt_error *e)
{
	if (opt->side_bytes == 0 || opt->side_bytes >= TOKD_SIDE_BLOCK)
		return true;
	return opt_wrong(e,
		"--side-store %u: less than one block of %u bytes; give 0 or more than that",
		(unsigned int)opt->side_bytes, TOKD_SIDE_BLOCK);
}

uint32_t
tokd_mbufs_taken(const struct tokd_options *opt, uint32_t rx, uint32_t tx, uint32_t mtu)
{
	const uint32_t bytes = mtu + RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN;
	const uint32_t frames = TOKD_BURST + opt->fragments * RTE_LIBRTE_IP_FRAG_MAX_FRAG;

	return rx + tx + TOKD_TX_MAX + frames * ((bytes + opt->mbuf_room - 1) / opt->mbuf_room);
}

bool
tokd_mbufs_check(
	const struct tokd_options *opt, uint32_t rx, uint32_t tx, uint32_t mtu, struct opt_error *e)
{
	const uint32_t least = tokd_mbufs_taken(opt, rx, tx, mtu) + TOKD_WIRE_WINDOW;

	return opt->mbufs >= least ||
	       opt_wrong(e,
		       "--mbufs %u: too few for %u RX and %u TX descriptors, --fragments %u and "
		       "packets of %u bytes in mbufs of %u; give %u or more, lower --rxd, --txd, "
		       "--fragments or --mtu, or raise --mbuf-room",
		       opt->mbufs, rx, tx, opt->fragments, mtu, opt->mbuf_room, least);
}

/* "gpu" means "gpu=shm": the agent of this machine. */
static bool
make_sink_target(struct tokd_options *opt, struct opt_error *e)
{
	struct tokg_error err;
	const char *target = "shm";

	if (opt->sink == NULL)
		return true;
	if (strncmp(opt->sink, "gpu=", 4) == 0)
		target = opt->sink + 4;
	else if (strcmp(opt->sink, "gpu") != 0)
		return opt_wrong(e, "--sink %.64s: not a sink; give gpu or gpu=TARGET", opt->sink);
	if (!tokg_target_parse(&opt->sink_target, target, &err))
		return opt_wrong(e, "--sink %.64s: %s", opt->sink, err.text);
	opt->sink_target.rdma_device = opt->rdma_device;
	opt->sink_target.rdma_port = opt->rdma_port != 0 ? (int)opt->rdma_port : -1;
	opt->sink_target.rdma_gid = opt->rdma_gid != NULL ? atoi(opt->rdma_gid) : -1;
	opt->sink_target.rdma_tclass = (uint8_t)opt->rdma_tclass;
	opt->sink_target.rdma_sl = (uint8_t)opt->rdma_sl;
	return true;
}

/* An option that would do nothing is refused: it was given by mistake. */
static bool
check_sink(struct tokd_options *opt, struct opt_error *e)
{
	const char *rdma = opt->rdma_device != NULL ? "--rdma-device"
			   : opt->rdma_port != 0    ? "--rdma-port"
			   : opt->rdma_gid != NULL  ? "--rdma-gid"
			   : opt->rdma_tclass != 0  ? "--rdma-tclass"
			   : opt->rdma_sl != 0	    ? "--rdma-sl"
						    : NULL;

	if (!make_sink_target(opt, e))
		return false;
	if (opt->sink_full == TOKD_SINK_SHED && opt->sink == NULL)
		return opt_wrong(e, "--sink-full shed: needs --sink; leave out one, or give both");
	return rdma == NULL || (opt->sink != NULL && opt->sink_target.kind == TOKG_VERBS) ||
	       opt_wrong(e, "%s: only for --sink gpu=verbs:HOST; leave it out", rdma);
}

struct tokb_options
tokd_block_options(const struct tokd_options *opt, uint32_t vocab)
{
	struct tokb_options o = {
		.scheme = (enum tokb_scheme)(opt->block_keys - 1),
		.block_size = opt->block_size,
	};
	const char *name = opt->block_model;

	if (opt->block_seed != NULL)
		o.seed = (struct tokb_text){opt->block_seed, strlen(opt->block_seed)};
	for (; name != NULL && vocab > 0; vocab--)
		name = strchr(name, ',') + 1;
	if (name != NULL)
		o.model = (struct tokb_text){name, strcspn(name, ",")};
	return o;
}

static uint32_t
count_names(const char *text)
{
	uint32_t n = 1;

	for (; *text != '\0'; text++)
		n += *text == ',';
	return n;
}

/*
 * Half of the ring must hold the ids of one byte, with what may wait for it, and their keys: else
 * it could never be fed.
 */
static bool
check_block_ring(const struct tokd_options *opt, struct opt_error *e)
{
	const struct tokb_options o = tokd_block_options(opt, 0);
	const uint64_t keys = TOK_STREAM_HELD_MAX / o.block_size + 1,
		       most = sizeof(struct tokd_rec) + sizeof(uint32_t) * TOK_STREAM_HELD_MAX +
			      tokb_key_bytes(o.scheme) * keys + 2 * TOKD_RING_ALIGN,
		       least = 2ull << (64 - __builtin_clzll(most - 1));

	return opt->ring_bytes >= least ||
	       opt_wrong(e,
		       "--ring-size %" PRIu64 ": too small for --block-keys with --block-size %u; "
		       "give %" PRIu64 "M or more",
		       opt->ring_bytes, opt->block_size, least >> 20);
}

static bool
check_block_keys(const struct tokd_options *opt, struct opt_error *e)
{
	if (opt->block_keys == 0)
		return true;
	if (opt->block_keys - 1 == TOKB_VLLM_XXHASH_CBOR && opt->block_seed == NULL)
		return opt_wrong(e,
			"--block-keys %s: needs --block-seed; start vLLM with PYTHONHASHSEED and "
			"give the same",
			tokb_scheme_name(TOKB_VLLM_XXHASH_CBOR));
	if (opt->block_model != NULL && count_names(opt->block_model) != count_names(opt->vocab))
		return opt_wrong(e,
			"--block-model %.64s: %u names for %u vocabularies; give one for each",
			opt->block_model, count_names(opt->block_model), count_names(opt->vocab));
	return check_block_ring(opt, e);
}

/* The GPU supports neither of the first two, and ids that are only there have no block keys. */
static const char *
not_in_gpu(const struct tokd_options *opt)
{
	if (opt->strict_utf8)
		return "--strict-utf8";
	if (opt->added_tokens)
		return "--added-tokens";
	return opt->block_keys != 0 ? "--block-keys" : NULL;
}

static bool
check_pipeline(const struct tokd_options *opt, struct opt_error *e)
{
	const char *other = not_in_gpu(opt);

#ifndef RTE_ARCH_ARM64
	if (opt->pipeline == TOKD_PIPELINE_DPU)
		return opt_wrong(e,
			"--pipeline dpu: this machine has no ARM cores, so it is no DPU; give cpu, "
			"which is the same code");
#endif
	if (opt->pipeline != TOKD_PIPELINE_GPU)
		return true;
	if (opt->sink == NULL)
		return opt_wrong(e,
			"--pipeline gpu: needs --sink: tokd-gpu tokenizes the texts; give --sink "
			"gpu, and tokd-gpu --text-vocab");
	return other == NULL ||
	       opt_wrong(e, "--pipeline gpu: not with %s; leave out one of them", other);
}

bool
tokd_options_check(struct tokd_options *opt, struct opt_error *e)
{
	uint32_t mtu;

	opt->socket_gid =
		opt->socket_group != NULL ? tokd_find_group(opt->socket_group) : (gid_t)-1;
	if (opt->text_port == opt->udp_port)
		return opt_wrong(
			e, "--text-port %u: the same as --udp-port; give another", opt->text_port);
	/* The port may have a smaller MTU than --mtu: its worker checks longer packets. */
	mtu = RTE_MIN(opt->mtu != 0 ? opt->mtu : RTE_ETHER_MTU,
		opt->mbuf_room - RTE_ETHER_HDR_LEN - RTE_VLAN_HLEN);
	return check_side_store(opt, e) && check_block_keys(opt, e) && check_sink(opt, e) &&
	       check_pipeline(opt, e) && tokd_mbufs_check(opt, opt->rx_desc, opt->tx_desc, mtu, e);
}

enum tokd_options_result
tokd_options_parse(int argc, char **argv, char *const *environment, int *eal_argc,
	struct tokd_options *opt, struct opt_error *error)
{
	int n = 0;

	memset(opt, 0, sizeof(*opt));
	error->text[0] = '\0';
	while (n < argc && strcmp(argv[n], "--") != 0)
		n++;
	*eal_argc = n;
	for (int i = 1; i < n; i++) {
		if (strcmp(argv[i], "-h") == 0)
			return TOKD_OPTIONS_EAL_HELP;
	}
	check_eal_args(n, argv, opt, error);
	if (n < argc)
		opt_take(&tokd_program, argv + n + 1, argc - n - 1, opt, &opt->given, error);
	switch (opt_resolve(&tokd_program, environment, opt, &opt->given, error)) {
	case OPT_HELP:
		return TOKD_OPTIONS_HELP;
	case OPT_VERSION:
		return TOKD_OPTIONS_VERSION;
	case OPT_BAD:
		return TOKD_OPTIONS_BAD;
	default:
		break;
	}
	if (!tokd_options_check(opt, error))
		return TOKD_OPTIONS_BAD;
	return opt->check_config ? TOKD_OPTIONS_CHECK : TOKD_OPTIONS_RUN;
}
