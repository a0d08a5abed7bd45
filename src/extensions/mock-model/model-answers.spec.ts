import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { startLanguageModel, type LanguageModel } from '../../../test/support/mcp/language-model.js';
import { tracker } from '../../../test/support/special-upstreams/tracker.js';
import { MockModelError, ModelSimulator } from '../../modules/connections/mock/simulator/model-simulator.js';
import { SchemaSimulator } from '../../modules/connections/mock/simulator/schema-simulator.js';
import type { PastCall, ToolResult } from '../../modules/connections/mock/simulator/simulator.js';
import { AddressPolicy, parseEgressAllow } from '../../platform/egress/address-policy.js';
import { Egress } from '../../platform/egress/egress.js';
import type { JsonObject } from '../../platform/text/json.js';
import { answerWithModel } from './model-answers.js';
import { ModelClient } from './model-client.js';

let model: LanguageModel;
const egress = new Egress(new AddressPolicy(parseEgressAllow('127.0.0.1')));
const schema = new SchemaSimulator(tracker, 'acme');

beforeAll(async () => {
  model = await startLanguageModel();
});
afterEach(() => {
  model.answer = () => '{}';
  model.questions.length = 0;
});
afterAll(async () => {
  await egress.close();
  await model.close();
});

interface Asked {
  tool?: string;
  given?: JsonObject;
  base?: string;
  timeoutMs?: number;
  recent?: PastCall[];
  spend?: <T>(complete: () => Promise<T>) => Promise<T>;
}

async function complete({
  tool = 'get_weather',
  given = { city: 'Lisbon' },
  base = '/v1',
  ...more
}: Asked = {}): Promise<ToolResult> {
  const client = new ModelClient(egress, { url: `${model.origin}${base}`, apiKey: 'the-key', model: 'the-model' });
  const options = {
    client,
    timeoutMs: more.timeoutMs ?? 10_000,
    spend: more.spend ?? ((question) => question()),
  } satisfies Parameters<typeof answerWithModel>[1];
  const provider = { resultOf: (call: Parameters<typeof answerWithModel>[0]) => answerWithModel(call, options) };
  const simulator = new ModelSimulator(schema, provider, {
    namespaceId: 'acme',
    scenario: 'It rains everywhere',
    countRequest: () => Promise.resolve(true),
  });
  const recent = () => Promise.resolve(more.recent ?? []);
  const answer = await simulator.prepare({ tool, arguments: given, recent, timeoutMs: 20_000 });
  return answer({}).result;
}

const rain = { city: 'Lisbon', temperature: 12, conditions: 'rain' };
const byModel = { 'slipway/simulator': 'model' };

describe('a language model', () => {
  it.each([
    ['/v1', '/v1/chat/completions', { authorization: 'Bearer the-key' }],
    ['/v1/chat/completions', '/v1/chat/completions', { authorization: 'Bearer the-key' }],
    ['/v1/messages', '/v1/messages', { 'x-api-key': 'the-key', 'anthropic-version': '2023-06-01' }],
  ])('is called at %s, and its result is marked', async (base, path, headers) => {
    model.answer = () => JSON.stringify({ result: rain });
    const recent = [{ seq: 1, tool: 'get_weather', arguments: '{"city":"Oslo"}', answer: '{"snow":true}' }];
    expect(await complete({ base, recent })).toEqual({
      content: [{ type: 'text', text: JSON.stringify(rain) }],
      structuredContent: rain,
      _meta: byModel,
    });
    expect(model.questions).toEqual([expect.objectContaining({ path, model: 'the-model' })]);
    expect(model.questions[0].headers).toMatchObject(headers);
    for (const part of ['It rains everywhere', '{"city":"Lisbon"}', '{"snow":true}', '"conditions"']) {
      expect(model.questions[0].prompt).toContain(part);
    }
  });

  it('may answer in a code fence, without the wrapper, with a string, or with a tool error', async () => {
    model.answer = () => '```json\n' + JSON.stringify(rain) + '\n```';
    expect(await complete()).toMatchObject({ structuredContent: rain, _meta: byModel });
    model.answer = () => '{"text": "Hello back"}';
    const echo = { tool: 'echo', given: { message: 'Hello' } };
    expect(await complete(echo)).toEqual({ content: [{ type: 'text', text: 'Hello back' }], _meta: byModel });
    model.answer = () => '{"error": "No such city"}';
    expect(await complete()).toEqual({
      content: [{ type: 'text', text: 'No such city' }],
      isError: true,
      _meta: byModel,
    });
  });

  it('is called again if its result does not match the schema, with the reason', async () => {
    model.answer = ({ prompt }) => JSON.stringify({ result: prompt.includes('was rejected') ? rain : { city: 7 } });
    expect(await complete()).toMatchObject({ structuredContent: rain, _meta: byModel });
    expect(model.questions.map(({ prompt }) => prompt.includes("must have required property 'temperature'"))).toEqual([
      false,
      true,
    ]);
  });
});

describe('the schema simulator answers, with the reason, when the model', () => {
  const huge = 'x'.repeat(1024 * 1024 + 1);

  it.each<[string, () => LanguageModel['answer'], RegExp, number]>([
    ['never fits', () => () => '{"result": {}}', /answers did not fit: must have required property 'city'/, 2],
    ['writes no JSON', () => () => 'I am sorry', /did not fit: it was not a JSON object/, 2],
    ['is out of order', () => () => ({ status: 500, body: 'secret detail' }), /answered with status 500\.$/, 1],
    ['answers without a text', () => () => ({ status: 200, body: '{}' }), /responded without text/, 1],
    ['answers no JSON', () => () => ({ status: 200, body: 'oops' }), /something that is not JSON/, 1],
    ['answers without end', () => () => ({ status: 200, body: huge }), /more than 1 MB/, 1],
    ['redirects', () => () => ({ status: 302, body: '' }), /answered with status 302/, 1],
  ])('%s', async (_name, script, reason, questions) => {
    model.answer = script();
    const result = await complete();
    expect(result._meta).toEqual({ 'slipway/simulator': 'schema', 'slipway/reason': expect.stringMatching(reason) });
    expect(result.structuredContent).toMatchObject({ city: 'Lisbon', temperature: expect.any(Number) });
    expect(model.questions).toHaveLength(questions);
  });

  it('does not answer in time', async () => {
    model.answer = () => null;
    expect((await complete({ timeoutMs: 100 }))._meta).toMatchObject({
      'slipway/reason': 'The language model did not answer in time.',
    });
  });

  it('is over its limit of calls', async () => {
    const result = await complete({ spend: () => Promise.reject(new MockModelError('No.')) });
    expect(result._meta).toEqual({ 'slipway/simulator': 'schema', 'slipway/reason': 'No.' });
    expect(model.questions).toHaveLength(0);
  });

  it('would receive too much input', async () => {
    const given = { city: 'x'.repeat(20_000) };
    expect((await complete({ given }))._meta).toMatchObject({ 'slipway/reason': expect.stringMatching(/too long/) });
    expect(model.questions).toHaveLength(0);
  });
});
