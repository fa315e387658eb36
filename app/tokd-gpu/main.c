/* SPDX-License-Identifier: BSD-3-Clause */
/* tokd-gpu: the agent that owns the GPU ring. doc/reference/gpu-ring.md, "Subscribers". */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <linux/capability.h>

#include <tok.h>

#include "agent.h"
#include "log.h"
#include "notify.h"
#include "sandbox.h"
#include "tables.h"
#include "ring/geometry.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 }; /* as dpdk-tokd's */

#define TEXT_FLAGS TOK_ADDED_AS_TEXT /* as dpdk-tokd has it for text from the network */
#define OUT_SLOTS 8		     /* full slots per producer's outputs, by default */
#define LOG_OF_LANE 16		     /* words, at least */
/*
 * After SIGKILL a kernel stays for so long. tokg_consumer_watch gives a sign of life every 50 ms;
 * producers take an agent for dead after a second. Threads end, and stop, with the process.
 */
#define CUDA_OWNER_LIMIT_MS 5000

/* --out-bytes, or its default. */
static uint64_t
choose_out_bytes(const struct tokg_options *o, const struct tokg_tables *t)
{
	const uint32_t row_bytes = t->dim * (t->dtype == TOKG_F32 ? 4 : 2);
	const uint64_t rows = o->text_vocab != NULL ? o->slot_bytes : o->slot_bytes / 4;
	const uint64_t least = OUT_SLOTS * tokg_out_bytes(rows, row_bytes);
	uint64_t n = TOKG_OUT_ALIGN;

	if (o->out_bytes != 0)
		return o->out_bytes;
	while (n < least)
		n *= 2;
	return n;
}

/*
 * Words of a log that each lane may fill are read at once: few. A lane may be ahead of its producer
 * by one less.
 */
static uint32_t
choose_log(uint32_t lanes)
{
	uint32_t n = lanes > 0 ? LOG_OF_LANE : 0;

	while (n < LOG_OF_LANE * lanes)
		n *= 2;
	return n;
}

static bool
fill_config(struct tokg_device_config *c, const struct tokg_options *o, const struct tokg_tables *t,
	const struct tok_vocab *text, struct tokg_error *err)
{
	*c = (struct tokg_device_config){
		.geometry =
			{
				.producers = o->producers,
				.slots = o->slots,
				.slot_bytes = (uint32_t)o->slot_bytes,
				.flags = o->no_check ? 0 : TOKG_CHECKED,
				.kind = t->kind,
				.dtype = t->dtype,
				.dim = t->dim,
				.n_ids = t->n_ids,
				.n_positions = t->n_positions,
				.lanes = o->lanes,
				.log = choose_log(o->lanes),
				.out_bytes = choose_out_bytes(o, t),
			},
		.tables = *t,
		.text_vocab = text,
		.text_flags = TEXT_FLAGS,
		.external_engine = o->external_engine,
		.stop_id = UINT32_MAX, /* each answer is as long as it may be */
		.workers = o->workers,
		.owner_limit_ms = o->cuda ? CUDA_OWNER_LIMIT_MS : 0,
		.heads = o->heads,
		.host_ring = o->host_ring,
		.graphs = o->graphs,
		.index = o->index,
		.first_cpu = o->first_cpu,
	};
	return tokg_geometry_fill(&c->geometry, err);
}

/* A new connection locks memory. libcuda's system calls are its own affair: not filtered. */
static bool
drop_privileges(struct tokg_error *err)
{
	const struct tokd_sandbox s = {.capabilities = UINT64_C(1) << CAP_IPC_LOCK};
	const char *step;
	const int n_silent = tokd_sandbox_enter(&s, &step);

	if (n_silent < 0)
		snprintf(err->text, sizeof(err->text), "%s: %s", step, strerror(-n_silent));
	if (n_silent > 0)
		tokg_log_warning(
			"%d threads of libraries block all signals and keep their capabilities",
			n_silent);
	return n_silent >= 0;
}

