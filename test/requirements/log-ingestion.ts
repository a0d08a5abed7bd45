import type { Requirement } from '../requirements.js';

/** Rules of storing and deleting runtime logs. */
export const logIngestion = {
  'log-ingestion:merge': {
    source: 'House',
    behavior: 'What several processes know of an invocation becomes one row, whichever comes first.',
  },
  'log-ingestion:once': {
    source: 'House',
    behavior: 'A batch that is written again, after its worker was killed in the middle of it, changes nothing.',
  },
  'log-ingestion:bad-rows': {
    source: 'House',
    behavior: 'Of a batch only the rows that cannot be kept are lost.',
  },
  'log-ingestion:own-server': {
    source: 'House',
    behavior: 'An invocation is only added to for the server it belongs to.',
  },
  'log-ingestion:bounded': {
    source: 'House',
    behavior:
      'Taking an invocation never waits or fails; up to 50,000 of them wait for the queue, a quarter of one server, and the rest is counted.',
  },
  'log-ingestion:away': {
    source: 'House',
    behavior: 'What comes while the queue and the database are away is kept when they are back.',
  },
  'log-ingestion:retention': {
    source: 'House',
    behavior: 'The oldest days go as a whole, by `LOG_RETENTION_DAYS` and `LOG_RETENTION_GB`, while rows come in.',
  },
  'log-ingestion:indexes': {
    source: 'House',
    behavior:
      'The past parts of an open day and each closed day get an index of search, a busy day one for each 3 hours, again where a build was cut off.',
  },
  'log-ingestion:deleted-server': {
    source: 'House',
    behavior: 'A deleted server leaves no invocations, and none of its late ones stays.',
  },
  'log-ingestion:deleted-connection': {
    source: 'House',
    behavior:
      'Deleting a server or a connection clears its side of the rows of both, and a row without either side is deleted.',
  },
  'log-ingestion:views': {
    source: 'House',
    behavior:
      'A call through a connection to a registry server is one row; the log of the server shows nothing of the connection, and that of the connection no payload, line or exception of the server.',
  },
  'log-ingestion:sides': {
    source: 'House',
    behavior:
      'A call refused before the server was reached has no server, a request the service made itself no connection, and a request of a client one id for each connection.',
  },
  'log-ingestion:read': {
    source: 'House',
    behavior:
      'The log of a connection shows calls of the process that is asked at once, and those of others within 2 s.',
  },
} as const satisfies Record<string, Requirement>;
