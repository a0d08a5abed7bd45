interface MessageLimits {
  messages: number;
  chars: number;
  answer: number;
}

let limits: MessageLimits = { messages: 10_000, chars: 64 * 1024 * 1024, answer: 16 * 1024 * 1024 };

/** Replaces limits; called once at startup. */
export function useMessageLimits(replaced: Partial<MessageLimits>): void {
  limits = { ...limits, ...replaced };
}

export function answerLimit(): number {
  return limits.answer;
}

const RENEWAL_MS = 60_000;

/**
 * Limits messages: an upstream could otherwise occupy the process with a flood of messages for as long as a call can take. On a stream
 * that stays open, each response and each minute renews the budget.
 */
export class MessageBudget {
  private messages = 0;
  private chars = 0;
  private startedAt = 0;

  constructor(private readonly isLasting = false) {}

  /** @returns the exceeded limit, as a noun phrase; null if none is exceeded */
  spend(chars: number): string | null {
    if (this.isLasting && Date.now() - this.startedAt > RENEWAL_MS) this.renew();
    this.messages += 1;
    this.chars += chars;
    if (this.messages > limits.messages) return `more than ${limits.messages} messages without a reply`;
    if (this.chars > limits.chars) return `messages of more than ${limits.chars} characters without a reply`;
    return null;
  }

  renew(): void {
    this.messages = 0;
    this.chars = 0;
    this.startedAt = Date.now();
  }
}
