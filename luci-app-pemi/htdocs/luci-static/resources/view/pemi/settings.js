// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require view';
'require form';
'require uci';
'require ui';
'require tools.widgets as widgets';
'require pemi.api as api';
'require pemi.control as control';
'require pemi.options as options';
'require pemi.state as state';

const MARKS = [
	{ name: 'mark', standard: '0x20000000', label: _('Mark of copies') },
	{ name: 'bypass_mark', standard: '0x10000000', label: _('Mark of connections let go') },
	{ name: 'helped_mark', standard: '0x40000000', label: _('Mark of connections helped') }
];

/* A list may be one string, and choices have an order of their own. */
function words(given) {
	return L.toArray(given).slice().sort().join(' ');
}

/* Saving writes what was changed, and nothing else. LuCI would take out of the file what is the default,
 * and write every switch. */
function exact(o) {
	const parse = o.parse;

	o.parse = function(section_id) {
		const was = this.cfgvalue(section_id);
		const shown = was != null ? was : this.default;
		const same = words(this.formvalue(section_id)) === words(shown);

		/* What was right before may be wrong beside what was changed. */
		return same && this.isValid(section_id) ? Promise.resolve() : parse.apply(this, arguments);
	};

	return o;
}

/* What an empty field means is shown in it. */
function value(section, tab, name, label, help, standard, check) {
	const o = tab ? section.taboption(tab, form.Value, name, label, help)
		: section.option(form.Value, name, label, help);

	o.placeholder = standard;
	o.validate = check;

	return exact(o);
}

function flag(section, tab, name, label, help, standard) {
	const o = tab ? section.taboption(tab, form.Flag, name, label, help)
		: section.option(form.Flag, name, label, help);

	/* Once it is changed it is written even if it is the default, so that the file says what is meant. */
	o.default = standard;
	o.rmempty = false;
	/* The file may say on or yes. */
	o.load = function(section_id) {
		const given = uci.get('pemi', section_id, name);

		return given == null ? given : options.isOn(given) ? '1' : '0';
	};

	return exact(o);
}

function list(section, tab, name, label, help, choices) {
	const o = section.taboption(tab, form.ListValue, name, label, help);

	const given = uci.get('pemi', 'main', name);

	/* What somebody has written into the file can be chosen as well. */
	if (given && !choices.some(function(choice) { return choice[0] == given; }))
		choices = choices.concat([ [ given, given ] ]);

	choices.forEach(function(choice) {
		o.value(choice[0], choice[1]);
	});
	o.default = choices[0][0];
	o.rmempty = choices[0][0] == '';

	return exact(o);
}

function basic(s) {
	let o;

	flag(s, 'basic', 'enabled', _('Switched on'), _('Now, and at every boot.'), '0');

	o = s.taboption('basic', widgets.NetworkSelect, 'network', _('Networks'),
		_('Networks whose clients are helped: those of your Wi-Fi. If neither a network nor a device is chosen, it is lan.'));
	o.multiple = true;
	o.nocreate = true;
	exact(o);

	o = s.taboption('basic', widgets.DeviceSelect, 'device', _('Network devices'),
		_('Or devices, besides the networks. In bridged mode the ports of the bridge that lead to the clients.'));
	o.multiple = true;
	/* Not nocreate: what is chosen and not there, or not to be seen by this account, stays. */
	o.noaliases = true;
	exact(o);

	list(s, 'basic', 'mode', _('Mode'),
		_('Bridged is for access points, where clients and the way to the Internet are on one bridge. It needs the package kmod-nft-bridge and the ports of the clients as devices. A change restarts the service.'),
		[ [ 'routed', _('Routed') ], [ 'bridged', _('Bridged') ] ]);

	list(s, 'basic', 'direction', _('Losses that are repaired'),
		_('Uploads gain only where the way to the Internet loses packets.'),
		[ [ 'down', _('On the way to the clients') ], [ 'both', _('In both directions') ] ]);

	list(s, 'basic', 'radio', _('Look at the Wi-Fi'),
		_('Asks the access points of this router what they lose on the way to each client, and shows it in the overview. It costs next to nothing.'),
		[ [ 'auto', _('While PEMI is switched on') ], [ 'always', _('Always') ], [ 'off', _('Never') ] ]);

	/* A list that may not be changed would be drawn with what adds and removes. */
	o = s.taboption('basic', L.hasViewPermission() ? form.DynamicList : form.DummyValue, 'port', _('UDP ports'),
		_('Ports of the servers, at most 16. QUIC on the web uses 443.'));
	o.placeholder = '443';
	o.validate = options.ports;

	if (L.hasViewPermission())
		exact(o);
	else
		o.cfgvalue = function(section_id) {
			return L.toArray(uci.get('pemi', section_id, 'port')).join(', ') || this.placeholder;
		};
}

