import type { Requirement } from '../requirements.js';

/** Rules of hosted programs on several hosts. */
export const hostingHosts = {
  'hosting:hosts:share': {
    source: 'House',
    behavior:
      'Each stateless program runs in one host process, chosen by hash; a call in any process reaches it, also in one without the role `host`.',
  },
  'hosting:hosts:failures': {
    source: 'House',
    behavior:
      'A failure in another process reaches the caller unchanged; a response that breaks off is an error, never a truncated result.',
  },
  'hosting:hosts:elsewhere': {
    source: 'House',
    behavior:
      'A request that a host did not begin is sent to another host; a request that may have run is not repeated.',
  },
  'hosting:hosts:once': {
    source: 'House',
    behavior: 'A stateful program runs in exactly one host, also with simultaneous first calls in all processes.',
  },
  'hosting:hosts:killed': {
    source: 'House',
    behavior:
      'The programs of a killed host run on other hosts, stateful ones after its lease expired, and none runs twice; a host that shuts down releases them at once.',
  },
  'hosting:hosts:fenced': {
    source: 'House',
    behavior: 'A host that cannot renew its lease ends its stateful programs before another host may start them.',
  },
  'hosting:hosts:outage': {
    source: 'House',
    behavior:
      'Stateless programs answer in every process while the database is away, within STALE_READ_MS, and until their host has renewed its lease; a request that finds no host is 503 with `Retry-After`.',
  },
  'hosting:hosts:state': {
    source: 'House',
    behavior:
      'A stateful program keeps its state on a host that shares the data folder; such a host is preferred, and on any other the program starts empty.',
    isLong: true,
  },
  'hosting:hosts:messages': {
    source: 'House',
    behavior:
      'Every host receives new versions, changed values and deletions of owners; the state of a deleted owner is removed also if the message is lost.',
  },
  'hosting:hosts:secret': {
    source: 'House',
    behavior:
      'The route between hosts answers 404 to requests without the secret and to repeated requests; a body that was changed never reaches a program completely.',
  },
} as const satisfies Record<string, Requirement>;
