/*
 * A real HTTPS server on loopback stands for every host: the egress of these tests reaches it through a proxy, as public
 * addresses are reached in companies, so that URLs have port 443 and certificates are verified.
 */
import type { LookupAddress } from 'node:dns';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { issuedCertificate } from '../../../test/support/special-upstreams/faulty-tls.js';
import { until } from '../../../test/support/until.js';
import { listen, shut } from '../../../test/support/upstream/upstream-net.js';
import { verifies } from '../../../test/support/verifies.js';
import { AddressPolicy } from '../../platform/egress/address-policy.js';
import { loadEnv } from '../../config/env.js';
import { RateCounter } from '../../platform/limits/rate-counter.js';
import {
  ASKER_FETCHES_MAX,
  ClientDocumentError,
  ClientDocuments,
  DocumentEgress,
  FETCHES_EACH_MAX,
  type ClientDocumentStore,
} from './client-documents.js';

const HOST = 'docs.example.test';
const INTERNAL = 'internal.example.test';
const CLAUDE = 'https://claude.ai/oauth/mcp-oauth-client-metadata';
const certificate = issuedCertificate(HOST, INTERNAL, 'claude.ai');
const closing: (() => Promise<unknown>)[] = [];

/** What the server does, and the paths that were asked. */
let answer: RequestListener;
let asked: string[];
let now: number;
let egress: DocumentEgress;
/** A new path for each test, since documents are remembered. */
let url: string;
let tests = 0;

beforeAll(async () => {
  const server = createServer(certificate, (request, response) => {
    asked.push(`${request.method} ${request.headers.host}${request.url}`);
    answer(request, response);
  });
  const port = await listen(server);
  const proxy = createHttpServer();
  const sockets = new Set<Socket>();
  proxy.on('connect', (_request, near: Socket, head: Buffer) => {
    const far = connect(port, '127.0.0.1', () => {
      near.write('HTTP/1.1 200 Connection established\r\n\r\n');
      far.write(head);
      near.pipe(far).pipe(near);
    });
    for (const socket of [near, far]) sockets.add(socket.on('error', () => undefined));
  });
  const resolve = (hostname: string, _: unknown, callback: (error: null, found: LookupAddress[]) => void): void => {
    callback(null, [{ address: hostname === INTERNAL ? '10.0.0.7' : '93.184.216.34', family: 4 }]);
  };
  const through = `http://127.0.0.1:${await listen(proxy)}`;
  egress = new DocumentEgress(new AddressPolicy([]), resolve, { proxy: through, ca: certificate.ca });
  closing.push(
    () => egress.close(),
    async () => {
      for (const socket of sockets) socket.destroy();
      await shut(proxy);
    },
    () => shut(server),
  );
});
afterAll(async () => {
  for (const close of closing) await close();
});

beforeEach(() => {
  tests += 1;
  url = `https://${HOST}/client-${tests}.json`;
  asked = [];
  now = 1_800_000_000_000;
  jest.spyOn(Date, 'now').mockImplementation(() => now);
  answer = (_, response) => void response.end(documentOf(url));
});

afterEach(() => void jest.restoreAllMocks());

function documentOf(client_id: string): string {
  return JSON.stringify({ client_id, redirect_uris: ['https://app.example/callback'] });
}

class MemoryStore implements ClientDocumentStore {
  readonly copies = new Map<string, string>();

  read(at: string): Promise<string | null> {
    return Promise.resolve(this.copies.get(at) ?? null);
  }

  write(at: string, body: string): Promise<void> {
    this.copies.set(at, body);
    return Promise.resolve();
  }
}

function open(store = new MemoryStore()): { documents: ClientDocuments; store: MemoryStore } {
  return { documents: new ClientDocuments(egress, store, new RateCounter(loadEnv({}))), store };
}

async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ClientDocumentError);
  return (error as Error).message;
}

const maxAge = (response: Response): string | null => response.headers.get('cache-control');
const later = (seconds: number): void => void (now += seconds * 1000);

describe('a document', () => {
  verifies('login:client-documents', 'is fetched once while it is fresh, and stored', async () => {
    const { documents, store } = open();
    for (let i = 0; i < 3; i++) expect(await (await documents.fetch(url)).text()).toBe(documentOf(url));
    expect(asked).toEqual([`GET ${HOST}${new URL(url).pathname}`]);
    expect(store.copies.get(url)).toBe(documentOf(url));
  });

  it('is fresh for 5 minutes', async () => {
    const seconds = 300;
    const { documents } = open();
    expect(maxAge(await documents.fetch(url))).toBe(`max-age=${seconds}`);
    later(seconds - 1);
    expect(maxAge(await documents.fetch(url))).toBe('max-age=1');
    expect(asked).toHaveLength(1);
    later(1);
    await documents.fetch(url);
    expect(asked).toHaveLength(2);
  });

  verifies('login:client-documents', 'is fetched once for concurrent requests; few fetches run together', async () => {
    const waiting: (() => void)[] = [];
    answer = ({ url: path }, response) => void waiting.push(() => response.end(documentOf(`https://${HOST}${path}`)));
    const { documents } = open();
    const same = Array.from({ length: 5 }, () => documents.fetch(url));
    const others = Array.from({ length: FETCHES_EACH_MAX - 1 }, (_, i) => documents.fetch(`https://${HOST}/${i}`));
    const surplus = `https://${HOST}/surplus`;
    expect(await refusal(documents.fetch(surplus))).toContain('too many are being read');
    await until(() => waiting.length === FETCHES_EACH_MAX, 'all requests have arrived');
    const elsewhere = documents.fetch(`https://claude.ai/${tests}`);
    await until(() => asked.length > FETCHES_EACH_MAX, 'another host is asked');
    waiting.splice(0).forEach((end) => end());
    expect((await Promise.all([...same, ...others])).map(({ status }) => status)).not.toContain(500);
    await refusal(elsewhere);
    answer = (_, response) => void response.end(documentOf(surplus));
    expect((await documents.fetch(surplus)).status).toBe(200);
  });

  verifies('login:document-askers', 'is fetched 30 times a minute for an asker, and then for others', async () => {
    const { documents } = open();
    answer = ({ url: path }, response) => void response.end(documentOf(`https://${HOST}${path}`));
    const ask = (asker: string, i: number) =>
      documents.askedBy(asker, () => documents.fetch(`https://${HOST}/${asker}/${i}`));
    for (let i = 0; i < ASKER_FETCHES_MAX; i += 1) await ask('a', i);
    expect(await refusal(ask('a', 99))).toContain('too many are being read');
    expect((await ask('a', 0)).status).toBe(200);
    const other = documents.askedBy('b', () => documents.fetch(`https://${HOST}/a/99`));
    expect((await other).status).toBe(200);
  });
});

