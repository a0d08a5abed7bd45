import { messageForOwner } from '../../../hosting/hosting.errors.js';
import { visible } from '../../../platform/text/quoted.js';
import type { ConnectionTarget } from '../core/connection.entity.js';
import type { DiagnosisStepDto, DiagnosisStepName } from './diagnosis.dto.js';

const EVIDENCE_CHARS_MAX = 400;

/** Minimum length of redacted values: shorter ones also occur in ordinary words. */
const SECRET_CHARS_MIN = 4;

export class StepFailedError extends Error {
  constructor(
    readonly step: DiagnosisStepName,
    readonly reason: Error,
  ) {
    super(step);
  }
}

export class DiagnosisLog {
  readonly steps: DiagnosisStepDto[] = [];
  private readonly secrets: string[];
  /** True for a module of the connection: callers that can read the diagnosis can also read its output. */
  private readonly isOwnProgram: boolean;

  constructor(target: ConnectionTarget) {
    this.isOwnProgram = target.kind === 'source';
    const headers = 'headers' in target ? Object.values(target.headers) : [];
    const query = target.kind === 'server' ? target.query.map(([, value]) => value) : [];
    const urlValues = target.kind === 'url' ? [...new URL(target.url).searchParams.values()] : [];
    this.secrets = [
      ...headers.flatMap((value) => [value, value.slice(value.indexOf(' ') + 1)]),
      ...query,
      ...urlValues,
    ].filter(({ length }) => length >= SECRET_CHARS_MIN);
  }

  /**
   * @param probe returns the evidence
   * @param toFailure creates an error whose message is safe to return
   * @throws StepFailedError
   */
  async run(
    step: DiagnosisStepName,
    probe: () => string | Promise<string>,
    toFailure: (error: unknown) => Error,
  ): Promise<void> {
    const startedAt = performance.now();
    try {
      this.ok(step, await probe(), performance.now() - startedAt);
    } catch (error) {
      this.fail(step, toFailure(error), performance.now() - startedAt);
    }
  }

  ok(step: DiagnosisStepName, evidence: string, ms = 0): void {
    this.add(step, 'ok', evidence, ms);
  }

  /** @throws StepFailedError */
  fail(step: DiagnosisStepName, reason: Error, ms = 0): never {
    this.add(step, 'failed', this.isOwnProgram ? messageForOwner(reason) : reason.message, ms);
    throw new StepFailedError(step, reason);
  }

  skip(step: DiagnosisStepName, evidence: string): void {
    this.add(step, 'skipped', evidence, 0);
  }

  skipRest(planned: readonly DiagnosisStepName[]): void {
    for (const step of planned) {
      if (!this.steps.some((entry) => entry.step === step)) this.skip(step, 'Skipped, since an earlier step failed.');
    }
  }

  private add(step: DiagnosisStepName, status: string, evidence: string, ms: number): void {
    const redacted = this.secrets.reduce((text, secret) => text.replaceAll(secret, '…'), evidence);
    this.steps.push({ step, status, evidence: visible(redacted, EVIDENCE_CHARS_MAX), ms: Math.round(ms) });
  }
}
