// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';

const STATUS = {
	0: _('Command OK'), 2: _('Invalid argument'), 3: _('Method not found'), 4: _('Resource not found'),
	5: _('No data received'), 6: _('Permission denied'), 7: _('Request timeout')
};

/* Calls of one turn of the event loop go out as one request. */
let waiting = [];
let number = 1;

function send() {
	const batch = waiting;
	waiting = [];
	fetch('/ubus', { method: 'POST', body: JSON.stringify(batch.map(one => one.message)) })
		.then(reply => reply.json())
		.then(answers => batch.forEach((one, at) => one.resolve(answers[at])))
		.catch(error => batch.forEach(one => one.reject(
			new Error('XHR request failed: ' + error.message))));
}

function call(object, method, args) {
	const id = number++;
	return new Promise((resolve, reject) => {
		if (!waiting.length)
			Promise.resolve().then(() => window.setTimeout(send, 0));
		waiting.push({ resolve, reject, message: {
			jsonrpc: '2.0', id, method: 'call',
			params: [ L.env.sessionid, object, method, args ]
		} });
	});
}

return baseclass.extend({
	declare(options) {
		return function(...values) {
			const args = Object.assign({}, options.params && !Array.isArray(options.params) ? options.params : {});
			(Array.isArray(options.params) ? options.params : []).forEach((name, at) => {
				if (values[at] !== undefined)
					args[name] = values[at];
			});
			const what = [ options.object, options.method ];
			return call(options.object, options.method, args).then(answer => {
				let value;
				if (answer.error) {
					L.raise('RPCError', 'RPC call to %s/%s failed with error %d: %s',
						...what, answer.error.code, answer.error.message);
				}
				const [ code, data ] = answer.result;
				if (options.reject && code != 0)
					L.raise('RPCError', 'RPC call to %s/%s failed with ubus code %d: %s',
						...what, code, 'refused');
				value = data ?? code;
				for (const [ key, otherwise ] of Object.entries(options.expect ?? {})) {
					value = key == '' ? value : value?.[key];
					if (value == null || typeof value != typeof otherwise || Array.isArray(value) != Array.isArray(otherwise))
						value = otherwise;
				}
				return options.filter ? options.filter(value, args) : value;
			});
		};
	},
	getStatusText: code => STATUS[code] ?? _('Unknown error code'),
	list: () => call('session', 'list', {}),
	getSessionID: () => L.env.sessionid,
	getBaseURL: () => '/ubus'
});
