import type { Requirement } from '../requirements.js';

/** Rules of runtime logs beyond the interface: more fields, live streams, and records that other programs send. */
export const runtimeLogs = {
  'runtime-log:fields': {
    source: 'House',
    behavior:
      'An invocation also shows `rpcMethod`, `tool`, `releaseId`, `leftOut`, and `payload` where the owner has it kept.',
  },
  'runtime-log:pieces': {
    source: 'House',
    behavior: 'What is known of an invocation is shown at once, and what comes later is added to it.',
  },
  'runtime-log:search': {
    source: 'House',
    behavior: '`search` also looks into exceptions, takes case for nothing, and every character for itself.',
  },
  'runtime-log:filters': {
    source: 'House',
    behavior: '`outcome`, `tool`, `method`, `minDurationMs` and `before` (an id) must all match.',
  },
  'runtime-log:total-bound': {
    source: 'House',
    behavior:
      '`total` is the number of all matches; with `search` up to 100,000, and `totalIsExact` is false when more match.',
  },
  'runtime-log:own': {
    source: 'House',
    behavior: "Only its owner reads, follows or adds to a server's log; others learn that there is no such server.",
  },
  'runtime-log:stream': {
    source: 'House',
    behavior:
      '`GET …/logs/stream` tells `init` with the newest invocations, then `invocation` for each that comes, whichever process writes it.',
  },
  'runtime-log:stream:updates': {
    source: 'House',
    behavior: 'An invocation to which something is added is told again with the same id.',
  },
  'runtime-log:stream:filters': {
    source: 'House',
    behavior: 'A stream tells what matches the filters it was opened with, and nothing else.',
  },
  'runtime-log:stream:resume': {
    source: 'House',
    behavior: 'With `Last-Event-ID` a stream begins with what came since, and nothing twice.',
  },
  'runtime-log:stream:end': {
    source: 'House',
    behavior: 'A stream ends with its process, its server, the right of its key, and a reader who takes nothing.',
  },
  'runtime-log:stream:bound': {
    source: 'House',
    behavior: 'An account follows 10 logs in a process; another stream answers 429.',
  },
  'runtime-log:send': {
    source: 'House',
    behavior: '`POST …/logs` takes up to 1,000 records as `GET` shows them and answers 202 with their ids.',
  },
  'runtime-log:send:invalid': {
    source: 'House',
    behavior: 'A record of another form is refused with 400 that names its index, and none of the body is kept.',
  },
  'runtime-log:send:again': {
    source: 'House',
    behavior: 'Records with ids that are sent again change nothing.',
  },
  'runtime-log:otlp': {
    source: 'House',
    behavior:
      '`POST …/otlp/v1/logs` takes OTLP logs as protobuf and as JSON, also gzip, and answers in the form of the request.',
  },
  'runtime-log:otlp:trace': {
    source: 'House',
    behavior: 'OTLP records of one trace are one invocation, also when they come in several exports or twice.',
  },
  'runtime-log:otlp:partial': {
    source: 'House',
    behavior: 'OTLP records that are too old or too many are left out, counted and told as a partial success.',
  },
  'runtime-log:otlp:invalid': {
    source: 'House',
    behavior: 'A body that is no OTLP, or unpacks to more than 1 MB, is refused.',
  },
} as const satisfies Record<string, Requirement>;
