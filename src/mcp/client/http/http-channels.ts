import { Inject, Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { Egress } from '../../../platform/egress/egress.js';
import type { Channel } from '../../protocol/channel.js';
import { EraMemory } from '../../eras/era-memory.js';
import { viaMark } from '../../protocol/via.js';
import { HttpChannel } from './http-channel.js';
import type { HttpTarget } from './http-wire.js';
import { ResultStore } from '../result-cache.js';

/** Makes the channels to MCP servers over HTTP, which share what is known of their endpoints and nothing else. */
@Injectable()
export class HttpChannels {
  private readonly results = new ResultStore();
  private readonly via: string;

  constructor(
    private readonly egress: Egress,
    private readonly eras: EraMemory,
    @Inject(Env) env: Pick<Env, 'encryptionKeys'>,
  ) {
    this.via = viaMark(env);
  }

  /** A channel of its own to this target, with these credentials. Nothing is dialled before the first call. */
  channelTo(target: HttpTarget): Channel {
    // What runs here is not told by which way it was called.
    const marked = target.door ? target : { ...target, via: this.via };
    return new HttpChannel(target.door ?? this.egress, marked, this.eras, this.results.forChannel());
  }
}
