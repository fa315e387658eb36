/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of module libtok share. C API of CPython and numpy.
 *
 * Arrays have their exact size: ids are written to the room of an encoder first. Those of texts too
 * long for that (ENCODER_ROOM_KEPT) have memory of their own, which becomes that of the array. The
 * characters of a str become UTF-8 in the encoder's room: the str keeps no copy.
 *
 * The GIL is held for short texts and released for long ones (GIL_BYTES). Either way:
 *   - An encoder (a cache and scratch) belongs to one call at a time, also of a stream, which
 *     borrows it from its vocabulary (idle list, guarded by the GIL) and gives it back.
 *   - A stream that is being fed says so (`busy`), and refuses a second thread.
 * Without a GIL neither would hold.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_23_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL dpdk_tokd_numpy
#ifndef LIBTOK_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include <assert.h>

#include <tok.h>

#ifdef Py_GIL_DISABLED
#error "libtok needs a Python with a GIL"
#endif

#include "batch.h"
#include "object.h"

/*
 * Releasing the GIL costs 0.1 us, and up to 5 ms (sys.getswitchinterval) where another thread
 * takes it: not worth it for a text that takes a few microseconds.
 */
#define GIL_BYTES 4096

#define ENCODERS_IDLE_MAX BATCH_THREADS_MAX

/* Of the tokenizer_config.json beside a file without truncation, once a call needs it. */
struct model_truncation {
	bool known;
	bool left;	 /* those on the left go */
	Py_ssize_t most; /* -1: any number */
};

struct vocab {
	PyObject_HEAD
	struct tok_vocab *vocab;
	uint32_t flags; /* TOK_STRICT_UTF8 or 0: of each call */
	struct model_truncation model;
	int n_idle;
	struct encoder *idle[ENCODERS_IDLE_MAX];
};

/* NULL with MemoryError set if memory is short. May release the GIL, to make one. */
struct encoder *encoder_borrow(struct vocab *v);
void encoder_return(struct vocab *v, struct encoder *e);

/* The same for n at once; false if memory is short, and none is borrowed. */
bool encoders_borrow(struct vocab *v, struct encoder **e, uint32_t n);
void encoders_return(struct vocab *v, struct encoder *const *e, uint32_t n);

/* ---- how to encode: the keywords that encode, encode_batch and stream have in common ---- */

struct how {
	uint32_t flags;
	int type; /* of the ids: NPY_UINT32, NPY_INT32 or NPY_INT64 */
	struct batch_cut cut;
	bool side; /* truncation_side was given */
	bool offsets;
	PyObject *text; /* borrowed, or NULL */
};

/* What a call without keywords means. */
struct how how_default(const struct vocab *v);

/*
 * Take `n` keywords, the values of which are value[0 .. n). False with an exception set. `call`
 * names the function, and `known` how many of the keywords (options.c) it has.
 */
enum { HOW_STREAM = 3, HOW_BATCH = 5, HOW_ENCODE = 7 };
bool how_take(struct how *h, struct vocab *v, const char *call, int known, PyObject *names,
	PyObject *const *value);
bool options_init(void);

/* ---- texts and arrays ---- */

/*
 * The characters of a str, the bytes of bytes, or of another buffer of bytes. 1: release *b when
 * done; 0: there is nothing to release; -1 with an exception set, which names the text's `index`
 * if that is not negative.
 */
int text_take(struct encoder_text *text, Py_buffer *b, PyObject *o, Py_ssize_t index);

/* Encoding this str gave `status` without an error: sets the exception, if none is; NULL. */
PyObject *raise_text(enum tok_status status, PyObject *o, Py_ssize_t index);

#define HUGE_PAGE ((size_t)2 << 20) /* bytes */

/* A new array of n ids or splits, uninitialized, or NULL with an exception set. */
PyObject *array_new(size_t n, int type);

static inline void *
array_data(PyObject *array)
{
	return PyArray_DATA((PyArrayObject *)array);
}

/* Where libtok writes ids: the room of an encoder, or for many memory of their own. */
struct ids {
	uint32_t *room;
	uint32_t *own; /* or NULL; ids_free() */
	size_t own_bytes;
};

/* Room for `bound` ids. False if memory is short. Nothing of Python. */
bool ids_prepare(struct ids *ids, struct encoder *e, size_t bound);
void ids_free(struct ids *ids);
/* The first n as an array, which takes over what is to be freed; NULL with an exception set. */
PyObject *ids_array(struct ids *ids, size_t n);
/* An array of ids as one of a type of struct how, which takes its place. NULL stays NULL. */
PyObject *ids_as(PyObject *array, int type);

/* Why a result is not TOK_OK, as a ValueError; NULL. */
PyObject *raise_bad(struct tok_result r, const char *unit);
const char *why_of(struct tok_result r);

/*
 * Make *text UTF-8 and encode it, on `threads` threads with an encoder each. If `cut` keeps only
 * the first ids, the rest of the text is not encoded. Always call ids_free(). TOK_MORE: memory is
 * short; TOK_BAD without an error: the text has a surrogate, or an exception is set. Without the
 * GIL.
 */
struct tok_result encode_all(const struct vocab *v, struct encoder_text *text, uint32_t flags,
	const struct batch_cut *cut, struct ids *ids, struct encoder *const *e, uint32_t threads);

/* ---- a long text (encode_long.c; without the GIL) ---- */

#define LONG_BYTES ((size_t)512 << 10)

extern uint32_t long_threads_most; /* of a text; at most one per CPU by affinity in any case */

/* How many threads, and so encoders, are worth it for a text of n bytes: usually one. */
uint32_t long_threads(const struct tok_vocab *v, size_t n, uint32_t flags);

/* As tok_encode(), with several threads. `ids` has room for encoder_bound() ids. */
struct tok_result long_encode(const struct tok_vocab *v, struct encoder *const *encoder,
	uint32_t threads, const struct encoder_text *text, uint32_t flags, uint32_t *ids);

/* ---- methods and types ---- */

PyObject *vocab_encode(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *vocab_encode_texts(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *vocab_spans(PyObject *self, PyObject *args);
PyObject *vocab_stream(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *vocab_decode(PyObject *self, PyObject *ids);
PyObject *vocab_decode_stream(PyObject *self, PyObject *unused);
PyObject *list_of_ids(PyObject *module, PyObject *ids);
PyObject *lists_of(PyObject *module, PyObject *args);
PyObject *json_ids(PyObject *module, PyObject *ids); /* bytes: "[1,2,3]" */
PyObject *varints(PyObject *module, PyObject *ids);  /* bytes: protobuf's packed numbers */

/*
 * json_lines(lines, field): a list of bytes, for each line that is not blank the string `field` of
 * its object. None: the line is for Python's own parser, which reads more, or says what is wrong.
 */
PyObject *json_lines(PyObject *module, PyObject *args);

PyObject *tokd_dlpack(PyObject *module, PyObject *args);

PyObject *stream_in_use(void); /* sets RuntimeError; NULL */

/* Words of tokd/ring.h in shared memory, which Python cannot load and store itself. */
extern PyMethodDef words_methods[], engine_methods[];

/* Made once: numpy, which this module needs, is loaded once in a process as well. */
extern PyType_Spec vocab_spec, stream_spec, decode_stream_spec;
extern PyTypeObject *stream_type, *decode_stream_type;
