import { createHmac, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { listen, shut } from '../upstream/upstream-net.js';

/** An issuer on loopback that signs whatever it is told to. Its authorization endpoint does not exist: tests write its response. */
export interface SmallIssuer {
  issuer: string;
  /** The ID token of the next response, by the code or refresh token of the request, which works once. */
  idTokens: Map<string, string>;
  /** How many codes it received. */
  codes: number;
  /** Signs claims with the present key, with another key or algorithm. */
  sign(claims: object, how?: 'none' | 'secret' | 'foreign key'): string;
  /** Replaces the key. */
  rotate(): void;
  /** Seconds by which its clock is ahead. */
  aheadSeconds: number;
  close(): Promise<void>;
}

const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

export async function startSmallIssuer(clientSecret: string): Promise<SmallIssuer> {
  let [key, kid] = [newKey(), 1];
  const idTokens = new Map<string, string>();
  const server = createServer((request, response) => {
    response.setHeader('date', new Date(Date.now() + small.aheadSeconds * 1_000).toUTCString());
    const send = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    const jwk = { ...key.publicKey.export({ format: 'jwk' }), kid: String(kid), alg: 'ES256', use: 'sig' };
    if (request.url === '/jwks') return void send(200, { keys: [jwk] });
    if (request.url !== '/token') return void send(200, metadata);
    void text(request).then((body) => {
      small.codes += 1;
      const request = new URLSearchParams(body);
      const code = request.get('code') ?? request.get('refresh_token') ?? '';
      const idToken = idTokens.get(code);
      if (!idTokens.delete(code)) return send(400, { error: 'invalid_grant' });
      const tokens = { access_token: 'access', id_token: idToken, refresh_token: `refresh ${code}` };
      return send(200, { ...tokens, token_type: 'Bearer', expires_in: 60 });
    });
  });
  const issuer = `http://127.0.0.1:${await listen(server)}`;
  const metadata = {
    issuer,
    authorization_endpoint: `${issuer}/auth`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/jwks`,
    response_types_supported: ['code'],
    id_token_signing_alg_values_supported: ['ES256', 'HS256', 'none'],
  };
  const small: SmallIssuer = {
    issuer,
    aheadSeconds: 0,
    codes: 0,
    idTokens,
    sign: (claims, how) => {
      const alg = how === 'none' ? 'none' : how === 'secret' ? 'HS256' : 'ES256';
      const signed = `${encode({ alg, kid: String(kid) })}.${encode(claims)}`;
      const by = (used: KeyObject) => sign('sha256', Buffer.from(signed), { key: used, dsaEncoding: 'ieee-p1363' });
      const signature =
        how === 'none'
          ? ''
          : how === 'secret'
            ? createHmac('sha256', clientSecret).update(signed).digest('base64url')
            : by(how === 'foreign key' ? newKey().privateKey : key.privateKey).toString('base64url');
      return `${signed}.${signature}`;
    },
    rotate: () => void ([key, kid] = [newKey(), kid + 1]),
    close: () => shut(server),
  };
  return small;
}
