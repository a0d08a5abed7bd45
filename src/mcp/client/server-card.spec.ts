import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { InvalidInputError } from '../../platform/errors/domain-error.js';
import { parseServerCard } from './server-card.js';
import { randomRuns } from '../../../test/support/random-runs.js';

const serverInfo = { name: 'weather', version: '1.2.0' };

function messageOf(value: unknown): string {
  try {
    parseServerCard(value);
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidInputError);
    return (error as Error).message;
  }
  return 'accepted';
}

describe('a server card', () => {
  it('keeps all members, known or not', () => {
    const card = {
      serverInfo: { ...serverInfo, title: 'Weather', icons: [{ src: 'https://a.test/i.png' }], vendor: { id: 1 } },
      authentication: { required: true, schemes: ['oauth2'] },
      tools: [{ name: 'now', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true }, 'x-cost': 2 }],
      resources: [{ name: 'map', uri: 'geo://map', mimeType: 'image/png', _meta: { a: 1 } }],
      resourceTemplates: [{ name: 'city', uriTemplate: 'geo://{city}' }],
      prompts: [{ name: 'pack', arguments: [{ name: 'city', required: true }] }],
      eventTopics: ['rain'],
    };
    expect(parseServerCard(structuredClone(card))).toEqual(card);
  });

  it('needs only a name and a version', () => {
    expect(parseServerCard({ serverInfo })).toEqual({ serverInfo });
  });

  it('accepts what clients copy from a bundle manifest: tools without schemas, arguments with only names', () => {
    const tools = [{ name: 'now' }, { name: 'soon', description: 'Tomorrow.' }, { name: 'null', description: null }];
    const prompts = [{ name: 'pack', arguments: ['city', 'days'], text: 'Pack for ${arguments.city}' }];
    expect(parseServerCard({ serverInfo, tools, prompts, resources: null })).toEqual({
      serverInfo,
      tools,
      prompts: [{ ...prompts[0], arguments: [{ name: 'city' }, { name: 'days' }] }],
    });
  });

  it('is rejected with the path of the problem and the expected value', () => {
    const cases: [unknown, string][] = [
      [null, 'serverCard must be an object'],
      [[], 'serverCard must be an object'],
      [{}, 'serverCard.serverInfo must be an object'],
      [{ serverInfo: { version: '1' } }, 'serverCard.serverInfo.name must be a string'],
      [{ serverInfo: { name: 'a', version: 1 } }, 'serverCard.serverInfo.version must be a string'],
      [{ serverInfo: { name: '', version: '1' } }, 'serverCard.serverInfo.name must not be empty'],
      [{ serverInfo: { ...serverInfo, title: 1 } }, 'serverCard.serverInfo.title must be a string'],
      [{ serverInfo, tools: {} }, 'serverCard.tools must be an array'],
      [{ serverInfo, tools: [{ title: 'x' }] }, 'serverCard.tools.0.name must be a string'],
      [{ serverInfo, tools: [{ name: 'a' }, 'b'] }, 'serverCard.tools.1 must be an object'],
      [{ serverInfo, tools: [{ name: 'a', inputSchema: 'no' }] }, 'serverCard.tools.0.inputSchema must be an object'],
      [{ serverInfo, tools: [{ name: 'a', description: 7 }] }, 'serverCard.tools.0.description must be a string'],
      [{ serverInfo, resources: [{ name: 'a' }] }, 'serverCard.resources.0.uri must be a string'],
      [
        { serverInfo, resourceTemplates: [{ name: 'a' }] },
        'serverCard.resourceTemplates.0.uriTemplate must be a string',
      ],
      [{ serverInfo, prompts: [{ name: 'a', arguments: {} }] }, 'serverCard.prompts.0.arguments must be an array'],
      [
        { serverInfo, prompts: [{ name: 'a', arguments: [{}] }] },
        'serverCard.prompts.0.arguments.0.name must be a string',
      ],
      [{ serverInfo, tools: new Array(1_001).fill({ name: 'a' }) }, 'serverCard.tools must have at most 1000 items'],
      [
        { serverInfo, x: JSON.parse('['.repeat(5_000) + ']'.repeat(5_000)) as unknown },
        'serverCard must not be nested deeper than 100 levels',
      ],
      [
        { serverInfo, tools: [{ name: 'a', _meta: { 'b\0': 1 } }] },
        'serverCard must not hold NUL characters or broken unicode',
      ],
    ];
    for (const [value, message] of cases) expect(messageOf(value)).toBe(message);
  });

  it('any input is a card or an InvalidInputError, and a card is stable when read again', () => {
    const list = fc.array(fc.record({ name: fc.string(), uri: fc.string() }, { requiredKeys: [] }), { maxLength: 3 });
    const near = fc.record(
      { serverInfo: fc.constant(serverInfo), tools: list, prompts: list, resources: fc.oneof(list, fc.jsonValue()) },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), near), (value) => {
        if (messageOf(value) !== 'accepted') return;
        const card = parseServerCard(value);
        expect(parseServerCard(card)).toEqual(card);
      }),
      { numRuns: randomRuns(500) },
    );
  });
});
