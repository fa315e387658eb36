/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An appliance that lies to libtokd-reader: any answer to the attach request, any descriptors, any
 * bytes in the ring and any positions. What is given out lies in the ring, and the reader's cursor
 * only moves on, up to what it was given.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../support/unix_socket.h"
#include "fuzz.h"
#include "reader.h"

#define STEPS_MAX 48
#define BLOCK_SIZE 3
#define KEY_BYTES 8
#define DATA 4096u
#define HELD_MAX 8
#define CURSORS 0 /* in fds */
#define RINGS 1	  /* and following */

static int fds[6]; /* a cursor page, two rings, an empty one, one that may shrink, no memfd */
static uint64_t *cursors;
static struct tokd_ring_hdr *hdr[2];
static int link_fd[2]; /* the appliance's end is the second */

/* Whatever is connected to is our own pair of sockets. */
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);

int
__wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	MUST(dup3(link_fd[0], fd, O_CLOEXEC) == fd);
	close(link_fd[0]);
	return 0;
}

static int
memfd(off_t bytes, int seals)
{
	int fd = memfd_create("tokd-fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	MUST(fd >= 0 && ftruncate(fd, bytes) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0);
	return fd;
}

static void *
map(int fd, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	MUST(p != MAP_FAILED);
	return p;
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	fds[0] = memfd(TOKD_CURSOR_BYTES, F_SEAL_SHRINK);
	fds[1] = memfd(TOKD_RING_HDR_BYTES + DATA, F_SEAL_SHRINK);
	fds[2] = memfd(TOKD_RING_HDR_BYTES + DATA, F_SEAL_SHRINK);
	fds[3] = memfd(0, F_SEAL_SHRINK);
	fds[4] = memfd(TOKD_RING_HDR_BYTES + DATA, F_SEAL_GROW);
	fds[5] = open("/dev/null", O_RDWR | O_CLOEXEC);
	cursors = map(fds[0], TOKD_CURSOR_BYTES);
	hdr[0] = map(fds[1], TOKD_RING_HDR_BYTES + DATA);
	hdr[1] = map(fds[2], TOKD_RING_HDR_BYTES + DATA);
	return 0;
}

/* As ring.h says, at a position of the input's choice. */
static void
make_rings(uint64_t start)
{
	for (uint32_t w = 0; w < 2; w++) {
		*hdr[w] = (struct tokd_ring_hdr){.magic = TOKD_RING_MAGIC,
			.version = TOKD_RING_VERSION,
			.worker = w,
			.data_off = TOKD_RING_HDR_BYTES,
			.data_bytes = DATA,
			.instance = 42,
			.tsc_hz = 1000000000,
			.block_size = BLOCK_SIZE,
			.key_bytes = KEY_BYTES,
			.head = start,
			.tail = start};
		cursors[TOKD_CURSOR_STRIDE / 8 * w] = start;
	}
}

/* ---- the answer ---- */

static void
spoil(struct input *in, void *bytes, size_t n)
{
	const uint32_t at = (uint32_t)input_take(in, 2);

	((uint8_t *)bytes)[at % n] ^= (uint8_t)input_take(in, 1);
}

static void
answer(struct input *in, uint8_t how, bool tap, uint64_t start)
{
	struct tokd_attach_rep rep = {.magic = TOKD_ATTACH_MAGIC,
		.version = TOKD_RING_VERSION,
		.n_rings = 1 + (how & 1),
		.instance = 42,
		.start = {start, start}};
	uint32_t n_fds = rep.n_rings + !tap, bytes = sizeof(rep);
	int sent[4];

	memcpy(sent, fds + tap, sizeof(sent));
	if (how & 2) /* other descriptors */
		sent[input_take(in, 1) % 4] = fds[input_take(in, 1) % 6];
	if (how & 4) /* more or fewer of them */
		n_fds = (uint32_t)input_take(in, 1) % 5;
	if (how & 8)
		spoil(in, &rep, sizeof(rep));
	if (how & 16)
		spoil(in, hdr[0], sizeof(*hdr[0]));
	if (how & 32)
		bytes = (uint32_t)input_take(in, 2) % sizeof(rep);
	(void)!descriptors_send(link_fd[1], &rep, bytes, sent, n_fds, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- the ring ---- */

static void
publish(struct input *in, uint32_t w)
{
	struct tokd_ring_hdr *h = hdr[w];
	uint8_t *data = (uint8_t *)h + TOKD_RING_HDR_BYTES;
	const uint8_t how = (uint8_t)input_take(in, 1);
	const uint32_t at = (uint32_t)(h->head & (DATA - 1)) & ~(TOKD_RING_ALIGN - 1u);
	const uint32_t most = (DATA - at - (uint32_t)sizeof(struct tokd_rec)) / 4;
	const uint32_t count = how % 64 < most ? how % 64 : most;
	const uint32_t ids = (64 + 4 * count + 63) / 64 * 64;
	const uint32_t keys = (count / BLOCK_SIZE * KEY_BYTES + 63) / 64 * 64;
	const bool keyed = keys > 0 && at + ids + keys <= DATA;
	struct tokd_rec rec = {.bytes = ids + (keyed ? keys : 0),
		.flags = keyed ? TOKD_REC_KEYS : 0,
		.kind = how & 64 ? TOKD_REC_PAD : TOKD_REC_TOKENS,
		.count = how & 64 ? 0 : count,
		.stream_id = 7};

	if (how & 128)
		spoil(in, &rec, sizeof(rec));
	memcpy(data + at, &rec, sizeof(rec));
	h->head += ids + (keyed ? keys : 0);
}

/* In the ring; whole, if its bytes are read as a user would. */
static void
check_record(const struct tokr *r, const struct tokr_record *rec)
{
	const struct ring *ring = &r->ring[rec->worker];
	const uint8_t *ids = (const uint8_t *)rec->ids;
	struct tokr_keys keys;

	MUST(rec->worker < r->n_rings);
	MUST(ids >= ring->data && ids + 4 * (size_t)rec->count <= ring->data + ring->mask + 1);
	for (uint32_t i = 0; i < rec->count; i++)
		(void)*(const volatile uint32_t *)&rec->ids[i];
	tokr_keys(r, rec, &keys);
	MUST(keys.count == 0 || (const uint8_t *)keys.keys + (size_t)keys.count * keys.key_bytes <=
					ring->data + ring->mask + 1);
}

static void
check_reader(const struct tokr *r)
{
	for (uint32_t w = 0; w < r->n_rings; w++) {
		const struct ring *ring = &r->ring[w];
		struct tokr_ring info;

		MUST(tokr_ring_info(r, w, &info) == 0);
		MUST(ring->data >= (const uint8_t *)ring->hdr + TOKD_RING_HDR_BYTES);
		MUST(ring->mask + 1 + TOKD_RING_HDR_BYTES <= ring->map_bytes);
		MUST(ring->position <= ring->head && ring->position % TOKD_RING_ALIGN == 0);
		if (ring->cursor_word == NULL)
			continue;
		MUST(ring->cursor <= ring->position);
		MUST(info.held_bytes <= DATA || ring->held_first != ring->held_end);
	}
}

static void
use(struct input *in, struct tokr *r)
{
	struct tokr_record held[HELD_MAX], rec;
	uint32_t n_held = 0;

	for (uint32_t i = 0; i < STEPS_MAX && input_more(in); i++) {
		const uint8_t what = (uint8_t)input_take(in, 1);
		const uint32_t which = n_held > 0 ? (what >> 4) % n_held : 0;
		struct tokd_ring_hdr *h = hdr[what >> 3 & 1];
		int rc;

		switch (what & 7) {
		case 0:
		case 1:
			publish(in, what >> 3 & 1);
			break;
		case 2:
		case 3:
			rc = tokr_next(r, &rec, 0);
			MUST(rc <= 1 && (rc >= 0 || tokr_last_error(r)->text[0] != '\0'));
			if (rc != 1)
				break;
			check_record(r, &rec);
			if (n_held < HELD_MAX)
				held[n_held++] = rec;
			else
				tokr_release(r, &rec);
			break;
		case 4:
			if (n_held == 0)
				break;
			tokr_check(r, &held[which]);
			tokr_release(r, &held[which]);
			if (what & 8) { /* else it will be released once more */
				n_held--;
				held[which] = held[n_held];
			}
			break;
		case 5:
			if (what & 0x10)
				h->tail = h->head - 64 * input_take(in, 1);
			else if (what & 0x20)
				h->tail = input_take(in, 8);
			else
				h->head = input_take(in, 8);
			break;
		case 6: /* a farewell of any length, or the end */
			if (what & 8)
				shutdown(link_fd[1], SHUT_RDWR);
			else
				(void)!send(link_fd[1], in->at, (size_t)(in->end - in->at) % 700,
					MSG_NOSIGNAL | MSG_DONTWAIT);
			break;
		default:
			spoil(in, (uint8_t *)h + TOKD_RING_HDR_BYTES, DATA);
			break;
		}
		check_reader(r);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};
	const uint8_t how = (uint8_t)input_take(&in, 1), kind = (uint8_t)input_take(&in, 1);
	const uint64_t start = kind & 2 ? UINT64_MAX / 2 + 1 - DATA : 64 * (uint64_t)(kind >> 2);
	const bool tap = kind & 1;
	struct tokr_error error;
	struct tokr *r;

	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, link_fd) == 0);
	make_rings(start);
	answer(&in, how, tap, start);
	r = tokr_attach("/fuzz", tap ? TOKR_TAP : TOKR_READER, 0, &error);
	MUST((r == NULL) == (error.code != 0));
	MUST(error.code == 0 || error.text[0] != '\0');
	if (r != NULL) {
		check_reader(r);
		use(&in, r);
	}
	tokr_detach(r);
	close(link_fd[1]);
	return 0;
}
