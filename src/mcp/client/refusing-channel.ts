import type { Channel } from '../protocol/channel.js';

/** A channel to something that cannot be called; every use rejects with the reason. */
export class RefusingChannel implements Channel {
  constructor(private readonly reason: () => Error) {}

  open(): Promise<never> {
    return Promise.reject(this.reason());
  }

  request(): Promise<never> {
    return Promise.reject(this.reason());
  }

  listen(): Promise<never> {
    return Promise.reject(this.reason());
  }

  async release(): Promise<void> {}

  async close(): Promise<void> {}
}
