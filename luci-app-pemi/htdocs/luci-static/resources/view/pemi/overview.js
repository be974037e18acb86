// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require view';
'require dom';
'require poll';
'require uci';
'require ui';
'require pemi.api as api';
'require pemi.benefit as benefit';
'require pemi.clients as clients';
'require pemi.control as control';
'require pemi.flows as flows';
'require pemi.health as health';
'require pemi.samples as samples';
'require pemi.spans as spans';
'require pemi.state as state';

/* One question a second, in turns, and none while nobody looks. */
const TURNS = [ 'history', 'status', 'history', 'flows', 'history', 'clients' ];
/* Where samples are missing, older ones are asked for in the turns of the status. */
const TURNS_CATCHING_UP = [ 'history', 'older', 'history', 'flows', 'history', 'older', 'clients', 'older' ];
/* While no daemon answers: does it now, is the service running, has the kernel packet queues? */
const TURNS_SILENT = [ null, 'status', null, 'status', 'service', 'status', null, 'status', 'queues', 'status' ];
/* Who may not ask now hardly may in a second. */
const TURNS_DENIED = [ 'status', null, null, null, null, null, null, null, null, null ];
/* Who may have been started or stopped elsewhere is looked at now and then. */
const SERVICE_EVERY = 20;
const NAMES_EVERY = 120;
/* What help is worth changes with every download at most. */
const BENEFIT_EVERY = 30;

function warning(text, link, level) {
	return E('div', { 'class': 'alert-message ' + (level || 'warning') }, [
		E('p', {}, [ text, ' ', link ? E('a', { 'href': L.url(link), 'style': 'color:inherit;text-decoration:underline' }, [ state.label(link) ]) : '' ])
	]);
}

