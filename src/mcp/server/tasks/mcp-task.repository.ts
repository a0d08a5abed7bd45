import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { LessThan, MoreThan, Repository } from 'typeorm';
import { McpTask } from './mcp-task.entity.js';

/** Interval of deleting expired rows. */
const SWEEP_EVERY_MS = 3_600_000;

/** Ids of the tasks that clients started, until the tasks expire. */
@Injectable()
export class McpTaskRepository {
  private sweptAt = 0;

  constructor(@InjectRepository(McpTask) private readonly tasks: Repository<McpTask>) {}

  /** @param lifeMs time until the task expires */
  async add(owner: string, task: string, lifeMs: number): Promise<void> {
    const now = Date.now();
    await this.tasks.insert({ owner, task, createdAt: new Date(now), expiresAt: new Date(now + lifeMs) });
    if (now - this.sweptAt < SWEEP_EVERY_MS) return;
    this.sweptAt = now;
    await this.tasks.delete({ expiresAt: LessThan(new Date(now)) });
  }

  /** The newest ids of an owner. */
  async newest(owner: string, max: number): Promise<string[]> {
    const where = { owner, expiresAt: MoreThan(new Date()) };
    const found = await this.tasks.find({ where, order: { createdAt: 'DESC' }, take: max, select: { task: true } });
    return found.map(({ task }) => task);
  }
}
