// SPDX-License-Identifier: GPL-2.0-or-later
/* The parts of LuCI's JS API that the views use, written from its documentation:
 * E, _, N_, L, classes, the loader of 'require' directives, String.format. */
'use strict';

(function() {
	const config = window.shimConfig;

	/* %d %f %s %x %h (HTML-safe) %m (metric, %1024m binary) %t (duration) %% */
	String.prototype.format = function(...values) {
		const pattern = /%(?:%|([-+0 ]*)(\d+)?(?:\.(\d+))?([bcdfhjmostuxX]))/g;
		return this.replace(pattern, (all, flags, width, precision, type) => {
			if (all == '%%')
				return '%';
			const value = values.shift();
			let text;
			switch (type) {
			case 'd': case 'u': text = String(Math.floor(+value || 0)); break;
			case 'f': text = (+value || 0).toFixed(precision ?? 6); break;
			case 'x': text = Math.floor(+value || 0).toString(16); break;
			case 'X': text = Math.floor(+value || 0).toString(16).toUpperCase(); break;
			case 'o': text = Math.floor(+value || 0).toString(8); break;
			case 'b': text = Math.floor(+value || 0).toString(2); break;
			case 'c': text = String.fromCharCode(+value); break;
			case 'j': text = JSON.stringify(value); break;
			case 'm': return metric(+value || 0, +width || 1000, precision ?? 2);
			case 't': return duration(+value || 0);
			case 'h': text = String(value).replace(/[&<>"']/g, c => '&#' + c.charCodeAt(0) + ';'); break;
			default: text = String(value ?? '');
			}
			if (type == 's' && precision != null)
				text = text.substring(0, +precision);
			const pad = flags.includes('0') && type != 's' ? '0' : ' ';
			return flags.includes('-') ? text.padEnd(+width || 0) : text.padStart(+width || 0, pad);
		});
	};

	function metric(value, step, digits) {
		const units = [ '', 'K', 'M', 'G', 'T', 'P' ];
		let at = 0;
		for (; value >= step && at < units.length - 1; at++)
			value /= step;
		return value.toFixed(digits) + ' ' + units[at] + (step == 1024 && at ? 'i' : '');
	}

	function duration(seconds) {
		const parts = [];
		for (const [ unit, length ] of [ [ 'd', 86400 ], [ 'h', 3600 ], [ 'm', 60 ] ]) {
			if (parts.length || seconds >= length)
				parts.push(Math.floor(seconds / length) + unit);
			seconds %= length;
		}
		return parts.concat(Math.floor(seconds) + 's').join(' ');
	}

	/* Forms of each text, and which of them stands for a number (the po file says). */
	const form = new Function('n', 'return Number(' + config.plural + ')');
	window._ = text => config.translations[text]?.[0] ?? text;
	window.N_ = (n, one, many) => config.translations[one]?.[form(n)] ?? (n == 1 ? one : many);

	class Base {
		constructor(...args) {
			this.__init__?.(...args);
		}
		static extend(members) {
			const parent = this;
			const sub = class extends parent {};
			for (const name of Object.keys(members))
				if (!name.startsWith('__') || name == '__init__')
					Object.defineProperty(sub.prototype, name, {
						value: members[name], writable: true, enumerable: true, configurable: true
					});
			sub.parentOf = members;
			return sub;
		}
		static isSubclass(other) {
			return typeof other == 'function' && other.prototype instanceof this;
		}
		static instantiate(args) {
			return new this(...args);
		}
		static singleton(...args) {
			return new (this.extend(args.shift()))(...args);
		}
		/* super('name', [args]): the next method of that name up the chain. Which one is
		 * being run is kept, so that it can be asked for again from there. */
		super(name, ...args) {
			const key = '__super_' + name;
			let at = this[key];
			if (at == null) {
				at = Object.getPrototypeOf(this);
				while (at && !Object.hasOwn(at, name))
					at = Object.getPrototypeOf(at);
			}
			let next = at && Object.getPrototypeOf(at);
			while (next && !Object.hasOwn(next, name))
				next = Object.getPrototypeOf(next);
			if (!next)
				return null;
			const value = next[name];
			if (typeof value != 'function')
				return value;
			const before = this[key];
			Object.defineProperty(this, key, { value: next, configurable: true, writable: true });
			try {
				return value.apply(this, args.length == 1 && Array.isArray(args[0]) ? args[0] : args);
			}
			finally {
				this[key] = before;
			}
		}
		toString() {
			return '[object of a view]';
		}
	}

	const data = new WeakMap();
	const dom = {
		elem: node => node != null && typeof node == 'object' && 'nodeType' in node,
		create(tag, attributes, children) {
			if (Array.isArray(tag)) {
				const fragment = document.createDocumentFragment();
				for (const one of tag)
					dom.append(fragment, [ one ]);
				return fragment;
			}
			if (dom.elem(tag))
				return tag;
			if (arguments.length == 2 && (typeof attributes != 'object' || Array.isArray(attributes) || dom.elem(attributes)))
				[ attributes, children ] = [ null, attributes ];
			let node;
			if (tag.startsWith('<')) {
				const holder = document.createElement('div');
				holder.innerHTML = tag;
				node = holder.firstElementChild;
			}
			else {
				node = document.createElement(tag);
			}
			dom.attr(node, attributes);
			dom.append(node, children);
			return node;
		},
		attr(node, key, value) {
			const all = typeof key == 'object' ? key : { [key]: value };
			for (const [ name, one ] of Object.entries(all ?? {})) {
				if (one == null)
					continue;
				if (typeof one == 'function')
					node.addEventListener(name, one);
				else
					node.setAttribute(name, typeof one == 'object' ? JSON.stringify(one) : one);
			}
		},
		/* As in LuCI a lone string is HTML, one in a list is text. */
		append(node, children) {
			if (Array.isArray(children))
				for (const one of children) {
					if (one != null)
						node.appendChild(dom.elem(one) ? one : document.createTextNode(String(one)));
				}
			else if (typeof children == 'function')
				return dom.append(node, children(node));
			else if (dom.elem(children))
				node.appendChild(children);
			else if (children != null)
				node.innerHTML = String(children);
			return node.lastChild;
		},
		content(node, children) {
			node.replaceChildren();
			return dom.append(node, children);
		},
		parent: (node, selector) => node.closest(selector),
		data(node, key, value) {
			const all = data.get(node) ?? {};
			if (arguments.length > 2)
				data.set(node, { ...all, [key]: value });
			return value ?? all[key];
		},
		bindClassInstance: (node, instance) => dom.data(node, '_class', instance),
		findClassInstance(node) {
			for (; node; node = node.parentNode)
				if (data.get(node)?._class)
					return data.get(node)._class;
			return null;
		},
		callClassMethod(node, method, ...args) {
			const instance = dom.findClassInstance(node);
			return instance?.[method]?.(...args);
		},
		isEmpty: node => !node.firstElementChild
	};
	window.E = dom.create;

	const modules = new Map();

	/* The directives ahead of the first statement, comments aside. */
	function directives(source) {
		const found = [];
		let rest = source;
		for (;;) {
			rest = rest.replace(/^(\s+|\/\/[^\n]*|\/\*[^]*?\*\/)+/, '');
			const match = rest.match(/^(['"])(.*?)\1\s*;/);
			if (!match)
				return found;
			const named = match[2].match(/^require\s+(\S+?)(?:\s+as\s+(\w+))?$/);
			if (named)
				found.push([ named[1], named[2] ?? named[1].replace(/\W/g, '_') ]);
			rest = rest.slice(match[0].length);
		}
	}

	async function load(name) {
		const url = config.modules.includes(name) ? '/shim/' + name + '.js'
			: '/luci-static/resources/' + name.replaceAll('.', '/') + '.js';
		const reply = await fetch(url, { cache: 'no-store' });
		if (!reply.ok)
			throw new Error('%s: HTTP error %d'.format(url, reply.status));
		const source = await reply.text();
		const needed = directives(source);
		const values = await Promise.all(needed.map(([ one ]) => L.require(one)));
		const factory = new Function('window', 'document', 'L', ...needed.map(one => one[1]),
			source + '\n//# sourceURL=' + url);
		const made = factory.call(window, window, document, L, ...values);
		if (!Base.isSubclass(made))
			throw new TypeError(name + ' does not return a class');
		/* A class to be extended stays one; all others are there once. */
		return made.keepClass ? made : new made();
	}

	class LuCI {}
	const L = window.L = Object.assign(new LuCI(), {
		env: config.env,
		dom: dom,
		Class: Base,
		require(name) {
			if (name == 'baseclass')
				return Promise.resolve(Base);
			if (name == 'dom')
				return Promise.resolve(dom);
			if (!modules.has(name))
				modules.set(name, load(name));
			return modules.get(name);
		},
		bind: (fn, self, ...args) => fn.bind(self, ...args),
		resolveDefault: (value, otherwise) => Promise.resolve(value).catch(() => otherwise),
		raise(type, text, ...args) {
			const error = new Error((text ?? '').format(...args));
			error.name = type;
			throw error;
		},
		error(type, text, ...args) {
			const error = new Error(String(text?.message ?? text).format(...args));
			L.require('ui').then(ui => ui.addNotification(type, E('pre', {}, [ error.message ]), 'danger'));
			throw error;
		},
		isObject: value => value != null && typeof value == 'object',
		sortedKeys: object => Object.keys(object ?? {}).sort(),
		naturalCompare: new Intl.Collator(undefined, { numeric: true }).compare,
		toArray: value => value == null ? [] : Array.isArray(value) ? value
			: typeof value == 'object' ? [ value ] : String(value).trim().split(/\s+/).filter(Boolean),
		hasViewPermission: () => !config.env.readonly,
		hasSystemFeature: () => true,
		url: (...parts) => '/cgi-bin/luci/' + parts.join('/'),
		resource: (...parts) => '/luci-static/resources/' + parts.join('/'),
		media: (...parts) => '/luci-static/test/' + parts.join('/'),
		get: (url, args, done) => fetch(url).then(done)
	});
	LuCI.baseclass = Base;
})();
