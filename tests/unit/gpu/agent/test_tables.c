/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of tokd-gpu: valid files, and files whose headers are wrong. */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"
#include "tokd-gpu/tables.h"
#include "tokd-gpu/tables_inside.h"

static char path[] = "/tmp/tokg-tables-XXXXXX";

static void
write_file(const void *bytes, size_t n)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

/* A safetensors file of this header, and n bytes 0, 1, 2 ... behind it. */
static void
write_safetensors(const char *json, size_t n)
{
	const uint64_t length = strlen(json);
	uint8_t *bytes = malloc(8 + length + n);

	assert_non_null(bytes);
	memcpy(bytes, &length, 8);
	memcpy(bytes + 8, json, length);
	for (size_t i = 0; i < n; i++)
		bytes[8 + length + i] = (uint8_t)i;
	write_file(bytes, 8 + length + n);
	free(bytes);
}

static void
write_npy(const char *header, size_t n)
{
	uint8_t bytes[512] = "\x93NUMPY\x01";
	const size_t length = strlen(header);

	bytes[8] = (uint8_t)length;
	memcpy(bytes + 10, header, length);
	for (size_t i = 0; i < n; i++)
		bytes[10 + length + i] = (uint8_t)i;
	write_file(bytes, 10 + length + n);
}

static void
is_loaded(struct tokg_table_set *set, uint32_t kind, uint32_t dtype)
{
	struct tokg_error err = {""};

	if (!tokg_tables_load(set, path, kind, dtype, &err))
		fail_msg("%s", err.text);
}

static void
is_refused(uint32_t kind, const char *reason)
{
	struct tokg_table_set set;
	struct tokg_error err = {""};

	assert_false(tokg_tables_load(&set, path, kind, 0, &err));
	tokg_tables_free(&set);
	if (strstr(err.text, reason) == NULL)
		fail_msg("\"%s\" is not in: %s", reason, err.text);
}

#define WTE "\"wte.weight\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]}"
#define WPE "\"wpe.weight\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[24,40]}"

TEST(gpt2_tables_are_found_and_make_the_kind)
{
	struct tokg_table_set set;

	write_safetensors("{\"__metadata__\":{\"format\":\"pt\"}," WTE "," WPE "}", 40);
	is_loaded(&set, 0, 0);
	assert_int_equal(set.tables.kind, TOKG_KIND_WORD_POSITION);
	assert_int_equal(set.tables.dtype, TOKG_F32);
	assert_int_equal(set.tables.dim, 2);
	assert_int_equal(set.tables.n_ids, 3);
	assert_int_equal(set.tables.n_positions, 2);
	assert_int_equal(((const uint8_t *)set.tables.word)[23], 23);
	assert_int_equal(((const uint8_t *)set.tables.position)[0], 24);
	tokg_tables_free(&set);
	is_loaded(&set, TOKG_KIND_WORD, 0);
	assert_null(set.tables.position);
	assert_int_equal(set.tables.n_positions, 0);
	tokg_tables_free(&set);
	is_refused(TOKG_KIND_BERT, "lacks the type table");
	write_safetensors("{\"transformer.wte.weight\":{\"dtype\":\"BF16\",\"shape\":[3,2],"
			  "\"data_offsets\":[0,12]}}",
		12);
	is_loaded(&set, 0, 0);
	assert_int_equal(set.tables.kind, TOKG_KIND_WORD);
	assert_int_equal(set.tables.dtype, TOKG_BF16);
	tokg_tables_free(&set);
}

TEST(bert_tables_are_found_in_any_order)
{
	struct tokg_table_set set;

	write_safetensors(
		"{\"bert.embeddings.LayerNorm.beta\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[20,24]},\"bert.embeddings.LayerNorm.gamma\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[16,20]},\"bert.embeddings.token_type_embeddings.weight\":{\"dtype\":\"F16\",\"shape\":[1,2],\"data_offsets\":[12,16]},\"bert.embeddings.position_embeddings.weight\":{\"dtype\":\"F16\",\"shape\":[1,2],\"data_offsets\":[8,12]},\"bert.embeddings.word_embeddings.weight\":{\"dtype\":\"F16\",\"shape\":[2,2],\"data_offsets\":[0,8]}}",
		24);
	is_loaded(&set, 0, 0);
	assert_int_equal(set.tables.kind, TOKG_KIND_BERT);
	assert_int_equal(((const uint8_t *)set.tables.type)[0], 12);
	assert_int_equal(((const uint8_t *)set.tables.gamma)[0], 16);
	assert_int_equal(((const uint8_t *)set.tables.beta)[3], 23);
	tokg_tables_free(&set);
}