function advanced(s) {
	value(s, 'advanced', 'cache_kib', _('Memory for copies (KiB)'),
		_('64 to 1048576. Packets are kept until their fate is known; where there is too little room, less is repaired.'), '4096', options.range(64, 1048576));
	value(s, 'advanced', 'max_flows', _('Connections known at a time'),
		_('16 to 65536. Beyond this the one that was quiet for longest is forgotten.'), '1024', options.range(16, 65536));
	value(s, 'advanced', 'resend_percent', _('Limit of copies (%)'),
		_('0 to 100. Largest share of the packets of a connection that is sent again, besides 48 packets and one for each loss that was seen to be repaired.'), '10', options.range(0, 100));
	value(s, 'advanced', 'resend_total_percent', _('Limit of all copies (%)'),
		_('0 to 100. Largest share of copies of all connections together in the traffic of a second, besides 128 KiB.'), '50', options.range(0, 100));
	list(s, 'advanced', 'repair', _('How losses are known'),
		_('By the Wi-Fi of this router: its driver reports what was lost, where it can; everywhere else replies tell, as always. Tried with an emulated radio only. A change restarts the service.'),
		[ [ 'auto', _('By the Wi-Fi of this router, where it counts losses, too') ], [ 'infer', _('By the replies of clients') ], [ 'radio', _('By the Wi-Fi of this router') ] ]);
	list(s, 'advanced', 'protocols', _('Protocols that are repaired'),
		_('Everything over TCP and UDP: calls, games, tunnels and downloads over TCP, too. Only with losses known by the Wi-Fi of this router, and all connections of the clients then pass through PEMI. A change restarts the service.'),
		[ [ 'quic', _('QUIC') ], [ 'all', _('Everything over TCP and UDP') ] ]);
	list(s, 'advanced', 'capture', _('How packets to clients are seen'),
		_('From a ring they pass without waiting, but a slow router has more to do. Only with losses known by the replies of clients. New, and tried on no router.'),
		[ [ 'auto', _('From the queue, for now') ], [ 'queue', _('From the queue') ], [ 'ring', _('From a ring, where that can be') ] ]);
	flag(s, 'advanced', 'conceal', _('Keep servers at full speed'),
		_('Holds what would tell the sender of a loss until the loss is repaired, so that it does not slow down.'), '1');
	value(s, 'advanced', 'release_s', _('Let go after (s)'),
		_('0 to 86400. A connection without a repair for so long, and all of a Wi-Fi client of this router that has lost nothing for so long, pass without PEMI from then on, at full speed. 0: never.'), '30', options.range(0, 86400));
	value(s, 'advanced', 'control_percent', _('Left alone for comparison (%)'),
		_('0 to 50. So many connections, by chance, are not helped, so that PEMI can tell what its help is worth. 0: all are helped, and nobody can tell.'), '5', options.range(0, 50));
	list(s, 'advanced', 'benefit', _('Keep comparison and history'),
		_('What the overview tells of benefit, days and weeks. In memory a reboot of the router ends it. On flash it is written once an hour at most, since that wears. A change restarts the service.'),
		[ [ '', _('In memory') ], [ '/etc/pemi/benefit', _('On flash, over reboots') ] ]);
	value(s, 'advanced', 'queues', _('Packet queues'),
		_('1 to 8, each with a thread of its own. A change restarts the service.'), '1', options.range(1, 8));
	value(s, 'advanced', 'queue', _('Number of the first queue'),
		_('0 to 65535. Only if another program uses the same one. A change restarts the service.'), '5443', function(section_id, given) {
			const valid = options.range(0, 65535).call(this, section_id, given);
			const queues = +(this.section.formvalue(section_id, 'queues') || 1);

			if (valid !== true || given == null || given === '' || +given + queues <= 65536)
				return valid;

			return _('Allowed: up to %d with so many queues').format(65536 - queues);
		});
	value(s, 'advanced', 'realtime_priority', _('Real-time priority'),
		_('0 to 98; 0: like any other program, and repairs come late while the router is busy. A change restarts the service.'), '40', options.range(0, 98));

	const help = {
		mark: _('Packet mark of what PEMI sends itself. A change restarts the service.'),
		bypass_mark: _('Mark of connections that need no help.'),
		helped_mark: _('Connection mark that keeps helped connections out of flow offloading.')
	};

	MARKS.forEach(function(mark) {
		value(s, 'advanced', mark.name, mark.label, help[mark.name], mark.standard, options.mark(MARKS.filter(function(other) {
			return other !== mark;
		})));
	});

	flag(s, 'advanced', 'run_as_root', _('Run as root if it has to'),
		_('Only where the account pemi is missing: then PEMI does not start otherwise. Installing the package again adds the account, which is better.'), '0');
	list(s, 'advanced', 'log_level', _('What is logged'), _('In the system log.'),
		[ [ 'info', _('Normal') ], [ 'error', _('Errors only') ], [ 'warn', _('Errors and warnings') ], [ 'debug', _('Everything, for finding faults') ] ]);
}

