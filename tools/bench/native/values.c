/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>

#include "values.h"

int
value_bad(const char *option, const char *value, const char *remedy)
{
	fprintf(stderr, "%s: --%s %s: %s\n", program_invocation_short_name, option, value, remedy);
	return -1;
}

int
value_number(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
	char *end, remedy[80];

	errno = 0;
	*number = strtoull(text, &end, 10);
	if (errno == 0 && end != text && *end == '\0' && text[0] != '-' && *number >= least &&
		*number <= most)
		return 0;
	snprintf(remedy, sizeof(remedy), "give a number from %" PRIu64 " to %" PRIu64, least, most);
	return value_bad(option, text, remedy);
}

int
value_server(const char *option, const char *text, struct sockaddr_in *server)
{
	static const char remedy[] = "give IP:PORT, as in 10.0.0.1:9000";
	const char *colon = strrchr(text, ':');
	char ip[INET_ADDRSTRLEN];
	uint64_t port;

	if (colon == NULL || (size_t)(colon - text) >= sizeof(ip))
		return value_bad(option, text, remedy);
	memcpy(ip, text, (size_t)(colon - text));
	ip[colon - text] = '\0';
	server->sin_family = AF_INET;
	if (inet_pton(AF_INET, ip, &server->sin_addr) != 1)
		return value_bad(option, text, remedy);
	if (value_number(option, colon + 1, 1, 65535, &port) != 0)
		return -1;
	server->sin_port = htons((uint16_t)port);
	return 0;
}
