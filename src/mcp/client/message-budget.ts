/** Bounds of what an upstream may send besides answers. */
interface MessageLimits {
  messages: number;
  /** Characters of these messages together. */
  chars: number;
}

let limits: MessageLimits = { messages: 10_000, chars: 64 * 1024 * 1024 };

/** Replaces the limits of this process; called once at start. */
export function useMessageLimits(given: MessageLimits): void {
  limits = given;
}

/** Renewal of the budget of a stream that carries no answers. */
const RENEWAL_MS = 60_000;

/**
 * Budget of the messages that come with one answer. On a long-lived stream each answer renews it, and so does a minute.
 * Without it an upstream that floods its stream would use up the process for as long as a call may take.
 */
export class MessageBudget {
  private messages = 0;
  private chars = 0;
  private startedAt = 0;

  /** @param isLasting true for a stream that stays open */
  constructor(private readonly isLasting = false) {}

  /** Counts one message. @returns the limit that is exceeded, as a noun phrase; null while there is none */
  spend(chars: number): string | null {
    if (this.isLasting && Date.now() - this.startedAt > RENEWAL_MS) this.renew();
    this.messages += 1;
    this.chars += chars;
    if (this.messages > limits.messages) return `more than ${limits.messages} messages without an answer`;
    if (this.chars > limits.chars) return `messages of more than ${limits.chars} characters without an answer`;
    return null;
  }

  /** Starts anew, after an answer. */
  renew(): void {
    this.messages = 0;
    this.chars = 0;
    this.startedAt = this.isLasting ? Date.now() : 0;
  }
}
