// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';

/* The samples of the last two minutes, put together from answers that each
 * hold only some of them. */

const WINDOW = 120;
/* A sample now and then falls on the same second as the one before. */
const NO_GAP = 2;

return baseclass.extend({
	WINDOW: WINDOW,

	empty: function() {
		return { list: [], floor: 0 };
	},

	newest: function(samples) {
		return samples.list.length ? samples.list[samples.list.length - 1].t : 0;
	},

	/* Adds those of an answer. */
	add: function(samples, answer) {
		const known = {};

		answer = answer.filter(function(sample) {
			return sample && sample.t > 0;
		});

		/* The router's clock was set back: what was is not comparable. */
		if (answer.length && answer[answer.length - 1].t < this.newest(samples) - WINDOW) {
			samples.list = [];
			samples.floor = 0;
		}

		samples.list.concat(answer).forEach(function(sample) {
			known[sample.t] = sample;
		});

		const times = Object.keys(known).map(Number).sort(function(a, b) {
			return a - b;
		});
		const from = times.length ? times[times.length - 1] - WINDOW : 0;

		samples.list = times.filter(function(t) {
			return t >= from;
		}).map(function(t) {
			return known[t];
		});
	},

	/* The time before which samples are missing; null: none are. */
	hole: function(samples) {
		const list = samples.list;
		const newest = this.newest(samples);

		for (let i = list.length - 1; i >= 0; i--) {
			const before = i ? list[i - 1].t : Math.max(samples.floor, newest - WINDOW);

			if (list[i].t <= samples.floor)
				return null;

			if (list[i].t - before > NO_GAP)
				return list[i].t;
		}

		return null;
	},

	/* Asked for and not there: it is not asked for again. */
	giveUp: function(samples, hole) {
		samples.floor = hole;
	}
});
