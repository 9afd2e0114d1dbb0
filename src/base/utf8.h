/*
 * utf8.h - text that strangers send
 */
#ifndef DSF_BASE_UTF8_H
#define DSF_BASE_UTF8_H
#include <stddef.h>
#include <stdint.h>

/* Bytes of the character at text, of which size > 0 are there; 0 when it isn't UTF-8 (RFC 3629 4)
 * or ends too early. */
unsigned dsf_utf8_size(const uint8_t *text, size_t size);

#endif
