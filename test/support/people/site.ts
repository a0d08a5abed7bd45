import { createServer } from 'node:http';
import { listen, shut } from '../upstream/upstream-net.js';

/** Answer of a path: JSON, or a text. */
export type SiteAnswer = object | { status?: number; headers?: Record<string, string>; text: string };

/** A web server that answers fixed documents. */
export interface Site {
  origin: string;
  /** Requested paths, in order. */
  asked: string[];
  close(): Promise<void>;
}

/**
 * Starts one on loopback. `routes` maps paths to answers and may use the origin; what is not in it is 404, or `otherwise`.
 */
export async function startSite(
  routes: (origin: string) => Record<string, SiteAnswer>,
  otherwise: SiteAnswer = { status: 404, text: 'Not found' },
): Promise<Site> {
  const asked: string[] = [];
  let table: Record<string, SiteAnswer> = {};
  const server = createServer((request, response) => {
    const path = request.url ?? '/';
    asked.push(path);
    const answer = Object.hasOwn(table, path) ? table[path] : otherwise;
    if ('text' in answer) {
      const { status = 200, headers = {}, text } = answer as { status?: number; headers?: object; text: string };
      response.writeHead(status, { 'content-type': 'text/html', ...headers }).end(text);
    } else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  });
  const origin = `http://127.0.0.1:${await listen(server)}`;
  table = routes(origin);
  return { origin, asked, close: () => shut(server) };
}
