import { hash } from 'node:crypto';
import { canonicalJson } from '../../../platform/text/json.js';
import { toStorableJson } from '../../../platform/database/storable.js';
import type { ServerSnapshot } from '../../servers/server.types.js';
import { type ContractChange, contractLines } from '../contract/contract-change.js';
import { compareContracts, type ContractComparison } from '../contract/contract-diff.js';
import type { LogLine } from '../release.entity.js';
import { FINDINGS_MAX } from '../scan/security-check.js';
import { findingsOf, report, warningLine, warningsOf, type ScanFinding } from '../scan/server-facts.js';
import type { ClaimedRescan } from './rescan.repository.js';
import type { RescanResult, Trouble } from './rescan-scan.js';
import { CHECK_FAILED } from './server-rescan.entity.js';

export interface RescanVerdict {
  isSound: boolean;
  /** The problem that the log reports from now on; null without one. */
  reported: string | null;
  lines: LogLine[];
  /** The new snapshot of the server; null without changes. */
  snapshot: ServerSnapshot | null;
  /** The contract changes for callers; null without any. */
  comparison: ContractComparison | null;
  /** The result of the security check; null if unchanged. */
  scanPassed: boolean | null;
}

type Claim = Pick<ClaimedRescan, 'requestedAt' | 'reported'>;

/** Returns the verdict. A problem that the log already reports is logged again only for a requested scan. */
export async function verdictOf(current: ServerSnapshot, claim: Claim, scan: RescanResult): Promise<RescanVerdict> {
  if ('trouble' in scan) return troubled(claim, scan);
  const { facts, source, mcpPath = current.hosted?.mcpPath ?? '/' } = scan;
  const { serverInfo, tools, resources, resourceTemplates, prompts } = facts;
  const snapshot = toStorableJson({
    ...current,
    hosted: current.hosted ? { ...current.hosted, mcpPath } : null,
    isClaimed: source === 'claims',
    ...{ serverInfo, tools, resources, resourceTemplates, prompts },
    warnings: await warningsOf(facts, source),
  } satisfies ServerSnapshot) as ServerSnapshot;
  const compared = compareContracts(current, snapshot);
  const findings = await findingsOf(facts, source, snapshot, true);
  if (findings.length > 0) return unsafe(claim, findings, compared);
  return sound(claim, current, snapshot, compared);
}

function troubled({ requestedAt, reported }: Claim, { trouble, message }: { trouble: Trouble; message: string }) {
  const isNew = reported !== trouble && !isCheck(reported);
  const text = `The server was scanned again, in vain: ${message} What it offered before stays as it is.`;
  return {
    isSound: false,
    // A server that fails the security check and then does not respond has still not passed it.
    reported: isCheck(reported) ? reported : trouble,
    lines: isNew || requestedAt !== null ? [line('warning', text)] : [],
    snapshot: null,
    comparison: null,
    scanPassed: null,
  } satisfies RescanVerdict;
}

/** Returns an unsafe verdict: the snapshot that passed the check remains, and the server can still be called. */
function unsafe(
  { requestedAt, reported }: Claim,
  findings: ScanFinding[],
  compared: ContractComparison,
): RescanVerdict {
  const now = CHECK_FAILED + hash('sha256', canonicalJson([compared.hash, findings]), 'base64url');
  const isNew = reported !== now;
  const securityChanges = findings.map(({ where, message }): ContractChange => {
    return { kind: 'security_failed', level: 'breaking', tool: null, path: where, message };
  });
  const lines = [
    ...report(findings),
    line(
      'warning',
      'The server is called as before, and may show this to models. Slipway still shows the earlier tools: ' +
        'repair the server, or publish another release.',
    ),
    ...contractLines(compared.changes, SINCE),
  ];
  return {
    isSound: true,
    reported: now,
    lines: isNew || requestedAt !== null ? lines : [],
    snapshot: null,
    comparison: isNew ? { ...compared, changes: [...securityChanges, ...compared.changes] } : null,
    scanPassed: false,
  };
}

function sound(
  { requestedAt, reported }: Claim,
  current: ServerSnapshot,
  snapshot: ServerSnapshot,
  compared: ContractComparison,
): RescanVerdict {
  const isMended = isCheck(reported) && !snapshot.isClaimed;
  const changes = isMended ? [PASSED, ...compared.changes] : compared.changes;
  const knownWarnings = new Set(current.warnings?.map(({ message }) => message));
  const warnings = (snapshot.warnings ?? []).filter(({ message }) => !knownWarnings.has(message));
  const lines = [
    ...(isMended ? [line('success', PASSED.message)] : []),
    ...(reported !== null && !isCheck(reported) ? [line('success', 'The server could be scanned again.')] : []),
    ...warnings.slice(0, FINDINGS_MAX).map(warningLine),
    ...contractLines(compared.changes, SINCE),
  ];
  const isAwaited = requestedAt !== null && lines.length === 0;
  return {
    isSound: true,
    reported: isCheck(reported) && !isMended ? reported : null,
    lines: isAwaited ? [line('success', 'The server was scanned again: nothing changed.')] : lines,
    snapshot: canonicalJson(current) === canonicalJson(snapshot) ? null : snapshot,
    comparison: isMended || !compared.isSame ? { ...compared, changes } : null,
    scanPassed: snapshot.isClaimed ? null : true,
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

function isCheck(reported: string | null): boolean {
  return reported?.startsWith(CHECK_FAILED) ?? false;
}

function line(level: LogLine['level'], message: string): LogLine {
  return { stage: 'scan', level, message };
}
