/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

enum tokd_exit {
	TOKD_EXIT_OK =
		0, /* stopped by a signal; --help, --version, --check-config without errors */
	TOKD_EXIT_FAILED = 1, /* at run time */
	TOKD_EXIT_USAGE = 2,  /* invalid option or configuration: a restart cannot help */
};

/*
 * rte_eal_init with argv[0 .. argc), the arguments before --. On failure prints one line with the
 * remedy to standard error, after EAL's messages.
 */
enum tokd_exit tokd_eal_start(int argc, char **argv);
