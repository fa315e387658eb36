/* SPDX-License-Identifier: BSD-3-Clause */
/* All is collected first and checked once afterwards: the order of options never matters. */
#include "options.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "handshake/handshake.h"
#include "tables.h"
#include "tables_inside.h"

#define ENV_PREFIX "TOKD_GPU_"
#define K 1024ull
#define TEXT_MAX 255

enum type { TEXT, LISTEN, COUNT, SIZE, MS, OCTAL, FLAG };

struct def {
	const char *name;
	char letter; /* short form; 0: none */
	const char *arg;
	enum type type;
	size_t offset, width;
	int64_t min, max;
	const char *preset; /* NULL: none */
	const char *help;
};

#define FIELD(f) offsetof(struct tokg_options, f), sizeof(((struct tokg_options *)0)->f)
static const struct def defs[] = {
	{"device", 0, "cpu|cuda:N", TEXT, FIELD(device_text), 0, 0, "cpu",
		"where ring, tables and outputs are, and what computes embeddings"},
	{"ring", 0, "gpu|host", TEXT, FIELD(ring_text), 0, 0, NULL,
		"cuda: the ring in GPU memory (default), or in host memory, which the GPU reads over its "
		"bus and --sink shm writes. cpu: always host"},
	{"listen", 0, "unix:PATH|tcp:[ADDR:]PORT", LISTEN, FIELD(listen_text), 0, 0,
		"unix:" TOKG_SOCKET,
		"where producers connect: unix for --sink shm and cuda, tcp for verbs; up to 4, repeatable "
		"or separated by commas"},
	{"socket-mode", 0, "OCTAL", OCTAL, FIELD(socket_mode), 0, 0777, "0600",
		"permission of the producers' socket: anyone who can connect can write into the ring"},
	{"holders-socket", 0, "PATH", TEXT, FIELD(holders_socket), 0, 0, TOKG_HOLDERS_SOCKET,
		"where holders connect; anyone who can attach can read the embeddings of every client"},
	{"holders-mode", 0, "OCTAL", OCTAL, FIELD(holders_mode), 0, 0777, "0600",
		"permission of the holders' socket"},
	{"holder-timeout", 0, "MS", MS, FIELD(holder_timeout_ms), 1, 600000, "1000",
		"a holder that blocks producers for this time is dropped; also one that continues, but "
		"keeps one embedding in their way for ten times that"},
	{"producers", 0, "N", COUNT, FIELD(producers), 1, TOKG_PRODUCERS_MAX, "4",
		"workers of all dpdk-tokd that may share this ring"},
	{"slots", 0, "N", COUNT, FIELD(slots), 2, TOKG_SLOTS_MAX, "64", "slots of one producer"},
	{"slot-bytes", 0, "BYTES", SIZE, FIELD(slot_bytes), TOKG_SLOT_BYTES_MIN,
		TOKG_SLOT_BYTES_MAX, "16k", "payload of a slot, a power of two"},
	{"out-bytes", 0, "BYTES", SIZE, FIELD(out_bytes), 0, 64 * K *K *K, "0",
		"outputs of one producer, a power of two; 0: room for eight full slots"},
	{"table", 0, "FILE|random:ROWSxDIM[:SEED[:POSITIONS]]", TEXT, FIELD(table), 0, 0, NULL,
		"embedding tables: a .safetensors with GPT-2's or BERT's names, a .npy, or computed "
		"from a seed"},
	{"kind", 0, "word|word+position|bert", TEXT, FIELD(kind_text), 0, 0, NULL,
		"what a row is made of; default: the most that the table has"},
	{"dtype", 0, "f32|f16|bf16", TEXT, FIELD(dtype_text), 0, 0, NULL,
		"type of rows and tables; default: that of the table"},
	{"workers", 0, "N", COUNT, FIELD(workers), -1, 1024, "-1",
		"cpu: threads beside the one that scans; cuda: blocks, 0: all that fit the GPU; -1: cpu "
		"1, cuda one for each multiprocessor except the scanner's; give fewer to share the GPU, "
		"for example by MPS"},
	{"first-cpu", 0, "CPU", COUNT, FIELD(first_cpu), -1, 4095, "-1",
		"cpu: pin the threads, from this CPU on; -1: do not pin"},
	{"heads", 0, NULL, FLAG, FIELD(heads), 0, 0, "no",
		"scan one slot per producer instead of all"},
	{"no-check", 0, NULL, FLAG, FIELD(no_check), 0, 0, "no",
		"no check words: only for memory that keeps the order of writes"},
	{"rdma-device", 'd', "NAME", TEXT, FIELD(rdma_device), 0, 0, NULL,
		"RDMA device for tcp listeners; default: chosen"},
	{"rdma-port", 'i', "N", COUNT, FIELD(rdma_port), -1, 255, "-1", "its port; -1: chosen"},
	{"rdma-gid", 'x', "INDEX", COUNT, FIELD(rdma_gid), -1, 255, "-1",
		"index of the GID; -1: chosen, RoCE v2 first"},
	{"stuck", 0, "MS", MS, FIELD(stuck_ms), 100, 600000, "5000",
		"a consumer without a heartbeat for this time is restarted, three times at most"},
	{"drain", 0, "MS", MS, FIELD(drain_ms), 0, 600000, "2000",
		"how long to finish what is published, and to wait for holders, after the first signal"},
};
#define N_DEFS (sizeof(defs) / sizeof(defs[0]))

