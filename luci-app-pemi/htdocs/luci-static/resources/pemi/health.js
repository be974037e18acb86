// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';
'require pemi.format as format';

/* Queue, memory and Sidekick as a table of names and values. */

function sum(list, key) {
	return (Array.isArray(list) ? list : []).reduce(function(total, one) {
		return total + (one[key] || 0);
	}, 0);
}

/* Of a part of the answer that an older daemon may lack. */
function figure(part, key, show) {
	return part && part[key] != null ? show(part[key]) : '-';
}

function bar(used, limit) {
	const percent = limit ? Math.min(100, Math.round(used * 100 / limit)) : 0;

	return E('div', { 'class': 'cbi-progressbar', 'title': '%s / %s (%d%%)'.format(format.bytes(used), format.bytes(limit), percent) }, [
		E('div', { 'style': 'width:%d%%'.format(percent) })
	]);
}

function row(name, help, value) {
	return E('tr', { 'class': 'tr' }, [
		E('td', { 'class': 'td left', 'width': '50%', 'title': help }, [ name ]),
		E('td', { 'class': 'td left' }, [ value ])
	]);
}

/* Nothing while it is switched off, as it is for most. An older daemon does not tell. */
function helper(sidekick) {
	if (!sidekick || !sidekick.enabled)
		return [];

	return [
		row(_('Sidekick sessions'), _('Senders that cooperate with this router'),
			_('%s, refused: %s').format(format.count(sidekick.sessions), figure(sidekick, 'refused', format.count))),
		row(_('Sidekick reports sent'), _('quACKs: short messages that tell a sender which of its packets came by'),
			'%s, %s'.format(figure(sidekick, 'quacks', format.count), figure(sidekick, 'quack_bytes', format.bytes))),
		row(_('Losses found with Sidekick'), _('As the senders tell: packets lost on the way to this router, which they could send again at once'),
			figure(sidekick, 'losses', format.count))
	];
}

return baseclass.extend({
	render: function(status) {
		const cache = status.cache || {};
		const flows = status.flows;
		const queues = status.queues;
		const dropped = sum(queues, 'kernel_dropped') + sum(queues, 'user_dropped');

		return E('table', { 'class': 'table' }, [].concat(
			row(_('Packets seen'), _('Packets of the selected ports that came by'),
				format.count(sum(queues, 'packets'))),
			row(_('Packets missed'), _('The kernel let them pass because PEMI did not keep up'),
				format.count(sum(queues, 'missed'))),
			row(_('Packets dropped by the kernel'), _('Should be 0: these were lost in the queue'),
				format.count(dropped)),
			row(_('Connections seen, helped, let go'), _('Those let go need no help and pass at full speed'),
				'%s / %s / %s'.format(figure(flows, 'active', format.count), figure(flows, 'protected', format.count), figure(flows, 'bypassed', format.count))),
			row(_('Packets sent again'), _('Copies, and how many of them were not sent because the limit was reached'),
				_('%s, held back by the limit: %s').format(figure(status.resent, 'packets', format.count), figure(status.resent, 'limited', format.count))),
			row(_('Acknowledgements held'), _('Held for a moment so that the sender does not slow down; late ones reached the time limit'),
				_('%s, late: %s').format(figure(status.concealed, 'held', format.count), figure(status.concealed, 'late', format.count))),
			row(_('Memory for copies'), _('Packets kept in case they have to be sent again'), bar(cache.bytes || 0, cache.limit || 0)),
			helper(status.sidekick),
			row(_('Mode'), '', status.mode == 'bridged' ? _('Bridged') : status.mode == 'routed' ? _('Routed') : '-'),
			row(_('Version, running for'), '', '%s, %s'.format(status.version || '-', format.duration(status.uptime_s)))
		));
	}
});
