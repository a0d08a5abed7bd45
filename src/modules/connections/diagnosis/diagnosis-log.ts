import { visible } from '../../../platform/text/quoted.js';
import type { ConnectionTarget } from '../core/connection.types.js';
import type { DiagnosisStepDto, DiagnosisStepName } from './diagnosis.dto.js';

const EVIDENCE_CHARS_MAX = 400;

/** Shorter values would tear sentences apart, and keep nothing. */
const SECRET_CHARS_MIN = 4;

/** A step that failed, and why: the steps behind it are skipped. */
export class StepFailed extends Error {
  constructor(
    readonly step: DiagnosisStepName,
    /** What the connection's status is to be judged by. */
    readonly reason: Error,
  ) {
    super(step);
  }
}

/** Writes down what was seen, step by step, without the values that a connection sends. */
export class DiagnosisLog {
  readonly steps: DiagnosisStepDto[] = [];
  private readonly secrets: string[];

  constructor(target: ConnectionTarget) {
    this.secrets = secretsOf(target);
  }

  /**
   * Looks at one thing.
   *
   * @param look gives the evidence
   * @param judge what a failure means, in words that may be shown
   * @throws StepFailed
   */
  async look(
    step: DiagnosisStepName,
    look: () => string | Promise<string>,
    judge: (error: unknown) => Error,
  ): Promise<void> {
    const startedAt = performance.now();
    try {
      this.ok(step, await look(), performance.now() - startedAt);
    } catch (error) {
      this.fail(step, judge(error), performance.now() - startedAt);
    }
  }

  ok(step: DiagnosisStepName, evidence: string, ms = 0): void {
    this.add(step, 'ok', evidence, ms);
  }

  /** @throws StepFailed */
  fail(step: DiagnosisStepName, reason: Error, ms = 0): never {
    this.add(step, 'failed', reason.message, ms);
    throw new StepFailed(step, reason);
  }

  skip(step: DiagnosisStepName, evidence: string): void {
    this.add(step, 'skipped', evidence, 0);
  }

  /** Those that were not looked at. */
  skipRest(planned: readonly DiagnosisStepName[]): void {
    for (const step of planned) {
      if (!this.steps.some((one) => one.step === step)) this.skip(step, 'Skipped, since an earlier step failed.');
    }
  }

  private add(step: DiagnosisStepName, status: string, evidence: string, ms: number): void {
    const told = this.secrets.reduce((text, secret) => text.replaceAll(secret, '…'), evidence);
    this.steps.push({ step, status, evidence: visible(told, EVIDENCE_CHARS_MAX), ms: Math.round(ms) });
  }
}

/** The values a connection sends, which a server may repeat in what it answers. */
function secretsOf(target: ConnectionTarget): string[] {
  const headers = 'headers' in target ? Object.values(target.headers) : [];
  const query = target.kind === 'server' ? target.query.map(([, value]) => value) : [];
  const own = target.kind === 'url' ? [...new URL(target.url).searchParams.values()] : [];
  return [...headers.flatMap((value) => [value, value.slice(value.indexOf(' ') + 1)]), ...query, ...own].filter(
    ({ length }) => length >= SECRET_CHARS_MIN,
  );
}
