/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What tokd-diag asks of libraries, answered without a device. Compiled three times: as
 * libcuda.so.1, as libnvidia-ml.so.1, and to be preloaded before libibverbs. FAKE, in the
 * environment, has letters for what goes wrong.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
fails(char letter)
{
	const char *fake = getenv("FAKE");

	return fake != NULL && strchr(fake, letter) != NULL;
}

#ifdef FAKE_CUDA
int
cuInit(unsigned int flags)
{
	return fails('i') ? 999 : 0;
}
int
cuDriverGetVersion(int *version)
{
	*version = fails('v') ? 13000 : 13030;
	return 0;
}
int
cuDeviceGetCount(int *n)
{
	*n = fails('n') ? 1 << 30 : 1;
	return 0;
}
int
cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return fails('g');
}

int
cuDeviceGetName(char *name, int room, int device)
{
	memset(name, fails('l') ? 'x' : '\0', (size_t)room); /* without an end */
	if (!fails('l'))
		snprintf(name, (size_t)room, "NVIDIA H100 PCIe \xff");
	return 0;
}

int
cuDeviceGetPCIBusId(char *address, int room, int device)
{
	snprintf(address, (size_t)room, fails('a') ? "nowhere" : "0000:19:00.0");
	return 0;
}

int
cuDeviceGetAttribute(int *value, int attribute, int device)
{
	switch (attribute) {
	case 75:
		*value = 9;
		return 0;
	case 118:
		*value = fails('o') ? 0 : 100;
		return 0;
	case 76:
	case 124:
		*value = 0;
		return 0;
	}
	return 1; /* an older CUDA */
}
#endif

#ifdef FAKE_NVML
int
nvmlInit_v2(void)
{
	return fails('m');
}
int
nvmlShutdown(void)
{
	return 0;
}
int
nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **device)
{
	*device = NULL;
	return strcmp(address, "0000:19:00.0") != 0;
}
int
nvmlDeviceGetBAR1MemoryInfo(void *device, unsigned long long *memory)
{
	memory[0] = 256u << 20;
	memory[1] = 250u << 20;
	memory[2] = 6u << 20;
	return 0;
}
#endif

#ifdef FAKE_VERBS
#include <infiniband/verbs.h>

#undef ibv_query_port

static struct ibv_device device = {.name = "mlx5_1", .transport_type = IBV_TRANSPORT_IB};
static struct ibv_device *devices[] = {&device, NULL};
static struct ibv_context context;
static struct ibv_pd pd;
static struct ibv_cq cq;
static struct ibv_qp qp;

struct ibv_device **
ibv_get_device_list(int *n)
{
	*n = 1;
	return devices;
}
void
ibv_free_device_list(struct ibv_device **list)
{
}
const char *
ibv_get_device_name(struct ibv_device *d)
{
	return d->name;
}
int
ibv_close_device(struct ibv_context *c)
{
	return 0;
}
int
ibv_dealloc_pd(struct ibv_pd *p)
{
	return 0;
}
int
ibv_destroy_cq(struct ibv_cq *c)
{
	return 0;
}
int
ibv_destroy_qp(struct ibv_qp *q)
{
	return 0;
}

struct ibv_context *
ibv_open_device(struct ibv_device *d)
{
	errno = EACCES;
	return fails('O') ? NULL : &context;
}

int
ibv_query_device(struct ibv_context *c, struct ibv_device_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->max_qp_wr = 32768;
	return 0;
}

int
ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *compat)
{
	struct ibv_port_attr *attr = (struct ibv_port_attr *)compat;

	attr->active_mtu = IBV_MTU_2048;
	attr->max_mtu = IBV_MTU_4096;
	return 0;
}

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *c)
{
	return fails('P') ? NULL : &pd;
}

struct ibv_cq *
ibv_create_cq(struct ibv_context *c, int cqe, void *x, struct ibv_comp_channel *ch, int vector)
{
	return fails('C') ? NULL : &cq;
}

struct ibv_qp *
ibv_create_qp(struct ibv_pd *p, struct ibv_qp_init_attr *attr)
{
	if (attr->cap.max_inline_data > (fails('I') ? 32 : 300))
		return NULL;
	attr->cap.max_inline_data = 316; /* rounded up, as drivers do */
	return &qp;
}

struct ibv_mr *
ibv_reg_dmabuf_mr(struct ibv_pd *p, uint64_t offset, size_t n, uint64_t iova, int fd, int access)
{
	errno = fails('D') ? EOPNOTSUPP : EBADF;
	return NULL;
}
#endif
