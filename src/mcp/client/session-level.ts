import type { McpCall } from '../protocol/channel.js';

/** Log level of one upstream session. */
export class SessionLevel {
  private last: { level: string; set: Promise<unknown> } | null = null;

  /** Sets the level, unless the session has it. @param request sends the request, and rejects when it fails */
  async set(level: string, request: (call: Pick<McpCall, 'method' | 'params'>) => Promise<unknown>): Promise<void> {
    if (this.last?.level !== level) {
      this.last = { level, set: request({ method: 'logging/setLevel', params: JSON.stringify({ level }) }) };
    }
    const { last } = this;
    try {
      await last.set;
    } catch (error) {
      if (this.last === last) this.last = null;
      throw error;
    }
  }
}
