// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';
'require dom';

/* A line chart of the last minutes or days. Text is HTML, so that the drawing may be
 * stretched to any width; colours come from the theme where it has them. */

const SVG = 'http://www.w3.org/2000/svg';
const WIDTH = 600;
const HEIGHT = 120;

const COLOURS = {
	good: 'var(--success-color-high, #00994f)',
	main: 'var(--primary-color-high, #1976d2)',
	bad: 'var(--error-color-high, #e0402a)'
};

let charts = 0;

function svg(name, attributes) {
	const node = document.createElementNS(SVG, name);

	Object.keys(attributes).forEach(function(key) {
		node.setAttribute(key, attributes[key]);
	});

	return node;
}

/* How far back a chart goes: seconds, how long samples may be apart in one line, what stands below it and
 * before sums. */
const SPANS = {
	now: { seconds: 120, gap: 3, axis: [ _('2 min ago'), _('1 min'), _('now') ], sum: _('In two minutes:') },
	day: { seconds: 86400, gap: 900, axis: [ _('24 h ago'), _('12 h'), _('now') ], sum: _('In 24 hours:') },
	week: { seconds: 604800, gap: 5400, axis: [ _('7 days ago'), _('3 ½ days'), _('now') ], sum: _('In seven days:') }
};

/* 1, 2 or 5 and zeros. */
function roundUp(value) {
	const power = Math.pow(10, Math.floor(Math.log(value) / Math.LN10));
	const steps = [ 1, 2, 5, 10 ].filter(function(step) {
		return step * power >= value * 0.999;
	});

	return steps[0] * power;
}

/* A sample is a moment, or a time since `begin` that has one value. */
function line(samples, key, from, span, gap, top, area) {
	const path = [];
	let before = null;

	function close() {
		if (area && before != null)
			path.push('V%d Z'.format(HEIGHT));
		before = null;
	}

	samples.forEach(function(sample) {
		const value = sample[key];

		if (value == null || sample.t < from)
			return;

		const begin = sample.begin == null ? sample.t : Math.max(sample.begin, from);
		const x = ((begin - from) * WIDTH / span).toFixed(1);
		const y = (HEIGHT - Math.min(value / top, 1) * HEIGHT).toFixed(1);

		if (before == null || sample.t - before > gap) {
			close();
			path.push(area ? 'M' + x + ' ' + HEIGHT + ' L' + x + ' ' + y : 'M' + x + ' ' + y);
		}
		else {
			path.push('L' + x + ' ' + y);
		}

		if (sample.begin != null)
			path.push('H' + ((sample.t - from) * WIDTH / span).toFixed(1));

		before = sample.t;
	});
	close();

	return path.join(' ');
}

function legend(series) {
	const swatch = svg('svg', { width: 18, height: 10, 'aria-hidden': 'true' });
	const value = E('strong', {}, [ '-' ]);

	swatch.appendChild(svg('line', {
		x1: 0, y1: 5, x2: 18, y2: 5, 'stroke-width': 3,
		'stroke-dasharray': series.dash || 'none',
		style: 'stroke:' + COLOURS[series.colour]
	}));

	return {
		value: value,
		node: E('span', { 'style': 'white-space:nowrap;margin-right:1em', 'title': series.help || '' }, [
			swatch, ' ', series.label, ' ', value
		])
	};
}

