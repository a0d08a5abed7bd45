import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { WriteBehind } from '../../platform/database/write-behind.js';
import { Skill } from './skill.entity.js';

/** Counts uses of skills, a second later and in one statement, so that no read waits for a write. */
@Injectable()
export class SkillActivations implements OnApplicationShutdown {
  private readonly counts = new WriteBehind<string, number>('skill activations', (batch) => this.write(batch));

  constructor(@InjectRepository(Skill) private readonly skills: Repository<Skill>) {}

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
      await this.skills.query(
        `UPDATE skills s SET total_activations = s.total_activations + c.uses
           FROM unnest($1::uuid[], $2::int[]) AS c(id, uses) WHERE s.id = c.id`,
        [[...batch.keys()], [...batch.values()]],
      );
    } catch (error) {
      // What was counted meanwhile must not replace it.
      for (const [skillId, uses] of batch) this.add(skillId, uses);
      throw error;
    }
  }
}
