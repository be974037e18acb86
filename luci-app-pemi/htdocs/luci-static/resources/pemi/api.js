// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';
'require rpc';
'require uci';
'require pemi.options as options';

/* What is asked of the router, and what a refusal means. */

/* Answers stay below 4 KiB: a sample takes up to 170 bytes, a flow up to 320, a client 750, a part of
 * a day 70. */
const SAMPLES = 22;
const FLOWS = 10;
const CLIENTS = 5;
const PARTS = 56;

/* What ubus answers of a file that is not there. */
const NOT_FOUND = 4;

/* Without "reject": a refusal is an answer here, a number, and no error that LuCI
 * writes to the console. */
const callStatus = rpc.declare({
	object: 'pemi',
	method: 'status'
});

const callFlows = rpc.declare({
	object: 'pemi',
	method: 'flows',
	params: [ 'limit' ]
});

const callClients = rpc.declare({
	object: 'pemi',
	method: 'clients',
	params: [ 'limit', 'skip' ]
});

const callBenefit = rpc.declare({
	object: 'pemi',
	method: 'benefit'
});

const callTrend = rpc.declare({
	object: 'pemi',
	method: 'trend',
	params: [ 'span', 'limit', 'skip' ]
});

const callHistory = rpc.declare({
	object: 'pemi',
	method: 'history',
	params: [ 'seconds', 'skip' ]
});

const callHints = rpc.declare({
	object: 'luci-rpc',
	method: 'getHostHints'
});

const callService = rpc.declare({
	object: 'rc',
	method: 'list',
	params: [ 'name' ]
});

const callStat = rpc.declare({
	object: 'file',
	method: 'stat',
	params: [ 'path' ]
});

/* The kernel's table of packet queues is there exactly if it has them. */
const QUEUES = '/proc/net/netfilter/nfnetlink_queue';

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

function refusal(code) {
	return { kind: KINDS[code] || 'other', message: rpc.getStatusText(code) };
}

/* An answer that is an object; a refusal as { kind, message }. */
function answer(promise) {
	return promise.then(function(value) {
		if (L.isObject(value))
			return value;

		throw refusal(typeof(value) == 'number' ? value : 9);
	});
}

function kindOf(error) {
	if (error && error.kind)
		return error;

	const text = String(error && error.message || error);
	const code = text.match(/(?:ubus code|failed with error) (-?\d+)/);

	return { kind: (code && KINDS[code[1]]) || 'other', message: text };
}

return baseclass.extend({
	SAMPLES: SAMPLES,

	status: function() {
		return answer(callStatus());
	},

	flows: function() {
		return answer(callFlows(FLOWS)).then(function(reply) {
			return Array.isArray(reply.flows) ? reply.flows : [];
		});
	},

	/* A few of them, behind so many others. */
	clients: function(skip) {
		return answer(callClients(CLIENTS, skip || 0));
	},

	benefit: function() {
		return answer(callBenefit());
	},

	history: function(seconds, skip) {
		return answer(callHistory(Math.max(1, Math.min(seconds, SAMPLES)), skip || 0)).then(function(reply) {
			return Array.isArray(reply.history) ? reply.history : [];
		});
	},

	/* A few parts of the last day or week, before so many newest ones. */
	trend: function(span, skip) {
		return answer(callTrend(span, PARTS, skip));
	},

	/* Names of hosts by their addresses, those of their network cards among them. */
	names: function() {
		return answer(callHints()).then(function(hints) {
			const names = {};

			Object.keys(hints).forEach(function(mac) {
				const hint = hints[mac] || {};

				/* On a router that is a bridge alone stations have no addresses. */
				if (hint.name)
					[ mac.toLowerCase() ].concat(hint.ipaddrs || [], hint.ip6addrs || []).forEach(function(address) {
						names[address] = hint.name;
					});
			});

			return names;
		});
	},

	/* { enabled, running } of the init script; null where there is none. */
	service: function() {
		return answer(callService('pemi')).then(function(services) {
			return services.pemi || null;
		});
	},

	/* Whether the kernel has packet queues; rejects where that cannot be told. */
	queues: function() {
		return callStat(QUEUES).then(function(file) {
			if (L.isObject(file) || file === NOT_FOUND)
				return L.isObject(file);

			throw refusal(file);
		});
	},

	/* Whether the settings say that it is on; null where there are none. */
	wanted: function() {
		if (!uci.get('pemi', 'main'))
			return null;

		return options.isOn(uci.get('pemi', 'main', 'enabled'));
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