/* What was given, before anything is made of it. */
struct asked {
	const char *text[N_DEFS];
	bool from_environment[N_DEFS];
	const char *listen[TOKG_LISTEN_MAX];
	uint32_t n_listen;
};

static void
variable_of(const struct def *d, char *name, size_t room)
{
	snprintf(name, room, ENV_PREFIX "%s", d->name);
	for (char *p = name; *p != '\0'; p++)
		*p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
}

static const struct def *
find(const char *name, size_t len)
{
	for (size_t i = 0; i < N_DEFS; i++) {
		if (strlen(defs[i].name) == len && memcmp(defs[i].name, name, len) == 0)
			return &defs[i];
	}
	return NULL;
}

static const struct def *
find_letter(char letter)
{
	for (size_t i = 0; i < N_DEFS && letter != '\0'; i++) {
		if (defs[i].letter == letter)
			return &defs[i];
	}
	return NULL;
}

/* How many of args[0 .. n) belong to the option at args[0]; 0: `why`. */
static int
take_one(char **args, int n, struct asked *asked, struct tokg_error *why)
{
	const bool is_short = args[0][0] == '-' && args[0][1] != '-';
	const size_t len = is_short ? 0 : strcspn(args[0] + 2, "=");
	const struct def *d;
	const char *value;
	int taken = 1;

	d = is_short ? find_letter(args[0][1]) : find(args[0] + 2, len);
	if (args[0][0] != '-' || d == NULL)
		return tokg_agent_wrong(why, "%.64s: no such option; --help lists them", args[0]);
	if (is_short && args[0][2] != '\0')
		value = args[0] + 2;
	else if (!is_short && args[0][2 + len] == '=')
		value = args[0] + 2 + len + 1;
	else if (d->type == FLAG)
		value = "yes";
	else if (n < 2 || strncmp(args[1], "--", 2) == 0)
		return tokg_agent_wrong(
			why, "--%s: its value is missing; write --%s %s", d->name, d->name, d->arg);
	else
		value = args[taken++];
	asked->text[d - defs] = value;
	if (d->type != LISTEN)
		return taken;
	if (asked->n_listen == TOKG_LISTEN_MAX)
		return tokg_agent_wrong(
			why, "--listen %.64s: given more than %d times", value, TOKG_LISTEN_MAX);
	asked->listen[asked->n_listen++] = value;
	return taken;
}

