import supertest from 'supertest';
import { parseUrl } from '../../../src/config/parse-url.js';

/** Page in the browser after one step. */
export interface Shown {
  status: number;
  headers: Record<string, string>;
  /** The page's text, or its HTML where text does not suffice. */
  html: string;
  /** URL of the page. */
  url: string;
}

/** A person with a browser of their own: cookies, redirects, and buttons. */
export interface Person {
  /** Opens an address and follows where it leads. `until` stops in front of the first address it accepts. */
  open(url: string, until?: (url: string) => boolean): Promise<Shown>;
  /** Presses the button of a page that it opened, whose form holds these values and the token of the page. */
  press(url: string, until?: (url: string) => boolean, form?: Record<string, string>): Promise<Shown>;
  /** Its cookies by host. */
  cookies: Map<string, Map<string, string>>;
}

const HOPS_MAX = 12;

/** @param where the public address of the service, and where it really is */
export function newPerson(where: { publicUrl: string; url: string }): Person {
  const cookies = new Map<string, Map<string, string>>();
  /** The form token of the last page with a form, by host. */
  const tokens = new Map<string, string>();

  async function request(
    method: 'GET' | 'POST',
    address: string,
    form?: Record<string, string>,
  ): Promise<Shown & { location: string | null }> {
    const url = new URL(address);
    const real = address.startsWith(where.publicUrl) ? address.replace(where.publicUrl, where.url) : address;
    const { origin, pathname, search } = new URL(real);
    const jar = cookies.get(url.host) ?? new Map<string, string>();
    cookies.set(url.host, jar);
    const agent = supertest(origin);
    const path = pathname + search;
    const test = (method === 'GET' ? agent.get(path) : agent.post(path)).redirects(0);
    if (jar.size > 0) test.set('cookie', [...jar].map(([name, value]) => `${name}=${value}`).join('; '));
    test.set('sec-fetch-site', method === 'POST' ? 'same-origin' : 'none').ok(() => true);
    const token = tokens.get(url.host);
    const sent = token === undefined ? form : { 'form-token': token, ...form };
    const answer = await (method === 'GET' || sent === undefined ? test : test.type('form').send(sent));
    const [, shown] = /name="form-token" value="([^"]+)"/.exec(answer.text ?? '') ?? [];
    if (shown !== undefined) tokens.set(url.host, shown);
    for (const line of ([] as string[]).concat(answer.headers['set-cookie'] ?? [])) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '') jar.delete(name);
      else jar.set(name, value);
    }
    const location = answer.headers.location === undefined ? null : parseUrl(answer.headers.location, address);
    return {
      status: answer.status,
      headers: answer.headers,
      html: answer.text,
      url: address,
      location: location?.href ?? null,
    };
  }

  async function go(
    method: 'GET' | 'POST',
    address: string,
    until?: (url: string) => boolean,
    form?: Record<string, string>,
  ): Promise<Shown> {
    let shown = await request(method, address, form);
    for (let hops = 0; shown.location !== null; hops += 1) {
      if (hops > HOPS_MAX) throw new Error(`Redirects without end, last to ${shown.location}`);
      if (until?.(shown.location)) return { ...shown, url: shown.location };
      shown = await request('GET', shown.location);
    }
    return shown;
  }

  return {
    cookies,
    open: (url, until) => go('GET', url, until),
    press: (url, until, form) => go('POST', url, until, form),
  };
}