static void
say_ready(const struct tokg_options *o, const struct tokg_device *device,
	const struct tokg_agent *agent)
{
	const struct tokg_geometry *g = &device->geometry;

	if (o->text_vocab != NULL)
		tokg_log("texts of up to %u bytes are tokenized with %s (0x%08x)",
			tokg_text_most(g), o->text_vocab, agent->text_vocab);
	tokg_log("ready: %s, %u producers of %u slots, %s of %u x %u %s, instance %016" PRIx64
		 ", subscribers at %s",
		device->ops->name, g->producers, g->slots, tokg_kind_name(g->kind), g->n_ids,
		g->dim, tokg_dtype_name(g->dtype), agent->instance, o->subscribers_socket);
	if (g->lanes > 0)
		tokg_log("%u lanes of one producer, log of %u words: %s", g->lanes, g->log,
			o->external_engine ? "an engine that attaches makes ids"
					   : "a stand-in for a model makes ids");
	if (device->sharing[0] != '\0')
		tokg_log("%s", device->sharing);
}

/* EXIT_USAGE: options, table or vocabulary that cannot be; a restart cannot help. */
static int
run(const struct tokg_options *o, struct tokg_table_set *set, const struct tok_vocab *text,
	struct tokg_error *err)
{
	struct tokg_device_config c;
	struct tokg_device *device;
	struct tokg_agent agent;
	uint64_t instance = 0;
	bool good;

	if (!fill_config(&c, o, &set->tables, text, err))
		return EXIT_USAGE;
	if (getrandom(&instance, sizeof(instance), 0) != sizeof(instance) ||
		getrandom(&c.ring_epoch, sizeof(c.ring_epoch), 0) != sizeof(c.ring_epoch)) {
		snprintf(err->text, sizeof(err->text), "cannot get random numbers (getrandom)");
		return EXIT_FAILED;
	}
	c.ring_epoch |= 1; /* never 0 */
	if ((o->cuda && !tokg_device_cuda_built(o->index, err)) ||
		!tokg_device_config_right(&c, o->cuda, err))
		return EXIT_USAGE;
	device = o->cuda ? tokg_device_cuda(&c, err) : tokg_device_cpu(&c, err);
	tokg_tables_free(set); /* the device has a copy */
	if (device == NULL)
		return EXIT_FAILED;
	good = tokg_agent_open(&agent, o, device, instance, c.ring_epoch, err) &&
	       drop_privileges(err);
	if (good && text != NULL) {
		agent.text_vocab = tok_vocab_info(text).checksum;
		agent.text_flags = TEXT_FLAGS;
	}
	good = good && tokg_agent_start(&agent, err);
	if (good) {
		say_ready(o, device, &agent);
		tokd_notify("READY=1");
		good = tokg_agent_run(&agent, err);
	}
	if (!tokg_agent_close(&agent)) {
		tokg_log_error("%s%sthe consumer does not end: leaving without it", err->text,
			good ? "" : ": ");
		_exit(EXIT_FAILED);
	}
	return good ? EXIT_OK : EXIT_FAILED;
}

/* There is no --pretokenizer here. */
static void
say_load_error(const struct tok_error *why, struct tokg_error *err)
{
	const bool asks = strstr(why->text, "--pretokenizer") != NULL;
	const char *remedy = asks ? "; give that to tok vocab compile, and its .tokv here" : "";

	snprintf(err->text, sizeof(err->text), "--text-vocab: %.*s%s",
		(int)(sizeof(err->text) - 16 - strlen(remedy)), why->text, remedy);
}

/* NULL: none is asked for. False and `err`: it cannot be loaded. */
static bool
load_text_vocab(const struct tokg_options *o, struct tok_vocab **v, struct tokg_error *err)
{
	struct tok_error why;

	*v = NULL;
	if (o->text_vocab == NULL)
		return true;
	*v = tok_vocab_load(o->text_vocab, NULL, &why);
	if (*v == NULL)
		say_load_error(&why, err);
	return *v != NULL;
}

/* Before any thread is created, which all inherit it: signals come by signalfd only. */
static void
block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

int
main(int argc, char **argv)
{
	struct tokg_table_set set = {0};
	struct tokg_options o;
	struct tokg_error err = {""};
	struct tok_vocab *text = NULL;
	int rc = tokg_options_parse(argc, argv, &o);

	if (rc >= 0)
		return rc;
	rc = EXIT_USAGE;
	block_signals();
	if (load_text_vocab(&o, &text, &err) &&
		tokg_tables_load(&set, o.table, o.kind, o.dtype, &err))
		rc = run(&o, &set, text, &err);
	tokg_tables_free(&set);
	tok_vocab_free(text);
	if (rc != EXIT_OK)
		tokg_log_error("%s", err.text);
	return rc;
}
