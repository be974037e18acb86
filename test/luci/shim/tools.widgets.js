// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';
'require baseclass';
'require form';
'require uci';

/* Networks and devices are those of /etc/config/network. */
const Select = form.ListValue.extend({
	render(id) {
		const now = L.toArray(this.cfgvalue(id));
		const names = this.names().concat(now).filter((name, at, all) => all.indexOf(name) == at);
		this.choices = names.filter(name => name != 'loopback' && name != 'lo').map(name => [ name, name ]);
		return this.super('render', [ id ]);
	}
});

return baseclass.extend({
	NetworkSelect: Select.extend({
		names: () => uci.sections('network', 'interface').map(section => section['.name'])
	}),
	DeviceSelect: Select.extend({
		names: () => uci.sections('network', 'interface').map(section => section.device).filter(Boolean)
	})
});
