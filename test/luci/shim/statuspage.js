// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require view';
'require dom';
'require poll';

/* Status > Overview with the app's parts: loaded, drawn, and again every few seconds. */
function draw(parts) {
	return Promise.all(parts.map(part => Promise.resolve(part.load?.()).catch(() => part.failed = true)))
		.then(results => parts.forEach((part, at) => {
			const content = part.failed ? null : part.render(results[at]);
			if (content == null)
				return;
			part.place.parentNode.style.display = '';
			dom.content(part.place, content);
		}));
}

return view.extend({
	load: () => Promise.all(L.env.includes.map(name => L.require(name))),
	render(parts) {
		const sections = parts.map(part => {
			part.place = E('div', {});
			return E('div', { 'class': 'cbi-section', 'style': 'display:none' }, [
				E('h3', {}, [ part.title ?? '-' ]), part.place
			]);
		});
		return draw(parts).then(() => {
			poll.add(() => draw(parts), L.env.pollinterval);
			return E('div', {}, [ E('h2', {}, [ _('Status') ]), ...sections ]);
		});
	},
	handleSave: null, handleSaveApply: null, handleReset: null
});
