// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';
'require rpc';

const declare = (method, params, expect) =>
	rpc.declare({ object: 'uci', method, params, expect, reject: true });
const callGet = declare('get', [ 'config' ], { values: {} });
const callAdd = declare('add', [ 'config', 'type', 'name', 'values' ], { section: '' });
const callSet = declare('set', [ 'config', 'section', 'values' ]);
const callDelete = declare('delete', [ 'config', 'section', 'options' ]);
const callChanges = declare('changes', [], { changes: {} });

/* What was loaded, and what of it was changed, added (a type) or deleted (null). */
const loaded = {};
const pending = {};
const added = {};

return baseclass.extend({
	load(configs) {
		const wanted = [].concat(configs).filter(name => !loaded[name]);
		return Promise.all(wanted.map(name => callGet(name).then(values => loaded[name] = values)))
			.then(() => wanted);
	},
	unload(configs) {
		for (const name of [].concat(configs))
			for (const store of [ loaded, pending, added ])
				delete store[name];
	},
	sections(config, type, each) {
		const found = Object.keys(loaded[config] ?? {}).map(name => this.get(config, name))
			.filter(section => !type || section['.type'] == type);
		found.forEach(section => each?.(section, section['.name']));
		return found;
	},
	get(config, section, option) {
		const now = loaded[config]?.[section];
		if (!now)
			return null;
		const changed = pending[config]?.[section] ?? {};
		if (option == null) {
			const all = { ...now, ...changed };
			for (const name of Object.keys(all))
				if (all[name] == null)
					delete all[name];
			return all;
		}
		return (option in changed ? changed[option] : now[option]) ?? null;
	},
	get_first(config, type, option) {
		const first = this.sections(config, type)[0];
		return first ? this.get(config, first['.name'], option) : null;
	},
	set(config, section, option, value) {
		if (!loaded[config]?.[section])
			return;
		/* A value that it has already is written, as LuCI does; one that it has not cannot go. */
		const changed = ((pending[config] ??= {})[section] ??= {});
		changed[option] = value == null || value === '' ? null : value;
		if (changed[option] == null && loaded[config][section][option] == null)
			delete changed[option];
	},
	unset(config, section, option) {
		this.set(config, section, option, null);
	},
	add(config, type, name) {
		(loaded[config] ??= {})[name] = { '.name': name, '.type': type, '.anonymous': false };
		(added[config] ??= {})[name] = type;
		return name;
	},
	save() {
		const calls = [];
		for (const [ config, sections ] of Object.entries(added))
			for (const [ name, type ] of Object.entries(sections))
				calls.push(() => callAdd(config, type, name));
		for (const [ config, sections ] of Object.entries(pending))
			for (const [ name, changed ] of Object.entries(sections)) {
				const values = {};
				const gone = [];
				for (const [ option, value ] of Object.entries(changed))
					value == null ? gone.push(option) : values[option] = value;
				if (Object.keys(values).length)
					calls.push(() => callSet(config, name, values));
				if (gone.length)
					calls.push(() => callDelete(config, name, gone));
			}
		const touched = [ ...new Set([ ...Object.keys(added), ...Object.keys(pending) ]) ];
		return calls.reduce((before, call) => before.then(call), Promise.resolve())
			.then(() => this.unload(touched)).then(() => this.load(touched));
	},
	changes: () => callChanges()
});
