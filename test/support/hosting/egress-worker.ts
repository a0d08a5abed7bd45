import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { Agent, fetch } from 'undici';

/** Result of one attempt of hosted code. */
export interface Tried {
  status?: number;
  text?: string;
  /** Message of the thrown error. */
  error?: string;
}

/** Real workerd whose code makes the requests of the test, with a proxy as its only network. */
export interface EgressWorker {
  /** Socket of the proxy, which must listen before the first attempt. */
  proxyPath: string;
  process: ChildProcess;
  /** Tries one thing; see the code below for what there is. */
  try(what: object): Promise<Tried>;
  /** Tries one thing whose answer is a stream. @returns a reader of the stream */
  stream(what: object): Promise<ReadableStreamDefaultReader<Uint8Array>>;
  close(): Promise<void>;
}

/** Module that makes the request of a JSON body, `{ way, … }`, and answers {@link Tried}. */
export const CLIENT_CODE = `
import net from 'node:net';
import http from 'node:http';
import { connect } from 'cloudflare:sockets';

const ways = {
  async fetch({ url, method, headers, body, redirect }) {
    const answer = await fetch(url, { method, headers, body, redirect });
    return { status: answer.status, text: await answer.text() };
  },
  async many({ url, count }) {
    const answers = await Promise.all(Array.from({ length: count }, async () => {
      try { const answer = await fetch(url); return (await answer.text(), answer.status) } catch (error) { return error.message }
    }));
    return { text: JSON.stringify(answers) };
  },
  async upload({ url, chunks, bytes }) {
    const { readable, writable } = new TransformStream();
    const sent = (async () => {
      const writer = writable.getWriter();
      for (let i = 0; i < chunks; i++) await writer.write(new Uint8Array(bytes).fill(120));
      await writer.close();
    })();
    const answer = await fetch(url, { method: 'POST', body: readable });
    await sent;
    return { status: answer.status, text: await answer.text() };
  },
  async socket({ url, text }) {
    const { status, webSocket } = await fetch(url, { headers: { upgrade: 'websocket' } });
    if (!webSocket) return { status };
    webSocket.accept();
    const heard = new Promise((done) => webSocket.addEventListener('message', ({ data }) => done(data)));
    webSocket.send(text);
    const answer = await heard;
    webSocket.close();
    return { status, text: answer };
  },
  async tcp({ address, text }) {
    const socket = connect(address);
    const writer = socket.writable.getWriter();
    await writer.write(new TextEncoder().encode(text));
    const { value } = await socket.readable.getReader().read();
    await socket.close();
    return { text: new TextDecoder().decode(value) };
  },
  nodeHttp: ({ url }) => new Promise((done, fail) => http.get(url, (answer) => {
    let text = '';
    answer.on('data', (chunk) => (text += chunk)).on('end', () => done({ status: answer.statusCode, text }));
  }).on('error', fail)),
  nodeNet: ({ host, port, text }) => new Promise((done, fail) => {
    const socket = net.connect(port, host, () => socket.write(text));
    socket.on('error', fail).once('data', (data) => { done({ text: String(data) }); socket.destroy(); });
  }),
};

export default {
  async fetch(request) {
    const { way, ...what } = await request.json();
    if (way === 'stream') return fetch(what.url);
    try { return Response.json(await ways[way](what)) } catch (error) { return Response.json({ error: error.message }) }
  },
};
`;

export async function startEgressWorker(): Promise<EgressWorker> {
  const folder = await mkdtemp(join(tmpdir(), 'slipway-egress-'));
  const [proxyPath, ownPath] = [join(folder, 'out.sock'), join(folder, 'in.sock')];
  await writeFile(join(folder, 'code.mjs'), CLIENT_CODE);
  await writeFile(join(folder, 'config.capnp'), config(proxyPath, ownPath));
  const workerd = createRequire(import.meta.url)('workerd') as { default: string };
  const child = spawn(workerd.default, ['serve', '--control-fd=3', join(folder, 'config.capnp')], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  await Promise.race([
    once(child.stdio[3] as Readable, 'data'),
    once(child, 'exit').then(() => Promise.reject(new Error('workerd does not start'))),
  ]);
  const dispatcher = new Agent({ connect: { socketPath: ownPath } });
  const send = (what: object) => fetch('http://worker/', { dispatcher, method: 'POST', body: JSON.stringify(what) });
  return {
    proxyPath,
    process: child,
    try: async (what) => (await (await send(what)).json()) as Tried,
    stream: async (what) => {
      const { body } = await send({ way: 'stream', ...what });
      if (!body) throw new Error('no body');
      return body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
    },
    close: async () => {
      await dispatcher.destroy();
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function config(proxyPath: string, ownPath: string): string {
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "code", worker = (
      modules = [(name = "code.mjs", esModule = embed "code.mjs")],
      compatibilityDate = "2026-01-07", compatibilityFlags = ["nodejs_compat"], globalOutbound = "out")),
    (name = "out", external = (address = "unix:${proxyPath}", http = (style = proxy))) ],
  sockets = [(name = "in", address = "unix:${ownPath}", http = (), service = "code")] );
`;
}
