/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOKD_DIAG_SHOW_H
#define TOKD_DIAG_SHOW_H

#include "judge.h"

/* Below 0 where standard output takes no more. */
int show_text(const struct machine *m, const struct verdict *v);
int show_json(const struct machine *m, const struct options *o, const struct verdict *v);

const char *known_text(enum known k);
const char *gid_type_text(enum tokg_gid_type type);
/* ::ffff:192.0.2.1 as any other, in out[46]. */
const char *gid_text(const struct gid *gid, char out[46]);
const char *gid_scope(const struct gid *gid);
const char *order_text(const struct gpu *g);

#endif
