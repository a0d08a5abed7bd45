import { createHash } from 'node:crypto';
import { canonicalJson } from '../../../platform/text/json.js';
import { toStorableJson } from '../../../platform/database/storable.js';
import type { ServerSnapshot } from '../../servers/server.types.js';
import type { ContractChange } from '../contract/contract-change.js';
import { contractLines } from '../contract/contract-lines.js';
import { compareContracts, type ContractComparison } from '../contract/contract-diff.js';
import type { LogLine } from '../release-log.js';
import { findingsOf, report, type ScanFinding } from '../scan/scan-report.js';
import type { ClaimedRescan } from './rescan-claims.js';
import { refused, type Rescanned, type Trouble } from './rescan-scan.js';
import { CHECK_FAILED } from './server-rescan.entity.js';

/** Lines about findings of the security check; `…/changes` holds all of them. */
const FINDING_LINES_MAX = 20;

/** What a scan changes. */
export interface RescanVerdict {
  /** It found something out. */
  isSound: boolean;
  /** The trouble the log knows of from now on; null for none. */
  told: string | null;
  lines: LogLine[];
  /** What is known of the server from now on; null when nothing changes. */
  snapshot: ServerSnapshot | null;
  /** What is listed as a change for callers; null when nothing is. */
  comparison: ContractComparison | null;
  /** What the security check says; null when it says nothing new. */
  scanPassed: boolean | null;
}

type Claim = Pick<ClaimedRescan, 'askedAt' | 'told'>;

/** What follows from a scan for a release of which `current` is known. What is told already is told again only if asked. */
export function verdictOf(current: ServerSnapshot, claim: Claim, found: Rescanned): RescanVerdict {
  if ('trouble' in found) return troubled(claim, found);
  // A scan may be shared with servers of which only the card was ever seen.
  if (found.source === 'claims' && !current.isClaimed) return troubled(claim, refused);
  const { facts, source, mcpPath = current.hosted?.mcpPath ?? '/' } = found;
  const { serverInfo, tools, resources, resourceTemplates, prompts } = facts;
  const snapshot = toStorableJson({
    ...current,
    hosted: current.hosted ? { ...current.hosted, mcpPath } : null,
    isClaimed: source === 'claims',
    ...{ serverInfo, tools, resources, resourceTemplates, prompts },
  } satisfies ServerSnapshot) as ServerSnapshot;
  const compared = compareContracts(current, snapshot);
  const findings = findingsOf(facts, source, snapshot);
  if (findings.length > 0) return unsafe(claim, findings, compared);
  return sound(claim, current, snapshot, compared);
}

function troubled({ askedAt, told }: Claim, { trouble, message }: { trouble: Trouble; message: string }) {
  const isNew = told !== trouble && !isCheck(told);
  const text = `The server was scanned again, in vain: ${message} What it offered before stays as it is.`;
  return {
    isSound: false,
    // A server that fails the security check and then does not answer has not passed it.
    told: isCheck(told) ? told : trouble,
    lines: isNew || askedAt !== null ? [line('warning', text)] : [],
    snapshot: null,
    comparison: null,
    scanPassed: null,
  } satisfies RescanVerdict;
}

/** What fails the check is shown to nobody: the registry keeps what passed. The server itself is called as before. */
function unsafe({ askedAt, told }: Claim, findings: ScanFinding[], compared: ContractComparison): RescanVerdict {
  const now =
    CHECK_FAILED +
    createHash('sha256')
      .update(canonicalJson([compared.hash, findings]))
      .digest('base64url');
  const isNew = told !== now;
  const found = findings.map(({ where, message }): ContractChange => {
    return { kind: 'security_failed', level: 'breaking', tool: null, path: where, message };
  });
  const all = report(findings);
  const lines = [
    ...all.slice(0, FINDING_LINES_MAX),
    ...(all.length > FINDING_LINES_MAX ? [line('warning', `${all.length - FINDING_LINES_MAX} more findings`)] : []),
    line(
      'warning',
      'The server is called as before, and may show this to models. Slipway goes on showing what it offered before: ' +
        'mend the server, or publish another release.',
    ),
    ...contractLines(compared.changes, SINCE),
  ];
  return {
    isSound: true,
    told: now,
    lines: isNew || askedAt !== null ? lines : [],
    snapshot: null,
    comparison: isNew ? { ...compared, changes: [...found, ...compared.changes] } : null,
    scanPassed: false,
  };
}

function sound(
  { askedAt, told }: Claim,
  current: ServerSnapshot,
  snapshot: ServerSnapshot,
  compared: ContractComparison,
): RescanVerdict {
  const isMended = isCheck(told) && !snapshot.isClaimed;
  const changes = isMended ? [PASSED, ...compared.changes] : compared.changes;
  const lines = [
    ...(isMended ? [line('success', PASSED.message)] : []),
    ...(told !== null && !isCheck(told) ? [line('success', 'The server could be scanned again.')] : []),
    ...contractLines(compared.changes, SINCE),
  ];
  const isAwaited = askedAt !== null && lines.length === 0;
  return {
    isSound: true,
    told: isCheck(told) && !isMended ? told : null,
    lines: isAwaited ? [line('success', 'The server was scanned again: nothing changed.')] : lines,
    snapshot: canonicalJson(current) === canonicalJson(snapshot) ? null : snapshot,
    comparison: isMended || !compared.isSame ? { ...compared, changes } : null,
    scanPassed: isMended ? true : null,
  };
}

const SINCE = { stage: 'scan', since: 'since it was scanned before, without a release' } as const;

const PASSED: ContractChange = {
  kind: 'security_passed',
  level: 'compatible',
  tool: null,
  path: null,
  message: 'The security check passes again.',
};

function isCheck(told: string | null): boolean {
  return told?.startsWith(CHECK_FAILED) ?? false;
}

function line(level: LogLine['level'], message: string): LogLine {
  return { stage: 'scan', level, message };
}
