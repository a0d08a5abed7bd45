import http from 'node:http';
import type { TestAccount, TestApp } from '../app.js';

/** An answer, read to its end. */
export interface RawAnswer {
  status: number;
  text: string;
}

/** Fails a request that is never answered well before the suite's own limit, naming it. */
const ANSWER_MS_MAX = 10_000;

/**
 * Sends a request target exactly as it is written: `fetch` and supertest resolve dot segments, backslashes and more on
 * their own side, so that the service would never see them. JSON without a body is sent as no body.
 */
export function rawRequest(
  app: TestApp,
  account: TestAccount | undefined,
  method: string,
  target: string,
  body?: object,
): Promise<RawAnswer> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const headers: http.OutgoingHttpHeaders = {};
  if (account) headers.authorization = `Bearer ${account.key}`;
  if (text !== undefined) headers['content-type'] = 'application/json';
  return new Promise((resolve, reject) => {
    const request = http.request(app.url, { method, path: target, headers, timeout: ANSWER_MS_MAX }, (response) => {
      let answer = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (answer += chunk));
      response.on('end', () => resolve({ status: response.statusCode as number, text: answer }));
      response.on('error', reject);
    });
    request.on('timeout', () => request.destroy(new Error(`${method} ${target} was not answered`)));
    request.on('error', reject);
    request.end(text);
  });
}
