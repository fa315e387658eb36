# SPDX-License-Identifier: BSD-3-Clause
# said NAME COMMAND...: its exit status and, for people, its output, which stays in /run/NAME.txt.
said() {
	name=$1
	shift
	"$@" >"/run/$name.txt" 2>&1
	status=$?
	sed 's/^/    /' "/run/$name.txt"
	echo "@@ $name $status"
}