return baseclass.extend({
	/* spec: title, span (now, day, week), format, least (of the scale), series of key, label, help,
	 * colour, dash, area, sum (of the span instead of the last value). */
	create: function(spec) {
		const id = 'pemi-chart-%d'.format(charts++);
		const span = SPANS[spec.span];
		const title = svg('title', { id: id + '-title' });
		const description = svg('desc', { id: id + '-desc' });
		const drawing = svg('svg', {
			viewBox: '0 0 %d %d'.format(WIDTH, HEIGHT),
			preserveAspectRatio: 'none',
			role: 'img',
			'aria-labelledby': id + '-title ' + id + '-desc',
			style: 'display:block;width:100%;height:9em;overflow:hidden'
		});

		title.textContent = spec.title;
		drawing.appendChild(title);
		drawing.appendChild(description);

		[ 0, 0.25, 0.5, 0.75, 1 ].forEach(function(part) {
			drawing.appendChild(svg('line', {
				x1: 0, x2: WIDTH, y1: HEIGHT * part, y2: HEIGHT * part,
				stroke: 'currentColor', 'stroke-opacity': part == 1 ? 0.6 : 0.15,
				'vector-effect': 'non-scaling-stroke'
			}));
		});

		const series = spec.series.map(function(one) {
			const path = svg('path', {
				'stroke-width': 2, 'stroke-linejoin': 'round', 'stroke-dasharray': one.dash || 'none',
				'vector-effect': 'non-scaling-stroke', 'fill-opacity': 0.25,
				style: 'stroke:%s;fill:%s'.format(COLOURS[one.colour], one.area ? COLOURS[one.colour] : 'none')
			});
			const entry = legend(one);

			drawing.appendChild(path);

			return { spec: one, path: path, entry: entry };
		});

		const highest = E('small', { 'style': 'position:absolute;top:0;left:.3em;opacity:.8' }, [ '' ]);
		const note = E('em', { 'style': 'position:absolute;top:40%;left:0;right:0;text-align:center' }, [ _('Collecting data…') ]);

		return {
			spec: spec,
			span: span,
			series: series,
			description: description,
			highest: highest,
			note: note,
			node: E('div', { 'class': 'pemi-chart' }, [
				E('h4', {}, [ spec.title ]),
				E('div', { 'style': 'position:relative' }, [ drawing, highest, note ]),
				E('div', { 'style': 'display:flex;justify-content:space-between;opacity:.8', 'aria-hidden': 'true' }, span.axis.map(function(text) {
					return E('small', {}, [ text ]);
				})),
				E('div', { 'class': 'pemi-legend' }, [
					spec.series[0].sum ? E('span', { 'style': 'margin-right:1em;opacity:.8' }, [ span.sum ]) : ''
				].concat(series.map(function(one) {
					return one.entry.node;
				})))
			])
		};
	},

	/* What came in the span until `now`, or until the last sample. */
	update: function(chart, samples, until) {
		const spec = chart.spec;
		const span = chart.span.seconds;
		const now = until || (samples.length ? samples[samples.length - 1].t : 0);
		let most = 0;

		samples = samples.filter(function(sample) {
			return sample.t >= now - span;
		});

		chart.series.forEach(function(one) {
			one.values = samples.map(function(sample) {
				return sample[one.spec.key];
			}).filter(function(value) {
				return value != null;
			});
			one.most = one.values.reduce(function(a, b) {
				return Math.max(a, b);
			}, 0);
			most = Math.max(most, one.most);
		});

		const top = roundUp(Math.max(most * 1.2, spec.least));

		chart.series.forEach(function(one) {
			const last = one.values.length ? one.values[one.values.length - 1] : null;
			const sum = one.values.reduce(function(a, b) {
				return a + b;
			}, 0);

			one.path.setAttribute('d', line(samples, one.spec.key, now - span, span, chart.span.gap, top, one.spec.area));
			one.text = last == null ? '-' : spec.format(one.spec.sum ? sum : last);
			dom.content(one.entry.value, one.text);
		});

		const known = chart.series.some(function(one) {
			return one.values.length > 0;
		});

		dom.content(chart.highest, known ? spec.format(top) : '');
		chart.note.style.display = known ? 'none' : '';

		const told = samples.some(function(sample) {
			return chart.series.some(function(one) {
				return sample[one.spec.key] !== undefined;
			});
		});

		if (samples.length && !known)
			dom.content(chart.note, told ? _('Nothing was measured yet') : _('Not told by this version of the daemon'));

		chart.description.textContent = chart.series.map(function(one) {
			return _('%s: %s, highest %s').format(one.spec.label, one.text, spec.format(one.most));
		}).join('. ');
	}
});
