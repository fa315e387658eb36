/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Carries Ethernet frames between two interfaces, and loses, holds back, doubles and corrupts
 * shares of them: forwarder IF IF LOSE REORDER DOUBLE CORRUPT SEED, shares in millionths. A corrupt
 * frame has one bit changed behind its checksums, but not in its MAC addresses: Ethernet's CRC
 * guards them, and another address is another stream's. ARP has no faults. On SIGTERM it prints
 * counts of both directions as JSON.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <mix.h>
#include "../../app/tokd-load-dpdk/faults.h"

#define FRAME_MAX 2048
#define AT_ONCE 64
#define BUFFER (8 << 20)
#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23 /* linux/if_packet.h, 4.20 */
#endif

struct frame {
	uint32_t len;
	uint8_t byte[FRAME_MAX];
};

/* One direction: frames that come at `fd` go to the other side's. */
struct side {
	int fd;
	struct faults faults;
	uint32_t corrupt;
	uint64_t dice, corrupted, not_sent;
};

static volatile sig_atomic_t stopped;

static void
stop(int number)
{
	(void)number;
	stopped = 1;
}

static void *
copy(void *packet, void *arg)
{
	struct frame *f = malloc(sizeof(*f));

	(void)arg;
	if (f != NULL)
		memcpy(f, packet, sizeof(*f));
	return f;
}

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void
side_open(struct side *s, const char *interface, const struct fault_rates *rates, uint32_t corrupt,
	uint64_t seed)
{
	const struct fault_packets packets = {.copy = copy, .drop = free};
	const struct sockaddr_ll to = {.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(interface)};
	const struct packet_mreq all = {.mr_ifindex = to.sll_ifindex, .mr_type = PACKET_MR_PROMISC};
	const int on = 1, buffer = BUFFER;

	s->fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (s->fd < 0 || to.sll_ifindex == 0 ||
		setsockopt(s->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) != 0 ||
		setsockopt(s->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)) != 0 ||
		setsockopt(s->fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)) != 0 ||
		bind(s->fd, (const struct sockaddr *)&to, sizeof(to)) != 0) {
		perror(interface);
		exit(1);
	}
	s->corrupt = corrupt;
	s->dice = seed;
	faults_init(&s->faults, rates, &packets, seed);
}

static void
send_all(struct side *from, const struct side *to, void **out, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct frame *f = out[i];

		if (send(to->fd, f->byte, f->len, 0) != (ssize_t)f->len)
			from->not_sent++;
		free(f);
	}
}

/* Frames of one side that have come. */
static void
carry(struct side *from, const struct side *to)
{
	void *out[FAULTS_OUT];

	for (uint32_t i = 0; i < AT_ONCE; i++) {
		struct frame *f = malloc(sizeof(*f));
		ssize_t len;
		uint16_t type;

		if (f == NULL)
			return;
		len = recv(from->fd, f->byte, sizeof(f->byte), MSG_DONTWAIT);
		if (len < ETH_HLEN) {
			free(f);
			return;
		}
		f->len = (uint32_t)len;
		memcpy(&type, f->byte + ETH_HLEN - sizeof(type), sizeof(type));
		if (type == htons(ETH_P_ARP)) {
			out[0] = f;
			send_all(from, to, out, 1);
			continue;
		}
		if (dice_throw(&from->dice) % FAULTS_CERTAIN < from->corrupt) {
			const uint64_t first = 8 * 2 * ETH_ALEN;
			const uint64_t bit =
				first + dice_throw(&from->dice) % (8 * (uint64_t)len - first);

			f->byte[bit / 8] ^= (uint8_t)(1 << bit % 8);
			from->corrupted++;
		}
		send_all(from, to, out, faults_take(&from->faults, f, now_ns(), out));
	}
}

static void
print(const char *name, const struct side *s)
{
	const struct faults *f = &s->faults;

	printf("\"%s\": {\"frames\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"reordered\": %" PRIu64
	       ", \"doubled\": %" PRIu64 ", \"corrupted\": %" PRIu64 ", \"not_sent\": %" PRIu64 "}",
		name, f->came, f->lost, f->reordered, f->duplicated, s->corrupted, s->not_sent);
}

int
main(int argc, char **argv)
{
	struct side side[2];
	struct sigaction action = {.sa_handler = stop};
	struct fault_rates rates;
	uint64_t seed;
	uint32_t corrupt;

	if (argc != 8) {
		fprintf(stderr, "usage: forwarder IF IF LOSE REORDER DOUBLE CORRUPT SEED\n");
		return 2;
	}
	rates = (struct fault_rates){.lose = (uint32_t)strtoul(argv[3], NULL, 10),
		.reorder = (uint32_t)strtoul(argv[4], NULL, 10),
		.duplicate = (uint32_t)strtoul(argv[5], NULL, 10)};
	corrupt = (uint32_t)strtoul(argv[6], NULL, 10);
	seed = strtoull(argv[7], NULL, 10);
	sigaction(SIGTERM, &action, NULL);
	for (uint32_t i = 0; i < 2; i++) {
		memset(&side[i], 0, sizeof(side[i]));
		side_open(&side[i], argv[1 + i], &rates, corrupt, 2 * seed + i);
	}
	printf("ready\n");
	fflush(stdout);
	while (!stopped) {
		struct pollfd ready[2] = {
			{.fd = side[0].fd, .events = POLLIN}, {.fd = side[1].fd, .events = POLLIN}};
		void *out[FAULTS_OUT];

		if (poll(ready, 2, 1) < 0 && errno != EINTR)
			return 1;
		for (uint32_t i = 0; i < 2; i++) {
			if (ready[i].revents != 0)
				carry(&side[i], &side[1 - i]);
			send_all(&side[i], &side[1 - i], out,
				faults_due(&side[i].faults, now_ns(), out));
		}
	}
	printf("{");
	print("forth", &side[0]);
	printf(", ");
	print("back", &side[1]);
	printf("}\n");
	return 0;
}
