// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';
'require rpc';
'require uci';
'require ui';

/* Switching it on and off: one switch, which is the option enabled. Whoever switches it on means at
 * every boot, so the init script's own start at boot is switched on along, and left on. */

/* Not by "rc init": whoever is granted that may stop any service of the router. */
const callExec = rpc.declare({
	object: 'file',
	method: 'exec',
	params: [ 'command', 'params' ]
});

const SCRIPT = '/etc/init.d/pemi';

const callApply = rpc.declare({
	object: 'uci',
	method: 'apply',
	params: [ 'timeout', 'rollback' ]
});

/* The answer is the status code alone. */
function done(code) {
	if (typeof(code) == 'number' && code != 0)
		throw new Error(rpc.getStatusText(code));
}

/* The answer is an object, a refusal a status code. Each action is granted by its whole
 * command line (acl.d/luci-app-pemi.json). */
function init(action) {
	return callExec(SCRIPT, [ action ]).then(function(reply) {
		if (!L.isObject(reply))
			throw new Error(rpc.getStatusText(typeof(reply) == 'number' ? reply : 9));

		if (reply.code)
			throw new Error((reply.stderr || '').trim() || '%s %s: %d'.format(SCRIPT, action, reply.code));
	});
}

/* Without the rollback that Save & Apply has: this option cuts nobody off. What else
 * waits to be applied is not applied along, because nobody asked for it. */
function setEnabled(value) {
	if (!uci.get('pemi', 'main'))
		uci.add('pemi', 'pemi', 'main');

	uci.set('pemi', 'main', 'enabled', value);

	return uci.save().then(function() {
		return uci.changes();
	}).then(function(changes) {
		const others = Object.keys(changes || {}).filter(function(config) {
			return config != 'pemi';
		});

		if (others.length) {
			ui.changes.init();

			throw new Error(_('There are other unsaved changes. Apply or revert them first (Unsaved Changes, top right); this one is now among them.'));
		}

		/* Nothing to apply: it had this value already. */
		return changes && changes.pemi ? callApply(0, false).then(done) : null;
	}).then(function() {
		uci.unload('pemi');
		/* What the top of the page says of unsaved changes. */
		ui.changes.init();

		return uci.load('pemi');
	});
}

return baseclass.extend({
	on: function() {
		return setEnabled('1').then(function() {
			return init('enable');
		}).then(function() {
			return init('start');
		});
	},

	off: function() {
		return setEnabled('0').then(function() {
			/* Then it goes on for the sake of the table of clients. */
			if (uci.get('pemi', 'main', 'radio') == 'always')
				return init('restart');

			return init('stop');
		});
	},

	restart: function() {
		return init('restart');
	},

	/* At every boot as well. */
	boot: function() {
		return init('enable');
	}
});