function sidekick(s) {
	flag(s, null, 'enabled', _('Switched on'), _('For programs on your network that know Sidekick, for instance for calls. For all others nothing changes. Not in bridged mode.'), '0');
	value(s, null, 'port', _('UDP port'), _('1 to 65535. Where programs ask this router for reports.'), '5103', options.range(1, 65535));
	value(s, null, 'interval', _('Interval of reports'),
		_('How often a program hears of its packets, unless it asks for something else. adaptive: at once when a packet that was due does not come, otherwise seldom; this is usually best. 2p: after every 2 packets. 10ms: after 10 milliseconds.'),
		'adaptive', options.interval);
	value(s, null, 'threshold', _('Losses in one report'),
		_('1 to 64: how many missing packets one report can name. More make reports longer. If more are missing at once, the program repairs them as it would without Sidekick.'), '8', options.range(1, 64));
}

function note(level, text, link, label) {
	return E('div', { 'class': 'alert-message ' + level }, [
		E('p', {}, [ text ]),
		link ? E('p', {}, [ E('a', { 'class': 'btn cbi-button cbi-button-action', 'href': L.url(link) }, [ label ]) ]) : ''
	]);
}

function notes(status) {
	const all = [];
	const chosen = L.toArray(uci.get('pemi', 'main', 'network')).concat(L.toArray(uci.get('pemi', 'main', 'device'))).filter(String);
	const offloading = uci.sections('firewall', 'defaults').some(function(section) {
		return section.flow_offloading == '1';
	});
	const bridged = uci.get('pemi', 'main', 'mode') == 'bridged';

	/* The init script takes lan then; that it is there can only be said with the right to read. */
	if (!chosen.length && uci.get('network', 'loopback') && !uci.get('network', 'lan'))
		all.push(note('warning', _('Nobody is helped: no network is chosen, and there is none named lan. Choose a network below.')));

	if (bridged && !L.toArray(uci.get('pemi', 'main', 'device')).filter(String).length)
		all.push(note('notice', _('In bridged mode choose the ports of the bridge that lead to your clients as devices, for instance the Wi-Fi interfaces. Without them the UDP ports tell the direction.')));

	if (offloading)
		all.push(note('notice', _('Flow offloading is on in the firewall. Connections that PEMI helps are kept out of it, and are given back when they need no help. Engines of some vendors offload regardless: if no connections appear in the overview, switch it off.'),
			'admin/network/firewall', _('Firewall settings…')));

	return all.concat(state.warnings(status || {}).map(function(one) {
		/* The fix of some is this page. */
		return note('warning', one.text, one.link == 'admin/services/pemi/settings' ? null : one.link, state.label(one.link));
	}));
}

return view.extend({
	load: function() {
		return Promise.all([
			api.settle(api.status()),
			api.settle(uci.load('pemi')),
			api.settle(uci.load('firewall')),
			api.settle(uci.load('network')),
			api.settle(api.service())
		]);
	},

	render: function(answers) {
		const m = new form.Map('pemi', _('PEMI - Settings'),
			_('Changes take effect with Save & Apply, and connections go on being helped. An empty field means its default, which is shown in it.'));
		let s;

		/* The form would load them again, and fail with a stack trace. */
		if (answers[1].error) {
			this.handleSave = this.handleSaveApply = this.handleReset = null;

			return E('div', { 'class': 'cbi-map' }, [
				E('h2', {}, [ _('PEMI - Settings') ]),
				note('warning', answers[1].error.kind == 'denied'
					? _('Your account may not read the settings. Ask the administrator for the permission "luci-app-pemi", then log in again.')
					: _('The settings cannot be read. Is there a file /etc/config/pemi? The router said: %s').format(answers[1].error.message))
			]);
		}

		s = m.section(form.NamedSection, 'main', 'pemi');
		s.addremove = !uci.get('pemi', 'main');
		s.tab('basic', _('Basic'));
		s.tab('advanced', _('Advanced'));
		s.tab('sidekick', _('Sidekick'),
			_('Tells programs that cooperate which of their packets have come by this router. What the Wi-Fi has lost they can then send again at once, without waiting for the other end.'));
		basic(s);
		advanced(s);

		s = s.taboption('sidekick', form.SectionValue, '_sidekick', form.NamedSection, 'sidekick', 'sidekick').subsection;
		/* A section that is not in the file can be added, but none need be deleted. */
		s.addremove = !uci.get('pemi', 'sidekick');
		sidekick(s);

		this.service = answers[4].value;

		return m.render().then(function(node) {
			return E('div', {}, notes(answers[0].value).concat([ node ]));
		});
	},

	/* Switched on is at every boot. */
	handleSaveApply: function(ev, mode) {
		return this.handleSave(ev).then(L.bind(function() {
			return api.wanted() && this.service && !this.service.enabled ? control.boot() : null;
		}, this)).then(function() {
			ui.changes.apply(mode == '0');
		});
	}
});
