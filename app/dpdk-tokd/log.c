/* SPDX-License-Identifier: BSD-3-Clause */
#include "log.h"

/* Registered before main, so that --log-level=tokd.*:debug finds them while EAL parses it. */
RTE_LOG_REGISTER(tokd_log_main, tokd.main, INFO)
RTE_LOG_REGISTER(tokd_log_port, tokd.port, INFO)
RTE_LOG_REGISTER(tokd_log_ring, tokd.ring, INFO)
RTE_LOG_REGISTER(tokd_log_worker, tokd.worker, INFO)
RTE_LOG_REGISTER(tokd_log_control, tokd.control, INFO)
