/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"
#include "transport_fixture.h"

#include <dirent.h>

#include <stdio.h>
#include <string.h>

static const uint32_t vocab = 0xabcd, n_ids = 500;
const struct tokg_source source = {
	.n_vocabs = 1, .vocab = &vocab, .n_ids = &n_ids, .instance = 3, .worker = 1, .node = -1};
uint32_t open_ms = PATIENCE_MS;

uint32_t
open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint32_t n = 0;

	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

struct tokg_transport *
open_of(const struct tokg_source *from, const char *kind, const char *path, struct tokg_error *err)
{
	struct tokg_target target;
	char text[128], said[256] = "";
	struct tokg_transport *t;

	snprintf(text, sizeof(text), "%s:%s", kind, path);
	assert_true(tokg_target_parse(&target, text, err));
	t = tokg_transport_open(&target, from, open_ms, said, err);
	assert_true((t != NULL) == (strstr(said, "producer") != NULL));
	return t;
}

struct tokg_transport *
open_by(const char *kind, const char *path, struct tokg_error *err)
{
	return open_of(&source, kind, path, err);
}

struct tokg_transport *
open_to(const char *path, struct tokg_error *err)
{
	return open_by("shm", path, err);
}
