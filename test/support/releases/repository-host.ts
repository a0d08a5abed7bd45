import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import { listen, shut } from '../upstream/upstream-net.js';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** A host of Git repositories, as far as it hands out zips. */
export interface RepositoryHost {
  /** `http://127.0.0.1:port` */
  url: string;
  /** Requested paths, oldest first. */
  asked: string[];
  /** Answers this path with a zip, with a redirect to a URL, or by hand. */
  serve(path: string, answer: Buffer | string | Answer): void;
  close(): Promise<void>;
}

/** Starts one on loopback; what it does not serve is 404. */
export async function startRepositoryHost(): Promise<RepositoryHost> {
  const served = new Map<string, Buffer | string | Answer>();
  const asked: string[] = [];
  const server = http.createServer((request, response) => {
    const path = request.url ?? '';
    asked.push(path);
    const answer = served.get(path);
    if (answer === undefined) response.writeHead(404).end('Not Found');
    else if (typeof answer === 'string') response.writeHead(302, { location: answer }).end();
    else if (Buffer.isBuffer(answer)) response.writeHead(200, { 'content-type': 'application/zip' }).end(answer);
    else answer(request, response);
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    serve: (path, answer) => void served.set(path, answer),
    close: () => shut(server),
  };
}
