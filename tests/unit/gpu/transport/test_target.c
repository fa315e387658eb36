/* SPDX-License-Identifier: BSD-3-Clause */
/* What `--sink gpu=TARGET` names, and where that is. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "test.h"
#include "transport/transport_inside.h"

TEST(targets_are_parsed)
{
	static const struct {
		const char *text, *address;
		int kind;
		uint16_t port;
	} good[] = {
		{"shm", TOKG_SOCKET, TOKG_SHM, 0},
		{"shm:/run/a:b.sock", "/run/a:b.sock", TOKG_SHM, 0},
		{"cuda", TOKG_SOCKET, TOKG_CUDA, 0},
		{"cuda:x", "x", TOKG_CUDA, 0},
		{"verbs:gpu1", "gpu1", TOKG_VERBS, TOKG_TCP_PORT},
		{"verbs:gpu1:1", "gpu1", TOKG_VERBS, 1},
		{"verbs:10.0.0.1:65535", "10.0.0.1", TOKG_VERBS, 65535},
		{"verbs:[::1]", "::1", TOKG_VERBS, TOKG_TCP_PORT},
		{"verbs:[fe80::1%eth0]:7", "fe80::1%eth0", TOKG_VERBS, 7},
	};
	struct tokg_target t;
	struct tokg_error err;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(tokg_target_parse(&t, good[i].text, &err));
		assert_int_equal(t.kind, good[i].kind);
		assert_string_equal(t.address, good[i].address);
		assert_int_equal(t.port, good[i].port);
		assert_true(t.rdma_device == NULL && t.rdma_port < 0 && t.rdma_gid < 0);
	}
}

TEST(wrong_targets_are_refused_with_a_remedy)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"", "must be shm[:PATH]"},
		{"gpu", "must be shm[:PATH]"},
		{"shmx", "must be shm[:PATH]"},
		{"shm:", "is empty"},
		{"verbs", "give the agent's host"},
		{"verbs:", "the host is empty"},
		{"verbs:[]", "the host is empty"},
		{"verbs::7", "the host is empty"},
		{"verbs:h:", "1 to 65535"},
		{"verbs:h:0", "1 to 65535"},
		{"verbs:h:65536", "1 to 65535"},
		{"verbs:h:99999999999999999999", "1 to 65535"},
		{"verbs:h:7x", "1 to 65535"},
		{"verbs:h:-1", "1 to 65535"},
		{"verbs:::1", "in brackets"},
		{"verbs:[::1", "no ]"},
		{"verbs:[::1]7", "must be :PORT"},
	};
	char longest[200] = "shm:";
	struct tokg_target t;
	struct tokg_error err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(tokg_target_parse(&t, bad[i].text, &err));
		if (strstr(err.text, bad[i].says) == NULL)
			fail_msg("\"%s\": %s", bad[i].text, err.text);
	}
	memset(longest + 4, 'p', 108);
	assert_false(tokg_target_parse(&t, longest, &err));
	assert_non_null(strstr(err.text, "at most 107"));
	longest[4 + 107] = '\0';
	assert_true(tokg_target_parse(&t, longest, &err));
}

TEST(a_host_name_is_resolved_once)
{
	struct tokg_target t;
	struct tokg_where w;
	struct tokg_error err;

	assert_true(tokg_target_parse(&t, "verbs:127.0.0.1:7", &err));
	assert_int_equal(t.n_at, 0);
	assert_true(tokg_target_resolve(&t, &err));
	assert_int_equal(t.n_at, 1);
	strcpy(t.address, "256.0.0.1"); /* no address, and no name that is looked up anywhere */
	assert_true(tokg_where_resolve(&w, &t, &err));
	assert_int_equal(w.n, 1);
	assert_int_equal(
		((struct sockaddr_in *)&w.addr[0])->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	assert_non_null(strstr(w.name, "256.0.0.1 port 7"));
}
