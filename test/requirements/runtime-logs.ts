import type { Requirement } from '../requirements.js';

/** Rules of runtime logs beyond the interface: more fields, live streams, and records that other programs send. */
export const runtimeLogs = {
  'log:caller': {
    source: 'House',
    behavior:
      'The logs of a server and of a connection name the account, the credential and the `clientInfo` name of whoever sent a request, at every endpoint, and find the requests of one caller.',
  },
  'runtime-log:search': {
    source: 'House',
    behavior:
      '`search` also matches exceptions, ignores case, and matches every character literally; `outcome`, `tool`, `method`, `minDurationMs` and `before` (an id) must all match. `total` is the number of all matches; with `search` up to 10,000, and `totalIsExact` is false if more match.',
  },
  'runtime-log:answered-errors': {
    source: 'House',
    behavior:
      'A tool result with `isError: true` has the outcome `toolError`, a JSON-RPC error `rpcError`. Their text is an exception of at most 200 characters without secrets, longer with `logPayloads`. For hosted code an outcome of the runtime other than `ok` counts instead.',
  },
  'runtime-log:left-out': {
    source: 'House',
    behavior:
      '`leftOut` is the number of invocations in the range of time that were not stored because of `logBytesPerDay`, and a metric counts the rows.',
  },
  'runtime-log:own': {
    source: 'House',
    behavior:
      'Only the owner reads, follows or adds to the log of a server; for others the server is not found. Parts are added to an invocation only for the server that it belongs to.',
  },
  'runtime-log:stream': {
    source: 'House',
    behavior:
      '`GET …/logs/stream` sends `init` with the newest invocations, then `invocation` for each new one that matches its filters, whichever process writes it, and again with the same id when a part is added. With `Last-Event-ID` a stream begins after that event, without repetition.',
  },
  'runtime-log:stream:end': {
    source: 'House',
    behavior:
      'A stream ends with its process, its server, the access of its key, and when its reader stalls. An account has 10 open log streams in a process; a further one answers 429.',
  },
  'runtime-log:send': {
    source: 'House',
    behavior:
      '`POST …/logs` accepts up to 1,000 records in the form of `GET` and answers 202 with their ids. A malformed record answers 400 with its index, and no record of the body is stored. Records with ids that are sent again change nothing.',
  },
  'runtime-log:otlp': {
    source: 'House',
    behavior:
      '`POST …/otlp/v1/logs` accepts OTLP logs as protobuf and as JSON, also with gzip, and answers in the format of the request. Records of one trace are one invocation, also across several exports and repetitions. Records that are too old or too many are dropped, counted and reported as a partial success. A body that is not OTLP, or decompresses to more than 1 MB, is refused.',
  },
} as const satisfies Record<string, Requirement>;
