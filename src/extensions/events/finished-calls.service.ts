import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { CallEvents, DecoratedMethods, type ConnectionCall, type Invocation } from '../../extension.js';
import type { CallEvent } from './event.types.js';
import { EventMarker } from './on-event.decorator.js';

@Injectable()
export class FinishedCallsService implements OnApplicationBootstrap {
  private readonly logger = new Logger('events');

  constructor(
    private readonly callEvents: CallEvents,
    private readonly decoratedMethods: DecoratedMethods,
  ) {}

  onApplicationBootstrap(): void {
    for (const { name, options, call } of this.decoratedMethods.find(EventMarker)) {
      if (!options.includes('call.finished')) continue;
      const handle = async (event: CallEvent) => call(event);
      this.callEvents.on('written', (parts) => {
        for (const event of parts.map(eventOf)) {
          if (!event) continue;
          handle(event).catch((error: unknown) =>
            this.logger.error({ msg: `${name} failed for ${event.name}`, err: error }),
          );
        }
      });
    }
  }
}

/** @returns null for methods other than `tools/call`, and for later additions to a row */
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
