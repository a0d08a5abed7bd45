import type { Requirement } from '../requirements.js';

/** Running programs: their life, their limits, and what their owners hear. */
export const hostingRuntime = {
  // Life
  'runtime:start:single-flight': {
    source: 'House',
    behavior: 'A program is started by its first request, once for all requests that come meanwhile.',
  },
  'runtime:start:places': {
    source: 'House',
    behavior: 'As many programs start at once as the host has cores, at least two; the others wait for their turn.',
  },
  'runtime:start:failure': {
    source: 'House',
    behavior: 'A program that does not start ends its requests with what it said.',
  },
  'runtime:start:lines': {
    source: 'House',
    behavior:
      'Lines printed while a program loads are told with the request that waits for it, or in a record `START /` of their own.',
  },
  'runtime:stop:idle': {
    source: 'House',
    behavior: 'A program nobody calls for `RUNTIME_IDLE_MS` is stopped, and the next request starts it again.',
  },
  'runtime:stop:room': {
    source: 'House',
    behavior:
      'With `RUNTIME_LIVE_MAX` programs live the one idle longest makes room for another, and one at work never does.',
  },
  'runtime:stop:quota': {
    source: 'House',
    behavior:
      'An account runs at most `livePrograms` programs in a process: its own longest idle one makes room, and with all at work the request is 429. Programs of others do not count.',
  },
  'runtime:stop:service': {
    source: 'House',
    behavior: 'When the service stops, its programs end in order and requests hear that they may try again.',
  },
  'runtime:stop:killed': {
    source: 'House',
    behavior: 'After SIGKILL of the service no process of a program is left, and the next start removes its folders.',
    isLong: true,
  },
  'runtime:stop:forgotten': {
    source: 'House',
    behavior: 'Of an owner that is gone neither a program nor what its sessions stored is left.',
  },
  'runtime:swap:lossless': {
    source: 'House',
    behavior:
      'A new version takes over under load without losing a request; requests of the old one end as they began.',
  },
  'runtime:swap:stateful': {
    source: 'House',
    behavior: 'Of a program that keeps sessions on disk two versions never run at once.',
  },
  'runtime:swap:bounded': {
    source: 'House',
    behavior: 'One owner has at most two programs at once, however often its versions change.',
  },
  'runtime:renew': {
    source: 'House',
    behavior:
      'A running program whose secrets or egress rules changed is started anew without losing a request, with state after the one before ended; without a change it is left alone.',
  },
  'runtime:renew:lost': {
    source: 'House',
    behavior:
      'Values that changed reach a program that is never idle within four leases (60 s) also when the message about them was lost.',
  },
  'runtime:renew:bounded': {
    source: 'House',
    behavior: 'However often the values of an owner change at once, at most two of its programs run.',
  },
  'runtime:crash:back-off': {
    source: 'House',
    behavior:
      'A program that crashed is started again by the next request; from the second crash in a row on it rests 1 s, doubling to 60 s, and a new version does not.',
  },
  'runtime:live:hundred': {
    source: 'House',
    behavior: 'A hundred programs run at once in one process of the service, and idle ones are not looked after.',
  },

  // Requests
  'runtime:request:streams': {
    source: 'House',
    behavior: 'Requests and answers stream both ways, and a program waits while its reader takes nothing.',
  },
  'runtime:request:headers': {
    source: 'House',
    behavior: 'Headers of one connection and headers between processes of ours reach neither programs nor callers.',
  },
  'runtime:request:record': {
    source: 'House',
    behavior: 'Every request is told to the owner of its program, with its time and outcome, at its end.',
  },
  'runtime:request:canceled': {
    source: 'House',
    behavior: 'A request whose client leaves is aborted at the program and told as `canceled`.',
  },

  // Limits
  'runtime:limit:cpu': {
    source: 'House',
    behavior:
      'Code that lets nothing else run for `RUNTIME_STALL_MS`, or uses more than `RUNTIME_CPU_MS`, is ended with `exceededCpu`, behind its answer too.',
  },
  'runtime:limit:cpu-bystanders': {
    source: 'House',
    behavior: 'Requests beside one that is ended for its CPU time hear that it was another one, and may try again.',
  },
  'runtime:limit:memory': {
    source: 'House',
    behavior:
      'A program that takes more than `RUNTIME_MEMORY_MB` is ended with `exceededMemory`, or told by its runtime.',
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
    behavior: 'A request not answered within `RUNTIME_WALL_MS` is ended with `exceededWall`, event streams aside.',
  },
  'runtime:limit:response': {
    source: 'House',
    behavior: 'An answer larger than `RUNTIME_RESPONSE_MB` is cut and told as `exceededResponse`.',
  },
  'runtime:limit:concurrency': {
    source: 'House',
    behavior: 'Requests beyond `RUNTIME_CONCURRENCY` at once are refused at once, and the others are answered.',
  },
  'runtime:limit:stalled-service': {
    source: 'House',
    behavior: 'No program is ended because the process of the service itself was held up.',
  },
  'runtime:limit:neighbours': {
    source: 'House',
    behavior: 'While one program misbehaves in any way, another one answers every request.',
  },
  'runtime:limit:last': {
    source: 'House',
    behavior:
      'A program whose owner had one crash in the last ten minutes comes after the others where cores are scarce.',
  },
} as const satisfies Record<string, Requirement>;
