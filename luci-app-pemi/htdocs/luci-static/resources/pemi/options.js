// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';

/* What the options may be. Each check gives true, or says what is allowed. */

function number(value) {
	const text = String(value).trim();

	return /^[0-9]+$/.test(text) ? parseInt(text, 10) : NaN;
}

function mark(value) {
	const text = String(value).trim();

	if (!/^(0[xX][0-9a-fA-F]+|[0-9]+)$/.test(text))
		return NaN;

	/* Not by &: its numbers have 32 bits and a sign. */
	return Number(text);
}

/* Bits that both have. */
function common(a, b) {
	return ((a >>> 0) & (b >>> 0)) != 0;
}

return baseclass.extend({
	/* What uci calls on. */
	isOn: function(value) {
		return [ '1', 'on', 'true', 'yes', 'enabled' ].indexOf(value) > -1;
	},

	/* A missing option means its default, so an empty field is right. */
	range: function(least, most) {
		return function(section_id, value) {
			const given = number(value);

			if (value == null || value === '' || (given >= least && given <= most))
				return true;

			return _('Allowed: a whole number from %d to %d').format(least, most);
		};
	},

	ports: function(section_id, value) {
		const given = number(value);

		if (L.toArray(this.formvalue(section_id)).length > 16)
			return _('Allowed: at most %d ports').format(16);

		if (value == null || value === '' || (given >= 1 && given <= 65535))
			return true;

		return _('Allowed: a port from %d to %d').format(1, 65535);
	},

	interval: function(section_id, value) {
		const parts = String(value).match(/^([0-9]+)(p|ms)$/);

		if (value == null || value === '' || value === 'adaptive')
			return true;

		if (parts && +parts[1] >= 1 && +parts[1] <= 1000)
			return true;

		return _('Allowed: adaptive, or packets or milliseconds, 1p to 1000p or 1ms to 1000ms');
	},

	/* others: the options whose bits are taken, with their defaults. */
	mark: function(others) {
		return function(section_id, value) {
			const section = this.section;
			const given = mark(value);

			if (value == null || value === '')
				return true;

			if (!(given >= 1 && given <= 0xffffffff))
				return _('Allowed: 0x1 to 0xffffffff, bits that no other software uses');

			for (let i = 0; i < others.length; i++) {
				const set = section.formvalue(section_id, others[i].name);
				const taken = mark(set == null || set === '' ? others[i].standard : set);

				if (common(given, taken))
					return _('Allowed: bits that are not in %s, which has %s').format(others[i].label, '0x' + (taken >>> 0).toString(16));
			}

			return true;
		};
	}
});
