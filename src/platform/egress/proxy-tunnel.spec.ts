import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { PROXY_PASSWORD, startForwardProxy, type ForwardProxy } from '../../../test/support/forward-proxy.js';
import { selfSignedCertificate } from '../../../test/support/special-upstreams/faulty-tls.js';
import { freePort, listen } from '../../../test/support/upstream/upstream-net.js';
import { verifies } from '../../../test/support/verifies.js';
import { AddressPolicy, parseEgressAllow } from './address-policy.js';
import { EgressProxyError, EgressRefusedError } from './egress.errors.js';
import { Egress, type ResolveHost } from './egress.js';

const certificate = selfSignedCertificate('mcp.example.test');
const PUBLIC_ADDRESS = '93.184.215.14';

let proxy: ForwardProxy;
/** Servers that only the proxy reaches, by scheme. */
const ports = { http: 0, https: 0 };
const servers: Server[] = [];
const opened: Egress[] = [];

beforeAll(async () => {
  servers.push(
    createServer((req, res) => res.end(req.headers.host)),
    createTlsServer(certificate, (req, res) => res.end(req.headers.host)),
  );
  [ports.http, ports.https] = await Promise.all(servers.map((server) => listen(server)));
});
beforeEach(async () => {
  proxy = await startForwardProxy();
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((egress) => egress.close()));
  await proxy.close();
});
afterAll(() => Promise.all(servers.map((server) => new Promise((closed) => server.close(closed)))));

/** Asks for this URL through the proxy. @param addresses of its host in DNS; null: the name servers are silent */
async function get(url: string, addresses: string[] | null, { allow = '', to = proxy.url } = {}): Promise<string> {
  const resolve: ResolveHost = (hostname, _options, callback) => {
    if (addresses === null) return;
    const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    if (found.length > 0) callback(null, found);
    else callback(Object.assign(new Error(`${hostname} is unknown`), { code: 'ENOTFOUND' }), []);
  };
  const policy = new AddressPolicy(parseEgressAllow(allow));
  const egress = new Egress(policy, resolve, { ca: certificate.cert, proxy: to });
  opened.push(egress);
  const { body } = await egress.request(egress.check(url), { method: 'GET', headers: {} });
  return body.text();
}

describe('with EGRESS_PROXY, a host', () => {
  verifies(
    'egress:proxy',
    'on a public address is reached through the proxy by its name, with TLS to the host',
    async () => {
      for (const scheme of ['http', 'https'] as const) {
        const authority = `mcp.example.test:${ports[scheme]}`;
        expect(await get(`${scheme}://${authority}/`, [PUBLIC_ADDRESS])).toBe(authority);
        expect(proxy.asked.splice(0)).toEqual([authority]);
      }
      await expect(get(`https://other.example.test:${ports.https}/`, [PUBLIC_ADDRESS])).rejects.toMatchObject({
        code: 'ERR_TLS_CERT_ALTNAME_INVALID',
      });
    },
  );

  verifies('egress:proxy', 'is reached through the proxy by its public address, IPv6 in brackets', async () => {
    for (const host of [PUBLIC_ADDRESS, '[2606:4700::1111]']) {
      expect(await get(`http://${host}:${ports.http}/`, [])).toBe(`${host}:${ports.http}`);
      expect(proxy.asked.splice(0)).toEqual([`${host}:${ports.http}`]);
    }
  });

  verifies('egress:proxy', 'is resolved by the proxy if this machine cannot resolve it, or not in time', async () => {
    const authority = `mcp.example.test:${ports.http}`;
    expect(await get(`http://${authority}/`, [])).toBe(authority);
    expect(await get(`http://${authority}/`, null)).toBe(authority);
    expect(proxy.asked).toEqual([authority, authority]);
  });

  verifies('egress:proxy', 'is dialled without the proxy if EGRESS_ALLOW lists it', async () => {
    const listed: [allow: string, host: string][] = [
      ['127.0.0.0/8', 'git.corp.test'],
      ['git.corp.test', 'git.corp.test'],
      ['loopback', '127.0.0.1'],
    ];
    for (const [allow, host] of listed) {
      const authority = `${host}:${ports.http}`;
      expect(await get(`http://${authority}/`, ['127.0.0.1'], { allow })).toBe(authority);
      // Of several addresses the listed one.
      expect(await get(`http://${authority}/`, [PUBLIC_ADDRESS, '127.0.0.1'], { allow })).toBe(authority);
    }
    // A public address is listed by its range, not by its name.
    const policy = new AddressPolicy(parseEgressAllow('93.184.0.0/16,git.corp.test'));
    expect([PUBLIC_ADDRESS, '1.1.1.1'].map((address) => policy.lists(address, 'git.corp.test'))).toEqual([true, false]);
    expect(proxy.asked).toEqual([]);
  });

  verifies(
    'egress:proxy',
    'with an internal address that is not listed is refused, and the proxy not asked',
    async () => {
      for (const addresses of [['10.0.0.7'], [PUBLIC_ADDRESS, '10.0.0.7'], ['169.254.169.254'], ['127.0.0.1']]) {
        await expect(get('http://mcp.example.test/', addresses)).rejects.toBeInstanceOf(EgressRefusedError);
      }
      for (const host of ['10.0.0.7', '127.0.0.1', 'localhost', '[::1]', '169.254.169.254']) {
        await expect(get(`http://${host}/`, [PUBLIC_ADDRESS])).rejects.toBeInstanceOf(EgressRefusedError);
      }
      expect(proxy.asked).toEqual([]);
    },
  );
});

describe('a proxy', () => {
  /** The error of a request to a public host through this proxy. */
  async function failure(to?: string): Promise<string> {
    const error: unknown = await get('https://mcp.example.test/', [PUBLIC_ADDRESS], { to }).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(EgressProxyError);
    const { message } = error as Error;
    expect(message).toMatch(/^The HTTP proxy of this service \(EGRESS_PROXY\) /);
    for (const secret of [PROXY_PASSWORD, encodeURIComponent(PROXY_PASSWORD)]) expect(message).not.toContain(secret);
    return message;
  }

  verifies('egress:proxy:failure', 'is named without its password when it cannot be reached', async () => {
    const port = await freePort();
    const away = proxy.url.replace(/\d+$/, String(port));
    expect(await failure(away)).toContain('cannot be used (ECONNREFUSED): its operator must check its address');
  });

  verifies('egress:proxy:failure', 'is named with its status and the next step when it refuses', async () => {
    expect(await failure(proxy.url.replace('p%40ssword', 'wrong'))).toContain('407: the operator must correct');
    proxy.refuseWith = 403;
    expect(await failure()).toContain('answered 403 for mcp.example.test:443: its rules must allow CONNECT');
    proxy.refuseWith = 503;
    expect(await failure()).toContain('answered 503 for mcp.example.test:443: it does not reach this host');
  });

  it('is named when it does not speak HTTP', async () => {
    expect(await failure(`http://127.0.0.1:${ports.https}`)).toContain('cannot be used (');
  });
});
