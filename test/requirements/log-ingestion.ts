import type { Requirement } from '../requirements.js';

/** Rules of storing and deleting runtime logs. */
export const logIngestion = {
  'log-ingestion:merge': {
    source: 'House',
    behavior: 'Records of one invocation from several processes become one row, in any order of arrival.',
  },
  'log-ingestion:once': {
    source: 'House',
    behavior: 'A batch that is written again, because its connection broke before the answer, changes nothing.',
  },
  'log-ingestion:bad-rows': {
    source: 'House',
    behavior: 'A batch loses only the rows that cannot be stored.',
  },
  'log-ingestion:own-server': {
    source: 'House',
    behavior: 'Parts are added to an invocation only for the server that it belongs to.',
  },
  'log-ingestion:bounded': {
    source: 'House',
    behavior:
      'Accepting an invocation never waits or fails; up to 50,000 rows of both views wait for the database, a quarter of one server or connection, and the rest is dropped and counted.',
  },
  'log-ingestion:away': {
    source: 'House',
    behavior: 'Invocations recorded while the database is unavailable are stored afterwards.',
  },
  'log-ingestion:retention': {
    source: 'House',
    behavior:
      'The oldest days are dropped as a whole, by `LOG_RETENTION_DAYS` and `LOG_RETENTION_GB`, during ingestion.',
  },
  'log-ingestion:indexes': {
    source: 'House',
    behavior:
      'The past parts of an open day and each closed day get a search index, a busy day one for each 3 hours; an interrupted build is repeated.',
  },
  'log-ingestion:deleted-server': {
    source: 'House',
    behavior: 'A deleted server has no invocations, and late ones are removed.',
  },
  'log-ingestion:deleted-connection': {
    source: 'House',
    behavior:
      'Deleting a server or a connection clears its part of shared rows, and a row without either part is deleted.',
  },
  'log-ingestion:views': {
    source: 'House',
    behavior:
      'A call through a connection to a registry server is one row; the log of the server contains nothing of the connection, and that of the connection no payload, line or exception of the server.',
  },
  'log-ingestion:sides': {
    source: 'House',
    behavior:
      'A call that was refused before it reached the server has no server, an internal request of the service no connection, and a client request one id for each connection.',
  },
  'log-ingestion:read': {
    source: 'House',
    behavior:
      'The log of a connection or server contains calls of the answering process at once, and those of others within 2 s.',
  },
} as const satisfies Record<string, Requirement>;
