/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <string.h>

#include "handshake/handshake.h"
#include "tables.h"
#include "../vocab_words.h"

#define SOCKET_PATH_MAX (sizeof(((struct tokg_listen *)0)->path) - 1)

#define FIELD(f) OPT_FIELD(struct tokg_options, f)
static const struct opt_def defs[] = {
	{"device", "cpu|cuda:N", OPT_TEXT, FIELD(device_text), 0, 0, "cpu",
		"the device that computes the rows; ring, tables and rows are in its memory"},
	{"ring", "gpu|host", OPT_CHOICE, FIELD(ring_text), 0, 0, NULL,
		"with --device cuda: the ring in GPU memory (default), or in host memory, which "
		"the GPU reads over its bus and --sink gpu=shm can write. With cpu: always host"},
	{"table", "FILE|random:ROWSxDIM[:SEED[:POSITIONS]]", OPT_TEXT, FIELD(table), 0, 0, NULL,
		"the embedding tables: a .safetensors file of a GPT-2 or BERT, or with "
		"embed_tokens.weight; a .npy matrix; or random rows, to try the path without a "
		"model",
		.flags = OPT_REQUIRED},
	{"kind", "word|word+position|bert", OPT_CHOICE, FIELD(kind_text), 0, 0, NULL,
		"what a row is: the word's embedding; word and position, added; or BERT's, "
		"normalized. Default: the last of these that the file has tables for"},
	{"dtype", "f32|f16|bf16", OPT_CHOICE, FIELD(dtype_text), 0, 0, NULL,
		"type of the elements of rows; default: that of the word table"},
	{"text-vocab", "VOCAB", OPT_TEXT, FIELD(text_vocab), 0, 0, NULL,
		"the vocabulary for dpdk-tokd --pipeline gpu, whose texts the device tokenizes: a "
		"name in the search path ($TOK_VOCAB_PATH), or a file"},
	{"listen", "unix:PATH|tcp:[ADDR:]PORT", OPT_TEXT, FIELD(listen_texts), 0, 0,
		"unix:" TOKG_SOCKET,
		"where dpdk-tokd connects: unix for --sink gpu=shm and gpu=cuda, tcp for gpu=verbs; "
		"up to 4, repeatable or separated by commas",
		.flags = OPT_REPEATABLE, .section = "Producers (workers of dpdk-tokd)"},
	{"socket-mode", "OCTAL", OPT_OCTAL, FIELD(socket_mode), 0, 0777, "0600",
		"permission of the unix sockets: anyone who can connect can write into the ring"},
	{"producers", "N", OPT_COUNT, FIELD(producers), 1, TOKG_PRODUCERS_MAX, "4",
		"how many workers, of all dpdk-tokd processes, can use this ring at a time"},
	{"slots", "N", OPT_COUNT, FIELD(slots), 2, TOKG_SLOTS_MAX, "64", "slots of each producer"},
	{"slot-bytes", "BYTES", OPT_SIZE, FIELD(slot_bytes), TOKG_SLOT_BYTES_MIN,
		TOKG_SLOT_BYTES_MAX, "16k", "size of a slot, a power of two; an id takes 4 bytes",
		.check = opt_check_power_of_2},
	{"out-bytes", "BYTES", OPT_SIZE, FIELD(out_bytes), 0, 64 * OPT_G, "0",
		"memory for the rows of each producer, a power of two; 0: enough for eight full "
		"slots, with --text-vocab for a row for each byte of them",
		.check = opt_check_power_of_2},
	{"lanes", "N", OPT_COUNT, FIELD(lanes), 0, TOKG_LANES_MAX, "0",
		"texts of each producer that a model continues at a time; 0: none"},
	{"engine", "rule|external", OPT_CHOICE, FIELD(engine_text), 0, 0, "rule",
		"the model for --lanes. rule: no model, ids are made by a fixed rule, to try the "
		"path; external: a program that connects to --subscribers-socket"},
	{"no-check", NULL, OPT_FLAG, FIELD(no_check), 0, 0, "no",
		"do not check that a slot has arrived completely: only for memory that keeps the "
		"order of writes"},
	{"subscribers-socket", "PATH", OPT_TEXT, FIELD(subscribers_socket), 0, SOCKET_PATH_MAX,
		TOKG_SUBSCRIBERS_SOCKET,
		"where subscribers connect: anyone who can connect can read the embeddings of "
		"every client",
		.section = "Subscribers (programs that read rows)"},
	{"subscribers-mode", "OCTAL", OPT_OCTAL, FIELD(subscribers_mode), 0, 0777, "0600",
		"permission of the subscribers' socket"},
	{"subscriber-timeout", "MS", OPT_MS, FIELD(subscriber_timeout_ms), 1, 600000, "1000",
		"drop a subscriber that makes producers wait for this time; after ten times this "
		"time, also one that makes progress but keeps an embedding that they wait for"},
	{"workers", "N", OPT_COUNT, FIELD(workers), -1, 1024, "-1",
		"with --device cpu: threads that compute rows; -1: 1. With cuda: thread blocks; "
		"0: all that fit; -1: two for each multiprocessor, the scanner included, or under "
		"MPS one for every four. Fewer leave room for other programs",
		.section = "Consumer (computes rows)"},
	{"first-cpu", "CPU", OPT_COUNT, FIELD(first_cpu), -1, 4095, "-1",
		"with --device cpu: pin each thread to a CPU, from this one on; -1: do not pin"},
	{"launch", "persistent|graph", OPT_CHOICE, FIELD(launch_text), 0, 0, "persistent",
		"with --device cuda. persistent: the consumer's blocks stay on the GPU; graph: a "
		"scheduler on the GPU launches graphs of --workers blocks when there is work"},
	{"heads", NULL, OPT_FLAG, FIELD(heads), 0, 0, "no",
		"look for new ids only in the next slot of each producer, and in all slots now and "
		"then"},
	{"stuck", "MS", OPT_MS, FIELD(stuck_ms), 100, 600000, "5000",
		"restart a consumer that gives no sign of life for this time; after three restarts, "
		"exit"},
	{"spin", NULL, OPT_FLAG, FIELD(spin), 0, 0, "no",
		"while there are producers, look for new rows without a pause, which takes a CPU; "
		"else rows that come after a pause reach subscribers up to 1 ms later"},
	{"drain", "MS", OPT_MS, FIELD(drain_ms), 0, 600000, "2000",
		"after the first SIGINT or SIGTERM: time to finish what was sent, and for "
		"subscribers to read it"},
	{"rdma-device", "NAME", OPT_TEXT, FIELD(rdma_device), 0, 0, NULL,
		"RDMA device for --listen tcp; default: automatic", .letter = 'd',
		.section = "RDMA"},
	{"rdma-port", "N", OPT_COUNT, FIELD(rdma_port), -1, 255, "-1",
		"port of the RDMA device; -1: automatic", .letter = 'i'},
	{"rdma-gid", "INDEX", OPT_COUNT, FIELD(rdma_gid), -1, 255, "-1",
		"index of the port's GID; -1: automatic, RoCE v2 first", .letter = 'x'},
	{"rdma-tclass", "N", OPT_COUNT, FIELD(rdma_tclass), 0, 255, "0",
		"traffic class of RDMA packets (RoCE v2: the IP header's, DSCP times 4), for "
		"networks with PFC or ECN. Give dpdk-tokd the same"},
	{"rdma-sl", "N", OPT_COUNT, FIELD(rdma_sl), 0, 15, "0",
		"service level of RDMA packets (RoCE: the priority). Give dpdk-tokd the same"},
};

