/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs_qp.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "transport_inside.h"

#define BITS_24 0xffffffu /* of queue pair and packet numbers */
#define INLINE_BYTES ((uint32_t)sizeof(struct tokg_hdr))
#define HOPS 64
#define ACK_TIMEOUT 14 /* 4.096 us << 14: 67 ms; with the retries half a second */
#define RETRIES 6      /* 7 is "for ever" to soft-RoCE */
#define RNR_TIMER 12
/* Concurrent READs: every device supports one. */
#define READS 1

bool
tokg_qp_proved(const struct tokg_rdma *d, const struct tokg_qp *theirs, struct tokg_error *err)
{
	static const uint8_t none[16];

	if (theirs->qpn == 0 || theirs->qpn > BITS_24 || theirs->psn > BITS_24 ||
		theirs->mtu < IBV_MTU_256 || theirs->mtu > IBV_MTU_4096)
		return tokg_wrong(err,
			"queue pair 0x%x, PSN 0x%x, MTU code %u: the first two have 24 bits, the "
			"code is 1 to 5",
			theirs->qpn, theirs->psn, theirs->mtu);
	if ((theirs->is_roce != 0) != d->roce)
		return tokg_wrong(err, "one end is Ethernet (RoCE), the other InfiniBand: choose "
				       "the device");
	if (d->roce && memcmp(theirs->gid, none, sizeof(none)) == 0)
		return tokg_wrong(err, "the peer has no GID");
	return true;
}

static bool
to_init(const struct tokg_rdma *d, struct ibv_qp *qp, int access)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
		.port_num = d->port,
		.qp_access_flags = (unsigned int)access};

	return ibv_modify_qp(qp, &a,
		       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0;
}

struct ibv_qp *
tokg_qp_make(const struct tokg_rdma *d, struct ibv_cq *cq, uint32_t send_wr, int access,
	struct tokg_qp *mine, struct tokg_error *err)
{
	struct ibv_qp_init_attr a = {.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = send_wr,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = INLINE_BYTES}};
	struct ibv_qp *qp = ibv_create_qp(d->pd, &a);
	uint32_t psn;

	if (qp == NULL) {
		tokg_wrong(err, "%s: a queue pair for %u requests with %u bytes inline: %s",
			d->name, send_wr, INLINE_BYTES, strerror(errno));
		return NULL;
	}
	if (!to_init(d, qp, access) || getrandom(&psn, sizeof(psn), 0) != sizeof(psn)) {
		tokg_wrong(err, "%s: queue pair to INIT: %s", d->name, strerror(errno));
		ibv_destroy_qp(qp);
		return NULL;
	}
	memset(mine, 0, sizeof(*mine));
	mine->qpn = qp->qp_num;
	mine->psn = psn & BITS_24;
	mine->lid = d->lid;
	mine->mtu = (uint8_t)d->mtu;
	mine->is_roce = d->roce;
	memcpy(mine->gid, d->gid.raw, sizeof(mine->gid));
	return qp;
}

static bool
to_receive(const struct tokg_rdma *d, struct ibv_qp *qp, const struct tokg_qp *theirs)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
		.path_mtu = theirs->mtu < d->mtu ? (enum ibv_mtu)theirs->mtu : d->mtu,
		.dest_qp_num = theirs->qpn,
		.rq_psn = theirs->psn,
		.max_dest_rd_atomic = READS,
		.min_rnr_timer = RNR_TIMER,
		.ah_attr = {.dlid = theirs->lid,
			.sl = d->sl,
			.port_num = d->port,
			.is_global = d->roce}};

	memcpy(a.ah_attr.grh.dgid.raw, theirs->gid, sizeof(theirs->gid));
	a.ah_attr.grh.sgid_index = (uint8_t)d->gid_index;
	a.ah_attr.grh.hop_limit = HOPS;
	a.ah_attr.grh.traffic_class = d->tclass;
	return ibv_modify_qp(qp, &a,
		       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) ==
	       0;
}

static bool
to_send(struct ibv_qp *qp, const struct tokg_qp *mine)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
		.sq_psn = mine->psn,
		.timeout = ACK_TIMEOUT,
		.retry_cnt = RETRIES,
		.rnr_retry = RETRIES,
		.max_rd_atomic = READS};

	return ibv_modify_qp(qp, &a,
		       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

bool
tokg_qp_connect(const struct tokg_rdma *d, struct ibv_qp *qp, const struct tokg_qp *mine,
	const struct tokg_qp *theirs, bool sends, struct tokg_error *err)
{
	if (!tokg_qp_proved(d, theirs, err))
		return false;
	if (!to_receive(d, qp, theirs))
		return tokg_wrong(err,
			"%s: queue pair 0x%x towards 0x%x, ready to receive: %s: is there a route "
			"between the two GIDs?",
			d->name, mine->qpn, theirs->qpn, strerror(errno));
	if (sends && !to_send(qp, mine))
		return tokg_wrong(err, "%s: queue pair 0x%x, ready to send: %s", d->name, mine->qpn,
			strerror(errno));
	return true;
}
