/**
 * Every parser of foreign data keeps the main thread only briefly, whatever a tenant sends within the limits. Each row calls
 * one parser with its largest or worst allowed input, made by a generator of its kind; the longest turn of the event loop,
 * in CPU time and as the least of three runs, must stay below 150 ms. A slow machine has more time in proportion.
 */
import { setImmediate } from 'node:timers/promises';
import { describe, expect } from '@jest/globals';
import { matchTool } from '../src/mcp/client/tools/tool-catalog.js';
import { headerParams } from '../src/mcp/client/tools/tool-headers.js';
import { SseParser } from '../src/mcp/client/http/sse-parser.js';
import { parseServerCard } from '../src/mcp/client/server-card.js';
import { bearerChallenge } from '../src/mcp/oauth/challenges.js';
import { readDocument } from '../src/mcp/oauth/foreign-documents.js';
import { listedIn } from '../src/extensions/console-pages/add/add.controller.js';
import { condition } from '../src/modules/logs/search/invocation-query.js';
import { readIngestRequest } from '../src/modules/logs/ingest/ingest-request.js';
import { groupRecords, TraceStartCache } from '../src/extensions/otlp/otlp-invocations.js';
import { decodeExport, recordsOf } from '../src/extensions/otlp/otlp-records.js';
import { readBundle } from '../src/modules/releases/bundle/bundle-manifest.js';
import { configOrder } from '../src/modules/releases/config/config-fields.js';
import { schemaIssues } from '../src/modules/releases/scan/schema-lint.js';
import {
  BROKEN,
  checkServer,
  toolWarnings,
  wordWarnings,
  type ServerText,
} from '../src/modules/releases/scan/security-check.js';
import { parseSkillMd } from '../src/modules/skills/skill-md.js';
import { REPOSITORY_LIMITS } from '../src/modules/skills/skill-package.js';
import { linearPattern, patternsOf } from '../src/platform/json-schema/patterns.js';
import { redactedJson } from '../src/platform/telemetry/redact-payload.js';
import { valueRedactor } from '../src/platform/telemetry/redact-values.js';
import { openZip, type ZipArchive } from '../src/platform/zip/zip-archive.js';
import { repairedItems } from '../src/mcp/protocol/item-repair.js';
import { mcpLists } from '../src/mcp/protocol/list-pages.js';
import { defaultsOf, formOf, valueIn } from '../src/extensions/tool-forms/schema-form.js';
import { fetchIcon, ICON_BYTES_MAX, iconTypeOf } from '../src/modules/servers/icons/icon-fetch.js';
import type { Egress } from '../src/platform/egress/egress.js';
import { aloneIt } from './support/jest/globals.mjs';
import { randomFrom } from './support/seed.mjs';

const TURN_MS_MAX = 150;

type Row = [name: string, input: () => unknown, parse: (input: never) => unknown];

/** CPU time of the longest turn that `work` takes, in milliseconds. */
async function longestTurnOf(work: () => unknown): Promise<number> {
  await setImmediate();
  let longest = 0;
  let isDone = false;
  let from = process.cpuUsage();
  const outcome = (async () => work())().finally(() => (isDone = true));
  outcome.catch(() => undefined);
  while (!isDone) {
    await setImmediate();
    const { user, system } = process.cpuUsage(from);
    from = process.cpuUsage();
    longest = Math.max(longest, (user + system) / 1000);
  }
  await outcome;
  return longest;
}

/** What {@link reference} takes on two quiet cores, in milliseconds. */
const REFERENCE_MS = 25;

/** Work of a known size, which tells a slow machine from slow code: parses and writes a document of 1.4 MB. */
function reference(): unknown {
  return JSON.stringify(JSON.parse(referenceText));
}
const referenceText = JSON.stringify(Array.from({ length: 40_000 }, (_, at) => ({ name: `member-${at}`, value: at })));

/** The least of up to three runs, each divided by how much slower than {@link REFERENCE_MS} the reference ran before it. */
async function leastTurnOf(work: () => unknown): Promise<number> {
  let least = Infinity;
  for (let run = 0; run < 3 && least > TURN_MS_MAX; run += 1) {
    const slowness = Math.max(1, (await longestTurnOf(reference)) / REFERENCE_MS);
    least = Math.min(least, (await longestTurnOf(work)) / slowness);
  }
  return least;
}

