import type { Requirement } from '../requirements.js';

/** Rules of outgoing requests of hosted code, and of the runtime settings of its owner. */
export const hostedEgress = {
  'egress:hosted:public-only': {
    source: 'House',
    behavior: 'Hosted code reaches public addresses only, however an address is written, named or redirected to.',
  },
  'egress:hosted:list': {
    source: 'House',
    behavior: 'With a list of hosts, hosted code reaches the hosts and ports of the list only.',
  },
  'egress:hosted:ports': {
    source: 'House',
    behavior: 'Ports of system services are closed to hosted code unless the list names them, and port 25 always is.',
  },
  'egress:hosted:refusals': {
    source: 'House',
    behavior: 'A refused request answers 403 with a sentence, which the log of the program holds too, within bounds.',
  },
  'egress:hosted:passes': {
    source: 'House',
    behavior: 'HTTP, HTTPS, WebSockets and raw connections of hosted code pass both ways without being held.',
  },
  'egress:hosted:headers': {
    source: 'House',
    behavior: 'Headers of one hop, and a Host that hosted code made up, do not leave with its requests.',
  },
  'egress:hosted:bounds': {
    source: 'House',
    behavior: 'One program has at most 32 requests under way, and waits, idle sockets and headers have bounds too.',
  },
  'egress:hosted:proxy': {
    source: 'House',
    behavior: 'With EGRESS_PROXY every request of hosted code goes through that proxy, whose refusal it is told.',
  },
  'egress:hosted:leaves-nothing': {
    source: 'House',
    behavior: 'When a program ends, so does every connection it had.',
  },
  'egress:hosted:hostile': {
    source: 'House',
    behavior: 'Bytes that are no sound HTTP end their own connection and nothing else.',
  },
  'server:runtime:settings': {
    source: 'House',
    behavior: 'The owner of a server reads and changes where its code may go and whether payloads are logged.',
  },
  'server:runtime:announced': {
    source: 'House',
    behavior: 'A change of runtime settings is told to every process at once.',
  },
  'server:runtime:validation': {
    source: 'House',
    behavior: 'A list of hosts holds at most 50 hosts, names below one, or addresses, each with or without a port.',
  },
  'server:runtime:owner-only': {
    source: 'House',
    behavior: 'Runtime settings are for the owner only; to others a foreign server looks like a missing one.',
  },
  'log:payload:off': {
    source: 'House',
    behavior: 'Unless the owner turned it on, nothing of arguments and results is recorded.',
  },
  'log:payload:on': {
    source: 'House',
    behavior: 'With payloads on, records hold arguments and results of calls, at most 16 KB of each.',
  },
  'log:payload:redacted': {
    source: 'House',
    behavior: 'Recorded arguments and results show nothing that its name or its form gives away as a secret.',
  },
} as const satisfies Record<string, Requirement>;
