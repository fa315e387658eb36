# SPDX-License-Identifier: BSD-3-Clause
# bash completion of the programs that do not write their own: their options, as --help has them; a
# file where one is wanted.
_tokd_small() {
	local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words
	case $before in
	= | --socket | --root | --uds | --ssl-certfile | --ssl-keyfile)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		return
		;;
	--want)
		mapfile -t COMPREPLY < <(compgen -W 'verbs cuda shm' -- "$current")
		return
		;;
	--role)
		mapfile -t COMPREPLY < <(compgen -W 'producer agent' -- "$current")
		return
		;;
	--ring | --region | --timeout | --file-prefix | --interval | --listen | --model | --host | --port | --max-* | --api-key)
		COMPREPLY=()
		return
		;;
	esac
	words=$("${COMP_WORDS[0]}" --help 2>/dev/null | grep -o -e '--[a-z][a-z0-9-]*')
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current" | sort -u)
	if [[ " ${COMP_WORDS[*]} " == *' --drivers '* && $current != -* ]]; then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
	fi
}

complete -F _tokd_small tokd-diag tokd-exporter tokd-gateway tokd-top
