import { Injectable } from '@nestjs/common';
import { Egress } from '../../platform/egress/egress.js';
import type { Channel } from '../channel.js';
import { EraMemory } from '../eras/era-memory.js';
import { HttpChannel } from './http-channel.js';
import type { HttpTarget } from './http-wire.js';
import { ResultStore } from './result-cache.js';

/** Makes the channels to MCP servers over HTTP, which share what is known of their endpoints and nothing else. */
@Injectable()
export class HttpChannels {
  private readonly results = new ResultStore();

  constructor(
    private readonly egress: Egress,
    private readonly eras: EraMemory,
  ) {}

  /** A channel of its own to this target, with these credentials. Nothing is dialled before the first call. */
  channelTo(target: HttpTarget): Channel {
    return new HttpChannel(target.door ?? this.egress, target, this.eras, this.results.forChannel());
  }
}