static bool
take_environment(char *const *environment, struct asked *asked, struct tokg_error *why)
{
	for (; *environment != NULL; environment++) {
		const size_t len = strcspn(*environment, "=");
		char name[64];
		size_t i;

		if (strncmp(*environment, ENV_PREFIX, strlen(ENV_PREFIX)) != 0)
			continue;
		for (i = 0; i < N_DEFS; i++) {
			variable_of(&defs[i], name, sizeof(name));
			if (strlen(name) == len && memcmp(name, *environment, len) == 0)
				break;
		}
		if (i == N_DEFS)
			return tokg_agent_wrong(why,
				"%.*s: no such variable; unset it (each option of --help is one: "
				"--slot-bytes is TOKD_GPU_SLOT_BYTES)",
				(int)(len < 64 ? len : 64), *environment);
		if (asked->text[i] != NULL)
			continue; /* the command line counts */
		asked->text[i] = *environment + len + 1;
		asked->from_environment[i] = true;
		if (defs[i].type == LISTEN)
			asked->listen[asked->n_listen++] = asked->text[i];
	}
	return true;
}

/* "--slots 5" or "TOKD_GPU_SLOTS=5". */
struct head {
	char text[140];
};

static struct head
head(const struct asked *asked, size_t i)
{
	struct head h;
	char name[64];

	variable_of(&defs[i], name, sizeof(name));
	if (asked->from_environment[i])
		snprintf(h.text, sizeof(h.text), "%s=%.64s", name, asked->text[i]);
	else
		snprintf(h.text, sizeof(h.text), "--%s %.64s", defs[i].name, asked->text[i]);
	return h;
}

static bool
set_number(const struct asked *asked, size_t i, void *field, struct tokg_error *why)
{
	const struct def *d = &defs[i];
	const char *text = asked->text[i];
	const bool minus = d->min < 0 && text[0] == '-';
	uint64_t v, factor = 1;
	int64_t n;
	char *end;

	v = strtoull(text + minus, &end, d->type == OCTAL ? 8 : 10);
	if (d->type == SIZE && *end != '\0') {
		static const char units[] = "kKmMgG";
		const char *u = strchr(units, *end);

		if (u != NULL)
			factor = 1ull << 10 * ((u - units) / 2 + 1);
		end += u != NULL;
	}
	/* strtoull would take signs and blanks. */
	if (!isdigit((unsigned char)text[minus]) || *end != '\0')
		return tokg_agent_wrong(why, "%s: not %s", head(asked, i).text,
			d->type == SIZE	   ? "a decimal number, with k, M or G after it or nothing"
			: d->type == OCTAL ? "an octal number, as for chmod"
					   : "a decimal number");
	if (__builtin_mul_overflow(v, factor, &v) || v > INT64_MAX)
		v = INT64_MAX;
	n = minus ? -(int64_t)v : (int64_t)v;
	if (n < d->min || n > d->max)
		return tokg_agent_wrong(why,
			d->type == OCTAL ? "%s: out of range; give %#" PRIo64 " to %#" PRIo64
					 : "%s: out of range; give %" PRId64 " to %" PRId64,
			head(asked, i).text, d->min, d->max);
	if (d->width == sizeof(uint32_t))
		*(int32_t *)field = (int32_t)n;
	else
		*(int64_t *)field = n;
	return true;
}

static bool
set(const struct asked *asked, size_t i, struct tokg_options *o, struct tokg_error *why)
{
	const struct def *d = &defs[i];
	const char *text = asked->text[i];
	void *field = (char *)o + d->offset;

	if (d->type == FLAG) {
		*(bool *)field = strcmp(text, "yes") == 0;
		if (*(bool *)field || strcmp(text, "no") == 0)
			return true;
		return tokg_agent_wrong(why, "%s: neither yes nor no", head(asked, i).text);
	}
	if (d->type != TEXT && d->type != LISTEN)
		return set_number(asked, i, field, why);
	if (text[0] == '\0' || strlen(text) > TEXT_MAX)
		return tokg_agent_wrong(why, "%s: empty, or more than %d bytes; give %s",
			head(asked, i).text, TEXT_MAX, d->arg);
	*(const char **)field = text;
	return true;
}

