# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by the tools that are Python inside: run a module of tools/ with the Python of build/venv.

tokd_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# tokd_python MODULE ARGUMENT...
tokd_python() {
	local python=$tokd_root/build/venv/bin/python
	if [ ! -x "$python" ]; then
		printf '%s: %s is missing: run tools/setup first\n' "${0##*/}" "$python" >&2
		exit 1
	fi
	PYTHONPATH=$tokd_root/tools PYTHONDONTWRITEBYTECODE=1 exec "$python" -m "$@"
}
