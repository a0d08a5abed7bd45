import type { Requirement } from '../requirements.js';

/** Rules of storing and deleting runtime logs. */
export const logIngestion = {
  'log-ingestion:merge': {
    source: 'House',
    behavior:
      'Records of one invocation from several processes become one row, in any order of arrival, readable from the first on: at once in the process that recorded them, in others within 2 s.',
  },
  'log-ingestion:once': {
    source: 'House',
    behavior:
      'A batch that is written again, because its connection broke before the answer, changes nothing, and a batch loses only the rows that cannot be stored.',
  },
  'log-ingestion:bounded': {
    source: 'House',
    behavior:
      'Accepting an invocation never waits or fails: up to 64 Mi characters wait for the database, also while it is unavailable, a quarter of one server or connection; the rest is dropped and counted.',
  },
  'log-ingestion:retention': {
    source: 'House',
    behavior:
      'The oldest days are dropped as a whole, by `LOG_RETENTION_DAYS` and `LOG_RETENTION_GB`, during ingestion.',
  },
  'log-ingestion:deleted': {
    source: 'House',
    behavior:
      'Deleting a server or a connection clears its part of all rows, also of late ones, and a row without either part is deleted.',
  },
  'log-ingestion:views': {
    source: 'House',
    behavior:
      'A call through a connection to a registry server is one row; the log of the server contains nothing of the connection, and that of the connection no payload, line or exception of the server. A call that was refused before it reached the server has no server, an internal request of the service no connection, and a client request one id for each connection.',
  },
} as const satisfies Record<string, Requirement>;
