import { randomUUID } from 'node:crypto';
import type { ClientAnswer } from '../../../mcp/protocol/channel.js';
import { rpcCode } from '../../../mcp/protocol/protocol.js';

/** What local servers ask the callers of other processes, each until its answer comes back in a request of its own. */
export class RemoteClientRequests {
  private readonly waiting = new Map<string, (answer: ClientAnswer) => void>();

  /** The questions of one call. */
  ofCall(): CallQuestions {
    return new CallQuestions(this.waiting);
  }

  /** @returns false when nobody waits for it any more */
  answer(question: string, answer: ClientAnswer): boolean {
    const settle = this.waiting.get(question);
    settle?.(answer);
    return settle !== undefined;
  }
}

/** See {@link RemoteClientRequests}. What is open when the call is over ends with it. */
export class CallQuestions {
  private readonly own = new Set<string>();

  constructor(private readonly waiting: Map<string, (answer: ClientAnswer) => void>) {}

  /** @param tell passes the question on under this name */
  ask(tell: (question: string) => void): Promise<ClientAnswer> {
    const question = randomUUID();
    this.own.add(question);
    return new Promise((resolve) => {
      this.waiting.set(question, (answer) => {
        this.waiting.delete(question);
        this.own.delete(question);
        resolve(answer);
      });
      tell(question);
    });
  }

  close(): void {
    const error = { code: rpcCode.internalError, message: 'The client is gone' };
    for (const question of [...this.own]) this.waiting.get(question)?.({ error });
  }
}
