// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';
'require pemi.format as format';

/* What the answers mean, in plain words. Nothing is drawn here. */

/* Where things are put right, and what links to these pages say. */
const LOG = 'admin/status/logs';
const NETWORK = 'admin/network/network';
const PACKAGES = 'admin/system/package-manager';
const SETTINGS = 'admin/services/pemi/settings';
const LABELS = {};

LABELS[LOG] = _('System log…');
LABELS[NETWORK] = _('Network settings…');
LABELS[PACKAGES] = _('Install packages…');
LABELS[SETTINGS] = _('Settings…');

function refused(error) {
	switch (error.kind) {
	case 'denied':
		return { kind: 'denied', level: 'warning', badge: _('No permission'),
			title: _('You may not see what PEMI does'),
			text: _('Your account has no access to it. Ask the administrator for the permission "luci-app-pemi", then log in again.') };
	case 'old':
		return { kind: 'old', level: 'warning', badge: _('Too old'),
			title: _('The installed daemon is older than this page'),
			text: _('It does not know what this page asks for. Update the package pemi.') };
	case 'timeout':
		return { kind: 'timeout', level: 'warning', badge: _('No answer'),
			title: _('PEMI does not answer in time'),
			text: _('The router may be very busy. This page keeps asking.') };
	default:
		return { kind: 'error', level: 'warning', badge: _('Error'),
			title: _('PEMI cannot be asked'),
			text: _('This page keeps asking. The router said: %s').format(error.message) };
	}
}

function silent(facts) {
	const service = facts.service || {};

	if (facts.wanted === null && !service.found)
		return { kind: 'missing', level: 'warning', badge: _('Not installed'),
			title: _('PEMI is not installed'),
			text: _('Install the package pemi, then reload this page.') };

	if (!facts.wanted)
		return { kind: 'off', level: '', badge: _('Off'),
			title: _('PEMI is switched off'),
			text: _('Connections pass as if it were not there.') };

	if (service.running)
		return { kind: 'starting', level: 'notice', badge: _('Starting'),
			title: _('PEMI is starting'),
			text: _('It runs, but does not answer yet. If this lasts, see the system log.'),
			link: LOG };

	if (facts.queues === false)
		return { kind: 'noqueue', level: 'warning', badge: _('Stopped'),
			title: _('PEMI cannot start: the kernel has no packet queues (NFQUEUE)'),
			text: _('Install the package kmod-nft-queue, and kmod-nft-bridge for bridged mode, then start PEMI. If the package does not fit the kernel, update the firmware first.'),
			link: PACKAGES };

	return { kind: 'stopped', level: 'warning', badge: _('Stopped'),
		title: _('PEMI is switched on, but does not run'),
		text: _('It was stopped, or it could not start. The system log says why. If it names a library that is missing, install the packages libmnl and libnetfilter-queue.'),
		link: LOG };
}

/* Then nothing comes to the daemon that it could help. */
const UNRULED = /^firewall rules (are not|cannot be) loaded/;
/* Of a network; what help did there, and when it is tried again, stands in the sentence on what help
 * is worth, in the reader's language. */
const STANDS_BACK = /^.+: Help is off: /;

/* Errors of the daemon, with what to do about them. Its own words come where
 * there are no better ones. */
const KNOWN = [
	[ /^device (.+) does not exist$/, function(m) {
		return [ _('The device %s does not exist. Choose another one in the settings.').format(m[1]), SETTINGS ];
	} ],
	[ /^network (.+) has no device now$/, function(m) {
		return [ _('The network %s is not up: its clients are not helped.').format(m[1]), NETWORK ];
	} ],
	[ /^(\d+) packets passed unhelped: the queue was full$/, function(m) {
		return [ _('%s packets passed unhelped because the router did not keep up. If that number keeps growing, the router is too slow for this traffic.').format(format.count(m[1])), null ];
	} ],
	[ /^no real-time priority/, function() {
		return [ _('PEMI has no priority over other programs: repairs come late while the router is busy.'), null ];
	} ],
	[ /^a packet queue does not answer$/, function() {
		return [ _('A part of PEMI hangs. Restart it.'), null ];
	} ],
	[ /^firewall rules are not loaded/, function() {
		return [ _('Nothing is helped: the firewall rules of PEMI are not loaded. The system log says why.'), LOG ];
	} ],
	[ /^firewall rules cannot be loaded: (.*)$/, function(m) {
		return [ _('Nothing is helped: the kernel does not take the firewall rules of PEMI. Install the package kmod-nft-queue; in bridged mode kmod-nft-bridge, too. It said: %s').format(m[1]), PACKAGES ];
	} ],
	[ /^access points cannot be asked: (.*)$/, function(m) {
		return [ _('What the Wi-Fi loses cannot be told: the kernel refused with "%s".').format(m[1]), LOG ];
	} ],
	[ /option '([^']+)': value (.*) is not valid; allowed: (.*)$/, function(m) {
		return [ _('The setting %s has the value %s, which is not allowed (allowed: %s). The last good settings stay.').format(m[1], m[2], m[3]), SETTINGS ];
	} ]
];

