import { describe, expect, it } from '@jest/globals';
import { html } from '../../platform/pages/html.js';
import { accessPage, askedPage, consentPage, nothingHerePage } from './consent-page.js';

const HOSTILE = `"><script>alert(1)</script>&'\u202egnp.exe`;
const env = { appName: HOSTILE };
const form = { action: HOSTILE, formToken: html`` };
const target = {
  kind: 'connection' as const,
  id: 'c1',
  ownerId: 'a1',
  namespaceId: 'n1',
  namespace: HOSTILE,
  name: `${HOSTILE}2`,
  title: HOSTILE,
  visibility: null,
  suspended: null,
};
const framed = (...view: Parameters<typeof accessPage>) => ({ html: String(accessPage(...view).body) });
const pages = {
  consent: consentPage(env, {
    ...form,
    personName: HOSTILE,
    client: { name: HOSTILE, host: HOSTILE },
    target,
    redirectUri: 'cursor://app/callback',
    mayRemember: true,
    accountId: HOSTILE,
  }),
  nothing: nothingHerePage(env, {
    ...form,
    personName: HOSTILE,
    clientName: HOSTILE,
    resource: HOSTILE,
    accountId: HOSTILE,
    restricted: null,
  }),
  restricted: nothingHerePage(env, {
    ...form,
    personName: HOSTILE,
    clientName: HOSTILE,
    resource: HOSTILE,
    accountId: HOSTILE,
    restricted: HOSTILE,
  }),
  asked: askedPage(env, { ...form, clientName: HOSTILE }),
  access: framed(
    {
      grants: [
        {
          id: HOSTILE,
          clientName: HOSTILE,
          clientHost: HOSTILE,
          redirectKey: 'cursor://app/callback',
          address: HOSTILE,
          title: HOSTILE,
          resource: HOSTILE,
          createdAt: new Date(0),
          lastUsedAt: null,
        },
      ],
      older: 2,
      isEnded: false,
    },
    html``,
  ),
};

describe.each(Object.entries(pages))('the page %s', (_, { html: text }) => {
  it('escapes what a client and an owner of a server chose', () => {
    expect(text).toContain('&quot;&gt;&lt;script&gt;');
    expect(text).not.toContain('<script');
    expect(text).not.toContain('\u202e');
  });
});
