// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';

/* Functions that are called again and again: once a second it is looked which are due. */
const due = [];
let timer = null;
let tick = 0;

function step() {
	for (const entry of due) {
		if (tick % entry.interval || entry.running)
			continue;
		entry.running = true;
		Promise.resolve().then(entry.call).catch(error => console.error(String(error)))
			.then(() => entry.running = false);
	}
	tick = (tick + 1) % Math.pow(2, 32);
	/* A page's questions are counted against turns: seconds differ on a busy machine. */
	document.dispatchEvent(new CustomEvent('poll-turn'));
}

return baseclass.extend({
	add(call, interval) {
		if (typeof call != 'function')
			throw new TypeError('Invalid argument to L.Poll.add()');
		if (due.some(entry => entry.call == call))
			return false;
		due.push({ call: call, interval: interval || 5 });
		if (timer == null)
			this.start();
		return true;
	},
	remove(call) {
		const at = due.findIndex(entry => entry.call == call);
		if (at < 0)
			return false;
		due.splice(at, 1);
		if (!due.length)
			this.stop();
		return true;
	},
	start() {
		if (timer != null)
			return false;
		tick = 0;
		if (due.length) {
			timer = window.setInterval(step, 1000);
			step();
			document.dispatchEvent(new CustomEvent('poll-start'));
		}
		return true;
	},
	stop() {
		if (timer == null)
			return false;
		window.clearInterval(timer);
		timer = null;
		document.dispatchEvent(new CustomEvent('poll-stop'));
		return true;
	},
	active: () => timer != null
});
