// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';

/* Nine columns do not fit into a narrow window: each row becomes a block of two columns below its
 * first cell, whose cells have their titles. Themes do that by the size of the device, or not at all. What sorts is a choice then. */
const NARROW = `.pemi-narrow { display: none }
@media (max-width: 854px) {
	.pemi-narrow { display: block }
	#ID { display: block }
	#ID .tr { display: grid; grid-template-columns: 1fr 1fr; gap: .3em 1em; margin: 0; padding: .6em 0 }
	#ID .tr.table-titles { display: none }
	#ID .tr.placeholder { display: block }
	#ID .th, #ID .td { display: block; flex: none; width: auto; padding: 0; border: 0; text-align: left }
	#ID .td:first-child, #ID .td.pemi-wide { grid-column: 1 / -1 }
	#ID .td.pemi-nothing { display: none }
	#ID .td:first-child { font-weight: bold }
	#ID .td:first-child::before { content: none }
	#ID .td[data-title]:not(:first-child)::before { content: attr(data-title); display: block; font-weight: bold }
}`;

return baseclass.extend({
	/* A table in a frame of its own, which scrolls where it has to. */
	frame: function(table, choice) {
		return E('div', { 'style': 'overflow-x:auto' }, [
			E('style', {}, [ NARROW.replace(/ID/g, table.id) ]), choice ? E('div', { 'class': 'pemi-narrow' }, [ choice ]) : '', table
		]);
	}
});
