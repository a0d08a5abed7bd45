/** Bounds of what an upstream may send. */
interface MessageLimits {
  /** Messages besides answers. */
  messages: number;
  /** Characters of these messages together. */
  chars: number;
  /** Bytes of one response, and characters of one event. */
  answer: number;
}

let limits: MessageLimits = { messages: 10_000, chars: 64 * 1024 * 1024, answer: 16 * 1024 * 1024 };

/** Replaces the limits of this process; called once at start. */
export function useMessageLimits(replaced: Partial<MessageLimits>): void {
  limits = { ...limits, ...replaced };
}

/** Size limit of one response or event of an upstream. */
export function answerLimit(): number {
  return limits.answer;
}

/** Interval of renewal on a stream that stays open. */
const RENEWAL_MS = 60_000;

/**
 * Limits the messages that come with one response, so that an upstream cannot occupy the process with a flood of them for
 * as long as a call may take. On a stream that stays open, each response and each minute renews the budget.
 */
export class MessageBudget {
  private messages = 0;
  private chars = 0;
  private startedAt = 0;

  /** @param isLasting true for a stream that stays open */
  constructor(private readonly isLasting = false) {}

  /** Counts one message. @returns the exceeded limit, as a noun phrase; null while none is */
  spend(chars: number): string | null {
    if (this.isLasting && Date.now() - this.startedAt > RENEWAL_MS) this.renew();
    this.messages += 1;
    this.chars += chars;
    if (this.messages > limits.messages) return `more than ${limits.messages} messages without a reply`;
    if (this.chars > limits.chars) return `messages of more than ${limits.chars} characters without a reply`;
    return null;
  }

  /** Starts a new count. */
  renew(): void {
    this.messages = 0;
    this.chars = 0;
    this.startedAt = Date.now();
  }
}
