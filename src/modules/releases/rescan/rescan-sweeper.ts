import {
  Injectable,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnModuleInit,
} from '@nestjs/common';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { Rescanner } from './rescanner.js';

/** One cheap query each time when there is nothing to do. Up to half more, so that processes do not march in step. */
const PAUSE_MS = 5_000;

/** Has published releases scanned again, in every worker process: when their time has come, and at once when somebody asks. */
@Injectable()
export class RescanSweeper implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown {
  private timer: NodeJS.Timeout | null = null;
  private isEnding = false;

  constructor(
    private readonly rescanner: Rescanner,
    private readonly pubSub: PubSub,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('releases.rescan', () => void this.rescanner.take());
  }

  onApplicationBootstrap(): void {
    this.schedule();
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.isEnding = true;
    if (this.timer) clearTimeout(this.timer);
    await this.rescanner.end();
  }

  private schedule(): void {
    this.timer = setTimeout(
      () => {
        void this.rescanner.take().then(() => {
          if (!this.isEnding) this.schedule();
        });
      },
      PAUSE_MS * (1 + Math.random() / 2),
    ).unref();
  }
}
