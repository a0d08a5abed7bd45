/**
 * Programs for tests of where programs run: an HTTP server on a unix socket in place of a sandbox. Plain JavaScript, since
 * `placed-process.mjs` runs it too. What keeps state writes its starts and ends into `<data folder>/programs.log`.
 */
import { once } from 'node:events';
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Pool } from 'undici';

/** Handlers of a program, by path. */
const programs = {
  '/who': (runtime, ref, request, response) => {
    request.resume();
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ name: runtime.name, calls: runtime.count(ref), headers: request.headers }));
  },
  '/echo': (_runtime, _ref, request, response) => {
    response.writeHead(201, {
      'x-got-length': request.headers['content-length'] ?? 'none',
      'set-cookie': ['a=1', 'b=2'],
    });
    request.pipe(response);
  },
  '/stream': (runtime, ref, request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('first');
    runtime.open.set(ref.ownerId, response);
    response.on('close', () => runtime.left.push(ref.ownerId));
  },
  '/hang': (runtime, ref, request, response) => {
    request.resume();
    runtime.hanging.push(ref.ownerId);
    response.on('close', () => runtime.left.push(ref.ownerId));
  },
  '/break': (_runtime, _ref, _request, response) => {
    response.writeHead(200);
    response.write('half', () => response.destroy());
  },
  '/big': (runtime, _ref, request, response) => {
    request.resume();
    const piece = Buffer.alloc(64 * 1024, 'x');
    const more = () => {
      while (runtime.written < 32 * 1024 * 1024) {
        runtime.written += piece.length;
        if (!response.write(piece)) return;
      }
      response.end();
    };
    response.on('drain', more);
    more();
  },
};

export class PlacedPrograms {
  /** @param {{ name: string, dataDir: string }} options */
  constructor({ name, dataDir }) {
    this.name = name;
    this.dataDir = dataDir;
    this.log = path.join(dataDir, 'programs.log');
    this.open = new Map();
    this.left = [];
    this.hanging = [];
    this.written = 0;
    this.currents = [];
    this.forgotten = [];
    this.renewed = [];
    this.refusal = { worker: null, bundle: 'Bundles are off here.' };
    /** Thrown at the next requests, in place of an answer. */
    this.failure = null;
    this.running = new Map();
    mkdirSync(this.stateDir(''), { recursive: true });
  }

  async start() {
    this.folder = await mkdtemp(path.join(tmpdir(), 'slipway-programs-'));
    const socketPath = path.join(this.folder, 'in.sock');
    this.server = http.createServer((request, response) => {
      const ref = JSON.parse(request.headers['x-test-ref']);
      delete request.headers['x-test-ref'];
      response.on('error', () => undefined);
      programs[request.url.split('?')[0]](this, ref, request, response);
    });
    this.server.listen(socketPath);
    await once(this.server, 'listening');
    this.pool = new Pool('http://programs', { socketPath });
    return this;
  }

  async stop() {
    await this.pool.destroy();
    this.server.closeAllConnections();
    this.server.close();
    await rm(this.folder, { recursive: true, force: true });
  }

  dispatch(ref, { method, path: at, headers, body }, handler) {
    if (this.failure) {
      const { failure } = this;
      return queueMicrotask(() => handler.onResponseError(null, failure));
    }
    if (ref.isStateful) this.begin(ref.ownerId);
    this.pool.dispatch({ method, path: at, headers: { ...headers, 'x-test-ref': JSON.stringify(ref) }, body }, handler);
  }

  /** Calls of this owner here. With state they are counted on the disk. */
  count({ ownerId, isStateful }) {
    const file = isStateful ? this.stateDir(ownerId, 'count') : null;
    const before = file && existsSync(file) ? Number(readFileSync(file, 'utf8')) : (this.running.get(ownerId) ?? 0);
    if (file) writeFileSync(file, String(before + 1));
    this.running.set(ownerId, before + 1);
    return before + 1;
  }

  whyNot(engine) {
    return Promise.resolve(this.refusal[engine]);
  }

  async current(ref) {
    this.currents.push(ref.id);
  }

  async renew(ownerId) {
    this.renewed.push(ownerId);
  }

  async forget(ownerId) {
    this.forgotten.push(ownerId);
    this.end(ownerId);
    rmSync(this.stateDir(ownerId), { recursive: true, force: true });
  }

  async endStateful() {
    for (const ownerId of [...this.running.keys()]) this.end(ownerId);
  }

  async ownersWithState() {
    return readdirSync(this.stateDir(''));
  }

  livePrograms() {
    return {};
  }

  stateDir(ownerId, file = '') {
    return path.join(this.dataDir, 'hosting', 'state', ownerId, file);
  }

  begin(ownerId) {
    if (this.running.has(ownerId)) return;
    this.running.set(ownerId, 0);
    mkdirSync(this.stateDir(ownerId), { recursive: true });
    appendFileSync(this.log, `start ${ownerId} ${this.name}\n`);
  }

  end(ownerId) {
    if (this.running.delete(ownerId) && existsSync(this.stateDir(ownerId))) {
      appendFileSync(this.log, `end ${ownerId} ${this.name}\n`);
    }
  }
}
