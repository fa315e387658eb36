/* SPDX-License-Identifier: BSD-3-Clause */
#include "server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

bool
server_check(const struct opt_def *d, const char *text, void *field, struct opt_error *err)
{
	const char *colon = strrchr(text, ':');
	struct sockaddr_in *server = field;
	char ip[INET_ADDRSTRLEN] = "";
	uint64_t port;

	if (colon != NULL && (size_t)(colon - text) < sizeof(ip))
		memcpy(ip, text, (size_t)(colon - text));
	if (inet_pton(AF_INET, ip, &server->sin_addr) != 1 ||
		!opt_number(colon + 1, 1, 65535, &port))
		return opt_wrong(
			err, "give IP:PORT, as in 10.0.0.1:9000, with a port from 1 to 65535");
	server->sin_family = AF_INET;
	server->sin_port = htons((uint16_t)port);
	return true;
}
