import supertest from 'supertest';
import type { TestApp } from '../app.js';
import { type Answer, type BrowserSession, formTokenIn } from './browser-session.js';

/** How a form with files is sent, by default as a page of ours sends it. */
export interface FileForm {
  /** Where the form is. */
  page: string;
  fields?: Record<string, string>;
  files?: Record<string, Buffer>;
  /** Default: the one of the page. */
  token?: string;
  headers?: Record<string, string>;
}

/** Sends a form as `multipart/form-data`, its token first. */
export async function submitFiles(
  { url }: Pick<TestApp, 'url'>,
  browser: BrowserSession,
  path: string,
  { page, fields = {}, files = {}, token, headers = {} }: FileForm,
): Promise<Answer> {
  const sent = token ?? formTokenIn(await browser.get(page));
  const request = supertest(url)
    .post(path)
    .redirects(0)
    .ok(() => true)
    .set({ accept: 'text/html', 'sec-fetch-site': 'same-origin', ...headers })
    .set('cookie', [...browser.cookies].map((pair) => pair.join('=')).join('; '))
    .field('form-token', sent);
  for (const [name, value] of Object.entries(fields)) void request.field(name, value);
  for (const [name, content] of Object.entries(files)) void request.attach(name, content, `${name}.bin`);
  return request;
}