TEST(tensors_of_other_types_may_be_there)
{
	struct tokg_table_set set;

	write_safetensors("{" WTE
			  ",\"scale\":{\"dtype\":\"F4\",\"shape\":[6],\"data_offsets\":[24,27]}}",
		27);
	is_loaded(&set, 0, 0);
	tokg_tables_free(&set);
}

TEST(invalid_safetensors_are_refused_by_name)
{
	static const struct {
		const char *json;
		size_t bytes;
		const char *reason;
	} lies[] = {
		{"{" WTE "}", 23, "\"wte.weight\": data_offsets [0, 24) exceed the 23"},
		{"{" WTE "}", 25, "1 bytes after the last tensor"},
		{"{" WTE ",\"x\":{\"dtype\":\"U8\",\"shape\":[20],\"data_offsets\":[20,40]}}", 40,
			"\"wte.weight\" and \"x\" overlap"},
		{"{" WTE ",\"x\":{\"dtype\":\"U8\",\"shape\":[15],\"data_offsets\":[25,40]}}", 40,
			"a gap of 1 bytes before tensor \"x\""},
		{"{" WTE "," WTE "}", 24, "duplicate object key"},
		{"{" WTE ",\"transformer.wte.weight\":{\"dtype\":\"F32\",\"shape\":[3,2],"
		 "\"data_offsets\":[24,48]}}",
			48, "second table of its kind"},
		{"{\"wte.weight\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[24,0]}}", 24,
			"data_offsets [24, 0)"},
		{"{\"wte.weight\":{\"dtype\":\"F32\",\"shape\":[3,3],\"data_offsets\":[0,24]}}", 24,
			"has 24 bytes, its shape needs 36"},
		{"{\"wte.weight\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],"
		 "\"data_offsets\":[0,0]}}",
			0, "tensor \"wte.weight\": the shape"},
		{"{\"wte.weight\":{\"dtype\":\"F32\",\"shape\":[0,2],\"data_offsets\":[0,0]}}", 0,
			"has 0 rows of 2"},
		{"{\"wte.weight\":{\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[0,24]}}", 24,
			"has 1 axes, must have 2"},
		{"{\"wte.weight\":{\"dtype\":\"F32\",\"shape\":[-3,-2],\"data_offsets\":[0,24]}}",
			24, ": the shape"},
		{"{\"wte.weight\":{\"dtype\":\"I32\",\"shape\":[3,2],\"data_offsets\":[0,24]}}", 24,
			"is I32, must be F32, F16 or BF16"},
		{"{\"wte.weight\":{\"dtype\":\"F32\",\"shape\":[3,2]}}", 24,
			"tensor \"wte.weight\": data_offsets must be two numbers"},
		{"{\"wte.weight\":7}", 0, "has no dtype"},
		{"{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
			"lacks the word table"},
		{"{}", 0, "lacks the word table"},
		{"[]", 0, "not a JSON object"},
		{"{\"wte", 0, "header: a string does not end"},
		{"{" WTE ",\"wpe.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],"
		 "\"data_offsets\":[24,48]}}",
			48, "the position table has rows of 3"},
	};

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		write_safetensors(lies[i].json, lies[i].bytes);
		is_refused(0, lies[i].reason);
	}
}

TEST(files_that_are_no_tables_are_refused)
{
	static const uint64_t huge[2] = {UINT64_MAX - 7, 0};

	write_file("", 0);
	is_refused(0, "ends at byte 0");
	write_file("{}{}{", 5);
	is_refused(0, "ends at byte 5");
	write_file(huge, sizeof(huge));
	is_refused(0, "neither .npy nor safetensors");
	write_file("\x93NUMPY", 6);
	is_refused(0, "ends at byte 6");
	unlink(path);
	is_refused(0, "No such file");
	assert_int_equal(mkfifo(path, 0600), 0);
	is_refused(0, "not a regular file");
	unlink(path);
}

TEST(npy_is_read_as_numpy_writes_it)
{
	struct tokg_table_set set;

	write_npy("{'descr': '<f2', 'fortran_order': False, 'shape': (3, 2), }   \n", 12);
	is_loaded(&set, 0, 0);
	assert_int_equal(set.tables.kind, TOKG_KIND_WORD);
	assert_int_equal(set.tables.dtype, TOKG_F16);
	assert_int_equal(set.tables.n_ids, 3);
	assert_int_equal(((const uint8_t *)set.tables.word)[11], 11);
	tokg_tables_free(&set);
	is_refused(TOKG_KIND_WORD_POSITION, "lacks the position table");
}