static const struct opt_section sections[] = {
	{"environment",
		"Each option is also an environment variable: --slot-bytes is "
		"TOKD_GPU_SLOT_BYTES.\n"
		"The command line overrides it.",
		true},
	{"signals",
		"After the first SIGINT or SIGTERM tokd-gpu finishes what was sent to it, and waits "
		"for\n"
		"subscribers, both within --drain; the second one ends it at once.",
		false},
	{"exit code",
		"  0  stopped by a signal\n"
		"  1  failed at run time\n"
		"  2  invalid option or variable; a table or vocabulary that cannot be used",
		true},
	{"see also", "dpdk-tokd(1)", false},
	{0},
};

static const struct opt_program program = {
	.name = "tokd-gpu",
	.version = TOKD_VERSION,
	.summary = "turn token ids of dpdk-tokd into embeddings, in GPU memory or on the CPU",
	.usage = "--table FILE [options]",
	.about =
		"Turns token ids into rows of an embedding table, on a GPU or on the CPU. "
		"dpdk-tokd\n"
		"--sink gpu sends the ids, over RDMA or on this host; start tokd-gpu first. Other\n"
		"programs on this host read the rows in place, without a copy.\n"
		"\n"
		"Each worker of dpdk-tokd is a producer: it writes its ids into slots of a ring. "
		"The\n"
		"consumer, on the device, computes a row for each id. Subscribers read the rows.\n"
		"\n"
		"For example (--table random:50257x768 needs neither a GPU nor a model):\n"
		"  tokd-gpu --table model.safetensors --device cuda:0",
	.defs = defs,
	.n_defs = sizeof(defs) / sizeof(defs[0]),
	.env_prefix = "TOKD_GPU_",
	.words_arg = VOCAB_WORDS_ARG,
	.words_script = VOCAB_WORDS_SCRIPT,
	.sections = sections,
};

