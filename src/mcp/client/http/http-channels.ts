import { Inject, Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { Egress } from '../../../platform/egress/egress.js';
import type { Channel } from '../../protocol/channel.js';
import { EraMemory } from '../../eras/era-memory.js';
import { viaMark } from '../../protocol/via.js';
import { HttpChannel } from './http-channel.js';
import type { HttpTarget } from './http-wire.js';
import { ResultStore } from '../result-cache.js';

/** Creates channels to MCP servers over HTTP. The channels share only the remembered eras of their endpoints. */
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

  /** Creates a separate channel to this target with its credentials. Dials on the first call. */
  channelTo(target: HttpTarget): Channel {
    // Hosted programs do not receive the `Via` mark.
    const marked = target.dispatcher ? target : { ...target, via: this.via };
    return new HttpChannel(target.dispatcher ?? this.egress, marked, this.eras, this.results.forChannel());
  }
}