/** What a parser throws for an invalid document; what it returns for a valid one. */
function errorOf(parse: () => unknown): unknown {
  try {
    return parse();
  } catch (error) {
    return error;
  }
}

const upTo = (random: () => number, max: number) => 1 + Math.floor(random() * max);
const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const members = (count: number, value: unknown) => Object.fromEntries(many(count, (at) => [`m${at}`, value]));

/** An ICO of 1 MB whose entries all name the same range. */
function ico(entries: number, fill: number, from = 0, length = ICON_BYTES_MAX): Buffer {
  const bytes = Buffer.alloc(ICON_BYTES_MAX, fill);
  bytes.writeUInt32LE(0x10000, 0);
  bytes.writeUInt16LE(entries, 4);
  for (let at = 6; at + 16 <= bytes.length && at < 6 + entries * 16; at += 16) {
    bytes.writeUInt32LE(length, at + 8);
    bytes.writeUInt32LE(from, at + 12);
  }
  return bytes;
}

const iconAt = (bytes: Buffer) =>
  fetchIcon(null as unknown as Egress, `data:image/x-icon;base64,${bytes.toString('base64')}`);

const icons: Row[] = [
  ['an ICO of 300 entries that name the whole file', () => ico(300, 0), iconAt],
  ['an ICO of 65,535 entries that name the whole file', () => ico(65_535, 0xc3), iconAt],
  ['an ICO of 400 entries beyond the end', () => ico(400, 0xc3, 100, 0xffffffff), iconAt],
  ['a file of 1 MB of comments', () => Buffer.from('<!---->'.repeat(149_796)), iconTypeOf],
  ['a file of 1 MB of spaces', () => Buffer.alloc(ICON_BYTES_MAX, ' '), iconTypeOf],
  ['a comment of 1 MB without an end', () => Buffer.from(`<!--${'--'.repeat(524_000)}`), iconTypeOf],
  ...many(4, (seed): Row => {
    const random = randomFrom(`row ${seed}`);
    const [entries, fill, from] = [200 + upTo(random, 200), upTo(random, 255), upTo(random, 1_000)];
    return [
      `an ICO of ${entries} entries of ${fill} from ${from}`,
      () => ico(entries, fill, from, ICON_BYTES_MAX - from),
      iconAt,
    ];
  }),
];

/** A form of 64 KB at most. */
const formWith = (count: number, name: (at: number) => string) =>
  new URLSearchParams(many(count, (at): [string, string] => [name(at), 'x']));

const sent = ([schema, form]: [unknown, URLSearchParams]) => valueIn(formOf(schema), form, new Map());
const shown = (schema: unknown) => defaultsOf(formOf(schema));
const text = 'x'.repeat(1_000_000);
const refs = (count: number, $def: unknown) => ({
  type: 'object',
  properties: members(count, { $ref: '#/$defs/x' }),
  $defs: { x: $def },
});

