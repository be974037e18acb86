// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';
'require dom';
'require uci';
'require ui';
'require fields';

/* Forms over uci: a map has sections, these have options, which may be in tabs. */

const Option = baseclass.extend({
	__init__(map, section, name, title, description) {
		Object.assign(this, { map, section, option: name, title, description, rmempty: true, choices: [], fields: {} });
	},
	value(key, label) {
		this.choices.push([ String(key), label ?? String(key) ]);
	},
	depends() {},
	cbid(id) {
		return 'cbid.%s.%s.%s'.format(this.map.config, id, this.option);
	},
	load(id) {
		return uci.get(this.map.config, id, this.option);
	},
	cfgvalue(id) {
		return this.load(id);
	},
	formvalue(id) {
		return this.fields[id]?.value() ?? null;
	},
	/* What is wrong with a value, or true. */
	check(id, value) {
		if (value == null || value === '') {
			if (!this.rmempty && !this.optional && !(this.default != null))
				return _('Expecting: %s').format(_('non-empty value'));
		}
		else {
			const said = fields.datatype(this.datatype, value);
			if (said !== true)
				return said;
		}
		return this.validate ? this.validate(id, value ?? '') : true;
	},
	isValid(id) {
		return this.fields[id]?.check() ?? true;
	},
	parse(id) {
		const value = this.formvalue(id);
		const empty = value == null || value === '' || Array.isArray(value) && !value.length;
		if (!this.isValid(id))
			throw new TypeError(_('Option "%s" contains an invalid input value.').format(this.title));
		if (empty || this.isDefault(value))
			uci.unset(this.map.config, id, this.option);
		else
			uci.set(this.map.config, id, this.option, value);
	},
	isDefault: () => false,
	render(id) {
		const field = this.fields[id] = this.createField(id, this.cfgvalue(id) ?? this.default ?? null);
		return E('div', {
			'class': 'cbi-value', 'id': 'cbi-%s-%s-%s'.format(this.map.config, id, this.option),
			'data-name': this.option, 'data-field': this.cbid(id)
		}, [
			E('label', { 'class': 'cbi-value-title', 'for': 'widget.' + this.cbid(id) }, [ this.title ]),
			E('div', { 'class': 'cbi-value-field' }, [
				E('div', { 'id': this.cbid(id) }, [ field.node ]),
				this.description ? E('div', { 'class': 'cbi-value-description' }, [ this.description ]) : ''
			])
		]);
	},
	disabled() {
		return this.readonly || this.map.readonly || !L.hasViewPermission() || null;
	},
	createField(id, value) {
		return fields.text(this, id, value);
	}
});

const Flag = Option.extend({
	createField(id, value) {
		return fields.flag(this, id, value);
	},
	isDefault(value) {
		return (this.rmempty || this.optional) && value == (this.default ?? '0');
	}
});

const ListValue = Option.extend({
	createField(id, value) {
		return fields.select(this, id, value);
	},
	isDefault(value) {
		return (this.rmempty || this.optional) && value == this.default;
	}
});

const DynamicList = Option.extend({
	createField(id, value) {
		return fields.list(this, id, value);
	}
});

const DummyValue = Option.extend({
	createField(id, value) {
		return { node: E('span', {}, [ value ?? this.default ?? '' ]), value: () => null, check: () => true };
	},
	parse() {}
});

const SectionValue = DummyValue.extend({
	__init__(map, section, name, Kind, ...rest) {
		this.super('__init__', [ map, section, name ]);
		this.subsection = new Kind(map, ...rest);
	},
	createField() {
		return { node: this.subsection.render(), value: () => null, check: () => true };
	},
	parse() {
		this.subsection.parse();
	}
});

const Button = DummyValue.extend({
	createField(id) {
		return {
			node: E('button', {
				'class': 'btn cbi-button cbi-button-' + (this.inputstyle ?? 'action'), 'disabled': this.disabled(),
				'click': ui.createHandlerFn(this, 'onclick', id)
			}, [ this.inputtitle ?? this.title ]),
			value: () => null, check: () => true
		};
	}
});

