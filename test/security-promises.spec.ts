import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { filesUnder } from '../scripts/lib.mjs';

const text = readFileSync('SECURITY.md', 'utf8');
const section = text.slice(text.indexOf('We protect'), text.indexOf('We do not protect'));
const promises = section.split(/^- (?=\*\*)/m).slice(1);
const cited = new Set(
  [...filesUnder('test'), ...filesUnder('src')]
    .filter((file) => file.endsWith('spec.ts'))
    .flatMap((file) => readFileSync(file, 'utf8').match(/erifies\(\s*(\[[^\]]*\]|'[^']+')/g) ?? [])
    .flatMap((call) => [...call.matchAll(/'([^']+)'/g)].map(([, id]) => id)),
);

describe('each promise of SECURITY.md', () => {
  it.each(promises.map((promise) => [/^\*\*(.*?)\*\*/.exec(promise)?.[1] ?? '', promise]))(
    'names tests that exist: %s',
    (name, promise) => {
      const [, ids = ''] = /\[((?:`[a-z0-9:-]+`(?:,\s+)?)+)\]\s*$/.exec(promise) ?? [];
      const named = [...ids.matchAll(/`([^`]+)`/g)].map(([, id]) => id);
      expect([name, named.length]).not.toEqual([name, 0]);
      expect([name, named.filter((id) => !cited.has(id))]).toEqual([name, []]);
    },
  );

  it('is one of these', () => {
    expect(promises.length).toBeGreaterThan(15);
  });
});
