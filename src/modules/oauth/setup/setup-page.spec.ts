import { describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import { html, type Html } from '../../../platform/pages/html.js';
import { setupPage } from './setup-page.js';
import type { SetupView } from './setup.types.js';

const HOSTILE = `"><script>alert(1)</script>&'\u202egnp.exe\u0007`;
const env = { appName: HOSTILE };
const named = { label: HOSTILE, upstreamHost: HOSTILE };
const presented = { ...named, title: HOSTILE, description: HOSTILE, iconUrl: HOSTILE };
const hosts = { ...presented, issuerHost: HOSTILE, signInHost: `${HOSTILE}2` };
const field = {
  name: HOSTILE,
  label: HOSTILE,
  description: HOSTILE,
  isRequired: true,
  isSecret: false,
  control: 'line' as const,
  limits: {},
  fallback: HOSTILE,
  isStored: false,
  fault: HOSTILE,
};
const token = (): Html => html`<input type="hidden" name="form-token" value="t">`;
const shown = (view: SetupView, action?: string) => setupPage(env, view, token, action);
const pages = [
  shown({ kind: 'authorize', ...hosts, scopes: [HOSTILE] }),
  shown({ kind: 'authorize', ...hosts, scopes: [], epoch: 1 }, HOSTILE),
  shown({ kind: 'authorized', ...named }),
  shown({ kind: 'connected', ...named }),
  shown({ kind: 'message', title: HOSTILE, text: HOSTILE }),
  shown({
    kind: 'form',
    ...presented,
    epoch: 1,
    reason: HOSTILE,
    fault: HOSTILE,
    fields: [
      { ...field, allowed: [HOSTILE] },
      { ...field, allowed: null },
      { ...field, allowed: null, control: 'lines' },
      { ...field, allowed: null, isSecret: true },
    ],
    client: { issuer: `https://auth.example/${HOSTILE}`, redirectUri: HOSTILE, state: 'given' },
  }),
];

it('has controls by the formats of values', () => {
  const fields = (['date', 'email', 'url', 'integer'] as const).map((control) => ({
    ...field,
    allowed: null,
    control,
  }));
  const { html } = shown({ kind: 'form', ...presented, epoch: 1, reason: '', fault: null, fields, client: null });
  const types = [...html.matchAll(/ type="(date|email|url|number)"[^>]*/g)].map(([text]) => text);
  expect(types.map((text) => [/"(\w+)"/.exec(text)?.[1], text.includes('step="1"')])).toEqual([
    ['date', false],
    ['email', false],
    ['url', false],
    ['number', true],
  ]);
});

describe('every page', () => {
  it('has the token in each form, and nowhere else', () => {
    for (const { html } of pages) {
      expect(html.match(/<form [^>]*><input type="hidden" name="form-token"/g) ?? []).toHaveLength(
        html.match(/<form/g)?.length ?? 0,
      );
      expect(html.match(/form-token/g) ?? []).toHaveLength(html.match(/<form/g)?.length ?? 0);
    }
  });

  it('escapes text from outside', () => {
    for (const { html } of pages) {
      expect(html).toContain('&quot;&gt;&lt;script&gt;');
      expect(html).not.toContain('<script');
      expect(html).not.toContain('\u202e');
      expect(html).not.toContain('\u0007');
    }
  });

  it('loads nothing from other URLs, and its policy allows only its own style', () => {
    for (const { html, headers } of pages) {
      const style = /<style>([^]*)<\/style>/.exec(html)?.[1] ?? '';
      const hash = createHash('sha256').update(style).digest('base64');
      expect(headers['content-security-policy']).toBe(
        `default-src 'none'; style-src 'sha256-${hash}'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'`,
      );
      expect(html.replaceAll('<img src=', '').replace('<link rel="icon" href="data:,">', '')).not.toMatch(
        / (src|href|style|on\w+)=/,
      );
    }
  });
});
