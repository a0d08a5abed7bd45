import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { WriteBehind } from '../../platform/database/write-behind.js';
import { SkillsRepository } from './skills.repository.js';

/** Counts uses of skills in memory and adds them to their rows a second later, so that no read waits for a write. */
@Injectable()
export class SkillActivations implements OnApplicationShutdown {
  private readonly counts = new WriteBehind<string, number>('skill activations', (batch) => this.write(batch));

  constructor(private readonly skills: SkillsRepository) {}

  /** Counts one use. */
  count(skillId: string): void {
    this.add(skillId, 1);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.counts.onApplicationShutdown();
  }

  private add(skillId: string, uses: number): void {
    this.counts.set(skillId, (this.counts.get(skillId) ?? 0) + uses);
  }

  private async write(batch: Map<string, number>): Promise<void> {
    try {
      await this.skills.addActivations(batch);
    } catch (error) {
      // The buffer keeps the newer of two values for a key; counts must be added instead.
      for (const [skillId, uses] of batch) this.add(skillId, uses);
      throw error;
    }
  }
}
