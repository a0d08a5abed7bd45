import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { UpstreamAuthRequiredError, UpstreamError } from '../../../src/mcp/protocol/mcp-errors.js';
import { AddressPolicy, parseEgressAllow } from '../../../src/platform/egress/address-policy.js';
import { Egress } from '../../../src/platform/egress/egress.js';
import { createServer, type Server } from 'node:http';
import { startAuthorizationServer, type AuthorizationServer } from '../../support/people/authorization-server.js';
import { channelTo } from '../../support/mcp/channels.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { listen, shut } from '../../support/upstream/upstream-net.js';
import { verifies } from '../../support/verifies.js';

let egress: Egress;
let answering: Server;
let url: string;
let answer: { status: number; challenges: string[] };

beforeAll(async () => {
  egress = new Egress(new AddressPolicy(parseEgressAllow('loopback')));
  answering = createServer((_, response) => {
    response.writeHead(answer.status, { 'www-authenticate': answer.challenges }).end('{}');
  });
  url = `http://127.0.0.1:${await listen(answering)}/mcp`;
});

afterAll(async () => {
  await egress.close();
  await shut(answering);
});

/** Error of opening a session with the server. */
async function failure(status: number, challenges: string[], headers: Record<string, string> = {}): Promise<unknown> {
  answer = { status, challenges };
  const channel = channelTo(egress, url, { headers });
  return channel.open(5_000).catch((error: unknown) => error);
}

describe('a 401', () => {
  it('keeps all its challenges, in order', async () => {
    const challenges = ['Basic realm="x"', 'Bearer resource_metadata="https://h/x", scope="a b"'];
    const error = await failure(401, challenges);
    expect(error).toBeInstanceOf(UpstreamAuthRequiredError);
    expect(error).toMatchObject({
      challenges,
      message: expect.stringContaining('answered 401: it wants authorization'),
    });
    expect(await failure(401, [])).toMatchObject({ challenges: [] });
  });

  it('keeps 8 KB of them at most', async () => {
    const error = (await failure(401, ['x'.repeat(5_000), 'y'.repeat(5_000)])) as UpstreamAuthRequiredError;
    expect(error.challenges.map((text) => text.length)).toEqual([5_000, 8_192 - 5_000]);
  });
});

describe('a 403', () => {
  it('that names required scopes causes a new authorization, with its own message', async () => {
    const challenges = ['Bearer error="insufficient_scope", scope="tools:write"'];
    const error = await failure(403, challenges, { authorization: 'Bearer weak' });
    expect(error).toBeInstanceOf(UpstreamAuthRequiredError);
    expect(error).toMatchObject({
      challenges,
      code: 'auth_required',
      message: expect.stringContaining('insufficient_scope'),
    });
  });

  it('otherwise is a refusal, as before', async () => {
    for (const challenges of [[], ['Bearer error="invalid_token"'], ['Basic error="insufficient_scope"']]) {
      const error = await failure(403, challenges);
      expect(error).toBeInstanceOf(UpstreamError);
      expect(error).toMatchObject({ message: expect.stringContaining('answered 403: the headers') });
    }
  });
});

describe('an MCP server behind an authorization server', () => {
  let server: AuthorizationServer;
  let upstream: Upstream;

  beforeAll(async () => {
    [server, upstream] = await Promise.all([startAuthorizationServer(), startUpstream()]);
  });
  afterAll(async () => {
    await Promise.all([server.close(), upstream.close()]);
  });

  verifies('oauth:discovery', 'names the URL of its metadata in its 401', async () => {
    const guarded = await server.protect(upstream.url, { challengeScope: 'tools:read' });
    const channel = channelTo(egress, guarded.url);
    await expect(channel.open(5_000)).rejects.toMatchObject({
      challenges: [
        `Bearer resource_metadata="${guarded.origin}/.well-known/oauth-protected-resource/mcp", scope="tools:read"`,
      ],
    });
  });
});
