// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';
'require dom';
'require rpc';

const apply = rpc.declare({ object: 'uci', method: 'apply', params: [ 'timeout', 'rollback' ], reject: true });
const confirm = rpc.declare({ object: 'uci', method: 'confirm', reject: true });

return baseclass.extend({
	showModal(title, children, ...classes) {
		const box = document.getElementById('modal_overlay');
		dom.content(box, E('div', { 'class': [ 'modal', 'cbi-modal', ...classes ].join(' '), 'role': 'dialog' }, [
			title != null ? E('h4', {}, [ title ]) : ''
		]));
		dom.append(box.firstChild, children);
		document.body.classList.add('modal-overlay-active');
		return box.firstChild;
	},
	hideModal() {
		document.body.classList.remove('modal-overlay-active');
		document.getElementById('modal_overlay').replaceChildren();
	},
	addNotification(title, children, ...classes) {
		const box = E('div', { 'class': [ 'alert-message', 'fade-in', ...classes ].join(' ') }, [
			E('button', { 'class': 'btn', 'style': 'float:right', 'click': () => box.remove() }, [ _('Dismiss') ]),
			title != null ? E('h4', {}, [ title ]) : ''
		]);
		dom.append(box, children);
		document.getElementById('maincontent').prepend(box);
		return box;
	},
	addTimeLimitedNotification(title, children, timeout, ...classes) {
		const box = this.addNotification(title, children, ...classes);
		window.setTimeout(() => box.remove(), timeout);
		return box;
	},
	/* Not to be pressed again, and spinning, until the promise is settled. */
	createHandlerFn(self, handler, ...args) {
		const call = typeof handler == 'string' ? self[handler] : handler;
		if (typeof call != 'function')
			return null;
		return function(event) {
			const button = event.currentTarget;
			button.classList.add('spinning');
			button.disabled = true;
			return Promise.resolve().then(() => call.call(self, ...args, event)).finally(() => {
				button.classList.remove('spinning');
				button.disabled = false;
			});
		};
	},
	itemlist(node, items, separators) {
		const children = [];
		for (let at = 0; at < items.length; at += 2)
			if (items[at + 1] != null)
				children.push(E('span', { 'class': 'nowrap' }, [
					E('strong', {}, [ items[at] + ': ' ]), items[at + 1]
				]), [].concat(separators ?? E('br'))[0].cloneNode?.(true) ?? E('br'));
		dom.content(node, children);
		return node;
	},
	changes: {
		init: () => rpc.declare({ object: 'uci', method: 'changes' })(),
		apply(checked) {
			return apply(90, checked).then(() => confirm()).catch(error => {
				if (!/ubus code 5/.test(error.message))  /* no changes */
					throw error;
			}).then(() => document.dispatchEvent(new CustomEvent('uci-applied')));
		}
	},
	tabs: {
		initTabGroup(panes) {
			const list = [ ...panes ];
			const menu = E('ul', { 'class': 'cbi-tabmenu' });
			const select = pane => list.forEach((one, at) => {
				one.dataset.tabActive = one == pane;
				menu.children[at].className = one == pane ? 'cbi-tab' : 'cbi-tab-disabled';
			});
			for (const pane of list)
				menu.appendChild(E('li', { 'data-tab': pane.dataset.tab }, [
					E('a', { 'href': '#', 'click': event => { event.preventDefault(); select(pane); } },
						[ pane.dataset.tabTitle ])
				]));
			list[0].parentNode.prepend(menu);
			select(list.find(one => one.dataset.tabActive == 'true') ?? list[0]);
		}
	}
});
