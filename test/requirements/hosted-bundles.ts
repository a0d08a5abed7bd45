import type { Requirement } from '../requirements.js';

/** Running MCPB bundles, where the operator allows it. */
export const hostedBundles = {
  'bundle:off': {
    source: 'House',
    behavior: 'Bundles do not run here unless `RUNTIME_BUNDLES` says so.',
  },
  'bundle:session': {
    source: 'House',
    behavior: 'Each session of a bundle is one process of its own, and both end together, with all it started.',
  },
  'bundle:session:idle': {
    source: 'House',
    behavior: 'A session of a bundle that nobody uses for `RUNTIME_IDLE_MS` ends, whatever its client left open.',
  },
  'bundle:session:places': {
    source: 'House',
    behavior: 'Without a free place a session of a bundle is refused, and nothing is started.',
  },
  'bundle:leak-free': {
    source: 'House',
    behavior: 'Clients that come, vanish and leave calls behind leave no process behind.',
  },
  'bundle:manifest': {
    source: 'House',
    behavior:
      'A bundle is started as its manifest says, with what the caller configured, a secret of that name, or the default.',
  },
  'bundle:walls': {
    source: 'House',
    behavior: 'A bundle sees neither the environment, the files nor the network of the service.',
  },
  'bundle:own-processes': {
    source: 'House',
    behavior: 'What a session of a bundle started ends with it and with the service, however it detached itself.',
  },
  'bundle:own-files': {
    source: 'House',
    behavior:
      'A session of a bundle sees the programs of the system, its own folder and a place to write with a bound: nothing else of the disk.',
  },
  'bundle:own-network': {
    source: 'House',
    behavior: 'Where bundles have a network, it leads to the proxy of hosted code and nowhere else.',
  },
  'bundle:limits': {
    source: 'House',
    behavior: 'A bundle that takes too much CPU time or memory is ended with its session, and its caller hears why.',
  },
  'bundle:run': {
    source: 'House',
    behavior: 'A bundle that runs here is called at its run address and through connections, and its calls are logged.',
  },
} as const satisfies Record<string, Requirement>;
