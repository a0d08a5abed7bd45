import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AddressPolicy, parseEgressAllow } from '../../platform/egress/address-policy.js';
import { Egress } from '../../platform/egress/egress.js';
import { OAuthFetchError } from './oauth-errors.js';
import { createOAuthFetch, DOCUMENT_BYTES_MAX } from './oauth-fetch.js';

let egress: Egress;
const servers: Server[] = [];

beforeAll(() => {
  egress = new Egress(new AddressPolicy(parseEgressAllow('loopback')));
});
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});
afterAll(() => egress.close());

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OAuthFetchError);
  return (error as OAuthFetchError).message;
}

describe('a GET', () => {
  it('returns status, headers and body for every status', async () => {
    const url = await serve((request, response) => {
      response.writeHead(418, { 'x-a': ['1', '2'], 'content-type': 'text/plain' }).end(`${request.headers.accept}`);
    });
    const response = await createOAuthFetch(egress)(url, { headers: { accept: 'a/b' } });
    expect([response.status, response.headers.get('x-a'), await response.text()]).toEqual([418, '1, 2', 'a/b']);
    const empty = await serve((_, answer) => answer.writeHead(204).end());
    expect((await createOAuthFetch(egress)(empty)).status).toBe(204);
  });

  it('refuses JSON that is nested too deeply', async () => {
    const url = await serve((_, response) => void response.end('['.repeat(300) + ']'.repeat(300)));
    expect(await refusal(createOAuthFetch(egress)(url))).toMatch(/ with more than 100 nested levels\.$/);
  });

  it('follows three redirects and no fourth', async () => {
    const url = await serve((request, response) => {
      const left = Number(request.url?.slice(1));
      if (left === 0) response.end('there');
      else response.writeHead(302, { location: `/${left - 1}` }).end();
    });
    expect(await (await createOAuthFetch(egress)(`${url}/3`)).text()).toBe('there');
    expect(await refusal(createOAuthFetch(egress)(`${url}/4`))).toContain('not followed');
  });

  it('names the target of a redirect without its query', async () => {
    const url = await serve((_, response) => response.writeHead(302, { location: 'ftp://x/y?secret=1' }).end());
    const message = await refusal(createOAuthFetch(egress)(url));
    expect(message).toContain('The URL scheme "ftp:" is not supported');
    expect(message).not.toContain('secret');
  });

  it('refuses credentials in the target of a redirect', async () => {
    const url = await serve((request, response) => {
      response.writeHead(302, { location: `http://user:word@${request.headers.host}/there` }).end();
    });
    expect(await refusal(createOAuthFetch(egress)(url))).toContain('carries a user name or password');
  });

  it('reads at most 1 MB', async () => {
    const url = await serve((request, response) => {
      response.end(Buffer.alloc(DOCUMENT_BYTES_MAX + (request.url === '/more' ? 1 : 0)));
    });
    expect((await (await createOAuthFetch(egress)(url)).arrayBuffer()).byteLength).toBe(DOCUMENT_BYTES_MAX);
    expect(await refusal(createOAuthFetch(egress)(`${url}/more`))).toContain('more than 1 MB');
  });

  it.each(['headers', 'body'])('ends at its time limit while it waits for the %s', async (what) => {
    const url = await serve((_, response) => {
      if (what === 'body') response.writeHead(200, { 'content-length': 10 }).write('x');
    });
    const message = await refusal(createOAuthFetch(egress, AbortSignal.timeout(100))(url));
    expect(message).toBe(`${new URL(url).host} did not answer in time.`);
  });

  it('names what cannot be reached', async () => {
    expect(await refusal(createOAuthFetch(egress)('http://127.0.0.1:1/'))).toBe(
      '127.0.0.1:1 cannot be reached (ECONNREFUSED).',
    );
    expect(await refusal(createOAuthFetch(egress)('http://10.0.0.1/'))).toContain('does not dial private addresses');
  });
});

describe('a POST', () => {
  it.each([301, 302, 303, 307, 308])('does not follow a %d', async (status) => {
    const asked: string[] = [];
    const url = await serve((request, response) => {
      asked.push(`${request.method} ${request.url}`);
      response.writeHead(status, { location: '/other' }).end();
    });
    const body = new URLSearchParams({ refresh_token: 'secret' });
    const message = await refusal(createOAuthFetch(egress)(`${url}/token`, { method: 'POST', body }));
    expect(message).toContain(`redirects ${url}/token to ${url}/other: not followed`);
    expect(asked).toEqual(['POST /token']);
  });
});
