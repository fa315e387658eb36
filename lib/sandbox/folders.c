/* SPDX-License-Identifier: BSD-3-Clause */
/* What may still be opened, by Landlock: its first ABI, which every kernel that has it knows. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/landlock.h>

#include "sandbox.h"

#define READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define OF_FILES                                                                                   \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_EXECUTE)
#define ALL                                                                                        \
	(OF_FILES | READ | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |        \
		LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |                       \
		LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |                       \
		LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |                     \
		LANDLOCK_ACCESS_FS_MAKE_SYM)
#define WRITE                                                                                      \
	(READ | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE |                   \
		LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK)

/* What is not there needs no rule. */
static int
allow(int rules, const struct tokd_folder *f)
{
	static const uint64_t access[] = {[TOKD_READ] = READ,
		[TOKD_WRITE] = WRITE,
		[TOKD_REMOVE_DIRS] = LANDLOCK_ACCESS_FS_REMOVE_DIR};
	struct landlock_path_beneath_attr beneath = {.allowed_access = access[f->access],
		.parent_fd = open(f->path, O_PATH | O_CLOEXEC)};
	struct stat st;
	int rc = 0;

	if (beneath.parent_fd < 0)
		return 0;
	if (fstat(beneath.parent_fd, &st) == 0 && !S_ISDIR(st.st_mode))
		beneath.allowed_access &= OF_FILES;
	if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) != 0)
		rc = -errno;
	close(beneath.parent_fd);
	return rc;
}

bool
tokd_sandbox_has_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0;
}

int
tokd_sandbox_rules(const struct tokd_folder *folder, size_t n)
{
	const struct landlock_ruleset_attr handled = {.handled_access_fs = ALL};
	const int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0);
	int rc = 0;

	if (rules < 0)
		return -errno;
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = allow(rules, &folder[i]);
	if (rc == 0)
		return rules;
	close(rules);
	return rc;
}
