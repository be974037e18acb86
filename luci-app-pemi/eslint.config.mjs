// SPDX-License-Identifier: GPL-2.0-or-later
// The rules for JavaScript of LuCI's own tree, for `npx eslint luci-app-pemi`.
// eslint, @eslint/js, @eslint/json and globals are found from this folder or from NODE_LIBRARIES,
// a node_modules folder elsewhere.
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const from = process.env.NODE_LIBRARIES;
const require = createRequire(from ? path.resolve(from, 'x.js') : import.meta.url);
const js = require('@eslint/js');
const json = require('@eslint/json').default;
const globals = require('globals');

// What LuCI puts into every page.
const luci = [ '_', 'N_', 'L', 'E', 'TR', 'isElem', 'toElem', 'matchesElem', 'findParent', 'sfh' ];
// What 'require …' at the head of a file defines.
const modules = [ 'baseclass', 'dom', 'form', 'fs', 'network', 'poll', 'request', 'rpc', 'uci', 'ui', 'view', 'widgets' ];
// Our own.
const ours = readdirSync(new URL('htdocs/luci-static/resources/pemi', import.meta.url))
	.map((file) => path.basename(file, '.js'));

export default [
	{
		files: [ '**/*.json' ],
		plugins: { json },
		language: 'json/json',
		rules: { ...json.configs.recommended.rules, 'json/no-duplicate-keys': 'error' },
	},
	{
		files: [ '**/*.js' ],
		linterOptions: { reportUnusedDisableDirectives: 'off' },
		languageOptions: {
			sourceType: 'script',
			ecmaVersion: 2022,
			globals: {
				...globals.browser,
				...Object.fromEntries([ ...luci, ...modules, ...ours ].map((name) => [ name, 'readonly' ])),
			},
			// A module ends with a return.
			parserOptions: { ecmaFeatures: { globalReturn: true } },
		},
		rules: {
			...js.configs.recommended.rules,
			'strict': 'off',
			'no-prototype-builtins': 'off',
			'no-empty': 'off',
			'no-regex-spaces': 'off',
			'no-control-regex': 'off',
			// Stricter than LuCI, which warns or says nothing.
			'no-undef': 'error',
			'no-unused-vars': [ 'error', { caughtErrors: 'none' } ],
		},
	},
];
