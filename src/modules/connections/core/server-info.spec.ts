import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { ServerInfo } from '../../../mcp/protocol/protocol.js';
import { toStoredServerInfo } from './server-info.js';
import { storableFault, toStorableText } from '../../../platform/database/storable.js';
import { randomRuns } from '../../../../test/support/random-runs.js';

describe('the serverInfo of an upstream', () => {
  it('is stored as far as its members are known and of the right type', () => {
    const icons = [{ src: 'https://a.example/i.png', mimeType: 'image/png', sizes: ['48x48'], theme: 'dark' }];
    const known = { name: 'a', version: '1', title: 'A', description: 'd', websiteUrl: 'https://a.example', icons };
    expect(toStoredServerInfo({ ...known, more: 'x' } as ServerInfo)).toEqual(known);
    expect(toStoredServerInfo({ name: 'a', version: '1' })).toEqual({ name: 'a', version: '1' });
  });

  it('can be stored and read for any input', () => {
    const anything = fc.anything({ withNullPrototype: true, maxDepth: 3 });
    const icon = fc.oneof(anything, fc.record({ src: anything, mimeType: anything, sizes: anything }));
    const info = fc.oneof(
      anything,
      fc.record({ name: anything, version: anything, title: fc.string({ unit: 'binary' }), icons: fc.array(icon) }),
    );
    fc.assert(
      fc.property(info, (given) => {
        const { name, version, icons = [] } = toStoredServerInfo(given as ServerInfo);
        expect(storableFault({ name, version, icons })).toBeNull();
        expect([typeof name, typeof version]).toEqual(['string', 'string']);
        for (const { src, mimeType = '', sizes = [] } of icons) {
          for (const text of [src, mimeType, ...sizes]) expect(typeof text).toBe('string');
        }
      }),
      { numRuns: randomRuns(2_000) },
    );
  });
});

describe('text for Postgres', () => {
  it('loses only the characters that Postgres refuses', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const kept = toStorableText(text);
        expect(storableFault(kept)).toBeNull();
        expect(kept).toHaveLength(text.length);
        if (storableFault(text) === null) expect(kept).toBe(text);
      }),
    );
    expect(toStorableText('a\0b\ud800c\udc00🚀')).toBe('a\ufffdb\ufffdc\ufffd🚀');
  });
});
