// Loaded into the service before its own code (`node --import`) by counts.mjs and functions.mjs, which ask over IPC.
//
// `costs`: what each of the last requests made, as an array in the order of arrival. A request ends where the next one
// begins, so work after its response is included; requests must come one after the other. Promises are those that
// async_hooks reports: async functions, `then`, and one for each `await`. Timers are Node's own `Timeout`s, `close`
// listeners those added to any EventEmitter.
// `functions`: the functions that ran since the last query, from V8's precise coverage.
//
// With CALL_COSTS_STACKS=1 each promise is counted under the first function of the service on its stack.

import { createHook } from 'node:async_hooks';
import { subscribe } from 'node:diagnostics_channel';
import { EventEmitter } from 'node:events';
import { Session } from 'node:inspector/promises';
import { isMainThread } from 'node:worker_threads';

const isOurs = (file) => file?.includes('/dist/src/') ?? false;
const shortOf = (file) => file.slice(file.indexOf('/dist/src/') + 1);

/** The first function of the service on the stack, as `dist/src/mcp/x.js:12 name`; undefined without one. */
function ownFrame() {
  const { prepareStackTrace, stackTraceLimit } = Error;
  Error.prepareStackTrace = (_, sites) => sites;
  Error.stackTraceLimit = 100;
  const sites = new Error().stack;
  Object.assign(Error, { prepareStackTrace, stackTraceLimit });
  const site = sites.find((frame) => isOurs(frame.getFileName()));
  if (site) return `${shortOf(site.getFileName())}:${site.getLineNumber()} ${site.getFunctionName() ?? '(anonymous)'}`;
  return undefined;
}

let session;

/** The functions of the service that ran since the last call, each as { file, at, name }; the first call begins the count. */
async function functionsThatRan() {
  if (session === undefined) {
    session = new Session();
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  }
  const { result } = await session.post('Profiler.takePreciseCoverage');
  return result
    .filter(({ url }) => isOurs(url))
    .flatMap(({ url, functions }) =>
      functions
        .filter(({ ranges }) => ranges[0].count > 0)
        .map(({ functionName, ranges }) => ({ file: shortOf(url), at: ranges[0].startOffset, name: functionName })),
    );
}

if (isMainThread && process.channel) {
  let requests = [];
  const begin = (method) => ({ method, promises: 0, timers: 0, closeListeners: 0, stacks: {} });
  let now = begin(null);
  /** The function that made a promise, by the promise's id. */
  const makers = new Map();
  const hasStacks = process.env.CALL_COSTS_STACKS === '1';
  createHook({
    init(id, type, parent) {
      if (type === 'Timeout') now.timers += 1;
      if (type !== 'PROMISE') return;
      now.promises += 1;
      if (!hasStacks) return;
      // V8 makes some by itself, for `finally` and for a promise that an async function returns.
      const frame = ownFrame() ?? `(V8 or a package) called by ${makers.get(parent) ?? 'no function of the service'}`;
      makers.set(id, frame);
      now.stacks[frame] = (now.stacks[frame] ?? 0) + 1;
    },
  }).enable();
  for (const method of ['on', 'addListener', 'prependListener']) {
    const add = EventEmitter.prototype[method];
    EventEmitter.prototype[method] = function (event, listener) {
      if (event === 'close') now.closeListeners += 1;
      return add.call(this, event, listener);
    };
  }
  subscribe('http.server.request.start', ({ request }) => {
    now = begin(request.method);
    makers.clear();
    requests.push(now);
  });
  process.on('message', async (ask) => {
    if (ask === 'costs') process.send({ costs: requests.splice(0) });
    if (ask === 'functions') process.send({ functions: await functionsThatRan() });
  });
}
