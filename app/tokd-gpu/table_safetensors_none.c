/* SPDX-License-Identifier: BSD-3-Clause */
/* In place of table_safetensors.c where there is no jansson: such files are refused by name. */
#include "tables_inside.h"

bool
tokg_safetensors_find(struct tokg_table_file *f, struct tokg_error *err)
{
	return tokg_agent_wrong(err,
		"table %s: not .npy, and this program was built without jansson, which safetensors "
		"needs: install it and build again, or give a .npy or random: table",
		f->path);
}
