import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { CallEvents, type ConnectionCall, type Invocation } from '../../extension.js';
import { EventHandlers } from './event-handlers.js';
import type { CallEvent } from './event.types.js';

/** Delivers the tool calls whose rows this process writes to the methods with `@OnEvent('call.finished')`. */
@Injectable()
export class FinishedCallsService implements OnApplicationBootstrap {
  private readonly logger = new Logger('events');

  constructor(
    private readonly callEvents: CallEvents,
    private readonly eventHandlers: EventHandlers,
  ) {}

  onApplicationBootstrap(): void {
    for (const { name, events, handle } of this.eventHandlers.find()) {
      if (!events.includes('call.finished')) continue;
      this.callEvents.on('written', (parts) => {
        for (const part of parts) {
          const event = eventOf(part);
          if (!event) continue;
          handle(event).catch((error: unknown) =>
            this.logger.error({ msg: `${name} failed for ${event.name}`, err: error }),
          );
        }
      });
    }
  }
}

/** @returns null for other methods than `tools/call`, and for later additions to a row */
function eventOf(part: Invocation | ConnectionCall): CallEvent | null {
  const { id, at, method, rpcMethod, toolName, outcome, caller } = part;
  if (rpcMethod !== 'tools/call' || method == null) return null;
  return {
    id,
    name: 'call.finished',
    at: at ?? Date.now(),
    target: 'serverId' in part ? { kind: 'server', id: part.serverId } : { kind: 'connection', id: part.connectionId },
    tool: toolName ?? null,
    outcome: outcome ?? null,
    accountId: caller?.account ?? null,
  };
}
