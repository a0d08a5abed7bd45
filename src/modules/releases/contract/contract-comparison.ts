import type { ServerSnapshot } from '../../servers/server.types.js';
import type { ContractChange } from './contract-change.js';
import { contractChanges } from './contract-diff.js';
import { contractOf, hashOf } from './contract.js';

/** What changes for callers of a server, compared with what they are offered now. */
export interface ContractComparison {
  /** The release they are offered now; null without one. */
  previousReleaseId: string | null;
  /** Of what they would be offered. */
  hash: string;
  /** The worst first. */
  changes: ContractChange[];
  /** Both mean the same. */
  isSame: boolean;
}

/** What would change for callers if `next` took the place of `current`. */
export function compareContracts(current: ServerSnapshot | null, next: ServerSnapshot): ContractComparison {
  const contract = contractOf(next);
  const hash = hashOf(contract);
  if (!current) return { previousReleaseId: null, hash, changes: [], isSame: false };
  const before = contractOf(current);
  const previousReleaseId = current.releaseId;
  return { previousReleaseId, hash, changes: contractChanges(before, contract), isSame: hashOf(before) === hash };
}
