import { Injectable } from '@nestjs/common';
import { EndedApartError, runApart } from '../../../platform/child-process/run-in-child-process.js';
import { InvalidModuleError, type ModuleFacts } from '../../../hosting/hosted-module.js';
import type { ModuleCheckAnswer } from './module-check.process.js';

/** A module of 10 MB takes 2 to 5 s and below 256 MB; one that is a single literal of data takes several times as much. */
const LIMITS = { memoryMbMax: 512, timeoutMs: 15_000 };

/** Looks at modules in a process of their own, so that none of them holds up this one. */
@Injectable()
export class ModuleChecks {
  private last: Promise<unknown> = Promise.resolve();

  /**
   * What the module in a file says of itself. One is looked at after the other, since each may take a whole CPU.
   *
   * @throws InvalidModuleError also when it is too much to look at; the signal's reason when that ends it
   */
  async check(path: string, signal: AbortSignal, limits = LIMITS): Promise<ModuleFacts> {
    const mine = this.last.then(() => read(path, signal, limits));
    this.last = mine.catch(() => undefined);
    return mine;
  }
}

async function read(path: string, signal: AbortSignal, limits: typeof LIMITS): Promise<ModuleFacts> {
  try {
    const file = 'modules/releases/pipeline/module-check.process.js';
    const answer = await runApart<ModuleCheckAnswer>(file, [path], { ...limits, signal });
    if ('facts' in answer) return answer.facts;
    throw new InvalidModuleError(answer.refused);
  } catch (error) {
    if (!(error instanceof EndedApartError)) throw error;
    const most = error.reason === 'memory' ? `${limits.memoryMbMax} MB of memory` : `${limits.timeoutMs / 1000} s`;
    throw new InvalidModuleError(
      `The module takes more than ${most} to be read: make it smaller, for example by minifying it and leaving large data out of it.`,
    );
  }
}
