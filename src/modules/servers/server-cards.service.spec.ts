import { describe, expect } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { verifies } from '../../../test/support/verifies.js';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { serverListExample } from './search/server-search.dto.js';
import { ServerCardField } from './server-card.decorator.js';
import { ServerCardsService } from './server-cards.service.js';
import { serverDetailExample } from './server.dto.js';

/** The calls of both contributors. */
const calls: [string, string[]][] = [];

@Injectable()
@ServerCardField({ key: 'probed', schema: { type: 'integer' }, absent: 0 })
class Likes {
  async fieldsFor(serverIds: string[]): Promise<Map<string, unknown>> {
    calls.push(['probed', serverIds]);
    return new Map([['a', 3]]);
  }
}

@Injectable()
@ServerCardField({ key: 'reviewed', schema: { type: 'boolean' }, absent: null })
class Reviewed {
  async fieldsFor(serverIds: string[]): Promise<Map<string, unknown>> {
    calls.push(['reviewed', serverIds]);
    return new Map();
  }
}

async function cards(): Promise<ServerCardsService> {
  calls.length = 0;
  const testing = Test.createTestingModule({
    imports: [DiscoveryModule],
    providers: [
      ServerCardsService,
      Likes,
      Reviewed,
      { provide: Metrics, useValue: new Metrics({ metricsToken: null }) },
    ],
  });
  return (await (await testing.compile()).init()).get(ServerCardsService);
}

describe('the card of a server', () => {
  verifies('extension:card', 'includes the members of other modules, with one call of each per page', async () => {
    const service = await cards();
    expect(service.keys.sort()).toEqual(['probed', 'reviewed']);
    const added = await service.read(['a', 'b']);
    expect([added('a'), added('b')]).toEqual([
      { probed: 3, reviewed: null },
      { probed: 0, reviewed: null },
    ]);
    expect(calls.sort()).toEqual([
      ['probed', ['a', 'b']],
      ['reviewed', ['a', 'b']],
    ]);
  });

  verifies('extension:card', 'reads only the requested members, and none for an empty page', async () => {
    const service = await cards();
    expect((await service.read(['a'], ['id', 'probed']))('a')).toEqual({ probed: 3 });
    expect((await service.read([]))('a')).toEqual({});
    expect(calls).toEqual([['probed', ['a']]]);
  });

  verifies('extension:card', 'has these members in the examples of the document; a duplicate name is refused', () => {
    expect(serverDetailExample).toMatchObject({ probed: 0, reviewed: null });
    expect(serverListExample.servers).toMatchObject([{ probed: 0, reviewed: null }]);
    expect(() => ServerCardField({ key: 'displayName', schema: {}, absent: '' })).toThrow('a member "displayName"');
  });
});
