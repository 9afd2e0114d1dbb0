/*
 * hex.h - bytes of a message as text: pairs of hexadecimal digits, blanks between them as one likes
 */
#ifndef DSF_TESTS_HEX_H
#define DSF_TESTS_HEX_H
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Into to, which has room. Returns how many bytes. */
static size_t from_hex(const char *text, uint8_t *to)
{
	size_t size = 0;

	while (*text != '\0') {
		if (*text == ' ') {
			text++;
			continue;
		}
		to[size++] = (uint8_t)strtoul((char[]){ text[0], text[1], '\0' }, NULL, 16);
		text += 2;
	}
	return size;
}

#endif
