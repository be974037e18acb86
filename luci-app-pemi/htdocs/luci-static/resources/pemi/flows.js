// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';
'require dom';
'require pemi.format as format';
'require pemi.narrow as narrow';

/* The table of flows. The daemon gives those with the most traffic. */

function states(name) {
	switch (name) {
	case 'protected':
		return [ _('helped'), _('Losses on the Wi-Fi hop are repaired') ];
	case 'watching':
		return [ _('watched'), _('Recent repairs brought nothing; it waits for a better moment') ];
	case 'handshake':
		return [ _('connecting'), _('The connection is being set up') ];
	case 'alone':
		return [ _('left alone'), _('By chance, so that others can be compared with it') ];
	case 'bypassed':
		return [ _('let go'), _('It needs no help, and passes without PEMI') ];
	case 'unknown':
		return [ _('new'), _('Too little was seen of it yet') ];
	default:
		return [ name || '-', '' ];
	}
}

function split(end) {
	const parts = String(end || '').match(/^\[?(.*?)\]?:(\d+)$/);

	return parts ? { address: parts[1], port: parts[2] } : { address: String(end || ''), port: '' };
}

function client(flow) {
	if (!flow.name)
		return E('span', { 'style': 'word-break:break-all' }, [ flow.from.address ]);

	return E('span', {}, [ flow.name, ' ', E('small', { 'style': 'opacity:.8;font-weight:normal;word-break:break-all' }, [ flow.from.address ]) ]);
}

function columns() {
	return [
		{ key: 'client', label: _('Client'), value: function(f) { return (f.name || f.from.address).toLowerCase(); }, show: client },
		{ key: 'server', label: _('Server'), value: function(f) { return f.to.address; },
			show: function(f) { return E('span', { 'style': 'word-break:break-all' }, [ f.server ]); } },
		{ key: 'protocol', label: _('Protocol'), value: function(f) { return f.protocol || ''; }, show: function(f) { return f.protocol || '-'; } },
		{ key: 'age', label: _('Age'), number: true, value: function(f) { return f.age_s; }, show: function(f) { return format.duration(f.age_s); } },
		{ key: 'rate', label: _('Download rate'), number: true, value: function(f) { return f.rate == null ? -1 : f.rate; },
			show: function(f) { return f.rate == null ? '…' : format.bits(f.rate); } },
		{ key: 'loss', label: _('Wi-Fi loss'), number: true, value: function(f) { return f.loss_percent || 0; },
			show: function(f) { return format.percent(f.loss_percent); } },
		{ key: 'rtt', label: _('Local round trip'), number: true, value: function(f) { return f.local_rtt_us || 0; },
			show: function(f) { return f.local_rtt_us ? format.ms(f.local_rtt_us) : '-'; } },
		{ key: 'repaired', label: _('Repaired'), number: true, value: function(f) { return f.repaired || 0; },
			show: function(f) { return format.count(f.repaired); } },
		{ key: 'state', label: _('State'), value: function(f) { return states(f.state)[0]; },
			show: function(f) { return E('span', { 'title': states(f.state)[1] }, [ states(f.state)[0] ]); } }
	];
}

function draw(table) {
	const rows = table.flows.slice().sort(function(a, b) {
		const x = table.by.value(a), y = table.by.value(b);

		return (x < y ? -1 : x > y ? 1 : 0) * (table.down ? -1 : 1);
	});

	table.columns.forEach(function(column) {
		const mark = column === table.by ? (table.down ? ' ▾' : ' ▴') : '';

		column.head.setAttribute('aria-sort', column !== table.by ? 'none' : table.down ? 'descending' : 'ascending');
		dom.content(column.button, column.label + mark);
	});
	table.choice.value = table.by.key;

	while (table.node.childNodes.length > 1)
		table.node.removeChild(table.node.lastChild);

	rows.forEach(function(flow, at) {
		table.node.appendChild(E('tr', { 'class': 'tr cbi-rowstyle-%d'.format(at % 2 + 1) }, table.columns.map(function(column) {
			return E('td', { 'class': 'td', 'data-title': column.label }, [ column.show(flow) ]);
		})));
	});

	if (!rows.length)
		table.node.appendChild(E('tr', { 'class': 'tr placeholder' }, [
			E('td', { 'class': 'td', 'colspan': table.columns.length }, [ E('em', {}, [ _('No connections now') ]) ])
		]));
}

/* In a narrow window, where there are no titles. */
function choice(table) {
	table.choice = E('select', {
		'class': 'cbi-input-select',
		'change': function() {
			table.by = table.columns.filter(function(column) {
				return column.key == table.choice.value;
			})[0];
			table.down = !!table.by.number;
			draw(table);
		}
	}, table.columns.map(function(column) {
		return E('option', { 'value': column.key }, [ column.label ]);
	}));

	return E('label', {}, [ _('Sorted by'), ' ', table.choice ]);
}

return baseclass.extend({
	create: function() {
		const table = { columns: columns(), flows: [], seen: {}, down: true };

		table.by = table.columns[4];
		table.columns.forEach(function(column) {
			column.button = E('a', {
				'href': '#', 'role': 'button', 'style': 'color:inherit', 'title': _('Sort by this column'),
				'click': function(ev) {
					ev.preventDefault();
					table.down = column === table.by ? !table.down : !!column.number;
					table.by = column;
					draw(table);
				}
			}, [ column.label ]);
			column.head = E('th', { 'class': 'th', 'scope': 'col' }, [ column.button ]);
		});
		table.node = E('table', { 'class': 'table', 'id': 'pemi-flows' }, [
			E('tr', { 'class': 'tr table-titles' }, table.columns.map(function(column) {
				return column.head;
			}))
		]);

		table.frame = narrow.frame(table.node, choice(table));

		return table;
	},

	/* The rate is the difference to the answer before. */
	update: function(table, flows, names, now) {
		const seen = {};

		table.flows = flows.map(function(flow) {
			const id = flow.client + ' ' + flow.server;
			const before = table.seen[id];
			const from = split(flow.client);
			const seconds = before ? (now - before.at) / 1000 : 0;
			let rate = null;

			/* Fewer bytes than before: another flow between the same ends. */
			if (before && seconds > 0 && flow.bytes_down >= before.bytes)
				rate = (flow.bytes_down - before.bytes) * 8 / seconds;

			seen[id] = { bytes: flow.bytes_down, at: now };

			return Object.assign({}, flow, { from: from, to: split(flow.server), name: names[from.address], rate: rate });
		});
		table.seen = seen;
		draw(table);
	}
});
