import type { ServerResponse } from 'node:http';
import type { LocalHosting } from '../../../src/hosting/hosting.js';
import type { EngineName } from '../../../src/hosting/hosting.types.js';

/** See `placed-programs.mjs`. */
export class PlacedPrograms extends LocalHosting {
  constructor(options: { name: string; dataDir: string });
  readonly name: string;
  stateDir(ownerId: string): string;
  /** Streams that are open, by owner. */
  readonly open: Map<string, ServerResponse>;
  /** Owners whose caller left. */
  readonly left: string[];
  readonly hanging: string[];
  /** Of the large answer. */
  written: number;
  readonly currents: string[];
  readonly forgotten: string[];
  readonly renewed: string[];
  readonly refusal: Record<EngineName, string | null>;
  failure: Error | null;
  /** Programs with state that run now. */
  readonly running: Map<string, number>;
  start(): Promise<this>;
  stop(): Promise<void>;
  dispatch: LocalHosting['dispatch'];
  whyNot: LocalHosting['whyNot'];
  forget: LocalHosting['forget'];
  current: LocalHosting['current'];
  renew: LocalHosting['renew'];
  endStateful: LocalHosting['endStateful'];
  ownersWithState: LocalHosting['ownersWithState'];
}