TEST(invalid_npy_is_refused)
{
	static const struct {
		const char *header;
		size_t bytes;
		const char *reason;
	} lies[] = {
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", 23, "23 bytes"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", 25, "25 bytes"},
		{"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 1), }", 24, "'<f8'"},
		{"{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }", 24, "Fortran"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }", 24, "1 axes"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615, 2), }",
			24, "rows of 2"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (-3, 2), }", 24,
			"invalid .npy header"},
		{"{'descr': '<f4', 'descr': '<f2', 'shape': (3, 2), }", 24, "invalid .npy header"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), 'x': 1}", 24,
			"invalid .npy header"},
		{"{'descr': '<f4<f4<f4<f4', 'fortran_order': False, 'shape': (3, 2), }", 24,
			"invalid .npy header"},
		{"{'descr': __import__('os'), 'fortran_order': False, 'shape': (3, 2), }", 24,
			"invalid .npy header"},
		{"", 24, "invalid .npy header"},
	};

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		write_npy(lies[i].header, lies[i].bytes);
		is_refused(0, lies[i].reason);
	}
}

TEST(types_are_rounded_to_nearest_even)
{
	static const float f32[] = {1.0f, -2.5f, 65504.0f, 65519.9f, 65520.0f, 0x1p-24f, 0x1p-25f,
		0x1.8p-25f, 1.0f + 0x1p-11f, 1.0f + 0x3p-11f, -0.0f, 0x1.ffcp-15f};
	static const uint16_t f16[] = {
		0x3c00, 0xc100, 0x7bff, 0x7bff, 0x7c00, 1, 0, 1, 0x3c00, 0x3c02, 0x8000, 0x0400};
	static const float coarse[] = {1.0f, 1.0f + 0x1p-8f, 1.0f + 0x3p-8f, 3.4e38f};
	static const uint16_t bf16[] = {0x3f80, 0x3f80, 0x3f82, 0x7f80};
	uint16_t to[16];
	float back;

	tokg_convert(to, TOKG_F16, f32, TOKG_F32, 12);
	for (int i = 0; i < 12; i++)
		assert_int_equal(to[i], f16[i]);
	tokg_convert(to, TOKG_BF16, coarse, TOKG_F32, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(to[i], bf16[i]);
	/* Every f16 is an f32, and is itself again. */
	for (uint32_t h = 0; h < 65536; h++) {
		const uint16_t from = (uint16_t)h;

		tokg_convert(&back, TOKG_F32, &from, TOKG_F16, 1);
		tokg_convert(to, TOKG_F16, &back, TOKG_F32, 1);
		if ((h & 0x7fff) > 0x7c00)
			assert_true(isnan(back) && (to[0] & 0x7fff) > 0x7c00);
		else
			assert_int_equal(to[0], h);
	}
}

TEST(random_tables_depend_on_nothing_but_the_seed)
{
	struct tokg_table_set set;
	struct tokg_error err = {""};
	float alone;

	assert_true(tokg_tables_load(&set, "random:1000x3:7:5", TOKG_KIND_WORD_POSITION, 0, &err));
	assert_int_equal(set.tables.n_ids, 1000);
	assert_int_equal(set.tables.dim, 3);
	assert_int_equal(set.tables.n_positions, 5);
	tokg_random_fill(&alone, 7, TOKG_WORD, 2999, 1);
	assert_true(((const float *)set.tables.word)[2999] == alone);
	tokg_random_fill(&alone, 7, TOKG_POSITION, 14, 1);
	assert_true(((const float *)set.tables.position)[14] == alone);
	for (int i = 0; i < 3000; i++)
		assert_true(fabsf(((const float *)set.tables.word)[i]) <= 1.0f);
	tokg_tables_free(&set);
}

TEST(random_tables_have_limits)
{
	static const char *const bad[] = {"random:", "random:5", "random:5x", "random:0x5",
		"random:5x0", "random:5x5:", "random:5x5:1:0", "random:5x5:1:2:3", "random:5x5:x",
		"random:16777217x1", "random:1x65537", "random:16777216x65536",
		"random:99999999999999999999x1", "random:-5x5", "random: 5x5"};
	struct tokg_table_set set;
	struct tokg_error err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (tokg_tables_load(&set, bad[i], 0, 0, &err))
			fail_msg("%s was taken", bad[i]);
		tokg_tables_free(&set);
	}
}

int
main(void)
{
	int rc;

	close(mkstemp(path));
	rc = tests_run();
	unlink(path);
	return rc;
}
