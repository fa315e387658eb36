/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of the memory for texts that go to the GPU as bytes. */
#pragma once

#include "datapath/stream/gpu_text.h"

/* For a sink with this geometry. 0, or -ENOMEM with a message logged. */
int tokd_gpu_texts_open(struct tokd_worker *w, const struct tokg_geometry *g);
void tokd_gpu_texts_close(struct tokd_worker *w);
