'use strict';
'require baseclass';
'require rpc';
'require uci';

/* What is asked of the router, and what a refusal means. */

/* Answers stay below 4 KiB: a sample takes up to 150 bytes, a flow up to 300. */
const SAMPLES = 24;
const FLOWS = 10;

const callStatus = rpc.declare({
	object: 'pemi',
	method: 'status',
	expect: { '': {} },
	reject: true
});

const callFlows = rpc.declare({
	object: 'pemi',
	method: 'flows',
	params: [ 'limit' ],
	expect: { flows: [] },
	reject: true
});

const callHistory = rpc.declare({
	object: 'pemi',
	method: 'history',
	params: [ 'seconds', 'skip' ],
	expect: { history: [] },
	reject: true
});

const callHints = rpc.declare({
	object: 'luci-rpc',
	method: 'getHostHints',
	expect: { '': {} },
	reject: true
});

const callService = rpc.declare({
	object: 'rc',
	method: 'list',
	params: [ 'name' ],
	expect: { '': {} },
	reject: true
});

/* Error codes of ubus, and those of uhttpd for a call that does not get there. */
const KINDS = {
	'2': 'old',
	'3': 'old',
	'4': 'absent',
	'6': 'denied',
	'7': 'timeout',
	'-32000': 'absent',
	'-32601': 'old',
	'-32002': 'denied',
	'-32003': 'timeout'
};

function kindOf(error) {
	const text = String(error && error.message || error);
	const code = text.match(/(?:ubus code|failed with error) (-?\d+)/);

	return {
		kind: (code && KINDS[code[1]]) || 'other',
		message: text
	};
}

return baseclass.extend({
	SAMPLES: SAMPLES,

	status: function() {
		return callStatus();
	},

	flows: function() {
		return callFlows(FLOWS);
	},

	history: function(seconds, skip) {
		return callHistory(Math.max(1, Math.min(seconds, SAMPLES)), skip || 0);
	},

	/* Names of hosts by their addresses. */
	names: function() {
		return callHints().then(function(hints) {
			const names = {};

			Object.keys(hints).forEach(function(mac) {
				const hint = hints[mac] || {};

				if (hint.name)
					[].concat(hint.ipaddrs || [], hint.ip6addrs || []).forEach(function(address) {
						names[address] = hint.name;
					});
			});

			return names;
		});
	},

	/* { enabled, running } of the init script; null where there is none. */
	service: function() {
		return callService('pemi').then(function(services) {
			return services.pemi || null;
		});
	},

	/* Whether the settings say that it is on; null where there are none. */
	wanted: function() {
		if (!uci.get('pemi', 'main'))
			return null;

		return [ '1', 'on', 'true', 'yes', 'enabled' ].indexOf(uci.get('pemi', 'main', 'enabled')) > -1;
	},

	/* Never rejects: { value } or { error: { kind, message } }. */
	settle: function(promise) {
		return promise.then(function(value) {
			return { value: value };
		}, function(error) {
			return { error: kindOf(error) };
		});
	}
});
