// Loaded into the service before its own code (`node --import`) by hostile.mjs, which asks over IPC for the `longest` turn of
// the event loop since it last asked, and who caused it: { ms, causes }. A turn is what lies between two runs of a timer of
// 5 ms; `causes` are the functions of the service, or else of others, that most samples of a CPU profile in it were below.

import { Session } from 'node:inspector/promises';
import { isMainThread } from 'node:worker_threads';

const tickMs = 5;
const sampleUs = 1_000;
const causesMax = 4;

/** Microseconds of the clock of V8's profiles. */
const nowUs = () => Number(process.hrtime.bigint()) / 1_000;

/** Functions by their samples within these times, most first, as `name file:line 0.8`: the share of all samples in it. */
function causesOf({ nodes, samples, timeDeltas, startTime }, from, to) {
  const nodeOf = new Map(nodes.map((node) => [node.id, node]));
  const parentOf = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])));
  const counts = new Map();
  let at = startTime;
  let all = 0;
  for (const [index, id] of samples.entries()) {
    at += timeDeltas[index];
    if (at < from || at > to) continue;
    all += 1;
    const stack = [];
    for (let up = id; up !== undefined; up = parentOf.get(up)) stack.push(nodeOf.get(up).callFrame);
    const frame = stack.find(({ url }) => url.includes('/dist/src/')) ?? stack[0];
    const file = frame.url.replace(/^.*\/(?:dist\/src|node_modules)\//, '');
    const name = `${frame.functionName || '(anonymous)'} ${file}:${frame.lineNumber + 1}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const most = [...counts].sort(([, one], [, other]) => other - one).slice(0, causesMax);
  return most.map(([name, count]) => `${name} ${(count / all).toFixed(2)}`);
}

if (isMainThread && process.channel) {
  const session = new Session();
  let last = nowUs();
  let longest = { from: last, to: last };
  setInterval(() => {
    const now = nowUs();
    if (now - last > longest.to - longest.from) longest = { from: last, to: now };
    last = now;
  }, tickMs).unref();

  const begin = async () => {
    await session.post('Profiler.start');
    last = nowUs();
    longest = { from: last, to: last };
  };
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: sampleUs });
  await begin();

  process.on('message', async (question) => {
    if (question !== 'longest') return;
    const { from, to } = longest;
    const { profile } = await session.post('Profiler.stop');
    process.send({ longest: { ms: (to - from) / 1_000 - tickMs, causes: causesOf(profile, from, to) } });
    await begin();
  });
}