const Section = baseclass.extend({
	__init__(map, type, title, description) {
		Object.assign(this, { map, sectiontype: type, title, description, options: [], tabs: [] });
	},
	tab(name, title, description) {
		this.tabs.push({ name, title, description });
	},
	option(Kind, ...rest) {
		const one = new Kind(this.map, this, ...rest);
		this.options.push(one);
		return one;
	},
	taboption(tab, ...rest) {
		const one = this.option(...rest);
		one.tab = tab;
		return one;
	},
	formvalue(id, name) {
		return this.options.find(one => one.option == name)?.formvalue(id) ?? null;
	},
	getOption(name) {
		return this.options.find(one => one.option == name);
	},
	parse() {
		for (const id of this.cfgsections())
			for (const one of this.options)
				one.parse(id);
	},
	renderOne(id) {
		const shown = options => options.map(one => one.render(id));
		if (!this.tabs.length)
			return shown(this.options);
		const panes = this.tabs.map(tab => E('div', { 'data-tab': tab.name, 'data-tab-title': tab.title }, [
			tab.description ? E('div', {}, [ tab.description ]) : '',
			...shown(this.options.filter(one => one.tab == tab.name))
		]));
		const holder = E('div', {}, panes);
		ui.tabs.initTabGroup(panes);
		return [ holder, ...shown(this.options.filter(one => !one.tab)) ];
	},
	addButton: (label, click) => E('button', { 'class': 'btn cbi-button cbi-button-add', 'click': click }, [ label ]),
	render() {
		const ids = this.cfgsections();
		return E('div', { 'class': 'cbi-section', 'id': 'cbi-%s-%s'.format(this.map.config, this.section ?? this.sectiontype) }, [
			this.title ? E('h3', {}, [ this.title ]) : '',
			this.description ? E('div', { 'class': 'cbi-section-descr' }, [ this.description ]) : '',
			...ids.map(id => E('div', { 'class': 'cbi-section-node', 'data-section-id': id }, this.renderOne(id))),
			!ids.length && this.addremove ? this.addButton(_('Add'), () => this.add()) : ''
		]);
	}
});

const NamedSection = Section.extend({
	__init__(map, name, type, title, description) {
		this.super('__init__', [ map, type, title, description ]);
		this.section = name;
	},
	cfgsections() {
		return uci.get(this.map.config, this.section) ? [ this.section ] : [];
	},
	add() {
		uci.add(this.map.config, this.sectiontype, this.section);
		return this.map.redraw();
	}
});

const TypedSection = Section.extend({
	cfgsections() {
		return uci.sections(this.map.config, this.sectiontype).map(section => section['.name']);
	}
});

const Map = baseclass.extend({
	__init__(config, title, description) {
		Object.assign(this, { config, title, description, children: [], root: null });
	},
	section(Kind, ...rest) {
		const one = new Kind(this, ...rest);
		this.children.push(one);
		return one;
	},
	load() {
		return uci.load([ this.config, ...this.parsechain ?? [] ]);
	},
	render() {
		return this.load().then(() => this.redraw());
	},
	redraw() {
		this.root ??= E('div', { 'class': 'cbi-map', 'id': 'cbi-' + this.config });
		dom.content(this.root, [
			E('h2', { 'name': 'content' }, [ this.title ]),
			E('div', { 'class': 'cbi-map-descr' }, [ this.description ?? '' ]),
			...this.children.map(one => one.render())
		]);
		dom.bindClassInstance(this.root, this);
		return this.root;
	},
	reset() {
		uci.unload(this.config);
		return this.render();
	},
	save(before) {
		try {
			this.children.forEach(one => one.parse());
		}
		catch (error) {
			ui.showModal(_('Save error'), [
				E('p', {}, [ _('An error occurred while saving the form:') ]),
				E('p', {}, [ E('em', {}, [ error.message ]) ]),
				E('div', { 'class': 'right' }, [
					E('button', { 'class': 'btn cbi-button', 'click': () => ui.hideModal() }, [ _('Dismiss') ])
				])
			]);
			return Promise.reject(error);
		}
		return Promise.resolve(before?.()).then(() => uci.save()).then(() => this.redraw());
	}
});

return baseclass.extend({ Map, NamedSection, TypedSection, Section, Value: Option, Flag, ListValue, DynamicList,
	DummyValue, SectionValue, Button, AbstractValue: Option });
