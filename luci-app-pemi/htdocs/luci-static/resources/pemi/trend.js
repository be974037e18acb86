// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';

/* The last day and week, put together from answers that each hold some of their parts. */

/* Seconds until it is looked at again; the newest part is not over yet. */
const EVERY = 60;

return baseclass.extend({
	create: function(span) {
		return { span: span, parts: {}, come: 0, now: 0, asked: 0, failed: false };
	},

	/* Parts that came in this round; null while nothing has to be asked. */
	skip: function(trend, seconds) {
		return trend.come || seconds - trend.asked >= EVERY ? trend.come : null;
	},

	/* Takes an answer, or none of a daemon that knows nothing of it. */
	take: function(trend, answer, seconds) {
		const parts = answer && Array.isArray(answer.parts) ? answer.parts : [];

		if (!trend.come)
			trend.asked = seconds;

		trend.failed = !answer;
		trend.come += parts.length;

		parts.forEach(function(part) {
			trend.parts[part[0]] = part;
		});

		if (answer) {
			trend.now = answer.now;
			trend.part_s = answer.part_s;
		}

		/* All have come, and later only the newest are news. */
		if (!parts.length || trend.come >= answer.total || trend.whole)
			trend.come = 0;

		trend.whole = !trend.failed && !trend.come;
	},

	/* As charts draw them. */
	samples: function(trend) {
		return Object.keys(trend.parts).map(Number).sort(function(a, b) {
			return a - b;
		}).map(function(at) {
			const part = trend.parts[at];
			const until = Math.min(at + trend.part_s, Math.max(trend.now, at + 1));

			return {
				begin: at, t: until, inferred: part[2], repaired: part[3], beyond: part[4],
				down_bps: part[5] * 8 / (until - at), up_bps: part[6] * 8 / (until - at)
			};
		});
	}
});
