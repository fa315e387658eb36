/* SPDX-License-Identifier: BSD-3-Clause */
/* Creates and connects queue pairs (RC). Both ends, set-up only. */
#pragma once

#include "handshake/handshake.h"
#include "verbs_device.h"

/* Validates the peer's end of a queue pair. */
bool tokg_qp_proved(
	const struct tokg_rdma *d, const struct tokg_qp *theirs, struct tokg_error *err);

/*
 * A queue pair in INIT for `send_wr` requests; `mine` is for the peer. access: the peer's rights
 * here (IBV_ACCESS_REMOTE_...). NULL and `err`.
 */
struct ibv_qp *tokg_qp_make(const struct tokg_rdma *d, struct ibv_cq *cq, uint32_t send_wr,
	int access, struct tokg_qp *mine, struct tokg_error *err);
/* Ready to receive, and to answer READs; with `sends`, also to send. Uses the smaller MTU. */
bool tokg_qp_connect(const struct tokg_rdma *d, struct ibv_qp *qp, const struct tokg_qp *mine,
	const struct tokg_qp *theirs, bool sends, struct tokg_error *err);
