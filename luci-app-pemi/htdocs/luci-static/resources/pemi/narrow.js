// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';

/* Eight columns do not fit into a narrow window: each row becomes a block of two columns.
 * Themes do that by the size of the device, or not at all, and hide the titles, which sort. */
const NARROW = `@media (max-width: 854px) {
	#ID { display: block }
	#ID .tr { display: grid; grid-template-columns: 1fr 1fr; gap: .3em 1em; margin: 0; padding: .6em 0 }
	#ID .tr.table-titles { display: flex; flex-wrap: wrap }
	#ID .tr.placeholder { display: block }
	#ID .th, #ID .td { display: block; flex: none; width: auto; padding: 0; border: 0; text-align: left }
	#ID .td[data-title]::before { content: attr(data-title); display: block; font-weight: bold }
}`;

return baseclass.extend({
	/* A table in a frame of its own, which scrolls where it has to. */
	frame: function(table) {
		return E('div', { 'style': 'overflow-x:auto' }, [
			E('style', {}, [ NARROW.replace(/ID/g, table.id) ]), table
		]);
	}
});
