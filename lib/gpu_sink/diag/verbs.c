/* SPDX-License-Identifier: BSD-3-Clause */
/* What libibverbs says of the devices that sysfs has: only by opening them can it be known. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "machine.h"

#define INLINE_MAX 1024 /* looked for up to here: the sink's headers are 64 bytes */

static const char *const mtu_from_verbs = "verbs";

static uint32_t
mtu_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

static void
ask_ports(struct ibv_context *context, struct rdma *d)
{
	struct ibv_port_attr attr;

	for (int i = 0; i < d->n_ports; i++) {
		struct rdma_port *p = &d->ports[i];

		if (ibv_query_port(context, (uint8_t)p->number, &attr) != 0)
			continue;
		p->mtu = mtu_bytes(attr.active_mtu);
		p->mtu_max = mtu_bytes(attr.max_mtu);
		p->mtu_from = mtu_from_verbs;
	}
}

/*
 * A kernel or driver without dma-buf refuses the call itself; one with it looks at the descriptor
 * first, which is none.
 */
static void
ask_dmabuf(struct ibv_pd *pd, struct rdma *d)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_dmabuf_mr(pd, 0, (size_t)sysconf(_SC_PAGESIZE), 0, -1, IBV_ACCESS_LOCAL_WRITE);
	if (mr != NULL) { /* cannot be */
		ibv_dereg_mr(mr);
		return;
	}
	if (errno == EBADF)
		d->dmabuf = YES;
	else if (errno == EOPNOTSUPP || errno == EPROTONOSUPPORT || errno == ENOSYS)
		d->dmabuf = NO;
	snprintf(d->dmabuf_why, sizeof(d->dmabuf_why), "ibv_reg_dmabuf_mr without a descriptor: %s",
		strerror(errno));
}

/* The driver takes or refuses; there is no attribute for it. */
static void
ask_inline(struct ibv_pd *pd, struct ibv_cq *cq, struct rdma *d)
{
	for (uint32_t n = INLINE_MAX; n >= 64; n /= 2) {
		struct ibv_qp_init_attr attr = {.send_cq = cq,
			.recv_cq = cq,
			.qp_type = IBV_QPT_RC,
			.cap = {.max_send_wr = 16,
				.max_recv_wr = 1,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.max_inline_data = n}};
		struct ibv_qp *qp = ibv_create_qp(pd, &attr);

		if (qp != NULL) {
			d->max_inline = attr.cap.max_inline_data;
			ibv_destroy_qp(qp);
			return;
		}
	}
}

static void
ask_device(struct ibv_device *device, struct rdma *d)
{
	struct ibv_context *context = ibv_open_device(device);
	struct ibv_device_attr attr;
	struct ibv_pd *pd;
	struct ibv_cq *cq;

	if (context == NULL) {
		snprintf(d->open_error, sizeof(d->open_error), "%s",
			strerror(errno != 0 ? errno : ENODEV));
		return;
	}
	d->opened = true;
	if (ibv_query_device(context, &attr) == 0)
		d->max_qp_wr = attr.max_qp_wr > 0 ? (uint32_t)attr.max_qp_wr : 0;
	ask_ports(context, d);
	pd = ibv_alloc_pd(context);
	cq = pd != NULL ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
	if (pd != NULL)
		ask_dmabuf(pd, d);
	if (cq != NULL) {
		ask_inline(pd, cq, d);
		ibv_destroy_cq(cq);
	}
	if (pd != NULL)
		ibv_dealloc_pd(pd);
	ibv_close_device(context);
}

void
ask_verbs(struct machine *m)
{
	struct ibv_device **list;
	int n = 0;

	if (!m->fs.live)
		return;
	list = ibv_get_device_list(&n);
	if (list == NULL) {
		snprintf(m->verbs_note, sizeof(m->verbs_note), "libibverbs: %s", strerror(errno));
		return;
	}
	for (int i = 0; i < m->n_rdma; i++) {
		struct rdma *d = &m->rdma[i];

		snprintf(d->open_error, sizeof(d->open_error), "libibverbs does not know it");
		for (int k = 0; k < n; k++) {
			if (strcmp(ibv_get_device_name(list[k]), d->name) == 0) {
				d->open_error[0] = '\0';
				ask_device(list[k], d);
			}
		}
	}
	ibv_free_device_list(list);
}