return view.extend({
	load: function() {
		return Promise.all([
			api.settle(uci.load('pemi')),
			api.settle(api.status()),
			api.settle(api.service()),
			api.settle(api.history(api.SAMPLES)),
			api.settle(api.flows()),
			api.settle(api.names()),
			api.settle(api.queues()),
			api.settle(api.clients()),
			api.settle(api.benefit())
		]);
	},

	render: function(answers) {
		this.tick = 0;
		this.samples = samples.empty();
		this.names = {};
		this.spans = spans.create(L.bind(this.draw, this));
		this.table = flows.create();
		this.clients = clients.create();
		this.nodes = this.frame();

		this.take('status', answers[1]);
		this.take('service', answers[2]);
		this.take('history', answers[3]);
		this.take('names', answers[5]);
		this.take('flows', answers[4]);
		this.take('queues', answers[6]);
		this.take('clients', answers[7]);
		this.take('benefit', answers[8]);
		this.draw();
		poll.add(L.bind(this.ask, this), 1);

		return E('div', { 'class': 'cbi-map' }, [
			E('h2', {}, [ _('PEMI') ]),
			E('div', { 'class': 'cbi-map-descr' }, [
				_('Makes web pages, videos and calls that use QUIC fast again where the Wi-Fi loses packets: lost packets are sent again by the router, before the server notices.')
			]),
			E('div', { 'class': 'cbi-section' }, [ this.nodes.state, this.nodes.benefit, this.nodes.sentence, this.nodes.buttons, this.nodes.warnings ]),
			this.nodes.live
		]);
	},

	/* What it does, for whom, and at the end what only few want to know. */
	frame: function() {
		const section = function(title, content) {
			return E('div', { 'class': 'cbi-section' }, [ E('h3', {}, [ title ]), content ]);
		};
		const nodes = {
			state: E('div', {}),
			sentence: E('div', {}),
			buttons: E('div', { 'class': 'pemi-buttons', 'style': 'margin:.5em 0' }),
			warnings: E('div', {}),
			benefit: E('div', { 'class': 'pemi-benefit' }),
			health: E('div', {}),
			losses: section(_('Losses on the Wi-Fi'), this.spans.first),
			clients: section(_('Clients'), this.clients.frame),
			flows: section(_('Connections with the most traffic'), this.table.frame)
		};

		nodes.clients.style.display = 'none';
		nodes.live = E('div', {}, [
			nodes.losses, nodes.clients, nodes.flows,
			E('details', { 'class': 'cbi-section pemi-details', 'style': 'margin-top:1.5em' }, [
				E('summary', { 'style': 'cursor:pointer;font-size:1.2em;margin-bottom:.5em' }, [ _('Details') ]),
				nodes.health, this.spans.more
			])
		]);

		return nodes;
	},

	/* The next question; a page that nobody sees asks nothing. */
	ask: function() {
		const tick = ++this.tick;
		const turn = function(turns) {
			return turns[tick % turns.length];
		};
		let what;

		if (document.hidden)
			return Promise.resolve();

		if (this.error && this.error.kind == 'denied')
			what = turn(TURNS_DENIED);
		else if (this.lost)
			what = 'service';
		else if (!this.status)
			what = turn(TURNS_SILENT);
		else if (tick % NAMES_EVERY == 0)
			what = 'names';
		else if (tick % SERVICE_EVERY == 0)
			what = 'service';
		else if (tick % BENEFIT_EVERY == 1)
			what = 'benefit';
		else if (spans.due(this.spans))
			what = 'trend';
		else
			what = turn(samples.hole(this.samples) == null ? TURNS : TURNS_CATCHING_UP);

		if (!what)
			return Promise.resolve();

		return api.settle(this.question(what)).then(L.bind(function(answer) {
			this.take(what, answer);
			this.draw();
		}, this));
	},

	question: function(what) {
		switch (what) {
		case 'history':
			/* Its clock ticks as ours does; one more, in case it was not in step. */
			return api.history(Math.ceil((Date.now() - (this.sampled || 0)) / 1000) + 2);
		case 'older':
			this.hole = samples.hole(this.samples);

			return api.history(api.SAMPLES, samples.newest(this.samples) - this.hole);
		case 'clients':
			return api.clients(clients.come(this.clients));
		case 'trend':
			return api.trend(this.spans.chosen, spans.due(this.spans).skip);
		default:
			return api[what]();
		}
	},

	take: function(what, answer) {
		const value = answer.value;

		switch (what) {
		case 'status':
			/* Who knows the method, and answers nonsense, is told as well. */
			this.lost = !!this.status;
			this.status = L.isObject(value) && value.packets ? value : null;
			this.error = this.status ? null : answer.error || { kind: 'old' };

			/* Has it been stopped elsewhere, or does it come back? */
			this.lost = this.lost && !this.status;

			if (!this.status)
				this.samples = samples.empty();
			break;

		case 'service':
			this.lost = false;

			/* A busy router leaves out what did not answer within 3 s. Then it is there if it answers
			 * or has settings, and nothing is known of boot that could be wrong. */
			this.service = answer.error && !this.status ? null : {
				found: !!value || !!this.status || api.wanted() !== null,
				running: value ? !!value.running : !!this.status,
				boot: value ? !!value.enabled : true
			};
			break;

		case 'history':
			if (Array.isArray(value)) {
				samples.add(this.samples, value);
				this.sampled = Date.now();
			}
			break;

		case 'older':
			if (Array.isArray(value))
				samples.add(this.samples, value);
			/* There are none, or the daemon does not know how to skip. */
			if (samples.hole(this.samples) === this.hole)
				samples.giveUp(this.samples, this.hole);
			break;

		case 'names':
			this.names = value || this.names;
			break;

		case 'queues':
			this.queues = value;
			break;

		case 'trend':
			spans.take(this.spans, value);
			break;

		case 'benefit':
			dom.content(this.nodes.benefit, benefit.render(value));
			break;

		case 'clients':
			/* An older daemon knows nothing of them, and where it is not to look there is nothing. */
			this.nodes.clients.style.display = value && (value.total || value.radio != 'off') ? '' : 'none';

			if (value)
				clients.update(this.clients, value, this.names);
			break;

		case 'flows':
			if (Array.isArray(value))
				flows.update(this.table, value, this.names, Date.now());
			break;
		}
	},

	draw: function() {
		const verdict = state.judge({ status: this.status, error: this.error, service: this.service,
			wanted: api.wanted(), queues: this.queues });
		dom.content(this.nodes.state, [
			E('p', { 'data-pemi-state': verdict.kind }, [
				E('span', { 'class': 'label ' + verdict.level, 'style': 'margin-right:.5em' }, [ verdict.badge ]),
				E('strong', {}, [ verdict.title ])
			]),
			verdict.text ? E('p', {}, [ verdict.text ]) : '',
			this.startsNot()
				? E('p', {}, [ _('Somebody has disabled its start at boot: after the next boot it is off. "Switch on" mends that.') ]) : '',
			verdict.link
				? E('p', {}, [ E('a', { 'href': L.url(verdict.link) }, [ state.label(verdict.link) ]) ]) : ''
		]);
		dom.content(this.nodes.sentence, verdict.kind == 'running' || verdict.kind == 'back' ? E('p', { 'class': 'pemi-sentence' }, [ state.sentence(this.status) ]) : '');
		this.drawButtons(verdict);
		dom.content(this.nodes.warnings, this.status ? state.warnings(this.status).map(function(one) {
			return warning(one.text, one.link);
		}).concat(state.lacks(this.status, this.samples.list)
			? [ warning(_('The installed daemon is older than this page: some figures are missing. Update the package pemi.'), null, 'notice') ] : []) : []);

		this.nodes.live.style.display = this.status ? '' : 'none';
		this.nodes.benefit.style.display = this.status && verdict.kind != 'meter' ? '' : 'none';
		this.nodes.losses.style.display = this.nodes.flows.style.display = verdict.kind == 'meter' ? 'none' : '';

		if (!this.status)
			return;

		spans.update(this.spans, this.samples.list);
		dom.content(this.nodes.health, health.render(this.status));
	},

	startsNot: function() {
		return this.service && this.service.found && !this.service.boot && api.wanted();
	},

	/* Drawn anew only when they change: a button under the pointer stays. */
	drawButtons: function(verdict) {
		const key = [ verdict.kind, api.wanted(), this.startsNot(), !!this.status, this.service != null ].join();

		if (key == this.buttons)
			return;

		this.buttons = key;

		const all = [];
		const off = !api.wanted() && (!this.status || verdict.kind == 'meter');

		/* Otherwise there is nothing to control, or nobody who may. */
		if (this.service && this.service.found && verdict.kind != 'denied') {
			if (off || this.startsNot())
				all.push(this.button('on', _('Switch on'), 'cbi-button-apply important', _('Starts it, now and at every boot')));

			if (!off)
				all.push(this.status || this.service.running
					? this.button('restart', _('Restart'), 'cbi-button-action', _('Connections go on; what is under repair is not'))
					: this.button('restart', _('Start'), 'cbi-button-apply', ''),
				this.button('off', _('Switch off'), 'cbi-button-negative', _('Stops it, now and at every boot')));
		}

		dom.content(this.nodes.buttons, all);
	},

	button: function(action, label, style, help) {
		return E('button', {
			'class': 'btn cbi-button ' + style,
			'style': 'margin:0 .5em .3em 0',
			'title': help,
			'data-pemi-action': action,
			'disabled': L.hasViewPermission() ? null : true,
			'click': ui.createHandlerFn(this, 'act', action)
		}, [ label ]);
	},

	act: function(action) {
		return control[action]().then(L.bind(function() {
			return Promise.all([ api.settle(api.service()), api.settle(api.status()) ]);
		}, this)).then(L.bind(function(answers) {
			this.take('service', answers[0]);
			this.take('status', answers[1]);
		}, this)).catch(function(error) {
			ui.addNotification(null, E('p', {}, [ _('This could not be done: %s').format(error.message || error) ]), 'warning');
		}).then(L.bind(function() {
			this.draw();
		}, this));
	},

	handleSave: null,
	handleSaveApply: null,
	handleReset: null
});
