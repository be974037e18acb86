// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';
'require dom';
'require pemi.chart as chart';
'require pemi.format as format';
'require pemi.state as state';
'require pemi.trend as trend';

/* The charts: of losses, which everybody sees, and of the rest; of the last two minutes, or of the day
 * or week that was chosen. */

const NAMES = { now: _('Two minutes'), day: _('Day'), week: _('Week') };
const LOSSES = { now: _('Losses per second'), day: _('Losses per ten minutes'), week: _('Losses per hour') };

function losses(span) {
	return chart.create({ span: span, title: LOSSES[span], format: format.count, least: 5, series: [
		{ key: 'inferred', label: _('Noticed'), colour: 'main', sum: true, help: _('Packets that seem to be lost') },
		{ key: 'repaired', label: _('Repaired'), colour: 'good', sum: true, area: true, help: _('Seen to be repaired by a copy') },
		{ key: 'beyond', label: _('Beyond reach'), colour: 'bad', dash: '4 3', sum: true,
			help: _('Lost before the router, or left alone because the Wi-Fi was congested') }
	] });
}

function traffic(span) {
	return chart.create({ span: span, title: _('Traffic that PEMI looks at'), format: format.bits, least: 1000000, series: [
		{ key: 'down_bps', label: _('Download rate'), colour: 'main', area: true },
		{ key: 'up_bps', label: _('Upload rate'), colour: 'good', dash: '4 3' }
	] });
}

/* Of the last two minutes only. */
function others() {
	return [
		chart.create({ span: 'now', title: _('Replies held per second'), format: format.count, least: 5, series: [
			{ key: 'held', label: _('Held'), colour: 'main', sum: true, area: true,
				help: _('Until the loss that they would tell of is repaired') }
		] }),
		chart.create({ span: 'now', title: _('Round trip between router and clients'), format: format.ms, least: 5000, series: [
			{ key: 'rtt', label: _('Median'), colour: 'main' }
		] })
	];
}

/* A sample as it is drawn: what is not known is null rather than 0, and what the daemon
 * does not tell is undefined. */
function drawn(sample) {
	return Object.assign({}, sample, {
		beyond: sample.upstream == null ? undefined : state.beyond(sample),
		rtt: sample.local_rtt_us === 0 ? null : sample.local_rtt_us
	});
}

function seconds() {
	return Date.now() / 1000;
}

/* One of them is shown. */
function choose(spans, name) {
	spans.chosen = name;

	Object.keys(NAMES).forEach(function(one) {
		const shown = one == name;

		spans.buttons[one].setAttribute('aria-pressed', shown);
		spans.buttons[one].className = 'btn cbi-button' + (shown ? ' cbi-button-action important' : '');
		spans.losses[one].node.style.display = spans.traffic[one].node.style.display = shown ? '' : 'none';
	});
}

return baseclass.extend({
	/* `changed` is called when another one is chosen. */
	create: function(changed) {
		const spans = { losses: {}, traffic: {}, buttons: {}, others: others(), trends: { day: trend.create('day'), week: trend.create('week') } };
		const names = Object.keys(NAMES);
		const nodes = function(charts) {
			return names.map(function(name) {
				return charts[name].node;
			});
		};

		names.forEach(function(name) {
			spans.losses[name] = losses(name);
			spans.traffic[name] = traffic(name);
			spans.buttons[name] = E('button', { 'style': 'margin:0 .5em .3em 0', 'data-pemi-span': name, 'click': function(ev) {
				ev.preventDefault();
				choose(spans, name);
				changed();
			} }, [ NAMES[name] ]);
		});
		spans.first = E('div', {}, [
			E('div', {}, names.map(function(name) {
				return spans.buttons[name];
			}))
		].concat(nodes(spans.losses)));
		spans.more = E('div', { 'style': 'display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,24em),1fr));gap:1em 2em' },
			nodes(spans.traffic).concat(spans.others.map(function(one) {
				return one.node;
			})));
		choose(spans, 'now');

		return spans;
	},

	/* { skip }: parts to be asked for are behind so many; null: none are. */
	due: function(spans) {
		const skip = spans.chosen == 'now' ? null : trend.skip(spans.trends[spans.chosen], seconds());

		return skip == null ? null : { skip: skip };
	},

	take: function(spans, answer) {
		if (spans.trends[spans.chosen])
			trend.take(spans.trends[spans.chosen], answer, seconds());
	},

	update: function(spans, samples) {
		const one = spans.trends[spans.chosen];
		const list = samples.map(drawn);
		const shown = one ? trend.samples(one) : list;
		const until = one ? one.now : null;

		[ spans.losses, spans.traffic ].forEach(function(charts) {
			const it = charts[spans.chosen];

			chart.update(it, shown, until);

			if (one && one.failed && !shown.length)
				dom.content(it.note, _('Not told by this version of the daemon'));
		});
		spans.others.forEach(function(other) {
			chart.update(other, list);
		});
	}
});