const forms: Row[] = [
  [
    'a form of 5,000 values for a schema of 5,000 members',
    () => [{ type: 'object', properties: members(5_000, { type: 'string' }) }, formWith(5_000, (at) => `#/m${at}`)],
    sent,
  ],
  [
    'a form of 1,000 choices of 20,000',
    () => [
      { type: 'object', properties: { a: { type: 'array', items: { enum: many(20_000, String) } } } },
      formWith(1_000, () => '#/a'),
    ],
    sent,
  ],
  [
    'a name of 60,000 levels',
    () => [
      { type: 'object', properties: members(150, { type: 'string' }) },
      formWith(1, () => '#' + '/'.repeat(60_000)),
    ],
    sent,
  ],
  ['200 members with one default of 1 MB', () => refs(199, { type: 'string', default: text }), shown],
  ['200 members with one description of 1 MB', () => refs(199, { type: 'string', description: text }), shown],
  ['190 members with one choice of 50,000', () => refs(190, { enum: many(50_000, String) }), shown],
  ['190 members with one part of 50,000 keywords', () => refs(190, members(50_000, 1)), shown],
  [
    'a choice of 10,000 parts of 1,000 members',
    () => ({ anyOf: many(10_000, () => ({ $ref: '#/$defs/x' })), $defs: { x: members(1_000, 1) } }),
    shown,
  ],
  [
    'a list of 20,000 defaults of 20,000 choices',
    () => ({
      properties: { a: { type: 'array', items: { enum: many(20_000, String) }, default: many(20_000, String) } },
    }),
    shown,
  ],
  [
    '20,000 required members',
    () => ({ properties: members(20_000, { type: 'string' }), required: many(20_000, (at) => `m${at}`) }),
    shown,
  ],
  ...many(4, (seed): Row => {
    const random = randomFrom(`row ${seed}`);
    const [names, values] = [3_000 + upTo(random, 9_000), 2_000 + upTo(random, 5_000)];
    const kind = ['string', 'number', 'object', 'boolean'][seed];
    const schema = { type: 'object', properties: members(names, { type: kind }) };
    return [
      `${values} values for ${names} members of ${kind}`,
      () => [schema, formWith(values, (at) => `#/m${at}`)],
      sent,
    ];
  }),
];

const listOf = (tools: unknown[]) =>
  tools.map((tool) => ({ name: (tool as { name: string }).name, text: JSON.stringify(tool) }));
const repair = (list: ReturnType<typeof listOf>) => repairedItems(mcpLists.tools, list.slice(), `${(rounds += 1)}`);
let rounds = 0;
const faulty = (at: number, faults: number, value: unknown = 3) => ({
  name: `tool${at}`,
  inputSchema: { type: 'object', properties: members(faults, value) },
});

const lists: Row[] = [
  ['600 tools with 40 faults each', () => listOf(many(600, (at) => faulty(at, 40))), repair],
  [
    '2,000 tools with 4 faults each',
    () => listOf(many(2_000, (at) => ({ ...faulty(at, 4), description: 'x'.repeat(5_000) }))),
    repair,
  ],
  [
    '2,000 tools of 6 KB without a fault',
    () => listOf(many(2_000, (at) => faulty(at, 300, { type: 'string' }))),
    repair,
  ],
  ['a tool with 100,000 faults', () => listOf([faulty(0, 100_000)]), repair],
  ['20 tools of 9,000 members', () => listOf(many(20, (at) => faulty(at, 9_000, {}))), repair],
  ['a tool of 12 MB without a fault', () => listOf([faulty(0, 500_000, { type: 'string' })]), repair],
  ...many(4, (seed): Row => {
    const random = randomFrom(`row ${seed}`);
    const [count, faults] = [300 + upTo(random, 700), 10 + upTo(random, 60)];
    const value = [null, [], 'x', true][seed];
    return [
      `${count} tools with ${faults} faults ${JSON.stringify(value)}`,
      () => listOf(many(count, (at) => faulty(at, faults, value))),
      repair,
    ];
  }),
];

let count = 0;
/** A schema that no earlier run has parsed: V8 keeps patterns. */
const fresh = (schema: object) => ({ ...schema, title: `${(count += 1)}` });
const lint = (schema: () => object) => schemaIssues(fresh(schema()));
const hanFrom = (from: number, characters = 60_000) =>
  many(characters, (at) => String.fromCharCode(0x4e00 + ((from + 2 * at) % 20_000))).join('');
const refused = (pattern: string) => ({ properties: members(120, { pattern }) });
const matchLong = (pattern: string) => linearPattern(pattern).test('a'.repeat(64_000));
const headers = (names: string[]) =>
  Object.fromEntries(names.map((name) => [name, { type: 'string', 'x-mcp-header': name }]));

