import { describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import { messagePage } from '../../platform/pages/page.js';
import { donePage, setupPage } from './setup-page.js';

const HOSTILE = `"><script>alert(1)</script>&'\u202egnp.exe\u0007`;
const view = {
  label: HOSTILE,
  upstreamHost: HOSTILE,
  issuerHost: HOSTILE,
  signInHost: `${HOSTILE}2`,
  scopes: [HOSTILE],
};
const pages = [setupPage(view), setupPage({ ...view, scopes: [] }), donePage(view), messagePage(HOSTILE, HOSTILE)];

describe('every page', () => {
  it('shows text of others as text', () => {
    for (const { html } of pages) {
      expect(html).toContain('&quot;&gt;&lt;script&gt;');
      expect(html).not.toContain('<script');
      expect(html).not.toContain('\u202e');
      expect(html).not.toContain('\u0007');
    }
  });

  it('needs nothing from elsewhere, and allows nothing else than its own style', () => {
    for (const { html, headers } of pages) {
      const style = /<style>([^]*)<\/style>/.exec(html)?.[1] ?? '';
      const hash = createHash('sha256').update(style).digest('base64');
      expect(headers['content-security-policy']).toBe(
        `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; frame-ancestors 'none'`,
      );
      expect(html).not.toMatch(/ (src|href|style|on\w+)=/);
    }
  });
});
