/* SPDX-License-Identifier: BSD-3-Clause */
/* A list of hosts: HOST, HOST:PORT, [HOST]:PORT, or an IPv6 address, which has several colons. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client_inside.h"

uint32_t
hosts_count(const char *list)
{
	uint32_t n = 1;

	for (; *list != '\0'; list++)
		n += *list == ',';
	return n;
}

static bool
port_of(const char *text, int len, uint16_t *port, char error[TOKD_ERROR_MAX])
{
	unsigned long n = 0;

	if (len >= 1 && len <= 5 && strspn(text, "0123456789") >= (size_t)len)
		n = strtoul(text, NULL, 10);
	if (n < 1 || n > UINT16_MAX) {
		snprintf(error, TOKD_ERROR_MAX, "port %.*s: give a number from 1 to 65535", len,
			text);
		return false;
	}
	*port = (uint16_t)n;
	return true;
}

bool
hosts_next(const char **list, uint16_t port, struct host *host, char error[TOKD_ERROR_MAX])
{
	const char *name = *list, *next = strchrnul(name, ','), *end = next, *colon, *scope;
	const int len = (int)(next - name);

	colon = memrchr(name, ':', (size_t)len);
	if (*name == '[') {
		name++;
		end = memchr(name, ']', (size_t)(next - name));
		if (end == NULL || (end + 1 != next && end[1] != ':')) {
			snprintf(error, TOKD_ERROR_MAX, "host %.*s: expected [ADDRESS]:PORT", len,
				*list);
			return false;
		}
		colon = end + 1 != next ? end + 1 : NULL;
	} else if (colon != NULL && memchr(name, ':', (size_t)len) == colon) {
		end = colon;
	} else {
		colon = NULL;
	}
	host->port = port;
	if (colon != NULL && !port_of(colon + 1, (int)(next - colon - 1), &host->port, error))
		return false;
	if (colon == NULL && port == 0)
		return port_of("0", 1, &host->port, error);
	if (end == name || end - name >= HOST_MAX) {
		snprintf(error, TOKD_ERROR_MAX, "host '%.*s': expected a name or an address%s", len,
			*list, len == 0 ? ", and no comma without one" : "");
		return false;
	}
	/* The resolver would take what follows the colon for a part of the interface's name. */
	scope = memchr(name, '%', (size_t)(end - name));
	if (scope != NULL && memchr(scope, ':', (size_t)(end - scope)) != NULL) {
		snprintf(error, TOKD_ERROR_MAX,
			"host %.*s: \":\" in the interface's name; an address with a port needs "
			"brackets, as in [fe80::1%%eth0]:9000",
			len, *list);
		return false;
	}
	memcpy(host->name, name, (size_t)(end - name));
	host->name[end - name] = '\0';
	*list = *next == ',' ? next + 1 : next;
	return true;
}
