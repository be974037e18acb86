// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';
'require dom';
'require pemi.format as format';
'require pemi.narrow as narrow';

/* The table of clients: what the Wi-Fi lost on the way to each, and what was done about it. */

const SVG = 'http://www.w3.org/2000/svg';
const BAR = 6;
const HEIGHT = 18;
/* The highest bar is at least one packet in a thousand, so that few losses look like few. */
const LEAST = 1;
/* Characters of a MAC address, which stays in one line; IPv6 addresses are longer. */
const MAC = 17;

function lost(client) {
	const figure = format.count(client.lost_minute);

	return client.counts == 'at most' ? _('at most %s').format(figure) : figure;
}

/* In one sentence. The daemon has it in English only. */
function sentence(client, helping) {
	switch (client.state) {
	case 'left':
		return _('left %s ago').format(format.duration(client.left_s));
	case 'untold':
		return _('this access point does not tell');
	case 'unbelieved':
		return _('this access point counts attempts, not losses, as it seems');
	case 'elsewhere':
		return _('on no radio of this router: its losses are inferred');
	case 'helping':
		return _('helping: %s lost in the last minute, %s repaired').format(lost(client), format.count(client.helped.repaired_minute));
	case 'losing':
		return helping ? _('%s lost in the last minute; none of its connections is helped').format(lost(client))
			: _('%s lost in the last minute; help is switched off').format(lost(client));
	case 'clean':
		return _('no help needed for %s: 0 of %s packets lost').format(format.duration(client.clean_s), format.count(client.clean_sent));
	default:
		return client.sentence || '-';
	}
}

/* The share of each five minutes of the last hour. */
function curve(client) {
	const shares = (client.curve || []).map(function(slot) {
		return slot[0] ? slot[1] * 1000 / Math.max(slot[0], slot[1]) : 0;
	});
	const top = Math.max.apply(null, shares.concat(LEAST));
	const drawing = document.createElementNS(SVG, 'svg');
	const bars = document.createElementNS(SVG, 'path');

	/* What it shows stands beside it as a figure. */
	drawing.setAttribute('aria-hidden', 'true');
	drawing.setAttribute('class', 'pemi-curve');
	drawing.setAttribute('width', shares.length * BAR);
	drawing.setAttribute('height', HEIGHT);
	drawing.setAttribute('style', 'border-bottom:1px solid;vertical-align:bottom');
	bars.setAttribute('fill', 'var(--error-color-high, #e0402a)');
	bars.setAttribute('d', shares.map(function(share, at) {
		const height = (share / top * HEIGHT).toFixed(1);

		return share ? 'M%d %d v-'.format(at * BAR, HEIGHT) + height + 'h%d v'.format(BAR - 1) + height + 'z' : '';
	}).join(''));
	drawing.appendChild(bars);

	return drawing;
}

function small(text) {
	return E('small', { 'style': 'opacity:.8;font-weight:normal;overflow-wrap:anywhere' }, [ text ]);
}

/* In one line. */
function whole(node) {
	return E('span', { 'style': 'white-space:nowrap' }, [ node ]);
}

function who(client) {
	const known = client.addresses || [];
	/* Whose name nobody knows may be known by the network card. */
	const other = client.name ? known[0] || client.mac : known.length ? client.mac : null;

	return E('span', { 'title': known.concat(client.mac || []).join(' ') }, [ client.name || known[0] || client.mac, ' ',
		other ? (other.length > MAC ? small(other) : whole(small(other))) : '' ]);
}

function share(client) {
	if (!client.hour)
		return '-';

	/* The curves of all clients stand below each other. */
	return E('span', { 'style': 'white-space:nowrap',
		'title': _('%s of %s packets in the last hour').format(format.count(client.hour.lost), format.count(client.hour.sent)) }, [
		E('span', { 'style': 'display:inline-block;min-width:4.5em' }, [ format.rare(client.hour.lost_per_mille / 10) ]),
		curve(client)
	]);
}

/* What becomes of its packets in the router, in a word and in a sentence. */
function gate(client, helping) {
	if (!helping)
		return [ '-', '' ];

	if (client.gate == 'closed')
		return [ _('pass by'), _('The Wi-Fi loses nothing on the way to it: its packets pass without PEMI, and may be offloaded') ];

	if (!client.helped.flows)
		return [ _('watched'), _('Its packets come by PEMI until it is known that the Wi-Fi loses none of them') ];

	switch (client.helped.knowledge) {
	case 'reports':
		return [ _('helped'), _('The Wi-Fi reports each packet that it lost, and that is sent again') ];
	case 'counts':
		return [ _('helped'), _('The Wi-Fi counts what it loses; which packet it was is inferred') ];
	default:
		return [ _('helped'), _('What is lost is inferred from replies') ];
	}
}

