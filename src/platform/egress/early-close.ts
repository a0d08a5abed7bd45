import type { Socket } from 'node:net';
import { buildConnector } from 'undici';

/**
 * Keeps the process alive when a server closes the connection before its whole response was read. undici 7.26 to 7.30
 * then throws from socket events (`assert(!this.paused)`), uncaught. Here the response fails instead.
 */
export function surviveEarlyClose(socket: Socket): void {
  const emit = socket.emit.bind(socket) as (event: string | symbol, ...values: unknown[]) => boolean;
  socket.emit = (event: string | symbol, ...values: unknown[]) => {
    try {
      return emit(event, ...values);
    } catch (cause) {
      const error = new Error('The server closed the connection before its response was read', { cause });
      if (event === 'error') return emit('error', error);
      if (event !== 'end') throw cause;
      return Boolean(socket.destroy(error));
    }
  };
}

/** Returns a connector whose sockets have {@link surviveEarlyClose}. */
export function connectorOf(options: buildConnector.BuildOptions): buildConnector.connector {
  const connect = buildConnector(options);
  return (target, callback) =>
    connect(target, (...outcome) => {
      if (outcome[1]) surviveEarlyClose(outcome[1]);
      callback(...outcome);
    });
}