const schemas: Row[] = [
  [
    '6,000 patterns of letters',
    () => () => ({ properties: members(6_000, { pattern: `\\p{L}{${(count += 1)}}` }) }),
    lint,
  ],
  [
    '4,000 ids below a name of 120,000 characters',
    () => () => ({
      properties: { ['n'.repeat(120_000)]: { properties: members(4_000, { $id: 'a:b' }) }, r: { $ref: '#/x' } },
    }),
    lint,
  ],
  ['9,000 references', () => () => ({ properties: members(9_000, { $ref: '#/$defs/x' }), $defs: { x: {} } }), lint],
  ['120 patterns of 2,000 characters of known scripts', () => refused('\\p{Greek}'.repeat(220)), patternsOf],
  ['120 patterns of 2,000 characters of unknown scripts', () => refused('\\p{Abcde}'.repeat(220)), patternsOf],
  ['9,000 patterns', () => ({ properties: members(9_000, { pattern: 'a{1,2}' }) }), patternsOf],
  ['a text of 64 K for a pattern of 400 letters', () => '\\p{L}'.repeat(400), matchLong],
  ['a text of 64 K for a pattern of a large class, repeated', () => `[${hanFrom(0, 990)}]{60}`, matchLong],
  ['50,000 arguments in headers', () => ({ properties: headers(many(50_000, (at) => `m${at}`)) }), headerParams],
  [
    '20,000 arguments, of which one is in a header',
    () => ({ properties: { ...members(20_000, { type: 'string' }), ...headers(['a']) } }),
    headerParams,
  ],
  [
    'a tool name of 16 MB',
    () => [{ name: 'a/'.repeat(8_000_000), text: '' }],
    (tools: never) => matchTool(tools, 'b/c'),
  ],
  [
    '2,000 required values',
    () => ({ properties: members(2_000, { type: 'string' }), required: many(2_000, (at) => `m${at}`) }),
    configOrder,
  ],
];
const checked = async (facts: ServerText) => {
  await wordWarnings(facts);
  await toolWarnings({ ...facts, requireSchemas: true });
  await checkServer({ ...facts, requireSchemas: true }, BROKEN);
};
const toolOf = (part: object) => ({ tools: [{ name: 't', inputSchema: { type: 'object' }, ...part }] });
const servers: Row[] = [
  [
    '400 tools of 4 KB',
    () => ({
      tools: many(400, (at) => ({ name: `t${at}`, inputSchema: { type: 'object', properties: members(110, {}) } })),
    }),
    checked,
  ],
  [
    '10,000 words below a name of 1 MB',
    () => toolOf({ a: { ['n'.repeat(1_000_000)]: members(10_000, '<system>') } }),
    checked,
  ],
  ['a text of 4 MB of hidden characters', () => toolOf({ description: '\u200b'.repeat(4_000_000) }), checked],
  ['4 MB of joiners in their place', () => toolOf({ a: many(400, () => '\u0915\u200d'.repeat(5_000)) }), checked],
  ['a text of 16 MB of words', () => toolOf({ description: 'do not tell '.repeat(1_300_000) }), checked],
  [
    'a card of 1,000 tools',
    () => ({
      serverInfo: { name: 'a', version: '1' },
      tools: many(1_000, () => ({ name: 'a', inputSchema: members(49, {}) })),
    }),
    parseServerCard,
  ],
];

/** The directory of a zip, of which no file is read. */
function zipOf(names: string[], extra = Buffer.alloc(0)): Buffer {
  const directory = Buffer.concat(
    names.flatMap((name) => {
      const head = Buffer.alloc(46);
      head.writeUInt32LE(0x02014b50, 0);
      head.writeUInt16LE(name.length, 28);
      head.writeUInt16LE(extra.length, 30);
      return [head, Buffer.from(name), extra];
    }),
  );
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(names.length, 8);
  end.writeUInt16LE(names.length, 10);
  end.writeUInt32LE(directory.length, 12);
  return Buffer.concat([directory, end]);
}

