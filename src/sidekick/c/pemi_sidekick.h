/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sender of Sidekick: which UDP packets were lost on the way to the router. How it is
 * used is in src/sidekick/README.md, what goes across the wire in src/quack/README.md.
 *
 * Nothing here sends, receives, or looks at a clock. Times are in nanoseconds of any
 * clock that does not jump, for instance CLOCK_MONOTONIC. A sender is not to be used
 * by several threads at the same time; several senders may be. */
#ifndef PEMI_SIDEKICK_H
#define PEMI_SIDEKICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One session. */
typedef struct pemi_sidekick pemi_sidekick;

/* The longest message that pemi_sidekick_poll gives, bytes. */
#define PEMI_SIDEKICK_MESSAGE 48
/* No time at all. */
#define PEMI_SIDEKICK_NEVER UINT64_MAX

/* When the router sends quACKs. */
enum pemi_sidekick_mode {
	PEMI_SIDEKICK_ROUTER = 0,   /* as it is configured */
	PEMI_SIDEKICK_PACKETS = 1,  /* after `interval` packets */
	PEMI_SIDEKICK_MILLIS = 2,   /* after `interval` milliseconds in which packets came */
	PEMI_SIDEKICK_ADAPTIVE = 3, /* when a packet is late */
};

/* What can be expected of the router. */
enum pemi_sidekick_state {
	PEMI_SIDEKICK_ASKING = 0,  /* it has not answered, or no more */
	PEMI_SIDEKICK_RUNNING = 1, /* losses are found */
	PEMI_SIDEKICK_REFUSED = 2, /* it will not */
	PEMI_SIDEKICK_CLOSED = 3,  /* pemi_sidekick_close was called */
};

/* Set all to 0 first: what is 0 has the default in brackets. */
struct pemi_sidekick_options {
	uint64_t token;        /* random, from a good generator */
	uint64_t tolerance_ns; /* how late packets may be and are not lost [1 ms] */
	uint32_t log_limit;    /* packets that are remembered [4096] */
	uint16_t client_port;  /* the flow's UDP port here, in the byte order of this machine */
	uint16_t server_port;  /* and at its other end */
	uint8_t server[16];    /* whose IPv6 address this is, or ::ffff:a.b.c.d */
	uint16_t offset;       /* where identifiers begin in the UDP payload, bytes */
	uint16_t interval;     /* of `mode`, from 1 on where it has one */
	uint8_t mode;          /* enum pemi_sidekick_mode */
	uint8_t width;         /* bytes of an identifier: 2, 4 or 8 [4] */
	uint8_t threshold;     /* how many missing packets a quACK can name [8] */
};

/* Counted since the start. */
struct pemi_sidekick_stats {
	uint64_t losses;      /* packets reported lost */
	uint64_t spurious;    /* of these, the router got so many after all */
	uint64_t quacks;      /* quACKs looked at */
	uint64_t quack_bytes; /* their messages, UDP payload */
	uint64_t resyncs;     /* quACKs that could not be decoded */
	uint64_t fallbacks;   /* how often a router that had answered no longer did */
};

/* A new session, for the caller to free; NULL if an option has no meaning. The options
 * are copied. */
pemi_sidekick *pemi_sidekick_new(const struct pemi_sidekick_options *options);

/* NULL is allowed. Says nothing to the router; see pemi_sidekick_close. */
void pemi_sidekick_free(pemi_sidekick *session);

/* Writes a message for the router into `buffer`, which has room for
 * PEMI_SIDEKICK_MESSAGE bytes, and returns how long it is; 0: there is none. To be called
 * until there is none. */
size_t pemi_sidekick_poll(pemi_sidekick *session, uint64_t now_ns, uint8_t *buffer);

/* When to call pemi_sidekick_poll and pemi_sidekick_next_lost next, if nothing happens
 * before; may be past. PEMI_SIDEKICK_NEVER once closed. */
uint64_t pemi_sidekick_next_timeout(const pemi_sidekick *session);

/* A packet of the flow goes out: its UDP payload, which is not kept, and what the caller
 * calls it. What is sent again should get another tag. */
void pemi_sidekick_on_sent(pemi_sidekick *session, uint64_t now_ns, uint64_t tag,
			   const uint8_t *payload, size_t length);

/* A UDP payload from the router. It is not kept; anything may be in it. */
void pemi_sidekick_on_message(pemi_sidekick *session, uint64_t now_ns, const uint8_t *bytes,
			      size_t length);

/* Whether a packet is lost; if so, its tag is in `*tag`, each once. To be called until
 * it returns false. */
bool pemi_sidekick_next_lost(pemi_sidekick *session, uint64_t now_ns, uint64_t *tag);

/* What can be expected of the router. */
enum pemi_sidekick_state pemi_sidekick_get_state(const pemi_sidekick *session, uint64_t now_ns);

/* What has been counted. */
void pemi_sidekick_get_stats(const pemi_sidekick *session, struct pemi_sidekick_stats *stats);

/* The session is to end: the next pemi_sidekick_poll has the message that says so. */
void pemi_sidekick_close(pemi_sidekick *session);

#ifdef __cplusplus
}
#endif

#endif
