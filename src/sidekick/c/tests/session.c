// SPDX-License-Identifier: GPL-2.0-or-later
/* A handshake and a loss, with the router's messages as they were recorded. */
#include <stdio.h>
#include <string.h>

#include "pemi_sidekick.h"

#define MS UINT64_C(1000000)
#define CHECK(condition)                                                   \
	do {                                                               \
		if (!(condition)) {                                        \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
			return 1;                                          \
		}                                                          \
	} while (0)

/* What the sender is to say, the second time with the cookie at byte 12. */
static const uint8_t hello[] = {
	0x01, 0x01, 0x04, 0x02, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x02,
	0x00, 0x01, 0xc3, 0x50, 0x11, 0x51, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xc0, 0x00, 0x02, 0x01,
};
static const uint8_t bye[] = {
	0x01, 0x07, 0x00, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
};

/* What the router says: COOKIE, ACCEPT (2 packets, threshold 2, 30 s), the quACK after the
 * first two packets, and that after the fourth; the third was lost. */
static const uint8_t cookie[] = {
	0x01, 0x02, 0x00, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
	0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
};
static const uint8_t accept[] = {
	0x01, 0x03, 0x01, 0x02, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
	0x00, 0x02, 0x00, 0x1e, 0x00, 0x00, 0x00, 0x2a,
};
static const uint8_t first[] = {
	0x01, 0x05, 0x00, 0x01, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
	0x00, 0x00, 0x00, 0x2a, 0x00, 0x00, 0x00, 0x64, 0x01, 0x84, 0x02, 0x00,
	0x02, 0x0b, 0xad, 0xca, 0xfe, 0xad, 0x60, 0x8e, 0xd2, 0x62, 0x34, 0x2a,
	0x7d,
};
static const uint8_t second[] = {
	0x01, 0x05, 0x00, 0x02, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
	0x00, 0x00, 0x00, 0x2a, 0x00, 0x00, 0x00, 0x64, 0x01, 0x84, 0x02, 0x00,
	0x03, 0xfe, 0xed, 0xbe, 0xef, 0xac, 0x4e, 0x4d, 0xc6, 0xb0, 0x71, 0x00,
	0x18,
};

/* Identifiers begin at byte 1. */
static const uint8_t packets[4][5] = {
	{0x40, 0xa1, 0xb2, 0xc3, 0xd4},
	{0x40, 0x0b, 0xad, 0xca, 0xfe},
	{0x40, 0x13, 0x57, 0x24, 0x68},
	{0x40, 0xfe, 0xed, 0xbe, 0xef},
};

int main(void)
{
	struct pemi_sidekick_options options;
	struct pemi_sidekick_stats stats;
	uint8_t message[PEMI_SIDEKICK_MESSAGE];
	uint64_t tag = 0;
	pemi_sidekick *session;

	memset(&options, 0, sizeof options);
	options.mode = PEMI_SIDEKICK_PACKETS;
	CHECK(!pemi_sidekick_new(&options)); /* so many packets, but how many? */
	CHECK(!pemi_sidekick_new(NULL));
	options.interval = 2;
	options.width = 3;
	CHECK(!pemi_sidekick_new(&options));
	options.width = 4;
	options.token = UINT64_C(0x0102030405060708);
	options.client_port = 50000;
	options.server_port = 4433;
	memcpy(options.server, hello + 32, sizeof options.server);
	options.offset = 1;
	options.threshold = 2;
	session = pemi_sidekick_new(&options);
	CHECK(session);

	CHECK(pemi_sidekick_poll(session, 0, message) == sizeof hello);
	CHECK(!memcmp(message, hello, sizeof hello));
	CHECK(pemi_sidekick_poll(session, 0, message) == 0);
	CHECK(pemi_sidekick_next_timeout(session) == 1000 * MS);
	pemi_sidekick_on_message(session, 2 * MS, cookie, sizeof cookie);
	CHECK(pemi_sidekick_poll(session, 2 * MS, message) == sizeof hello);
	CHECK(!memcmp(message + 12, cookie + 12, 8));
	CHECK(pemi_sidekick_get_state(session, 3 * MS) == PEMI_SIDEKICK_ASKING);
	pemi_sidekick_on_message(session, 4 * MS, accept, sizeof accept);
	CHECK(pemi_sidekick_get_state(session, 4 * MS) == PEMI_SIDEKICK_RUNNING);
	CHECK(pemi_sidekick_next_timeout(session) == 10004 * MS);

	for (uint64_t i = 0; i < 4; i++)
		pemi_sidekick_on_sent(session, (20 + 20 * i) * MS, 100 + i, packets[i], 5);
	pemi_sidekick_on_sent(session, 81 * MS, 200, NULL, 0);
	pemi_sidekick_on_message(session, 82 * MS, first, sizeof first);
	CHECK(!pemi_sidekick_next_lost(session, 82 * MS, &tag));
	pemi_sidekick_on_message(session, 83 * MS, second, sizeof second - 1);
	CHECK(!pemi_sidekick_next_lost(session, 83 * MS, &tag));
	pemi_sidekick_on_message(session, 84 * MS, second, sizeof second);
	CHECK(pemi_sidekick_next_lost(session, 84 * MS, &tag));
	CHECK(tag == 102);
	CHECK(!pemi_sidekick_next_lost(session, 84 * MS, &tag));
	pemi_sidekick_get_stats(session, &stats);
	CHECK(stats.losses == 1 && stats.quacks == 2 && stats.resyncs == 0);
	CHECK(stats.quack_bytes == sizeof first + sizeof second);

	pemi_sidekick_close(session);
	CHECK(pemi_sidekick_poll(session, 85 * MS, message) == sizeof bye);
	CHECK(!memcmp(message, bye, sizeof bye));
	CHECK(pemi_sidekick_poll(session, 85 * MS, message) == 0);
	CHECK(pemi_sidekick_next_timeout(session) == PEMI_SIDEKICK_NEVER);
	CHECK(pemi_sidekick_get_state(session, 85 * MS) == PEMI_SIDEKICK_CLOSED);
	pemi_sidekick_free(session);
	pemi_sidekick_free(NULL);
	return 0;
}
