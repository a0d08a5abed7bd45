import { describe, expect, it } from '@jest/globals';
import type { BundleFacts } from '../bundle/bundle-manifest.js';
import { factsOfBundle, factsOfCard, factsOfScan } from './server-facts.js';

const serverInfo = { name: 'weather', version: '1.0.0' };
const schema = { type: 'object' };

const bundle: BundleFacts = {
  serverInfo: { name: 'packed', version: '2.0.0' },
  runtime: 'node',
  tools: [{ name: 'forecast' }],
  isComplete: false,
  prompts: null,
  configSchema: {},
};

describe('the known features of a server', () => {
  it('are complete after a scan: an undeclared feature is absent', () => {
    const scan = { serverInfo, capabilities: {}, protocolVersion: '2025-11-25', era: 'legacy' } as const;
    const facts = factsOfScan({
      ...scan,
      tools: [{ name: 'a' }],
      resources: null,
      resourceTemplates: null,
      prompts: null,
    });
    expect(facts).toEqual({
      serverInfo,
      tools: [{ name: 'a' }],
      resources: [],
      resourceTemplates: [],
      prompts: [],
    });
  });

  it('are those of its card, and unknown where the card has no member', () => {
    expect(factsOfCard({ serverInfo, tools: [{ name: 'a' }] })).toEqual({
      serverInfo,
      tools: [{ name: 'a' }],
      resources: null,
      resourceTemplates: null,
      prompts: null,
    });
    expect(factsOfCard(null).tools).toBeNull();
  });

  it('are those of the bundle manifest, and those of its publisher where the manifest has none or no schemas', () => {
    const claimed = {
      serverInfo,
      tools: [{ name: 'forecast', inputSchema: schema }],
      prompts: [{ name: 'ask' }],
      resources: [{ name: 'map', uri: 'map://' }],
    };
    expect(factsOfBundle(bundle, claimed)).toMatchObject({
      serverInfo: bundle.serverInfo,
      tools: claimed.tools,
      prompts: claimed.prompts,
      resources: claimed.resources,
      runtime: 'node',
    });
    expect(factsOfBundle({ ...bundle, isComplete: true }, claimed).tools).toEqual(bundle.tools);
    expect(factsOfBundle({ ...bundle, prompts: [] }, claimed).prompts).toEqual([]);
    expect(factsOfBundle(bundle, null)).toMatchObject({ tools: bundle.tools, prompts: null, resources: null });
  });
});