/* "8", "127.0.0.1:7472", "[::1]:7472", ":7472" */
static bool
parse_tcp(const char *text, struct tokg_listen *l)
{
	const char *colon = strrchr(text, ':');
	const char *port = colon != NULL ? colon + 1 : text;
	const char *from = text, *to = colon != NULL ? colon : text;
	uint64_t v;

	if (!opt_number(port, 1, 65535, &v))
		return false;
	if (to - from >= 2 && *from == '[' && to[-1] == ']') {
		from++;
		to--;
	}
	if ((size_t)(to - from) >= sizeof(l->host))
		return false;
	memcpy(l->host, from, (size_t)(to - from));
	l->port = (uint16_t)v;
	return true;
}

static bool
add_listen(struct tokg_options *o, const char *text, size_t len)
{
	struct tokg_listen *l = &o->listen[o->n_listen];
	char one[128] = "";

	if (len >= sizeof(one) || o->n_listen == TOKG_LISTEN_MAX)
		return false;
	memcpy(one, text, len);
	if (strncmp(one, "unix:", 5) == 0 && one[5] != '\0' && strlen(one + 5) < sizeof(l->path))
		strcpy(l->path, one + 5);
	else if (strncmp(one, "tcp:", 4) != 0 || !parse_tcp(one + 4, l))
		return false;
	o->n_listen++;
	return true;
}

/* Separated by commas. */
static int
resolve_listen(struct tokg_options *o, const char *text)
{
	for (;; text++) {
		const size_t len = strcspn(text, ",");

		if (!add_listen(o, text, len))
			return opt_usage(&program,
				"--listen %.*s: give up to %d of unix:PATH (%zu bytes at most) or "
				"tcp:[ADDR:]PORT",
				(int)(len < 64 ? len : 64), text, TOKG_LISTEN_MAX, SOCKET_PATH_MAX);
		text += len;
		if (*text == '\0')
			return -1;
	}
}

static int
resolve_device(struct tokg_options *o)
{
	const char *text = o->device_text;
	uint64_t index = 0;

	o->cuda = strncmp(text, "cuda", 4) == 0;
	if (o->cuda ? text[4] != '\0' && (text[4] != ':' || !opt_number(text + 5, 0, 1023, &index))
		    : strcmp(text, "cpu") != 0)
		return opt_usage(
			&program, "--device %.64s: give cpu, or cuda:N as in cuda:0", text);
	o->index = (int)index;
	o->host_ring = o->ring_text != NULL ? strcmp(o->ring_text, "host") == 0 : !o->cuda;
	if (!o->host_ring && !o->cuda)
		return opt_usage(&program, "--ring gpu: needs --device cuda:N");
	o->graphs = strcmp(o->launch_text, "graph") == 0;
	if (o->graphs && !o->cuda)
		return opt_usage(&program, "--launch graph: needs --device cuda:N");
	return -1;
}

int
tokg_options_parse(int argc, char **argv, struct tokg_options *o)
{
	struct opt_given given;
	int code;

	memset(o, 0, sizeof(*o));
	code = opt_main(&program, argc, argv, o, &given);
	for (uint32_t i = 0; i < o->listen_texts.n && code < 0; i++)
		code = resolve_listen(o, o->listen_texts.text[i]);
	if (code < 0)
		code = resolve_device(o);
	if (code >= 0)
		return code;
	o->external_engine = strcmp(o->engine_text, "external") == 0;
	if (o->external_engine && o->lanes == 0)
		return opt_usage(&program, "--engine external: give --lanes, which are its work");
	o->kind = o->kind_text != NULL ? tokg_kind_of(o->kind_text) : 0;
	o->dtype = o->dtype_text != NULL ? tokg_dtype_of(o->dtype_text) : 0;
	for (uint32_t i = 0; i < o->n_listen; i++) {
		if (strcmp(o->listen[i].path, o->subscribers_socket) == 0)
			return opt_usage(&program,
				"--subscribers-socket %.64s: the same as --listen; give each its "
				"own",
				o->subscribers_socket);
	}
	return -1;
}
