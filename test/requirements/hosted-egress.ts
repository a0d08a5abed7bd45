import type { Requirement } from '../requirements.js';

/** Rules of outgoing requests of hosted code, and of the runtime settings of its owner. */
export const hostedEgress = {
  'egress:hosted:public-only': {
    source: 'House',
    behavior: 'Hosted code reaches public addresses only, in any spelling, by any name and after any redirect.',
  },
  'egress:hosted:internal': {
    source: 'House',
    behavior:
      'An address that `HOSTING_EGRESS_ALLOW` lists is reached by hosted code whose `egressAllow` names it with its port; the ports of this service, its database, Redis, S3 and OpenTelemetry collector and 169.254.0.0/16 stay closed.',
  },
  'egress:hosted:list': {
    source: 'House',
    behavior: 'With a list of hosts, hosted code reaches the listed hosts and ports only.',
  },
  'egress:hosted:ports': {
    source: 'House',
    behavior: 'Ports of system services are closed to hosted code unless listed, and port 25 is always closed.',
  },
  'egress:hosted:refusals': {
    source: 'House',
    behavior:
      'A refused request answers 403 with the reason, and the log of the program contains a bounded number of these.',
  },
  'egress:hosted:passes': {
    source: 'House',
    behavior:
      'HTTP, HTTPS, WebSockets and raw connections of hosted code stream in both directions without buffering, without hop-by-hop headers and a forged Host header.',
  },
  'egress:hosted:bounds': {
    source: 'House',
    behavior:
      'A program has at most 32 requests in flight; waits, idle sockets and headers are bounded, and its end closes all its connections.',
  },
  'egress:hosted:proxy': {
    source: 'House',
    behavior:
      'With EGRESS_PROXY every request of hosted code goes through that proxy, and hosted code receives its refusals.',
  },
  'egress:hosted:hostile': {
    source: 'House',
    behavior: 'Malformed HTTP closes its own connection and affects no other.',
  },
  'server:runtime:settings': {
    source: 'House',
    behavior:
      'The owner of a server reads and changes its egress list (at most 50 hosts, wildcards or addresses, each with an optional port) and the logging of payloads, and every process knows at once.',
  },
  'log:payload:on': {
    source: 'House',
    behavior:
      'Records contain arguments and results of calls, at most 16 KB of each, only while the owner has turned that on.',
  },
  'log:payload:redacted': {
    source: 'House',
    behavior: 'Recorded arguments and results contain no value that its name or form identifies as a secret.',
  },
} as const satisfies Record<string, Requirement>;
