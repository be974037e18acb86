// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';
'require pemi.format as format';

/* What help is worth, a sentence for each network: downloads that were helped against those that
 * chance has left alone. */

/* As many digits as matter: 0.84, 1.8, 12. */
function times(ratio) {
	return ratio < 0.995 ? ratio.toFixed(2) : ratio < 9.95 ? ratio.toFixed(1) : ratio.toFixed(0);
}

function counts(network) {
	return _('%s helped, %s left alone').format(format.count(network.helped.downloads), format.count(network.alone.downloads));
}

function compared(network) {
	return _('%s times as fast (%s to %s; %s)').format(times(network.ratio),
		times(network.interval[0]), times(network.interval[1]), counts(network));
}

function sentence(network) {
	switch (network.interval || network.verdict == 'not compared' ? network.verdict : 'unknown') {
	case 'helps':
	case 'harms':
		return _('With help, downloads were %s.').format(compared(network));
	case 'no difference':
		return _('No difference yet: with help, downloads were %s.').format(compared(network));
	case 'stands back':
		return _('Help is off: with it, downloads were %s. It is tried again in %d hours.')
			.format(compared(network), Math.ceil((network.back_s || 0) / 3600));
	case 'not compared':
		return _('There is nothing to compare with: no connection is left alone for comparison.');
	default:
		return _('Too few large downloads to tell what help is worth (%s).').format(counts(network));
	}
}

function points(percent) {
	return (percent >= 0.5 ? '+' : '') + String(Math.round(percent));
}

/* Nothing where none stood still, and of a daemon that does not compare that. */
function stalls(network) {
	const helped = network.helped, alone = network.alone, interval = network.stalled_interval;

	if (!interval || !(helped.stalled || alone.stalled))
		return '';
	return ' ' + _('Of %s with help %s stood still for 200 ms or more, of %s without %s: a difference of %s percentage points (%s to %s).')
		.format(format.count(helped.downloads), format.count(helped.stalled),
			format.count(alone.downloads), format.count(alone.stalled),
			points(network.stalled_percent), points(interval[0]), points(interval[1]));
}

function paragraph(network, several) {
	return E('p', { 'data-pemi-verdict': network.verdict }, [
		several ? E('strong', {}, [ network.device, ': ' ]) : '',
		sentence(network), stalls(network)
	]);
}

return baseclass.extend({
	/* Nothing where nothing is compared, and of a daemon that knows nothing of it. */
	render: function(answer) {
		const networks = (answer && answer.networks || []).filter(function(network) {
			return network.helped && network.alone && (network.helped.downloads > 0 || network.back_s != null);
		});

		return networks.map(function(network) {
			return paragraph(network, networks.length > 1);
		});
	}
});
