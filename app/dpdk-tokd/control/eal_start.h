/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOKD_EAL_START_H
#define TOKD_EAL_START_H

enum tokd_exit {
	TOKD_EXIT_OK = 0,     /* stopped by a signal; --help, --version, a good --check-config */
	TOKD_EXIT_FAILED = 1, /* at run time */
	TOKD_EXIT_USAGE = 2,  /* a bad option or configuration: trying again cannot help */
};

/*
 * rte_eal_init on argv[0 .. argc), which is what stands before --. When it fails, EAL's messages
 * are followed by one line on standard error that says what to do.
 */
enum tokd_exit tokd_eal_start(int argc, char **argv);

#endif