/* "8", "127.0.0.1:7472", "[::1]:7472", ":7472" */
static bool
parse_tcp(const char *text, struct tokg_listen *l)
{
	const char *colon = strrchr(text, ':');
	const char *port = colon != NULL ? colon + 1 : text;
	const char *from = text, *to = colon != NULL ? colon : text;
	unsigned long v;
	char *end;

	v = strtoul(port, &end, 10);
	if (!isdigit((unsigned char)port[0]) || *end != '\0' || v == 0 || v > 65535)
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
add_listen(struct tokg_options *o, const char *text, size_t len, struct tokg_error *why)
{
	struct tokg_listen *l = &o->listen[o->n_listen];
	char one[128] = "";

	if (len < sizeof(one) && o->n_listen < TOKG_LISTEN_MAX) {
		memcpy(one, text, len);
		if (strncmp(one, "unix:", 5) == 0 && one[5] != '\0' &&
			strlen(one + 5) < sizeof(l->path)) {
			strcpy(l->path, one + 5);
			o->n_listen++;
			return true;
		}
		if (strncmp(one, "tcp:", 4) == 0 && parse_tcp(one + 4, l)) {
			o->n_listen++;
			return true;
		}
	}
	return tokg_agent_wrong(why,
		"--listen %.*s: give up to %d of unix:PATH (107 bytes at most) or tcp:[ADDR:]PORT",
		(int)(len < 64 ? len : 64), text, TOKG_LISTEN_MAX);
}

static bool
resolve_listen(const struct asked *asked, struct tokg_options *o, struct tokg_error *why)
{
	for (uint32_t i = 0; i < asked->n_listen; i++) {
		const char *text = asked->listen[i];

		for (;;) {
			const size_t len = strcspn(text, ",");

			if (!add_listen(o, text, len, why))
				return false;
			if (text[len] == '\0')
				break;
			text += len + 1;
		}
	}
	return asked->n_listen > 0 || add_listen(o, o->listen_text, strlen(o->listen_text), why);
}

static bool
resolve_ring(struct tokg_options *o, struct tokg_error *why)
{
	const char *const text = o->ring_text != NULL ? o->ring_text : o->cuda ? "gpu" : "host";

	o->host_ring = strcmp(text, "host") == 0;
	if (!o->host_ring && strcmp(text, "gpu") != 0)
		return tokg_agent_wrong(why, "--ring %.64s: give gpu or host", text);
	if (!o->host_ring && !o->cuda)
		return tokg_agent_wrong(why,
			"--ring gpu: the device cpu has no memory but this host's: leave --ring "
			"out, or give --device cuda:N");
	return true;
}

static bool
resolve(const struct asked *asked, struct tokg_options *o, struct tokg_error *why)
{
	char *end;

	if (!resolve_listen(asked, o, why))
		return false;
	o->cuda = strncmp(o->device_text, "cuda", 4) == 0;
	if (o->cuda && o->device_text[4] == ':' && isdigit((unsigned char)o->device_text[5])) {
		const unsigned long index = strtoul(o->device_text + 5, &end, 10);

		o->index = *end == '\0' && index < 1024 ? (int)index : -1;
	} else {
		o->index = o->cuda ? (o->device_text[4] == '\0' ? 0 : -1)
				   : (strcmp(o->device_text, "cpu") == 0 ? 0 : -1);
	}
	if (o->index < 0)
		return tokg_agent_wrong(
			why, "--device %.64s: give cpu, or cuda:N as in cuda:0", o->device_text);
	if (!resolve_ring(o, why))
		return false;
	o->kind = o->kind_text != NULL ? tokg_kind_of(o->kind_text) : 0;
	if (o->kind_text != NULL && o->kind == 0)
		return tokg_agent_wrong(
			why, "--kind %.64s: give word, word+position or bert", o->kind_text);
	o->dtype = o->dtype_text != NULL ? tokg_dtype_of(o->dtype_text) : 0;
	if (o->dtype_text != NULL && o->dtype == 0)
		return tokg_agent_wrong(why, "--dtype %.64s: give f32, f16 or bf16", o->dtype_text);
	if (o->table == NULL)
		return tokg_agent_wrong(why,
			"--table is missing: give a file, or random:50257x768 to try it without one");
	if (strlen(o->holders_socket) > 107)
		return tokg_agent_wrong(
			why, "--holders-socket %.64s: more than 107 bytes", o->holders_socket);
	for (uint32_t i = 0; i < o->n_listen; i++) {
		if (strcmp(o->listen[i].path, o->holders_socket) == 0)
			return tokg_agent_wrong(why,
				"--holders-socket %.64s: --listen has the same; give each its own",
				o->holders_socket);
	}
	return true;
}

enum tokg_options_result
tokg_options_parse(int argc, char **argv, char *const *environment, struct tokg_options *o,
	struct tokg_error *why)
{
	struct asked asked = {0};

	memset(o, 0, sizeof(*o));
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return TOKG_OPTIONS_HELP;
		if (strcmp(argv[i], "--version") == 0)
			return TOKG_OPTIONS_VERSION;
	}
	for (int i = 1; i < argc;) {
		const int taken = take_one(&argv[i], argc - i, &asked, why);

		if (taken == 0)
			return TOKG_OPTIONS_BAD;
		i += taken;
	}
	if (!take_environment(environment, &asked, why))
		return TOKG_OPTIONS_BAD;
	for (size_t i = 0; i < N_DEFS; i++) {
		if (asked.text[i] == NULL)
			asked.text[i] = defs[i].preset;
		if (asked.text[i] != NULL && !set(&asked, i, o, why))
			return TOKG_OPTIONS_BAD;
	}
	return resolve(&asked, o, why) ? TOKG_OPTIONS_RUN : TOKG_OPTIONS_BAD;
}

