// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';
'require pemi.format as format';

/* What goes on inside, in plain words. */

/* Of the memory for copies. */
const FULL = 0.9;

function sum(list, key) {
	return (Array.isArray(list) ? list : []).reduce(function(total, one) {
		return total + (one[key] || 0);
	}, 0);
}

/* Of a part of the answer that an older daemon may lack. */
function figure(part, key, show) {
	return part && part[key] != null ? show(part[key]) : '-';
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

function keepsUp(queues) {
	const missed = sum(queues, 'missed');
	const dropped = sum(queues, 'kernel_dropped') + sum(queues, 'user_dropped');

	if (!missed && !dropped)
		return _('Yes');

	return _('No: %s packets passed unhelped, %s were lost').format(format.count(missed), format.count(dropped));
}

/* Bytes, as a share of what went to the clients: that is what others have to share the air with. */
function copies(status) {
	const resent = status.resent;
	const down = (status.bytes || {}).down;

	if (!resent || resent.packets == null)
		return '-';

	const said = down && resent.bytes != null
		? _('%s, %s of the traffic').format(format.count(resent.packets), format.percent(resent.bytes * 100 / down))
		: format.count(resent.packets);

	return resent.limited ? _('%s; the limit of copies kept back %s more').format(said, format.count(resent.limited)) : said;
}

function replies(concealed) {
	const held = figure(concealed, 'held', format.count);

	return concealed && concealed.late ? _('%s; %s of them as long as they may').format(held, format.count(concealed.late)) : held;
}

/* Full is how it should be: the oldest packets make room. */
function memory(cache) {
	if (!cache || !cache.limit)
		return '-';

	const said = _('%s of %s').format(format.bytes(cache.bytes), format.bytes(cache.limit));

	return cache.bytes > cache.limit * FULL ? _('%s: full, as it should be; the oldest make room').format(said) : said;
}

function connections(flows) {
	const figures = [ 'active', 'protected', 'bypassed' ].map(function(key) {
		return figure(flows, key, format.count);
	});

	return String.prototype.format.apply(_('%s known, %s helped now, %s let go as they need no help'), figures);
}

return baseclass.extend({
	render: function(status) {
		return E('table', { 'class': 'table' }, [].concat(
			row(_('Does the router keep up?'), _('Packets pass unhelped where it does not'), keepsUp(status.queues)),
			row(_('Connections'), '', connections(status.flows)),
			row(_('Packets looked at'), _('Packets of the selected ports that came by'), format.count(sum(status.queues, 'packets'))),
			row(_('Packets sent again'), _('Copies of packets that seemed to be lost'), copies(status)),
			row(_('Replies that waited until a loss was repaired'), _('Otherwise the server would slow down'), replies(status.concealed)),
			row(_('Memory for copies'), _('Packets kept in case they have to be sent again'), memory(status.cache)),
			helper(status.sidekick),
			row(_('Mode'), '', status.mode == 'bridged' ? _('Bridged') : status.mode == 'routed' ? _('Routed') : '-'),
			row(_('Version, running for'), '', '%s, %s'.format(status.version || '-', format.duration(status.uptime_s)))
		));
	}
});