const unzip = (archive: Buffer) => openZip(archive, REPOSITORY_LIMITS).catch(() => null);
const bundleWith = (fields: object): ZipArchive => ({
  entries: new Map([['manifest.json', { size: 1, isDirectory: false, mode: 0 }]]),
  read: () =>
    Promise.resolve(
      Buffer.from(JSON.stringify({ name: 'a', version: '1', server: { type: 'uv', entry_point: '' }, ...fields })),
    ),
  close: () => undefined,
});
const archives: Row[] = [
  ['a zip of 20,000 files', () => zipOf(many(20_000, (at) => `f${at}`)), unzip],
  [
    'a zip of 20,000 paths of 50 folders',
    () => zipOf(many(20_000, (at) => `${at}${'/abcdefghijklmnopqr'.repeat(49)}`)),
    unzip,
  ],
  [
    'a zip of 100 files with 64 KB of extra fields',
    () => zipOf(many(100, String), Buffer.alloc(64_000, Buffer.from([1, 2, 0, 0]))),
    unzip,
  ],
  ['a zip without an end', () => Buffer.alloc(25_000_000, 'P'), unzip],
  [
    'a manifest of 5,000 required values',
    () => bundleWith({ user_config: members(5_000, { type: 'string', required: true, title: 'a', description: 'b' }) }),
    readBundle,
  ],
  [
    'a manifest of values in 99 objects',
    () =>
      bundleWith({
        user_config: Object.fromEntries(
          many(1_000, (at) => [`${'a.'.repeat(98)}${at}`, { type: 'string', title: 'a', description: 'b' }]),
        ),
      }),
    readBundle,
  ],
];

/** A protobuf message in field `id` of another. */
function field(id: number, content: Buffer): Buffer {
  const length: number[] = [];
  for (let rest = content.length; rest > 0 || length.length === 0; rest >>>= 7)
    length.push((rest & 127) | (rest > 127 ? 128 : 0));
  return Buffer.concat([Buffer.from([(id << 3) | 2, ...length]), content]);
}

const starts = new TraceStartCache();
const group = (request: unknown) => groupRecords('server', recordsOf(request), new Date(), starts);
const decode = (bytes: Buffer) => errorOf(() => group(decodeExport(bytes)));
const emptyFields = (id: number, bytes = 1_000_000) => Buffer.alloc(bytes, Buffer.from([(id << 3) | 2, 0]));
const inRecord = (content: Buffer) => field(1, field(2, field(2, content)));
const exportOf = (records: unknown[]) => ({ resourceLogs: [{ scopeLogs: [{ logRecords: records }] }] });
const logs: Row[] = [
  ['an export of 500,000 empty records', () => field(1, field(2, emptyFields(2))), decode],
  ['an export of 49,000 empty records', () => field(1, field(2, emptyFields(2, 98_000))), decode],
  ['an export of 49,000 empty attributes', () => inRecord(emptyFields(6, 98_000)), decode],
  ['an export of 49,000 empty values', () => inRecord(field(5, field(5, emptyFields(1, 98_000)))), decode],
  ['an export of 500,000 empty resources', () => emptyFields(1), decode],
  ['an export in JSON of 330,000 records', () => exportOf(many(330_000, () => ({}))), group],
  [
    'an export in JSON of 330,000 values',
    () => exportOf([{ body: { arrayValue: { values: many(330_000, () => ({})) } } }]),
    group,
  ],
  [
    '1,000 invocations of 25 lines',
    () => many(1_000, () => ({ logs: many(25, () => ({ message: 'x' })) })),
    (body) => readIngestRequest('server', body, new Date()),
  ],
  ...['a://b:', 'password: ', '-----BEGIN ', 'token ', '"secret":"', 'eyJ-', 'A'].map((part): Row => [
    `a payload of 128 KB of ${part}`,
    () => many(2, () => part.repeat(64_000 / part.length)),
    (value) => redactedJson(value, 16_384),
  ]),
  [
    'names of 4 MB in a payload',
    () => ({ ['aB'.repeat(2_000_000)]: 1, ['-'.repeat(4_000_000)]: 1 }),
    (value) => redactedJson(value, 16_384),
  ],
  [
    'a line of 64 KB like the beginning of 30 secrets',
    () => 'a'.repeat(64_000),
    (line) => valueRedactor(many(30, (at) => `${'a'.repeat(1_000 + at)}b`))(line),
  ],
];

