import http from 'node:http';
import { once } from 'node:events';
import type { TestAccount, TestApp } from '../app.js';
import type { RawAnswer } from '../mcp/raw-request.js';
import { releasesPath } from '../releases/releases.js';

/** One part of a form; with a file name it is a file, whose content type is `application/octet-stream` by default. */
export interface FormPart {
  name: string;
  filename?: string;
  type?: string;
  content: string | Buffer;
}

const BOUNDARY = 'slipway-test-boundary';
/** The content type of {@link formBytes}. */
export const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;

/** The bytes of a multipart form with exactly these parts in this order. */
export function formBytes(parts: FormPart[]): Buffer {
  const pieces = parts.flatMap(({ name, filename, content, type = filename && 'application/octet-stream' }) => {
    const file = filename === undefined ? '' : `; filename="${filename}"`;
    const typed = type === undefined ? '' : `\r\ncontent-type: ${type}`;
    const head = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"${file}${typed}\r\n\r\n`;
    return [Buffer.from(head), Buffer.from(content), Buffer.from('\r\n')];
  });
  return Buffer.concat([...pieces, Buffer.from(`--${BOUNDARY}--\r\n`)]);
}

/** The form of a release: its payload, and files by their part's name. */
export function releaseForm(payload: object, files: Record<string, string | Buffer> = {}): FormPart[] {
  const parts = Object.entries(files).map(([name, content]) => ({ name, filename: `${name}.bin`, content }));
  return [{ name: 'payload', content: JSON.stringify(payload) }, ...parts];
}

/** An open request to publish, whose body is still to be sent. */
export function openForm(app: TestApp, owner: TestAccount, name: string, bytes: number): http.ClientRequest {
  const headers = { authorization: `Bearer ${owner.key}`, 'content-type': FORM_TYPE, 'content-length': bytes };
  return http.request(`${app.url}${releasesPath(name)}`, { method: 'PUT', headers, agent: false });
}

/** Publishes exactly these bytes and reads the answer, which may come before all of them were sent. */
export async function putForm(
  app: TestApp,
  owner: TestAccount,
  name: string,
  parts: FormPart[] | Buffer,
): Promise<RawAnswer & { body: Record<string, unknown> }> {
  const bytes = Buffer.isBuffer(parts) ? parts : formBytes(parts);
  const request = openForm(app, owner, name, bytes.length);
  // The service closes the connection with its answer when it refuses a body half way.
  let broken: unknown = null;
  request.on('error', (error) => (broken = error));
  const answered = once(request, 'response') as Promise<[http.IncomingMessage]>;
  request.end(bytes);
  const [response] = await answered.catch((error: unknown) => {
    throw broken ?? error;
  });
  let text = '';
  response.setEncoding('utf8');
  for await (const chunk of response) text += chunk as string;
  return { status: response.statusCode as number, text, body: JSON.parse(text) as Record<string, unknown> };
}
