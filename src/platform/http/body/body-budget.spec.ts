import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { loadEnv } from '../../../config/env.js';
import { Tuning } from '../../../config/tuning.js';
import { UnavailableError } from '../../errors/domain-error.js';
import { BodyBudget, bodyLeaseOf } from './body-budget.js';

const KB = 1024;
const MB = 1024 * KB;

const tuning = new Tuning({ httpBodiesBytes: 8 * MB, httpFormsBytes: MB });

/** A request whose answer ends with `end`. */
function request(from = '198.51.100.1', forwarded?: string) {
  const response = new EventEmitter() as unknown as ServerResponse;
  const message = { socket: { remoteAddress: from }, headers: { 'x-forwarded-for': forwarded } };
  return { message: message as unknown as IncomingMessage, response, end: () => response.emit('close') };
}

describe('the budget of request bodies', () => {
  const budget = () => new BodyBudget(loadEnv({}), tuning);
  const begun = (bodies: BodyBudget, account: string, bytes: number) => {
    const one = request();
    bodies.admit(one.message, one.response, account);
    const lease = bodyLeaseOf(one.message);
    lease.begin();
    lease.add(bytes);
    return { ...one, lease };
  };

  it('refuses to read a body that was not admitted', () => {
    expect(() => bodyLeaseOf(request().message)).toThrow('before its caller is allowed');
  });

  it('limits one account to a quarter, which is released when its responses end', () => {
    const bodies = budget();
    const first = begun(bodies, 'a', MB);
    begun(bodies, 'a', MB - 16 * KB);
    expect(() => begun(bodies, 'a', 32 * KB)).toThrow(
      expect.objectContaining({ kind: 'unavailable', retryAfterSeconds: 1, noRetry: true }),
    );
    begun(bodies, 'b', MB);
    first.lease.complete();
    first.end();
    begun(bodies, 'a', 512 * KB);
  });

  it('one account may send one body of any size; all accounts together are limited by the whole', () => {
    const bodies = budget();
    begun(bodies, 'a', 4 * MB);
    begun(bodies, 'b', 3 * MB);
    expect(() => begun(bodies, 'c', 2 * MB)).toThrow(UnavailableError);
  });

  it('counts a body that arrives as 16 KB at least, and with its size afterwards', () => {
    const bodies = budget();
    const many = Array.from({ length: 128 }, () => begun(bodies, 'a', 1));
    expect(() => begun(bodies, 'a', 1)).toThrow(UnavailableError);
    for (const { lease } of many) lease.complete();
    begun(bodies, 'a', 1);
  });

  it('counts callers without a key by the address of their socket: a forged X-Forwarded-For changes nothing', () => {
    const bodies = budget();
    const form = (forwarded: string) => {
      const one = request('198.51.100.1', forwarded);
      bodies.admitStranger(one.message, one.response);
      const lease = bodyLeaseOf(one.message);
      expect(lease.form).toEqual({ bytesMax: 64 * KB, msMax: 10_000 });
      lease.begin();
      lease.add(16 * KB);
    };
    for (let n = 0; n < 4; n += 1) form(`203.0.113.${n}`);
    expect(() => form('203.0.113.99')).toThrow(UnavailableError);
    const other = request('198.51.100.2');
    bodies.admitStranger(other.message, other.response);
    bodyLeaseOf(other.message).begin();
    begun(bodies, 'a', MB);
  });

  it('counts callers without a key behind a trusted proxy by the address it names; the proxy itself counts only in total', () => {
    const bodies = new BodyBudget(loadEnv({ TRUST_PROXY: '10.0.0.1' }), tuning);
    const form = (forwarded?: string, pool?: 'tokens') => {
      const one = request('10.0.0.1', forwarded);
      bodies.admitStranger(one.message, one.response, pool);
      const lease = bodyLeaseOf(one.message);
      lease.begin();
      lease.add(16 * KB);
    };
    for (let n = 0; n < 4; n += 1) form('203.0.113.1');
    expect(() => form('203.0.113.1')).toThrow(UnavailableError);
    form('203.0.113.2');
    for (let n = 0; n < 59; n += 1) form();
    expect(() => form()).toThrow(UnavailableError);
    form('203.0.113.1', 'tokens');
  });
});
