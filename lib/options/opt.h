/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options of a program: one table for parsing, --help, the manual page, bash completion,
 * environment variables and the configuration file. Needs libc alone and allocates for the
 * configuration file only.
 */
#ifndef TOKD_OPT_H
#define TOKD_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OPT_MAX 64	    /* options of a program */
#define OPT_TEXTS_MAX 16384 /* values of a repeatable option */
#define OPT_TEXT_MAX 255    /* bytes of a value, where there is a configuration file */

#define OPT_K ((uint64_t)1 << 10)
#define OPT_M ((uint64_t)1 << 20)
#define OPT_G ((uint64_t)1 << 30)

/* Exit codes that every program has. */
enum { OPT_EXIT_OK, OPT_EXIT_FAILED, OPT_EXIT_USAGE };

/* One line for the user: option, value, limit, remedy. */
struct opt_error {
	char text[512];
};

enum opt_type {
	OPT_TEXT,   /* const char * into argv, environment or file; `max`: bytes, 0: no limit */
	OPT_CHOICE, /* one word of `arg`, which is "a|b|c": its index, or the word if the field is a
		       pointer */
	OPT_COUNT,  /* integer of 2, 4 or 8 bytes, in decimal; as are the next three */
	OPT_MS,	    /* milliseconds */
	OPT_SIZE,   /* bytes, with k, M or G (times 1024) after it or nothing */
	OPT_OCTAL,
	OPT_FLAG,  /* bool: yes or no; on the command line the option alone means yes */
	OPT_OTHER, /* `check` parses it */
};

enum {
	OPT_REQUIRED = 1,
	OPT_REPEATABLE = 2,  /* OPT_TEXT; the field is a struct opt_texts */
	OPT_NOT_IN_FILE = 4, /* not a key of the configuration file */
	OPT_ACTION = 8,	     /* a flag of the command line alone; at the end of the table */
};

/* Values of a repeatable option: all those of the strongest source that has any. */
struct opt_texts {
	uint32_t n;
	const char *text[OPT_TEXTS_MAX];
};

struct opt_def {
	const char *name;
	/*
	 * What --help calls the value; NULL: a flag. Completion goes by it: FILE, PATH or SOCKET is
	 * a file, VOCAB a vocabulary, small words with | between are themselves.
	 */
	const char *arg;
	enum opt_type type;
	uint32_t offset, width; /* of the field: OPT_FIELD */
	int64_t min;		/* numbers only */
	uint64_t max;
	const char *preset; /* default, as a user would write it; NULL: the field stays as it is */
	const char *help;   /* one plain sentence, without its full stop */
	/* Few options have the rest. */
	char letter;	     /* short form */
	uint8_t flags;	     /* OPT_REQUIRED and the like */
	const char *section; /* heading above this option and those that follow */
	/*
	 * For OPT_OTHER sets the field; else checks it once it is set. False: err->text is what
	 * stands behind "--name value: ", as in "not a power of two; give 2M or 4M".
	 */
	bool (*check)(
		const struct opt_def *d, const char *text, void *field, struct opt_error *err);
};

#define OPT_FIELD(type, field) offsetof(type, field), sizeof(((type *)0)->field)

/* A part of the manual page. Lines that begin with a blank are shown as they are. */
struct opt_section {
	const char *title; /* as in EXIT STATUS */
	const char *text;
	bool in_help; /* --help shows it as well */
};

struct opt_program {
	const char *name;    /* "tokd-tail"; of a command "tok encode" */
	const char *version; /* of the project */
	const char *summary; /* what it does, in one line */
	const char *usage;   /* what stands behind the name: "[options] < text" */
	const char *about;   /* a paragraph or two */
	const struct opt_def *defs;
	size_t n_defs;
	/* What is not an option: its name, NULL for none, and how many may stand there. */
	const char *operand;
	int operands_min, operands_max;
	const char *operand_missing; /* what to say if there are too few or too many */
	/* Environment: "TOKD_" makes TOKD_RING_SIZE of ring-size; NULL: none. */
	const char *env_prefix;
	const char *const *env_others; /* NULL-terminated: other prefixes that begin so */
	/* Configuration file: its only section, and the option that names it; NULL: none. */
	const char *file_section;
	const char *file_option;
	/* What may stand before --, with blanks between, for completion; NULL: options are first.
	 */
	const char *before_dashes;
	const struct opt_section *sections; /* ended by one without title */
	/* Instead of options of its own: commands, NULL-terminated. */
	const struct opt_program *const *commands;
	int (*run)(int argc, char **argv); /* of a command; argv[0] is its last word */
};