function columns() {
	return [
		{ label: _('Client'), show: who },
		{ label: _('Radio'), show: function(c) {
			return c.interface ? E('span', {}, [ whole(c.band || ''), ' ', whole(E('small', { 'style': 'opacity:.8' }, [ c.interface ])) ]) : '-';
		} },
		{ label: _('In words'), wide: true, show: function(c, helping) { return E('span', { 'class': 'pemi-words' }, [ sentence(c, helping) ]); } },
		{ label: _('Lost in the last hour'), help: _('In a hundred packets, after all retries of the radio'), show: share },
		{ label: _('Packets'), help: _('Whether they come by PEMI'),
			show: function(c, helping) { return E('span', { 'class': 'pemi-gate', 'style': 'white-space:nowrap', 'title': gate(c, helping)[1] }, [ gate(c, helping)[0] ]); } },
		{ label: _('Signal'), show: function(c) { return c.signal_dbm == null ? '-' : whole('%d dBm'.format(c.signal_dbm)); } },
		{ label: _('Retries'), help: _('Attempts beyond the first, in a hundred packets. Some drivers do not count them.'),
			show: function(c) { return c.hour ? whole(format.percent(c.hour.retries_percent)) : '-'; } },
		{ label: _('Radio queue'), help: _('Packets that wait in the radio, and those that it has dropped because too many did'),
			show: function(c) { return c.queue ? _('%s, dropped: %s').format(format.count(c.queue.packets), format.count(c.queue.drops)) : '-'; } },
		{ label: _('Connections, repaired, copies'), help: _('Connections helped now; losses repaired and copies sent so far'),
			show: function(c) { return [ c.helped.flows, c.helped.repaired, c.helped.copies ].map(format.count).join(' / '); } }
	];
}

/* Why there is nobody. */
function nobody(radio) {
	switch (radio) {
	case 'no radio':
		return _('This router has no Wi-Fi that can be asked');
	case 'no access point':
		return _('No access point of this router is on the selected networks');
	case 'fails':
		return _('The Wi-Fi cannot be asked now; the system log may say why');
	default:
		return _('No clients now');
	}
}

function key(client) {
	return client.mac || client.addresses[0];
}

return baseclass.extend({
	create: function() {
		const table = { columns: columns(), round: [], all: [] };

		table.node = E('table', { 'class': 'table', 'id': 'pemi-clients' }, [
			E('tr', { 'class': 'tr table-titles' }, table.columns.map(function(column) {
				return E('th', { 'class': 'th', 'scope': 'col', 'title': column.help || null }, [ column.label ]);
			}))
		]);
		table.frame = narrow.frame(table.node);

		return table;
	},

	/* How many of this round have come: clients are asked for a few at a time. */
	come: function(table) {
		return table.round.length;
	},

	/* Takes an answer. Those of the round before stay until their turn has come. */
	update: function(table, answer, names) {
		const came = (answer.clients || []).map(function(client) {
			const named = (client.addresses || []).concat(client.mac || []).filter(function(address) {
				return names[address];
			});

			return Object.assign({}, client, { name: named.length ? names[named[0]] : client.name });
		});
		const keys = came.map(key);

		table.round = table.round.concat(came);
		table.all = table.all.filter(function(client) {
			return keys.indexOf(key(client)) < 0;
		}).concat(came);

		if (!came.length || table.round.length >= answer.total) {
			table.all = table.round;
			table.round = [];
		}

		const lossOf = function(client) {
			return client.hour ? client.hour.lost_per_mille : -1;
		};

		table.all.sort(function(a, b) {
			return lossOf(b) - lossOf(a) || (key(a) < key(b) ? -1 : 1);
		});

		while (table.node.childNodes.length > 1)
			table.node.removeChild(table.node.lastChild);

		table.all.forEach(function(client, at) {
			table.node.appendChild(E('tr', { 'class': 'tr cbi-rowstyle-%d'.format(at % 2 + 1) }, table.columns.map(function(column) {
				const shown = column.show(client, answer.helping);

				/* Where each cell has a line and a title of its own, one that says nothing goes. */
				return E('td', { 'class': 'td' + (column.wide ? ' pemi-wide' : '') + (shown == '-' ? ' pemi-nothing' : ''),
					'data-title': column.label }, [ shown ]);
			})));
		});

		if (!table.all.length)
			table.node.appendChild(E('tr', { 'class': 'tr placeholder' }, [
				E('td', { 'class': 'td', 'colspan': table.columns.length }, [ E('em', {}, [ nobody(answer.radio) ]) ])
			]));
	}
});
