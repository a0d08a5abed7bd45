import type { Channel, McpCall } from '../protocol/channel.js';
import { asCallError } from '../protocol/mcp-errors.js';

export class RefusingChannel implements Channel {
  constructor(private readonly reason: () => Error) {}

  open(): Promise<never> {
    return Promise.reject(this.reason());
  }

  request(call: McpCall): Promise<never> {
    return Promise.reject(asCallError(this.reason(), call));
  }

  listen(): Promise<never> {
    return Promise.reject(this.reason());
  }

  async release(): Promise<void> {}

  async close(): Promise<void> {}
}
