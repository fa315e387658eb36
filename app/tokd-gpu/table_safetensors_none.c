/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces table_safetensors.c in a build without jansson: returns errors. */
#include "tables_inside.h"

bool
tokg_safetensors_find(struct tokg_table_file *f, struct tokg_error *err)
{
	return tokg_agent_wrong(err,
		"table %s: not .npy, and safetensors needs jansson, which this program was built "
		"without: install it and build again, or give a .npy or random: table",
		f->path);
}
