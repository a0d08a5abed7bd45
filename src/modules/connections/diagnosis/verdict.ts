import { statusAfter, statusReasons } from '../core/connection-status.js';
import type { ConnectionTarget } from '../core/connection.types.js';
import type { DiagnosisLog, StepFailed } from './diagnosis-log.js';
import type { DiagnosisStepName } from './diagnosis.dto.js';

/** What to do about a step that failed, where the status does not know it better. */
const advice: Partial<Record<DiagnosisStepName, string>> = {
  dns: 'check the host name, and that DNS of the service knows it.',
  guard: 'use a public address, or ask the operator to allow this one in EGRESS_ALLOW.',
  connect: 'start the MCP server, and check host and port of mcpUrl.',
  tls: 'give the server a certificate that is valid for its host name, or check whether its URL begins with http://.',
  http: 'read the log of the MCP server, and check the path of mcpUrl.',
  era: 'check that the address is that of an MCP server, and update the server.',
  list: 'read the log of the MCP server: its list of tools does not come.',
};

/** Where the address is the publisher's. */
const PUBLISHER = 'ask the publisher of the server, whose address it is.';
const ofAddress: ReadonlySet<DiagnosisStepName> = new Set(['dns', 'guard', 'connect', 'tls', 'http', 'era']);

/** What a diagnosis comes to, in one sentence that says what to do. */
export function verdictOf(target: ConnectionTarget, failed: StepFailed | null, { steps }: DiagnosisLog): string {
  if (!failed) {
    const evidence = steps.find(({ step }) => step === 'list')?.evidence ?? '';
    return `Everything works: ${lowered(evidence)}`;
  }
  const { step, reason } = failed;
  if (target.kind === 'server' && ofAddress.has(step)) return `It stops at ${step}: ${PUBLISHER}`;
  const known = statusAfter(reason);
  const next = known ? statusReasons[known.reason].nextStep : null;
  const isKnownBetter = advice[step] === undefined || (known !== null && !vague.has(known.reason));
  const act = isKnownBetter && next !== null ? lowered(next) : (advice[step] ?? 'read what it says.');
  return `It stops at ${step}: ${act}`;
}

/** Reasons that only say that something is in the way. */
const vague: ReadonlySet<string> = new Set(['unreachable', 'timeout']);

function lowered(sentence: string): string {
  return /^[A-Z]{2}/.test(sentence) ? sentence : sentence.charAt(0).toLowerCase() + sentence.slice(1);
}
