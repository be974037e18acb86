/* SPDX-License-Identifier: GPL-2.0-or-later */
/* In the place of what the daemon would get from zig's libraries. */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>

/*
 * Rust's threads name themselves, and nobody else. musl's function names others as well, by a
 * file whose name it makes with printf: 11 KB that nothing else needs.
 */
int pthread_setname_np(pthread_t thread, const char *name)
{
	if (thread != pthread_self())
		return ENOTSUP;
	return prctl(PR_SET_NAME, name) < 0 ? errno : 0;
}

#ifdef __mips__
/*
 * memcpy for MIPS. That of zig's runtime copies four bytes by seven instructions, and was a
 * ninth of what the router took for a packet; this one copies 32 bytes by 21 where both ends are
 * aligned, as packets and the daemon's structures are, and sixteen by twenty where they are not.
 */

typedef uint32_t __attribute__((may_alias)) word;
/* A word anywhere: the processor has instructions for its two parts. */
struct __attribute__((packed, may_alias)) loose {
	uint32_t word;
};

/* Bytes that are copied at a time where both ends are aligned. */
#define BLOCK (8 * sizeof(word))
#define COPY(type, at) ((type *)to)[at] = ((const type *)from)[at]

void *memcpy(void *restrict start, const void *restrict source, size_t len)
{
	unsigned char *to = start;
	const unsigned char *from = source;

	if ((((uintptr_t)to | (uintptr_t)from) & (sizeof(word) - 1)) == 0) {
		const unsigned char *end = from + (len & ~(size_t)(BLOCK - 1));

		for (; from != end; to += BLOCK, from += BLOCK) {
			COPY(word, 0);
			COPY(word, 1);
			COPY(word, 2);
			COPY(word, 3);
			COPY(word, 4);
			COPY(word, 5);
			COPY(word, 6);
			COPY(word, 7);
		}
		len &= BLOCK - 1;
		for (; len >= sizeof(word); len -= sizeof(word)) {
			COPY(word, 0);
			to += sizeof(word);
			from += sizeof(word);
		}
	}
	for (; len >= 4 * sizeof(word); len -= 4 * sizeof(word)) {
		COPY(struct loose, 0);
		COPY(struct loose, 1);
		COPY(struct loose, 2);
		COPY(struct loose, 3);
		to += 4 * sizeof(word);
		from += 4 * sizeof(word);
	}
	for (; len >= sizeof(word); len -= sizeof(word)) {
		COPY(struct loose, 0);
		to += sizeof(word);
		from += sizeof(word);
	}
	for (; len > 0; len--)
		*to++ = *from++;
	return start;
}
#endif