/* Where a value came from; a higher one overrides a lower one. */
enum opt_source {
	OPT_FROM_DEFAULT,
	OPT_FROM_FILE,
	OPT_FROM_ENVIRONMENT,
	OPT_FROM_COMMAND_LINE,
	OPT_SOURCES,
};

/* "default", "file", "environment" or "command line". */
const char *opt_source_name(enum opt_source source);

/* What was given, by index in the table. */
struct opt_given {
	const char *text[OPT_SOURCES][OPT_MAX]; /* NULL: nothing */
	uint8_t source[OPT_MAX];		/* enum opt_source, once resolved */
	const char *path;			/* of the configuration file; NULL: none */
	char *file;				/* what it says, for opt_free */
	char **operand;
	int n_operands;
	const char *help; /* --help was given: "", or which form of it; NULL: not */
	bool version;	  /* --version was given */
};

enum opt_outcome {
	OPT_RUN,
	OPT_HELP,    /* asked for: opt_help, exit code 0 */
	OPT_VERSION, /* the same */
	OPT_BAD,     /* the error says why; exit code 2 */
};

/*
 * All at once for a program without more than this: parse argv, print help, version or what is
 * wrong. `target` has the program's fields; what nothing is given for stays as it is there. Returns
 * -1 to go on, else an exit code. Operands are in *given, which must live as long as they.
 */
int opt_main(
	const struct opt_program *p, int argc, char **argv, void *target, struct opt_given *given);

/* Of a program with commands: the exit code of the one that argv names. */
int opt_run_command(const struct opt_program *p, int argc, char **argv);

/*
 * In two steps. opt_take enters args[0 .. n), which may be done several times; args are reordered
 * so that operands are first. An error in them is kept in *e for the second step. opt_resolve adds
 * environment (as environ; NULL: none), file and defaults, checks all of it, whether overridden or
 * not, and sets the fields. Whatever the outcome, opt_free takes what *given holds.
 */
void opt_take(const struct opt_program *p, char **args, int n, void *target,
	struct opt_given *given, struct opt_error *e);
enum opt_outcome opt_resolve(const struct opt_program *p, char *const *environment, void *target,
	struct opt_given *given, struct opt_error *e);
void opt_free(struct opt_given *given);

/* Print "NAME: text" on standard error; returns OPT_EXIT_USAGE. */
int opt_usage(const struct opt_program *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Flush standard output: OPT_EXIT_OK, or OPT_EXIT_FAILED after saying that it is not written. */
int opt_flush(const struct opt_program *p);

/*
 * `form`, as given->help has it: "" for --help; "man", "bash" and "env" are files of the build:
 * manual page, completion, variables of a service.
 */
void opt_help(const struct opt_program *p, const char *form, FILE *to);

/* The i-th option as it was resolved, its value as one would write it. False: no more. */
struct opt_value {
	const char *name;
	enum opt_source source;
	char text[OPT_TEXT_MAX + 1];
};
bool opt_value(const struct opt_program *p, const struct opt_given *given, const void *target,
	size_t i, struct opt_value *value);

/* All of it as a configuration file that gives the same values. */
void opt_print_file(
	const struct opt_program *p, const struct opt_given *given, const void *target, FILE *to);

/* For checks: write what is wrong, unless there is something already; returns false. */
bool opt_wrong(struct opt_error *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* For OPT_OTHER: all of `text` is a decimal number from `least` to `most`. */
bool opt_number(const char *text, uint64_t least, uint64_t most, uint64_t *v);

/* A number of option `d` as one would write it: 16M, 0600, 1500. */
void opt_print(const struct opt_def *d, int64_t v, char *text, size_t room);

/* The option whose name is name[0 .. len), or NULL. */
const struct opt_def *opt_find(const struct opt_program *p, const char *name, size_t len);

#endif