function errors(status) {
	return (Array.isArray(status.errors) ? status.errors : []).map(String);
}

return baseclass.extend({
	/* facts: status, error of asking for it, service, wanted, queues (has the kernel any?). */
	judge: function(facts) {
		const status = facts.status;

		if (!status)
			return facts.error && facts.error.kind != 'absent' ? refused(facts.error) : silent(facts);

		if (status.helping === false)
			return { kind: 'meter', level: '', badge: _('Off'),
				title: _('PEMI is switched off, and looks at the Wi-Fi'),
				text: _('Connections pass as if it were not there. What the Wi-Fi loses on the way to each client stands below.') };

		const packets = status.packets || {};
		const flows = status.flows || {};

		/* What is wrong, and what to do about it, is among the warnings. */
		if (!flows.protected && errors(status).some(function(error) { return UNRULED.test(error); }))
			return { kind: 'unruled', level: 'warning', badge: _('Error'),
				title: _('PEMI runs, but helps nothing'),
				text: null };

		if (!flows.protected && errors(status).some(function(error) { return STANDS_BACK.test(error); }))
			return { kind: 'back', level: 'warning', badge: _('Running'),
				title: _('PEMI runs, but stands back where it made downloads slower'),
				text: null };

		if (!(packets.down + packets.up + packets.other > 0))
			return { kind: 'idle', level: 'success', badge: _('Running'),
				title: _('PEMI runs and waits for traffic'),
				text: _('No packet has come by yet. Open a web page or a video on a device behind the selected networks.') };

		if (!packets.quic && !flows.protected)
			return { kind: 'noquic', level: 'success', badge: _('Running'),
				title: _('PEMI runs, but has seen no QUIC yet'),
				text: _('There is traffic, but none of it is QUIC, the only protocol that it can help. Most browsers and video apps use it.') };

		return { kind: 'running', level: 'success', badge: _('Running'),
			title: flows.protected
				? N_(flows.protected, 'PEMI helps %d connection now', 'PEMI helps %d connections now').format(flows.protected)
				: _('PEMI runs; no connection needs help now'),
			text: null };
	},

	/* One sentence on what it has done in the last hour, or since the start or a reset if
	 * that is less. An older daemon counts no hours, and one that has just begun none yet: then no
	 * time is named. */
	sentence: function(status) {
		const losses = status.losses || {};
		const hour = status.hour || { inferred: losses.inferred, repaired: losses.repaired, beyond: this.beyond(losses) };
		const counted = status.hour && status.hour.seconds > 0 ? format.recently(hour.seconds) : null;
		const figures = [ hour.repaired, hour.inferred, hour.beyond ].map(format.count);

		if (!hour.inferred)
			return counted == null
				? _('So far it has noticed no loss on the Wi-Fi hop.')
				: _('In the last %s it has noticed no loss on the Wi-Fi hop.').format(counted);

		if (counted == null)
			return String.prototype.format.apply(
				_('So far it has repaired %s of %s losses that it noticed; %s were beyond its reach.'), figures);

		return String.prototype.format.apply(
			_('In the last %s it has repaired %s of %s losses that it noticed; %s were beyond its reach.'), [ counted ].concat(figures));
	},

	/* Lost before the router, or left alone because the hop was congested. */
	beyond: function(losses) {
		return (losses.upstream || 0) + (losses.congestion || 0);
	},

	/* What a link to a page says. */
	label: function(link) {
		return LABELS[link];
	},

	/* Warnings: [ { text, link } ]. */
	warnings: function(status) {
		return errors(status).filter(function(error) { return !STANDS_BACK.test(error); }).map(function(error) {
			for (let i = 0; i < KNOWN.length; i++) {
				const found = error.match(KNOWN[i][0]);

				if (found) {
					const said = KNOWN[i][1](found);

					return { text: said[0], link: said[1] };
				}
			}

			return { text: error, link: null };
		});
	},

	/* What this page shows and an older daemon does not tell. */
	lacks: function(status, samples) {
		const wanted = [ 'version', 'uptime_s', 'packets', 'flows', 'losses', 'concealed', 'queues', 'cache' ];
		const last = samples.length ? samples[samples.length - 1] : null;

		return wanted.some(function(name) {
			return status[name] == null;
		}) || (last != null && (last.upstream == null || last.local_rtt_us == null));
	}
});
