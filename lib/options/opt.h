/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options of a program: one table for parsing, --help, the manual page, bash completion,
 * environment variables and the configuration file. Needs only libc; allocates only for the
 * configuration file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OPT_MAX 64	    /* options of a program */
#define OPT_TEXTS_MAX 16384 /* values of a repeatable option */
#define OPT_TEXT_MAX 255    /* bytes of a value, with a configuration file */

#define OPT_K ((uint64_t)1 << 10)
#define OPT_M ((uint64_t)1 << 20)
#define OPT_G ((uint64_t)1 << 30)

/* Exit codes of every program. */
enum { OPT_EXIT_OK, OPT_EXIT_FAILED, OPT_EXIT_USAGE };

/* One line for the user: option, value, limit, remedy. */
struct opt_error {
	char text[512];
};

enum opt_type {
	OPT_TEXT,   /* const char * into argv, environment or file; `max`: bytes, 0: no limit */
	OPT_CHOICE, /* one word of `arg`, which is "a|b|c": its index, or the word if the field is a
		       pointer */
	OPT_COUNT,  /* integer of 2, 4 or 8 bytes, in decimal; as are the next four */
	OPT_MS,	    /* milliseconds; or with ms or s after it */
	OPT_S,	    /* seconds; or the same. Field and limits are milliseconds */
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
	OPT_RELOADS = 16,    /* a running program can change it */
};

/* Values of a repeatable option, all from the source with the highest precedence. */
struct opt_texts {
	uint32_t n;
	const char *text[OPT_TEXTS_MAX];
};

struct opt_def {
	const char *name;
	/*
	 * The value's name in --help; NULL: a flag. Also for completion: FILE, PATH or SOCKET is a
	 * file, a|b is a or b, words_arg of the program one of its words or a file.
	 */
	const char *arg;
	enum opt_type type;
	uint32_t offset, width; /* of the field: OPT_FIELD */
	int64_t min;		/* numbers only */
	uint64_t max;
	const char *preset; /* default, as a user would write it; NULL: the field is not changed */
	const char *help;   /* one plain sentence without a full stop */
	/* Optional: */
	char letter;	     /* short form */
	uint8_t flags;	     /* OPT_REQUIRED and the like */
	const char *section; /* heading above this option and the following ones */
	/*
	 * OPT_OTHER: parses the value; else checks the field after it is set. False: err->text
	 * follows "--name value: ", as in "not a power of two; give 2M or 4M".
	 */
	bool (*check)(
		const struct opt_def *d, const char *text, void *field, struct opt_error *err);
};

#define OPT_FIELD(type, field) offsetof(type, field), sizeof(((type *)0)->field)

/* A section of the manual page. Lines that begin with a blank are not reflowed. */
struct opt_section {
	const char *title; /* as in EXIT STATUS */
	const char *text;
	bool in_help; /* also in --help */
};

struct opt_program {
	const char *name;    /* "tokd-tail"; of a command "tok encode" */
	const char *version; /* of the project */
	const char *summary; /* what it does, in one line */
	const char *usage;   /* after the name: "[options] < text" */
	const char *about;   /* a paragraph or two */
	const struct opt_def *defs;
	size_t n_defs;
	/* Operands: their name, or NULL, and their number. */
	const char *operand;
	int operands_min, operands_max;
	const char *operand_missing; /* error for too few or too many */
	/* Environment: "TOKD_" makes TOKD_RING_SIZE of ring-size; NULL: none. */
	const char *env_prefix;
	const char *const *env_others; /* NULL-terminated: other variables with this prefix */
	/* Configuration file: its only section, and the option that names it; NULL: none. */
	const char *file_section;
	const char *file_option;
	/* Completion. Options before --, separated by blanks; NULL: none. */
	const char *before_dashes;
	/* Values of this name are words that the body of a bash function prints; NULL: none. */
	const char *words_arg, *words_script;
	const struct opt_section *sections; /* ended by one without title */
	/* Commands instead of options, NULL-terminated. */
	const struct opt_program *const *commands;
	int (*run)(int argc, char **argv); /* of a command; argv[0] is its last word */
};

