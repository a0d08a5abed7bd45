import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { loadEnv } from '../../config/env.js';
import { clientAddress, isTrusted, peerOf } from './client-address.js';

function from(remoteAddress: string, forwarded?: string): IncomingMessage {
  return { socket: { remoteAddress }, headers: { 'x-forwarded-for': forwarded } } as unknown as IncomingMessage;
}

const { trustProxy } = loadEnv({ TRUST_PROXY: '10.0.0.0/8, 2001:db8::1' });

describe('the address of a client', () => {
  it('is that of the socket: a forged X-Forwarded-For changes nothing', () => {
    expect(clientAddress(from('198.51.100.7', '203.0.113.9'), null)).toBe('198.51.100.7');
    expect(clientAddress(from('198.51.100.7', '203.0.113.9'), trustProxy)).toBe('198.51.100.7');
    expect(clientAddress(from('::ffff:198.51.100.7'), trustProxy)).toBe('198.51.100.7');
  });

  it('behind trusted proxies is the last one that is not a trusted proxy', () => {
    expect(clientAddress(from('10.0.0.2', '203.0.113.9'), trustProxy)).toBe('203.0.113.9');
    expect(clientAddress(from('::ffff:10.0.0.2', '1.2.3.4, 203.0.113.9, 10.9.9.9'), trustProxy)).toBe('203.0.113.9');
    expect(clientAddress(from('2001:db8::1', '[2001:db8:5::9]:443'), trustProxy)).toBe('2001:db8:5::9');
    expect(clientAddress(from('10.0.0.2', '203.0.113.9:5000'), trustProxy)).toBe('203.0.113.9');
  });

  it('is that of the proxy if it names no address', () => {
    expect(clientAddress(from('10.0.0.2', 'unknown'), trustProxy)).toBe('10.0.0.2');
    expect(clientAddress(from('10.0.0.2'), trustProxy)).toBe('10.0.0.2');
    expect(isTrusted('10.0.0.2', trustProxy)).toBe(true);
    expect(isTrusted('11.0.0.2', trustProxy)).toBe(false);
  });
});

describe('the key for limits of one client', () => {
  it('is the address, or the /64 network of IPv6', () => {
    expect(peerOf('203.0.113.9')).toBe('203.0.113.9');
    expect(peerOf('2001:db8:1:2::3')).toBe(peerOf('2001:db8:1:2:ffff::9'));
    expect(peerOf('2001:db8:1:2::3')).not.toBe(peerOf('2001:db8:1:3::3'));
  });
});
