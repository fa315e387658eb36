/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs (RC), from nothing to ready. Both ends, set-up only. */
#ifndef TOKG_VERBS_QP_H
#define TOKG_VERBS_QP_H

#include "handshake/handshake.h"
#include "verbs_device.h"

/* Is it the other end of a queue pair that `d` can talk to? */
bool tokg_qp_proved(
	const struct tokg_rdma *d, const struct tokg_qp *theirs, struct tokg_error *err);

/*
 * One in INIT, with room for `send_wr` requests; `mine` is what the other end has to know. access:
 * what the other end may do here (IBV_ACCESS_REMOTE_...). NULL and `err`.
 */
struct ibv_qp *tokg_qp_make(const struct tokg_rdma *d, struct ibv_cq *cq, uint32_t send_wr,
	int access, struct tokg_qp *mine, struct tokg_error *err);
/* Ready to receive (and answer READs); with `sends`, to send as well. The smaller MTU is taken. */
bool tokg_qp_connect(const struct tokg_rdma *d, struct ibv_qp *qp, const struct tokg_qp *mine,
	const struct tokg_qp *theirs, bool sends, struct tokg_error *err);

#endif
