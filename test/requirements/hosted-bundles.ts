import type { Requirement } from '../requirements.js';

/** Running MCPB bundles, where the operator allows it. */
export const hostedBundles = {
  'bundle:session': {
    source: 'House',
    behavior:
      'Each session of a bundle has its own process; without free capacity it is refused. Session and process end together, with all child processes, after `RUNTIME_IDLE_MS` without requests even if streams are open, and when clients disconnect with calls in flight.',
  },
  'bundle:walls': {
    source: 'House',
    behavior: 'A bundle cannot read the environment and files of the service, or use its network.',
  },
  'bundle:own-processes': {
    source: 'House',
    behavior:
      'Processes that a session of a bundle started end with it and with the service, also when they detached themselves.',
  },
  'bundle:own-files': {
    source: 'House',
    behavior:
      'A session of a bundle sees the programs of the system, its own folder and a bounded writable folder, and no other files.',
  },
  'bundle:own-network': {
    source: 'House',
    behavior: 'The network of a bundle, if it has one, leads only to the egress proxy of hosted code.',
  },
  'bundle:limits': {
    source: 'House',
    behavior:
      'A bundle over its limits of CPU time, memory or processes, all processes of a session together, ends with its session, and the error names the limit.',
  },
  'bundle:run': {
    source: 'House',
    behavior:
      'Where `RUNTIME_BUNDLES` is on, a hosted bundle starts as its manifest defines, with the values of the caller, a secret of that name, or the default; it is called at its run address and through connections, and its calls are logged.',
  },
} as const satisfies Record<string, Requirement>;
