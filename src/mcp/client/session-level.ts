import type { McpCall } from '../protocol/channel.js';
import { CallerLeftError } from '../protocol/mcp-errors.js';
import { SessionLostError } from './may-resend.js';

export class SessionLevel {
  private last: { level: string; set: Promise<unknown> } | null = null;

  /** @param request sends the request @throws SessionLostError, CallerLeftError */
  async set(level: string, request: (call: Pick<McpCall, 'method' | 'params'>) => Promise<unknown>): Promise<void> {
    if (this.last?.level !== level) {
      const sent = request({ method: 'logging/setLevel', params: JSON.stringify({ level }) });
      this.last = { level, set: sent.catch((error: unknown) => this.handleFailure(level, error)) };
    }
    await this.last.set;
  }

  /** Treats the level as set, so that an unresponsive server delays only one call. */
  private handleFailure(level: string, error: unknown): void {
    if (!(error instanceof SessionLostError || error instanceof CallerLeftError)) return;
    if (this.last?.level === level) this.last = null;
    throw error;
  }
}
