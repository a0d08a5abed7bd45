import type { Requirement } from '../requirements.js';

/** Running programs: their life, their limits, and what their owners hear. */
export const hostingRuntime = {
  // Life
  'runtime:start:failure': {
    source: 'House',
    behavior:
      'A program that fails to start fails its requests with its output; other output of a start is recorded with the waiting request, or as `START /`.',
  },
  'runtime:stop:idle': {
    source: 'House',
    behavior:
      'The first request starts a program once. One without requests for `RUNTIME_IDLE_MS` is stopped, and with `RUNTIME_LIVE_MAX` live programs the longest idle one makes room for another; an active one never does.',
  },
  'runtime:stop:memory': {
    source: 'House',
    behavior:
      'While programs and service use more than 85 % of the memory of the container or machine, the longest idle program is ended, and without an idle one no other is started: the answer is 503 with `Retry-After`. When memory runs out, Linux ends a program before the service.',
  },
  'runtime:stop:quota': {
    source: 'House',
    behavior:
      'An account runs at most `livePrograms` programs in a process: its own longest idle one is stopped for another, and with all active the request answers 429. Programs of other accounts do not count.',
  },
  'runtime:stop:service': {
    source: 'House',
    behavior:
      'At shutdown of the service its programs end in order, and their requests fail with an error that permits a retry.',
  },
  'runtime:stop:killed': {
    source: 'House',
    behavior: 'After SIGKILL of the service no process of a program remains, and the next start removes its folders.',
    isLong: true,
  },
  'runtime:stop:forgotten': {
    source: 'House',
    behavior: 'Programs and stored sessions of a deleted owner are removed.',
  },
  'runtime:swap:lossless': {
    source: 'House',
    behavior:
      'A new version replaces the old one under load without a failed request or call; requests of the old version complete in it.',
  },
  'runtime:swap:stateful': {
    source: 'House',
    behavior: 'Two versions of a program with sessions on disk never run at once.',
  },
  'runtime:swap:bounded': {
    source: 'House',
    behavior: 'An owner has at most two programs at once, however often its versions or values change.',
  },
  'runtime:renew': {
    source: 'House',
    behavior:
      'A running program whose secrets or egress rules changed is restarted without a failed request, a stateful one after its predecessor ended; without such a change, as by a new slug, it is not restarted.',
  },
  'runtime:renew:lost': {
    source: 'House',
    behavior:
      'Changed values reach a program that is never idle within four leases (60 s), also if the message is lost.',
  },
  'runtime:crash:back-off': {
    source: 'House',
    behavior:
      'The next request restarts a crashed program; from the second crash in a row it waits 1 s, doubling to 60 s; a new version starts without a wait.',
  },

  // Requests
  'runtime:request:streams': {
    source: 'House',
    behavior:
      'Requests and responses stream in both directions with backpressure; hop-by-hop and internal headers reach neither programs nor callers.',
  },
  'runtime:request:record': {
    source: 'House',
    behavior:
      'Every request is recorded for the owner of its program, with its time and outcome, at its end; one whose client disconnects is aborted and recorded as `canceled`.',
  },

  // Limits
  'runtime:limit:cpu': {
    source: 'House',
    behavior:
      'Code that blocks its event loop for `RUNTIME_STALL_MS`, or uses more than `RUNTIME_CPU_MS`, is ended with `exceededCpu`, also after its response; concurrent requests fail with an error that states this and permits a retry. A delay of the service itself ends no program.',
  },
  'runtime:limit:memory': {
    source: 'House',
    behavior:
      'A program that uses more than `RUNTIME_MEMORY_MB` is ended with `exceededMemory`, or receives the error of its runtime.',
  },
  'runtime:isolation:level': {
    source: 'House',
    behavior:
      'Hosted code has a user and a network of its own where the host can; otherwise it runs as the service, in the sandbox of workerd, unless the operator requires more.',
  },
  'runtime:isolation:reach': {
    source: 'House',
    behavior:
      'At each isolation level, hosted code reaches neither loopback, nor the addresses of the host, nor the metadata address, and sees no file, process or environment of the service.',
  },
  'runtime:isolation:refused': {
    source: 'House',
    behavior:
      'Without a memory limit, or when its process could outlive the service, hosted code is refused until the operator accepts that.',
  },
  'runtime:isolation:bundles': {
    source: 'House',
    behavior: 'Bundles run with complete isolation only; elsewhere they are refused with what is missing.',
  },
  'runtime:limit:wall': {
    source: 'House',
    behavior:
      'A request without a complete response within `RUNTIME_WALL_MS` is ended with `exceededWall`, except for event streams; a response larger than `RUNTIME_RESPONSE_MB` is cut and recorded as `exceededResponse`.',
  },
  'runtime:limit:concurrency': {
    source: 'House',
    behavior: 'Requests beyond `RUNTIME_CONCURRENCY` are refused at once, and the others are answered.',
  },
  'runtime:limit:neighbours': {
    source: 'House',
    behavior: 'A program that misbehaves in any way does not fail requests of another program.',
  },
} as const satisfies Record<string, Requirement>;
