import { describe, expect } from '@jest/globals';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { loadEnv } from '../../config/env.js';
import { verifies } from '../../../test/support/verifies.js';
import { answerCors } from './cors.js';

/** The CORS headers for a request with these settings; a preflight where `method` is OPTIONS. */
function headersFor(settings: NodeJS.ProcessEnv, origin: string | undefined, url = '/servers', method = 'GET') {
  const request = new IncomingMessage(new Socket());
  Object.assign(request, { method, url, headers: { origin, 'access-control-request-method': 'PUT' } });
  const response = new ServerResponse(request);
  const isAnswered = answerCors(request, response, loadEnv(settings));
  return { isAnswered, status: response.statusCode, ...response.getHeaders() };
}

const open = { PUBLIC_URL: 'https://slipway.example', CORS_ORIGINS: 'https://a.example, http://b.example:8080/' };

describe('answers to scripts of another origin', () => {
  verifies('http:cors', 'are allowed to listed origins and those of the service, never with credentials', () => {
    for (const origin of ['https://a.example', 'http://b.example:8080', 'https://slipway.example']) {
      expect(headersFor(open, origin)).toEqual({
        isAnswered: false,
        status: 200,
        vary: 'Origin',
        'access-control-allow-origin': origin,
        'access-control-expose-headers': '*',
      });
    }
    const otherPorts = ['https://slipway.example:8443', 'http://slipway.example', 'https://a.example:8443'];
    const others = ['http://a.example', 'https://b.example', 'http://localhost:3000', 'null', '*', undefined];
    for (const origin of [...otherPorts, ...others]) {
      expect(headersFor(open, origin, '/servers', 'OPTIONS')).toEqual({
        isAnswered: false,
        status: 200,
        vary: 'Origin',
      });
    }
    expect(headersFor({ ...open, CORS_ORIGINS: '*' }, 'null')).toMatchObject({ 'access-control-allow-origin': 'null' });
  });

  verifies('http:cors', 'are allowed to loopback origins by default only while the service is local', () => {
    const origin = 'http://localhost:6274';
    expect(headersFor({}, origin)).toMatchObject({ 'access-control-allow-origin': origin });
    expect(headersFor({}, 'https://a.example')).not.toHaveProperty('access-control-allow-origin');
    expect(headersFor({ PUBLIC_URL: 'https://slipway.example' }, origin)).not.toHaveProperty(
      'access-control-allow-origin',
    );
  });

  verifies('http:cors', 'are never pages', () => {
    for (const page of [
      '/docs',
      '/docs/swagger-ui-init.js',
      '/setup/connections/x/1?signature=y',
      '/oauth/callback?x',
      ...[
        '/login?next=/me',
        '/logout',
        '/invite?token=x',
        '/me',
        '/ui/',
        '/me/access',
        '/consent/x',
        '/authorize?client_id=x',
      ],
    ]) {
      expect(headersFor(open, 'https://a.example', page, 'OPTIONS')).toEqual({ isAnswered: false, status: 200 });
    }
    expect(headersFor(open, 'https://a.example', '/connect/docs', 'OPTIONS')).toMatchObject({
      isAnswered: true,
      status: 204,
      'access-control-allow-methods': expect.stringContaining('PUT'),
    });
  });
});
