// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';
'require dom';
'require ui';

/* A page: load, render, the buttons below. */
const view = baseclass.extend({
	__init__() {
		const place = document.getElementById('view');
		dom.content(place, E('div', { 'class': 'spinning' }, [ _('Loading view…') ]));
		return Promise.resolve(this.load()).then(data => this.render(data)).then(nodes => {
			dom.content(place, nodes);
			dom.append(place, this.addFooter());
			document.documentElement.dataset.ready = 'view';
		}).catch(error => {
			dom.content(place, E('div', { 'class': 'alert-message danger' }, [
				E('pre', {}, [ error.stack ])
			]));
			document.documentElement.dataset.ready = 'failed';
		});
	},
	load() {},
	render() {},
	maps(method) {
		const maps = [ ...document.querySelectorAll('#maincontent .cbi-map') ];
		return Promise.all(maps.map(map => dom.callClassMethod(map, method)));
	},
	handleSave() {
		return this.maps('save');
	},
	handleSaveApply(ev, mode) {
		return this.handleSave(ev).then(() => ui.changes.apply(mode == '0'));
	},
	handleReset() {
		return this.maps('reset');
	},
	addFooter() {
		const readonly = !L.hasViewPermission() || null;
		const button = (kind, label, handler, ...args) => this[handler] && E('button', {
			'class': 'btn cbi-button cbi-button-' + kind, 'disabled': readonly,
			'click': ui.createHandlerFn(this, handler, ...args)
		}, [ label ]);
		const buttons = [
			button('apply', _('Save & Apply'), 'handleSaveApply', '0'),
			button('save', _('Save'), 'handleSave'),
			button('reset', _('Reset'), 'handleReset')
		].filter(Boolean);
		return E([ buttons.length ? E('div', { 'class': 'cbi-page-actions' }, buttons) : '' ]);
	}
});
view.keepClass = true;
return view;