const skillOf = (yaml: string) => {
  const start = `---\nname: a\ndescription: b\n${yaml}`;
  return Buffer.from(`${start.slice(0, 8_190)}\n---\nx`);
};
const readSkill = (content: Buffer) => errorOf(() => parseSkillMd(content));
const skills: Row[] = [
  ...Object.entries({
    keys: many(4_000, (at) => `${at.toString(36)}:`).join('\n'),
    'keys in a line': `x: {${many(4_000, (at) => at.toString(36)).join(',')}}`,
    'equal keys': `x: {${'a,'.repeat(9_000)}}`,
    lists: `x: ${'['.repeat(18_000)}`,
    'invalid lines': '@\n'.repeat(9_000),
    anchors: many(1_600, (at) => `&${at.toString(36)} ${at.toString(36)}: 1`).join('\n'),
    'closing brackets': 'x: ]]]]\n'.repeat(2_400),
    aliases: '*a\n'.repeat(6_000),
    tags: '!a '.repeat(6_000),
    colons: ': '.repeat(9_000),
  }).map(([name, yaml]): Row => [`a front matter of ${name}`, () => skillOf(yaml), readSkill]),
  ['a front matter without an end', () => Buffer.from(`---\n${'--- x\n'.repeat(800_000)}`), readSkill],
];

/** A chunk as a socket delivers it. */
const chunkOf = (part: string) => Buffer.alloc(65_536, part);
const parseStream = (chunk: Buffer) => new SseParser(() => undefined).push(chunk);
const documentOf = (kind: 'server' | 'tokens') => (text: string) => readDocument(kind, text);
const answers: Row[] = [
  ...['data:a\n\n', 'data:\n', '\n', '\r', 'a\n', 'a\r', 'id:a\n', 'retry:x\n', 'data:a\r', 'data:a\r\r'].map(
    (part): Row => [`a stream of ${JSON.stringify(part)}`, () => chunkOf(part), parseStream],
  ),
  ...['Bearer a="', 'a ', 'a=b ', "a='", 'a'].map((part): Row => [
    `a challenge of ${part}`,
    () => many(1, () => `Bearer ${part.repeat(8_000 / part.length)}`),
    bearerChallenge,
  ]),
  [
    'metadata of 250,000 scopes',
    () => JSON.stringify({ scopes_supported: many(250_000, () => 'a') }),
    documentOf('server'),
  ],
  ['tokens in a form of 250,000 values', () => `access_token=${'&a=1'.repeat(250_000)}`, documentOf('tokens')],
  [
    'an expiry of 1 MB of spaces',
    () => JSON.stringify({ expires_in: `${' '.repeat(1_000_000)}x` }),
    documentOf('tokens'),
  ],
];

/** The texts of forms that name servers: a form of a page has 64 KB. */
const fileOf = (file: object) => () => JSON.stringify(file);
const readFile = (text: string) => errorOf(() => listedIn(text));
const clientFiles: Row[] = [
  ['an mcp.json of 2,000 servers', fileOf({ mcpServers: members(2_000, { url: 'http://a' }) }), readFile],
  ['an mcp.json of 20,000 arguments', fileOf({ a: { command: 'a', args: many(20_000, () => '') } }), readFile],
  ['an mcp.json of 1,000 lists of headers', fileOf(members(1_000, { url: 'a', headers: { a: 'b' } })), readFile],
  ['an mcp.json of 60,000 levels', () => `{"a":${'['.repeat(60_000)}`, readFile],
  ...many(4, (seed): Row => {
    const random = randomFrom(`row ${seed}`);
    const [count, args] = [10 + upTo(random, 300), 1 + upTo(random, 20)];
    const entry = { command: 'npx', args: many(args, String) };
    return [`an mcp.json of ${count} commands of ${args} arguments`, fileOf(members(count, entry)), readFile];
  }),
];

/** The longest words of a search, which Postgres reads as patterns. */
const searches: Row[] = ['%', '_', '\\', 'a', '\u0130'].map((character): Row => [
  `1,000 of ${character}`,
  () => ({ search: character.repeat(1_000) }),
  (query) => many(100, () => condition('server', query)),
]);

const kinds = { icons, forms, lists, schemas, servers, archives, logs, skills, answers, clientFiles, searches };

describe.each(Object.entries(kinds))('the reader of %s', (_, rows) => {
  for (const [name, input, parse] of rows) {
    aloneIt(`takes at most 150 ms in a turn for ${name}`, async () => {
      const given = input() as never;
      expect(await leastTurnOf(() => parse(given))).toBeLessThan(TURN_MS_MAX);
    });
  }
});
