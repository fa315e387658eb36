/* SPDX-License-Identifier: BSD-3-Clause */
/* No driver unmaps memory in the middle of a worker's burst: unmap_guard.c says which would. */
#ifndef TOKD_UNMAP_GUARD_H
#define TOKD_UNMAP_GUARD_H

struct tokd_app;

/* From now on for the workers of *app, which stands until another or NULL takes its place. */
void tokd_unmap_guard(const struct tokd_app *app);

#endif