void
tokg_options_help(FILE *to)
{
	fprintf(to,
		"usage: tokd-gpu --table FILE [options]\n"
		"Owns the GPU ring: takes token ids from the workers of dpdk-tokd (--sink), turns "
		"them into\nembeddings, and hands these to holders.\n\n");
	for (size_t i = 0; i < N_DEFS; i++) {
		const struct def *d = &defs[i];
		char letter[8] = "";

		if (d->letter != 0)
			snprintf(letter, sizeof(letter), "-%c, ", d->letter);
		fprintf(to, "  %s--%s%s%s\n        %s", letter, d->name, d->arg != NULL ? " " : "",
			d->arg != NULL ? d->arg : "", d->help);
		if (d->type != FLAG && d->preset != NULL)
			fprintf(to, " [%s]", d->preset);
		fputc('\n', to);
	}
	fprintf(to, "  -h, --help\n        this text; exit\n"
		    "  --version\n        the version; exit\n\n"
		    "Each option is also a variable: --slot-bytes is TOKD_GPU_SLOT_BYTES.\n");
}

/* For troff a hyphen of an option is a minus. */
static void
print_man(FILE *to, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '-' || *text == '\\')
			fputc('\\', to);
		fputc(*text, to);
	}
}

void
tokg_options_man(FILE *to)
{
	for (size_t i = 0; i < N_DEFS; i++) {
		const struct def *d = &defs[i];

		fprintf(to, ".TP\n.BI \"");
		if (d->letter != 0)
			fprintf(to, "\\-%c, ", d->letter);
		fputs("\\-\\-", to);
		print_man(to, d->name);
		if (d->arg != NULL) {
			fputs("\" \" ", to);
			print_man(to, d->arg);
		}
		fputs("\"\n", to);
		print_man(to, d->help);
		if (d->type != FLAG && d->preset != NULL) {
			fputs(" [", to);
			print_man(to, d->preset);
			fputc(']', to);
		}
		fputs(".\n", to);
	}
	fputs(".TP\n.B \\-h, \\-\\-help\na summary.\n.TP\n.B \\-\\-version\nthe version.\n", to);
}
