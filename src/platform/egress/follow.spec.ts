import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { selfSignedCertificate } from '../../../test/support/special-upstreams/faulty-tls.js';
import { AddressPolicy, parseEgressAllow } from './address-policy.js';
import { EgressRefusedError } from './egress.errors.js';
import { Egress } from './egress.js';
import { follow, readWithin, type FollowOptions } from './follow.js';

const { key, cert } = selfSignedCertificate();

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Site {
  url: string;
  /** Method and path of every request, in order of arrival. */
  seen: string[];
}

async function site(answer: RequestListener, isTls = false): Promise<Site> {
  const seen: string[] = [];
  const listener: RequestListener = (request, response) => {
    seen.push(`${request.method} ${request.url}`);
    answer(request, response);
  };
  const server: Server = isTls ? createTlsServer({ key, cert }, listener) : createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `${isTls ? 'https' : 'http'}://127.0.0.1:${port}`, seen };
}

/** Answers every request with a redirect to this place. */
const redirect =
  (location: string | undefined, status = 302): RequestListener =>
  (_, response) =>
    response.writeHead(status, location === undefined ? {} : { location }).end('moved');

/** Answers every request with its path. */
const echo: RequestListener = (request, response) => response.end(request.url);

/** Follows redirects from this address, and reads the response at the end of them. */
async function followed(start: string, options: Partial<FollowOptions> = {}): Promise<string[]> {
  const egress = new Egress(new AddressPolicy(parseEgressAllow('127.0.0.1/32')), undefined, { ca: cert });
  cleanups.push(() => egress.close());
  const signal = AbortSignal.timeout(30_000);
  const { url, answer } = await follow(egress, new URL(start), { headers: {}, redirectsMax: 3, signal, ...options });
  const body = await readWithin(answer.body, 1_000);
  return [url.href, String(answer.statusCode), String(body)];
}

describe('a redirect', () => {
  it.each([301, 302, 303, 307, 308])('with status %d is followed to another origin', async (status) => {
    const end = await site(echo);
    const start = await site(redirect(`${end.url}/there?a=1#part`, status));
    expect(await followed(`${start.url}/here`)).toEqual([`${end.url}/there?a=1`, '200', '/there?a=1']);
    expect([start.seen, end.seen]).toEqual([['GET /here'], ['GET /there?a=1']]);
  });

  it('is followed from http to https', async () => {
    const end = await site(echo, true);
    const start = await site(redirect(`${end.url}/safe`));
    expect(await followed(start.url)).toEqual([`${end.url}/safe`, '200', '/safe']);
  });

  it('is refused from https to http, and its target gets no request', async () => {
    const end = await site(echo);
    const start = await site(redirect(`${end.url}/plain`), true);
    await expect(followed(start.url)).rejects.toMatchObject({ reason: 'without TLS', to: new URL(`${end.url}/plain`) });
    expect([start.seen, end.seen]).toEqual([['GET /'], []]);
  });

  it('is refused to http after one from http to https', async () => {
    const end = await site(echo);
    const middle = await site(redirect(end.url), true);
    const start = await site(redirect(middle.url));
    await expect(followed(start.url)).rejects.toMatchObject({ reason: 'without TLS' });
    expect(end.seen).toEqual([]);
  });

  it('is refused to another origin where the caller requires the same one', async () => {
    const end = await site(echo);
    const start = await site(redirect(end.url));
    await expect(followed(start.url, { sameOrigin: true })).rejects.toMatchObject({ reason: 'another origin' });
    expect(end.seen).toEqual([]);
  });

  it('is refused to an address that the policy does not allow', async () => {
    const start = await site(redirect('http://127.0.0.2:1/'));
    await expect(followed(start.url)).rejects.toBeInstanceOf(EgressRefusedError);
  });

  it('is refused to a URL that is refused as the first one, and its target gets no request', async () => {
    const end = await site(echo);
    const start = await site(redirect(end.url.replace('http://', 'http://user:password@')));
    await expect(followed(start.url)).rejects.toThrow('user name or password');
    expect(end.seen).toEqual([]);
  });

  it.each([0, 1, 3])('beyond the limit of %d is refused', async (redirectsMax) => {
    const round = await site(redirect('/again'));
    await expect(followed(round.url, { redirectsMax })).rejects.toMatchObject({ reason: 'too many' });
    expect(round.seen).toHaveLength(redirectsMax + 1);
  });
});

describe('the first address', () => {
  it('is checked as well', async () => {
    const { url, seen } = await site(echo);
    await expect(followed(url.replace('http://', 'http://user@'))).rejects.toBeInstanceOf(EgressRefusedError);
    expect(seen).toEqual([]);
  });
});

describe('reading within a limit', () => {
  it('returns a body of exactly the limit, and null for one byte more', async () => {
    const { url } = await site((request, response) => response.end('x'.repeat(Number(request.url?.slice(1)))));
    expect((await followed(`${url}/1000`))[2]).toHaveLength(1_000);
    expect((await followed(`${url}/1001`))[2]).toBe('null');
  });
});
