import { readFile } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';
import { clientsPage } from '../../../../scripts/clients-page.mjs';
import { clientNameOf, clients } from './clients.js';

const target = { name: 'everything', url: 'https://mcp.example.com/run/acme--everything', hasLogin: true };

describe('the snippets of the clients', () => {
  it('are listed in docs/guides/clients.md: `npm run clients` writes them', async () => {
    const page = await readFile(new URL('../../../../docs/guides/clients.md', import.meta.url), 'utf8');
    expect(clientsPage(page, clients)).toBe(page);
    expect(page).toContain('codex mcp add everything');
  });

  it.each(clients.map((client) => [client.id, client] as const))('give %s the address', (_, { setup, isHosted }) => {
    for (const hasLogin of [true, false]) {
      const { how, snippet, link, then } = setup({ ...target, hasLogin });
      const words = [how, snippet?.text, then].join('\n');
      if (snippet) expect(snippet.text).toContain(target.url);
      else expect(how).toContain('aste the address');
      if (snippet?.language === 'json') JSON.parse(snippet.text);
      // The key, or the name of its variable, stands there only where a client cannot log in.
      if (hasLogin) expect(words).not.toMatch(/KEY|Bearer|key/);
      else if (!isHosted) expect(words).toMatch(/SLIPWAY_KEY|key/);
      expect(hasLogin || link === undefined).toBe(true);
      if (link === undefined) continue;
      const { searchParams } = new URL(link);
      const given = searchParams.get('config') ?? '';
      const config = link.startsWith('cursor:')
        ? Buffer.from(given, 'base64').toString()
        : decodeURIComponent(link.slice(link.indexOf('?') + 1));
      expect(JSON.parse(config)).toMatchObject({ url: target.url });
      expect(config).not.toMatch(/header|KEY|Bearer/i);
    }
  });

  it('have names that no shell takes for options or words of its own', () => {
    for (const [word, name] of [
      ['my-first', 'my-first'],
      ['--help', 'help'],
      ['a.b.c', 'a-b-c'],
      ['.', 'slipway'],
      ['x'.repeat(255), 'x'.repeat(40)],
    ] as [string, string][]) {
      expect(clientNameOf(word)).toBe(name);
    }
  });

  it('let mcp-remote call http only where the address is another machine', () => {
    const { setup } = clients.find(({ id }) => id === 'mcp-remote') ?? clients[0];
    expect(setup({ ...target, url: 'http://10.0.0.1/run/a' }).snippet?.text).toContain('--allow-http');
    for (const url of [target.url, 'http://127.0.0.1:3000/run/a', 'http://localhost:3000/run/a']) {
      expect(setup({ ...target, url }).snippet?.text).not.toContain('--allow-http');
    }
  });
});
