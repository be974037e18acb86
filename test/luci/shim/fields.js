// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';

/* The fields of a form: each has a node, a value, and tells at the field what is wrong. */

const SIMPLE = {
	port: value => /^\d+$/.test(value) && +value <= 65535 || _('valid port value'),
	uinteger: value => /^\d+$/.test(value) || _('positive integer value'),
	integer: value => /^-?\d+$/.test(value) || _('valid integer value'),
	bool: value => /^[01]$/.test(value) || _('boolean')
};

/* True, or the message that LuCI would have. */
function datatype(type, value) {
	const range = type?.match(/^range\((-?\d+),\s*(-?\d+)\)$/);
	for (const one of [].concat(value)) {
		const said = range ? /^-?\d+$/.test(one) && +one >= +range[1] && +one <= +range[2]
			|| _('value between %s and %s').format(range[1], range[2])
			: type ? SIMPLE[type](one) : true;
		if (said !== true)
			return _('Expecting: %s').format(said);
	}
	return true;
}

function checked(option, id, input, value) {
	const check = () => {
		const said = option.check(id, value());
		const good = said === true || said == null;
		input.classList.toggle('cbi-input-invalid', !good);
		input.parentNode?.querySelector(':scope > .cbi-tooltip')?.remove();
		if (good) {
			input.removeAttribute('data-tooltip');
		}
		else {
			input.setAttribute('data-tooltip', said);
			input.after(E('div', { 'class': 'cbi-tooltip' }, [ said ]));
		}
		return good;
	};
	for (const event of [ 'blur', 'keyup', 'change' ])
		input.addEventListener(event, check);
	return check;
}

function input(option, id, attributes) {
	return E('input', { 'class': 'cbi-input-text', 'id': 'widget.' + option.cbid(id), 'disabled': option.disabled(), ...attributes });
}

return baseclass.extend({
	datatype: datatype,

	text(option, id, now) {
		const node = input(option, id, { 'type': 'text', 'value': now, 'placeholder': option.placeholder });
		const value = () => node.value;
		return { node: E('div', {}, [ node ]), value, check: checked(option, id, node, value) };
	},

	flag(option, id, now) {
		const on = option.enabled ?? '1';
		const node = input(option, id, { 'type': 'checkbox', 'checked': now == on ? '' : null });
		return { node: E('div', { 'class': 'cbi-checkbox' }, [ node ]), value: () => node.checked ? on : option.disabled_value ?? '0', check: () => true };
	},

	select(option, id, now) {
		const node = E('select', { 'class': 'cbi-input-select', 'id': 'widget.' + option.cbid(id), 'disabled': option.disabled(),
			'multiple': option.multiple ? '' : null }, option.choices.map(([ key, label ]) =>
			E('option', { 'value': key, 'selected': L.toArray(now).includes(key) ? '' : null }, [ label ])));
		const value = () => option.multiple ? [ ...node.selectedOptions ].map(one => one.value) : node.value;
		return { node: E('div', {}, [ node ]), value, check: checked(option, id, node, value) };
	},

	list(option, id, now) {
		const box = E('div', { 'class': 'cbi-dynlist', 'disabled': option.disabled() });
		const entry = input(option, id, { 'type': 'text', 'placeholder': option.placeholder });
		const value = () => [ ...box.querySelectorAll('.item > span') ].map(one => one.textContent);
		const add = text => box.insertBefore(E('div', { 'class': 'item', 'click': event => event.currentTarget.remove() },
			[ E('span', {}, [ text ]) ]), entry.parentNode);
		const check = checked(option, id, entry, () => entry.value);
		const take = () => {
			if (entry.value && check()) {
				add(entry.value);
				entry.value = '';
				check();
			}
		};
		entry.addEventListener('keydown', event => {
			if (event.key == 'Enter') {
				event.preventDefault();
				take();
			}
		});
		entry.addEventListener('blur', take);
		box.appendChild(E('div', { 'class': 'add-item' }, [ entry ]));
		L.toArray(now).forEach(add);
		return { node: box, value, check };
	}
});
