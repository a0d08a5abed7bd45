import type { Requirement } from '../requirements.js';

/** Rules of hosted programs on several hosts. */
export const hostingHosts = {
  'hosting:hosts:share': {
    source: 'House',
    behavior: 'Every program without state runs in one host process, chosen by hash; a call in any process reaches it.',
  },
  'hosting:hosts:stream': {
    source: 'House',
    behavior:
      'Between processes bodies and answers pass unchanged and as they come, and what nobody reads is not produced.',
  },
  'hosting:hosts:cancel': {
    source: 'House',
    behavior: 'A caller that leaves cancels its request in the process where the program runs.',
  },
  'hosting:hosts:failures': {
    source: 'House',
    behavior:
      'A failure in another process arrives as it was; an answer that breaks off is a failure, never a short one.',
  },
  'hosting:hosts:elsewhere': {
    source: 'House',
    behavior:
      'A host that did not begin with a request is passed over for another one; a request that may have run is not repeated.',
  },
  'hosting:hosts:once': {
    source: 'House',
    behavior:
      'A program with state runs in exactly one host, however many first calls arrive at once in all processes.',
  },
  'hosting:hosts:killed': {
    source: 'House',
    behavior: 'When a host is killed, its programs run elsewhere: those with state once its lease is over, none twice.',
  },
  'hosting:hosts:fenced': {
    source: 'House',
    behavior: 'A host that cannot renew its lease ends its programs with state before another host may start them.',
  },
  'hosting:hosts:state': {
    source: 'House',
    behavior:
      'A program with state goes on with it on a host that shares the data folder, is given to such a host first, and starts empty on any other.',
    isLong: true,
  },
  'hosting:hosts:stop': {
    source: 'House',
    behavior: 'A host that stops in order gives its programs with state to another one at once.',
  },
  'hosting:hosts:messages': {
    source: 'House',
    behavior:
      'A new version, new values of an owner, and an owner that is gone are told to every host; state of a forgotten owner goes also when the message is lost.',
  },
  'hosting:hosts:api-only': {
    source: 'House',
    behavior: 'A process without the role `host` uses the programs of those with it, and runs none itself.',
  },
  'hosting:hosts:why-not': {
    source: 'House',
    behavior: 'Any process can say whether an engine runs anywhere, and if not, why.',
  },
  'hosting:hosts:unreachable': {
    source: 'House',
    behavior:
      'A host that does not say where it is reached runs programs for itself only; others are told to set ADVERTISE_URL.',
  },
  'hosting:hosts:secret': {
    source: 'House',
    behavior:
      'The route between hosts answers 404 to whoever does not hold the secret or repeats a request; a changed body never reaches a program whole.',
  },
} as const satisfies Record<string, Requirement>;
