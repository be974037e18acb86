// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';
'require pemi.api as api';
'require pemi.state as state';

/* One line and a bar on the status page. Where PEMI is off there is nothing. */

return baseclass.extend({
	title: _('PEMI'),

	load: function() {
		return api.settle(api.status());
	},

	render: function(answer) {
		const status = answer && answer.value;
		const verdict = L.isObject(status) && status.packets ? state.judge({ status: status }) : null;

		/* It was there before and is gone: what was shown would stay. */
		if (!verdict)
			return this.shown ? E('p', {}, [ E('em', {}, [ _('Not running') ]) ]) : null;

		this.shown = true;

		const losses = status.losses || {};
		const percent = losses.inferred ? Math.min(100, Math.round(losses.repaired * 100 / losses.inferred)) : 0;
		const label = losses.inferred
			? _('%d%% of losses repaired').format(percent)
			: _('No losses noticed');

		return E('table', { 'class': 'table' }, [
			E('tr', { 'class': 'tr' }, [
				E('td', { 'class': 'td left', 'width': '50%' }, [
					E('a', { 'href': L.url('admin/services/pemi/overview') }, [ verdict.title ])
				]),
				E('td', { 'class': 'td left' }, [
					E('div', { 'class': 'cbi-progressbar', 'title': label }, [ E('div', { 'style': 'width:%d%%'.format(percent) }) ])
				])
			])
		]);
	}
});
