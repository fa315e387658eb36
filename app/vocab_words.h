/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion of vocabulary names: words_arg and words_script of struct opt_program. */
#pragma once

/* Values of this name in --help. */
#define VOCAB_WORDS_ARG "VOCAB"

/* Prints the names of the vocabularies in the search path (vocab_load.c). */
#define VOCAB_WORDS_SCRIPT                                                                         \
	"\tlocal data=${XDG_DATA_HOME:-$HOME/.local/share}/dpdk-tokd/vocab folders folder entry\n" \
	"\tIFS=: read -ra folders \\\n"                                                            \
	"\t\t<<<\"${TOK_VOCAB_PATH:-$data:/usr/local/share/dpdk-tokd/vocab:"                       \
	"/usr/share/dpdk-tokd/vocab}\"\n"                                                          \
	"\tfor folder in \"${folders[@]}\"; do\n"                                                  \
	"\t\tfor entry in \"$folder\"/*; do\n"                                                     \
	"\t\t\tentry=${entry##*/}\n"                                                               \
	"\t\t\t[ \"$entry\" = '*' ] && continue\n"                                                 \
	"\t\t\tentry=${entry%.json} entry=${entry%.tiktoken} entry=${entry%.txt}\n"                \
	"\t\t\tprintf '%s\\n' \"${entry%.tokv}\"\n"                                                \
	"\t\tdone\n"                                                                               \
	"\tdone\n"