/* The source of a value; a higher one overrides a lower one. */
enum opt_source {
	OPT_FROM_DEFAULT,
	OPT_FROM_FILE,
	OPT_FROM_ENVIRONMENT,
	OPT_FROM_COMMAND_LINE,
	OPT_SOURCES,
};

/* "default", "file", "environment" or "command line". */
const char *opt_source_name(enum opt_source source);

/* Given values, by index in the table. */
struct opt_given {
	const char *text[OPT_SOURCES][OPT_MAX]; /* NULL: nothing */
	uint8_t source[OPT_MAX];		/* enum opt_source, once resolved */
	const char *path;			/* of the configuration file; NULL: none */
	char *file;				/* its content, for opt_free */
	char **operand;
	int n_operands;
	const char *help; /* --help was given: "", or its form; NULL: not */
	bool version;	  /* --version was given */
};

enum opt_outcome {
	OPT_RUN,
	OPT_HELP,    /* call opt_help, exit code 0 */
	OPT_VERSION, /* the same */
	OPT_BAD,     /* print the error; exit code 2 */
};

/*
 * For simple programs: parses argv; prints help, version or the error. `target` has the program's
 * fields; those without a value are not changed. Returns -1 to continue, else an exit code.
 * Operands are in *given, which must stay valid.
 */
int opt_main(
	const struct opt_program *p, int argc, char **argv, void *target, struct opt_given *given);

/* For a program with commands: runs the one that argv names; returns its exit code. */
int opt_run_command(const struct opt_program *p, int argc, char **argv);

/*
 * In two steps. opt_take collects args[0 .. n), and may be called several times; it reorders args
 * so that operands are first, and keeps an error in *e for the second step. opt_resolve adds
 * environment (as environ; NULL: none), file and defaults, checks all values, also overridden ones,
 * and sets the fields. Call opt_free in any case.
 */
void opt_take(const struct opt_program *p, char **args, int n, void *target,
	struct opt_given *given, struct opt_error *e);
enum opt_outcome opt_resolve(const struct opt_program *p, char *const *environment, void *target,
	struct opt_given *given, struct opt_error *e);
void opt_free(struct opt_given *given);

/* Print "NAME: text" on standard error; returns OPT_EXIT_USAGE. */
int opt_usage(const struct opt_program *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Flush standard output: OPT_EXIT_OK, or OPT_EXIT_FAILED after printing the error. */
int opt_flush(const struct opt_program *p);

/*
 * `form`, as in given->help: "" for --help; "man", "bash" and "env" for the build: manual page,
 * completion, variables of a service.
 */
void opt_help(const struct opt_program *p, const char *form, FILE *to);

/* The i-th option with its resolved value, as a user would write it. False: no more. */
struct opt_value {
	const char *name;
	enum opt_source source;
	char text[OPT_TEXT_MAX + 1];
};
bool opt_value(const struct opt_program *p, const struct opt_given *given, const void *target,
	size_t i, struct opt_value *value);

/* Gives option i the value, and its source, that it has in `from`. Not for repeatable ones. */
void opt_copy(const struct opt_program *p, size_t i, const struct opt_given *from_given,
	const void *from, struct opt_given *given, void *target);

/* Prints a configuration file with the same values. */
void opt_print_file(
	const struct opt_program *p, const struct opt_given *given, const void *target, FILE *to);

/* For checks: sets the error, unless there is one already; returns false. */
bool opt_wrong(struct opt_error *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* `check` of an 8-byte OPT_SIZE. 0 is right if it is within the limits. */
bool opt_check_power_of_2(
	const struct opt_def *, const char *text, void *field, struct opt_error *err);

/* For OPT_OTHER: true if all of `text` is a decimal number from `least` to `most`. */
bool opt_number(const char *text, uint64_t least, uint64_t most, uint64_t *v);

/* A number of option `d` as a user would write it: 16M, 0600, 1500. */
void opt_print(const struct opt_def *d, int64_t v, char *text, size_t room);

/* The option whose name is name[0 .. len), or NULL. */
const struct opt_def *opt_find(const struct opt_program *p, const char *name, size_t len);
