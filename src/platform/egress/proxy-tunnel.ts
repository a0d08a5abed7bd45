import { request } from 'node:http';
import type { Socket } from 'node:net';
import { EgressProxyError } from './egress.errors.js';

/** Timeout of the proxy, which waits for the host. */
const PROXY_MS = 10_000;

/**
 * Uses CONNECT (RFC 9110 section 9.3.6), with the user name and password of the proxy's URL.
 *
 * @param authority `host:port`
 * @throws EgressProxyError when the proxy is unavailable or rejects the request
 */
export function openTunnel(proxy: URL, authority: string): Promise<Socket> {
  const { hostname, port, username, password } = proxy;
  return new Promise((resolve, reject) => {
    const outgoing = request({
      hostname: hostname.replace(/^\[|\]$/g, ''),
      port,
      method: 'CONNECT',
      path: authority,
      headers: { host: authority, ...authorization(username, password) },
      agent: false,
      timeout: PROXY_MS,
    });
    outgoing.once('connect', ({ statusCode = 0 }, socket: Socket, head) => {
      if (statusCode < 200 || statusCode > 299) {
        socket.destroy();
        return reject(EgressProxyError.ofStatus(statusCode, authority));
      }
      if (head.length > 0) socket.unshift(head);
      resolve(socket.setTimeout(0));
    });
    outgoing.once('timeout', () => outgoing.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })));
    outgoing.once('error', (error) => reject(EgressProxyError.ofConnectFailure(error)));
    outgoing.end();
  });
}

function authorization(username: string, password: string): { 'proxy-authorization'?: string } {
  if (username === '') return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(pair).toString('base64')}` };
}