describe('a failure', () => {
  const answers: [string, RequestListener, string][] = [
    ['a status', (_, response) => void response.writeHead(403).end(), `${HOST} answered 403.`],
    [
      'a redirect',
      (_, response) => void response.writeHead(302, { location: `https://${HOST}/else` }).end(),
      'it redirects, and redirects are not followed.',
    ],
    ['a page', (_, response) => void response.end('<html>'), 'it is neither a document of this client id'],
    ['null', (_, response) => void response.end('null'), 'it is neither a document of this client id'],
    ['a foreign id', (_, response) => void response.end(documentOf('https://a.example/c')), 'it is neither a document'],
    ['deep JSON', (_, response) => void response.end('['.repeat(300) + ']'.repeat(300)), 'nested levels'],
    ['a cut', (request) => void request.socket.destroy(), `${HOST} cannot be reached`],
  ];

  for (const [what, listener, words] of answers) {
    verifies('login:client-documents', `has a readable message and is cached for 60 s: ${what}`, async () => {
      answer = listener;
      const { documents, store } = open();
      const message = await refusal(documents.fetch(url));
      expect(message).toContain(`The client's document ${url} cannot be used: `);
      expect(message).toContain(words);
      later(59);
      expect(await refusal(documents.fetch(url))).toBe(message);
      expect([asked.length, store.copies.size]).toEqual([1, 0]);
      answer = (_request, response) => void response.end(documentOf(url));
      later(1);
      expect((await documents.fetch(url)).status).toBe(200);
    });
  }

  it.each(['headers', 'body'])('occurs at the time limit if a server never sends its %s', async (what) => {
    answer = (_, response) => {
      if (what === 'body') response.writeHead(200, { 'content-length': 10 }).write('{');
    };
    const { documents } = open();
    expect(documents.fetchMsMax).toBe(5_000);
    documents.fetchMsMax = 100;
    expect(await refusal(documents.fetch(url))).toContain(`${HOST} did not answer within 0.1 s.`);
  });

  it.each([
    [`http://${HOST}/c`, 'only https on port 443 is read.'],
    [`https://${HOST}:8443/c`, 'only https on port 443 is read.'],
    // The same words whether a name exists in the network of the service or not.
    [`https://${INTERNAL}/c`, `cannot be used: ${INTERNAL} cannot be reached.`],
    [`https://missing.${INTERNAL}/c`, `cannot be used: missing.${INTERNAL} cannot be reached.`],
    ['https://127.0.0.1/c', '127.0.0.1 cannot be reached.'],
    ['https://[::1]/c', '[::1] cannot be reached.'],
    ['https://169.254.169.254/latest', '169.254.169.254 cannot be reached.'],
    ['https://user:word@docs.example.test/c', 'docs.example.test cannot be reached.'],
    [`https://${HOST}.other.example/c?secret=1`, `${HOST}.other.example cannot be reached.`],
  ])('occurs for the address %s without reaching a server', async (address, words) => {
    const message = await refusal(open().documents.fetch(address));
    expect(message).toContain(words);
    expect(message).not.toMatch(/secret|word@/);
    expect(asked).toEqual([]);
  });

  it.each(answers)('leaves the last good copy in use after %s, in other processes', async (_, listener) => {
    const { documents, store } = open();
    await documents.fetch(url);
    answer = listener;
    later(3_600);
    for (const each of [documents, open(store).documents]) {
      const copy = await each.fetch(url);
      expect([await copy.text(), maxAge(copy)]).toEqual([documentOf(url), 'max-age=60']);
    }
    expect(store.copies.get(url)).toBe(documentOf(url));
  });

  it.each([404, 410])('with status %d removes the document: no copy is used', async (status) => {
    const { documents } = open();
    await documents.fetch(url);
    answer = (_, response) => void response.writeHead(status).end();
    later(3_600);
    expect(await refusal(documents.fetch(url))).toContain(`${HOST} answered ${status}.`);
  });
});

describe('a pinned document', () => {
  verifies('login:client-documents', 'is used when nothing newer is known', async () => {
    answer = (_, response) => void response.writeHead(403).end();
    const { documents, store } = open();
    expect(await (await documents.fetch(CLAUDE)).json()).toMatchObject({ client_id: CLAUDE, client_name: 'Claude' });
    store.copies.set(CLAUDE, documentOf(CLAUDE));
    later(60);
    expect(await (await documents.fetch(CLAUDE)).text()).toBe(documentOf(CLAUDE));
    expect(asked).toHaveLength(2);
  });
});
