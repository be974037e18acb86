// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';

/* Figures as people read them. */

function local(value, digits) {
	const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };

	try {
		return value.toLocaleString(document.documentElement.lang || [], options);
	}
	catch (e) {
		return value.toFixed(digits);
	}
}

/* Three digits are enough. */
function short(value) {
	return local(value, value < 10 && value != Math.round(value) ? 1 : 0);
}

function scaled(value, step, units) {
	let at = 0;

	while (value >= step && at < units.length - 1) {
		value /= step;
		at++;
	}

	return short(value) + ' ' + units[at];
}

return baseclass.extend({
	count: function(value) {
		return local(Math.round(+value || 0), 0);
	},

	bits: function(value) {
		return scaled(+value || 0, 1000, [ 'bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s' ]);
	},

	bytes: function(value) {
		return scaled(+value || 0, 1024, [ 'B', 'KiB', 'MiB', 'GiB', 'TiB' ]);
	},

	/* From microseconds. */
	ms: function(value) {
		return short((+value || 0) / 1000) + ' ms';
	},

	percent: function(value) {
		return local(+value || 0, 1) + ' %';
	},

	/* What is rare keeps two digits that say something, down to one in a hundred thousand. */
	rare: function(value) {
		const percent = +value || 0;

		return local(percent, !percent || percent >= 1 ? 1 : percent >= 0.1 ? 2 : 3) + ' %';
	},

	/* Up to an hour, which is sixty minutes here: "in the last 60 min". */
	recently: function(seconds) {
		const s = Math.max(0, Math.round(+seconds || 0));

		return s < 60 ? _('%d s').format(s) : _('%d min').format(Math.round(s / 60));
	},

	duration: function(seconds) {
		const s = Math.max(0, Math.floor(+seconds || 0));

		if (s < 60)
			return _('%d s').format(s);

		if (s < 3600)
			return _('%d min').format(Math.floor(s / 60));

		if (s < 86400)
			return _('%d h %d min').format(Math.floor(s / 3600), Math.floor(s / 60) % 60);

		return _('%d d %d h').format(Math.floor(s / 86400), Math.floor(s / 3600) % 24);
	}
});
