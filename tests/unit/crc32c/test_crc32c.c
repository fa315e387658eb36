/* SPDX-License-Identifier: BSD-3-Clause */
#include <crc32c.h>

#include "test.h"

TEST(crc32c_is_that_of_the_rfc)
{
	uint8_t zero[32] = {0};

	assert_int_equal(tokd_crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(tokd_crc32c(tokd_crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
	assert_int_equal(tokd_crc32c(0, zero, 32), 0x8a9136aa);
	assert_int_equal(tokd_crc32c(0, "", 0), 0);
}

/* Of any length and alignment: a byte at a time gives the same. */
TEST(crc32c_of_long_data_is_that_of_its_bytes)
{
	uint8_t data[2100];
	uint32_t crc[sizeof(data) + 1] = {0};

	for (uint32_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * i >> 3 ^ i);
	for (uint32_t from = 0; from < 9; from++) {
		for (uint32_t i = from; i < sizeof(data); i++)
			crc[i + 1] = tokd_crc32c(i > from ? crc[i] : 0, &data[i], 1);
		for (uint32_t end = from + 1; end <= sizeof(data); end++)
			assert_int_equal(tokd_crc32c(0, data + from, end - from), crc[end]);
	}
}
